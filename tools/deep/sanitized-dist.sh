# cost: 4.5
# AddressSanitizer and UndefinedBehaviorSanitizer on what takes longest there: schemes over ranks within one process. Tests labelled
# step_sanitized-dist; --all runs the quicker ones.
. tools/deep/lib.sh
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
built asan step_sanitized-dist
run_tests asan -L "^step_sanitized-dist\$"
echo "$n_cases cases"
