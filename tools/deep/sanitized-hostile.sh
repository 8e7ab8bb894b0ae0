# cost: 3.5
# AddressSanitizer and UndefinedBehaviorSanitizer on what takes longest there: attention with hostile arguments, threads and forks. Tests labelled
# step_sanitized-hostile; --all runs the quicker ones.
. tools/deep/lib.sh
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
built asan step_sanitized-hostile
run_tests asan -L "^step_sanitized-hostile\$"
echo "$n_cases cases"
