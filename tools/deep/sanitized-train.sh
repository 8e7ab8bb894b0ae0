# cost: 3.5
# What takes longest under AddressSanitizer and UndefinedBehaviorSanitizer: whole networks, trainings and t-SNE.
. tools/deep/lib.sh
sanitized_step train
echo "$n_cases cases"
