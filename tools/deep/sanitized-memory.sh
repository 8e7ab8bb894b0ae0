# cost: 4
# What takes longest under AddressSanitizer and UndefinedBehaviorSanitizer: every failing allocation of trainings, pictures and models; kills.
. tools/deep/lib.sh
sanitized_step memory
echo "$n_cases cases"
