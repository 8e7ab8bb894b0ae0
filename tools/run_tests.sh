#!/bin/sh
# What `./dev test [REGEX]` runs: every test of the release build, then the unit, property, golden, hostile and memory tests
# under AddressSanitizer and UndefinedBehaviorSanitizer. With REGEX, only the tests whose name matches. The last line counts single
# cases: those that cmocka names, and one for each program of another kind. The full output stays in build/<preset>/test.log.
set -eu
cd "$(dirname "$0")/.."
only=${1:-.}
no_tests=error # an empty suite is a failure, unless it was asked for
[ "$only" = . ] || no_tests=ignore
n_passed=0
n_failed=0

# run_preset PRESET REGEX: builds, tests, adds to the totals
run_preset() {
    preset=$1
    regex=$2
    echo "== $preset: building"
    ./dev build "$preset"
    log=build/$preset/Testing/Temporary/LastTest.log
    rm -f "$log"
    status=0
    ctest --preset "$preset" -R "$regex" --no-tests="$no_tests" -j "$(nproc 2>/dev/null || echo 2)" || status=$?
    passed=0 failed=0
    if [ -f "$log" ]; then
        read -r passed failed <<COUNTS
$(sh tools/count_cases.sh "$log")
COUNTS
        cp "$log" "build/$preset/test.log"
    fi
    if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
    summary="$summary
$preset: $passed passed, $failed failed"
    n_passed=$((n_passed + passed))
    n_failed=$((n_failed + failed))
}

summary=""
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
run_preset release "$only"
run_preset asan "^(unit|prop|golden|fuzz|hostile|oom)_.*($only)"
echo "$summary"
echo "$n_passed passed, $n_failed failed"
[ "$n_failed" -eq 0 ] && [ "$n_passed" -gt 0 ]
