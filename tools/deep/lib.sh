# Shared by the steps (sourced). A step runs alone: it builds what it needs, and takes what another one has left only if that is
# up to date. "# cost: N" in its first line is how many minutes it takes on the reference machine of HACKING.md where nothing
# but what --all builds is there.

n_cases=0
# case_ok WORDS…: one case more, which is what the words say
case_ok() {
    echo "ok: $*"
    n_cases=$((n_cases + 1))
}
# What another compiler could give other bits. Files and texts, it could not.
computing='^(unit|prop|golden)_|^check$'

# preset_tests PRESET CTEST_ARGUMENTS…: builds the preset, runs tests of it, adds the cases to n_cases. At most two at a time:
# some start threads of their own.
preset_tests() {
    preset=$1
    shift
    ./dev build "$preset"
    run_tests "$preset" "$@"
}
run_tests() {
    preset=$1
    shift
    last=build/$preset/Testing/Temporary/LastTest.log
    rm -f "$last"
    ctest --preset "$preset" --no-tests=error -j 2 "$@"
    read -r passed failed <<COUNTS
$(sh tools/count_cases.sh "$last")
COUNTS
    [ "$failed" -eq 0 ]
    n_cases=$((n_cases + passed))
}

# some_tests PRESET "TARGET…" CTEST_ARGUMENTS…: the same, but of the preset only the programs of these tests are built, and the targets
some_tests() {
    preset=$1 targets=$2
    shift 2
    cmake --preset "$preset" -DQKV_TESTS=ON
    ninja -C "build/$preset" -t targets all | sed -n 's/: .*//p' | sort >"build/$preset/known.targets"
    programs=$(ctest --preset "$preset" -N "$@" | sed -n 's/^ *Test *#[0-9]*: //p' | sort | comm -12 - "build/$preset/known.targets")
    cmake --build --preset "$preset" --target bounded $programs $targets
    run_tests "$preset" "$@"
}

# sanitized_step NAME: the tests labelled step_sanitized-NAME; --all runs quicker ones of the same folders
sanitized_step() {
    export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
    export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
    built asan "step_sanitized-$1"
    run_tests asan -L "^step_sanitized-$1\$"
}

# built PRESET TARGET…
built() {
    preset=$1
    shift
    cmake --preset "$preset" -DQKV_TESTS=ON
    cmake --build --preset "$preset" --target "$@"
}

# patience SECONDS: as long as nothing takes but what hangs, on a machine that is QKV_TEST_PACE times slower than the reference
patience() { awk -v seconds="$1" -v pace="${QKV_TEST_PACE:-4}" 'BEGIN { printf "%.0f", seconds * pace }'; }

# current_wheel: the wheel of this source; it is made again if anything that it is made of is newer
current_wheel() {
    wheel=$(echo build/wheel/*"$(uname -m).whl")
    [ -e "$wheel" ] && [ -z "$(find src include python/src python/native python/CMakeLists.txt python/pyproject.toml CMakeLists.txt models/default \
        -newer "$wheel" -type f | head -n 1)" ] || ./dev wheel >&2
    echo build/wheel/*"$(uname -m).whl"
}

# browser_python: the Python of an environment with Playwright and axe-core of PyPI, which is made the first time
browser_python() {
    environment=$PWD/build/deep/page_environment
    [ -x "$environment/bin/python" ] || python3 -m venv "$environment" >&2
    "$environment/bin/python" -c 'import playwright, axe_playwright_python' 2>/dev/null ||
        "$environment/bin/python" -m pip install -q --disable-pip-version-check playwright axe-playwright-python >&2
    echo "$environment/bin/python"
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
