# cost: 4
# AddressSanitizer and UndefinedBehaviorSanitizer on what takes longest there: every failing allocation of trainings, pictures and models, and kills. Tests labelled
# step_sanitized-memory; --all runs the quicker ones.
. tools/deep/lib.sh
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
built asan step_sanitized-memory
run_tests asan -L "^step_sanitized-memory\$"
echo "$n_cases cases"
