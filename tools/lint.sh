#!/bin/sh
# What `./dev lint` runs: format, layers, public headers, symbols. Each prints what is wrong; the last line says how many failed.
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
        'include/*.[ch]' 'src/*.[ch]' 'cli/*.[ch]' 'tests/*.[ch]' 'bench/*.[ch]' 'fuzz/*.[ch]' 'examples/*.[ch]' 'src/view/page/*.js' |
        while IFS= read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done |
        xargs clang-format --dry-run -Werror
}
check_headers() { ctest --preset release -R '^header_' --no-tests=error >build/headers.log || ! cat build/headers.log; }

step format check_format
step layers tools/check_layers.sh
step build ./dev build release
step headers check_headers
step symbols tools/check_symbols.sh build/release
step spills tools/check_spills.sh build/release
step baseline tools/check_baseline.sh build/release
echo "lint: $n_failed failed"
[ "$n_failed" -eq 0 ]
