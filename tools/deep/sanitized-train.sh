# cost: 3.5
# AddressSanitizer and UndefinedBehaviorSanitizer on what takes longest there: whole networks, trainings and t-SNE. Tests labelled
# step_sanitized-train; --all runs the quicker ones.
. tools/deep/lib.sh
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
built asan step_sanitized-train
run_tests asan -L "^step_sanitized-train\$"
echo "$n_cases cases"
