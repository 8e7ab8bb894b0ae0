#!/bin/sh
# What `./dev test [--all | REGEX]` runs. Without arguments: the quick tests of the release build, then tests of parsers under
# AddressSanitizer and UndefinedBehaviorSanitizer (labels: cmake/test_labels.cmake). With --all: every test of the release build but
# those of a step of --deep, then the unit, property, golden, fuzz, hostile and memory tests under the sanitizers but for those of
# its steps sanitized-*. With REGEX: the tests whose name matches, those of steps of --deep too, where these are of the release
# build.
# The last line counts single cases: those that cmocka names, and one for each program of another kind. The full output stays in
# build/<preset>/test.log, where the last line of a test says how much CPU it took.
set -eu
cd "$(dirname "$0")/.."
no_tests=error # an empty suite is a failure, unless it was asked for
only=${1:-}
[ "$only" != --all ] || only=.
case $only in "" | .) ;; *) no_tests=ignore ;; esac
n_passed=0
n_failed=0

# run_preset PRESET TARGET OPTION…: builds, runs the tests that the options of ctest choose, adds to the totals
run_preset() {
    preset=$1 target=$2
    shift 2
    ./dev build "$preset" "$target"
    log=build/$preset/Testing/Temporary/LastTest.log
    rm -f "$log"
    status=0
    ctest --preset "$preset" "$@" --no-tests="$no_tests" -j "$(nproc 2>/dev/null || echo 2)" || status=$?
    passed=0 failed=0
    if [ -f "$log" ]; then
        read -r passed failed <<COUNTS
$(sh tools/count_cases.sh "$log")
COUNTS
        cp "$log" "build/$preset/test.log"
    fi
    if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
    if [ "$passed" -eq 0 ] && [ "$no_tests" = error ]; then failed=1; fi # ctest found tests, their log none
    summary="$summary
$preset: $passed passed, $failed failed"
    n_passed=$((n_passed + passed))
    n_failed=$((n_failed + failed))
}

summary=""
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
if [ -z "$only" ]; then
    run_preset release all -L quick
    run_preset parsers parser_tests -L parser
else
    [ "$only" = . ] && without=deep || without=none # a test that is named runs, whatever it costs
    run_preset release all -R "$only" -LE "$without"
    run_preset asan sanitized_tests -R "$only" -L '^sanitized$'
fi
echo "$summary"
echo "$n_passed passed, $n_failed failed"
[ "$n_failed" -eq 0 ] && [ "$n_passed" -gt 0 ]
