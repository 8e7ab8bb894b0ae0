# Shared by the steps (sourced).
jobs=$(nproc 2>/dev/null || echo 2)

# preset_tests PRESET CTEST_ARGUMENTS…: builds the preset, runs tests of it, adds the cases to n_cases. At most two at a time:
# some start threads of their own.
n_cases=0
# What another compiler could give other bits. Files and texts, it could not.
computing='^(unit|prop|golden)_|^check$'
preset_tests() {
    preset=$1
    shift
    ./dev build "$preset"
    last=build/$preset/Testing/Temporary/LastTest.log
    rm -f "$last"
    ctest --preset "$preset" --no-tests=error -j 2 "$@"
    read -r passed failed <<COUNTS
$(sh tools/count_cases.sh "$last")
COUNTS
    [ "$failed" -eq 0 ]
    n_cases=$((n_cases + passed))
}

# check_kernels COMMAND…: runs qkv-check, adds its cases to n_cases; what it says stays in check_log
check_log=build/deep/$$.check
check_kernels() {
    "$@" >"$check_log" || {
        cat "$check_log"
        return 1
    }
    cat "$check_log"
    n_cases=$((n_cases + $(awk '$3 == "cases," { n += $2 } END { print n }' "$check_log")))
}
trap 'rm -f "$check_log"' EXIT
