# cost: 3
# AddressSanitizer and UndefinedBehaviorSanitizer on what takes longest there: properties and explanations of attention. Tests labelled
# step_sanitized-attention; --all runs the quicker ones.
. tools/deep/lib.sh
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
built asan step_sanitized-attention
run_tests asan -L "^step_sanitized-attention\$"
echo "$n_cases cases"
