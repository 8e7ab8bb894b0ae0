#!/bin/sh
# What `./dev lint` runs: format, layers, pictures, structs, prose, arithmetic, public headers, symbols. Each prints what is wrong; the last line says how many failed.
set -u
cd "$(dirname "$0")/.."
n_failed=0

# step NAME COMMAND...
step() {
    name=$1
    shift
    if "$@"; then
        echo "lint: $name ok"
    else
        echo "lint: $name FAILED"
        n_failed=$((n_failed + 1))
    fi
}

check_format() {
    git ls-files --cached --others --exclude-standard -- \
        'include/*.[ch]' 'src/*.[ch]' 'cli/*.[ch]' 'tests/*.[ch]' 'bench/*.[ch]' 'fuzz/*.[ch]' 'examples/*.[ch]' 'live/*.[ch]' 'src/page/web/*.js' 'live/*.js' 'live/*.mjs' 'tests/live/*.mjs' 'tests/wasm/*.mjs' |
        while IFS= read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done |
        xargs clang-format --dry-run -Werror
}
# Every test has a label: `./dev test` would never choose one that has none. No test can ask: ctest -N empties the log of its run.
check_labels() { ctest --preset release -N -LE . | tee build/labels.log | grep -qx 'Total Tests: 0' || ! cat build/labels.log; }
# A picture that no page of the documentation shows was left behind.
check_pictures() {
    ! git ls-files '*.png' | grep -v '^tests/\|^fuzz/' | while IFS= read -r file; do
        git grep -qF "${file##*/}" -- '*.md' || echo "$file: no .md names it"
    done | grep .
}
check_version() { tools/check_version.sh >/dev/null; }
check_headers() { ctest --preset release -R '^header_' --no-tests=error >build/headers.log || ! cat build/headers.log; }

step format check_format
step version check_version
step layers python3 tools/check_layers.py
step systems python3 tools/check_system.py
step circles python3 tools/check_circles.py
step names python3 tools/check_names.py
step callers python3 tools/check_callers.py
step pictures check_pictures
step structs python3 tools/check_structs.py
step prose python3 tools/check_prose.py
step "arithmetic of the tool" tools/check_tool_math.sh
step build ./dev build release
step labels check_labels
step headers check_headers
step symbols tools/check_symbols.sh build/release
step spills tools/check_spills.sh build/release
step baseline tools/check_baseline.sh build/release
echo "lint: $n_failed failed"
[ "$n_failed" -eq 0 ]
