# cost: 3.5
# What takes longest under AddressSanitizer and UndefinedBehaviorSanitizer: attention with hostile arguments, threads and forks.
. tools/deep/lib.sh
sanitized_step hostile
echo "$n_cases cases"
