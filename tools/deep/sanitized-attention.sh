# cost: 3
# What takes longest under AddressSanitizer and UndefinedBehaviorSanitizer: properties and explanations of attention.
. tools/deep/lib.sh
sanitized_step attention
echo "$n_cases cases"
