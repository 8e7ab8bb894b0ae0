# cost: 4.5
# What takes longest under AddressSanitizer and UndefinedBehaviorSanitizer: schemes over ranks within one process.
. tools/deep/lib.sh
sanitized_step dist
echo "$n_cases cases"
