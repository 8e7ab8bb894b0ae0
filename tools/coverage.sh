#!/bin/sh
# What `./dev coverage [REGEX]` runs: the tests (those whose name matches) of a build that counts, then the share of lines and
# branches of src/ that ran, by folder, and the files with most lines that did not. Children that end by _exit are not counted.
# Left out are tests that bound the processor time of a case, or that take minutes where every branch is counted.
# All files, line by line: build/coverage/html/index.html.
set -eu
cd "$(dirname "$0")/.."
./dev build coverage
find build/coverage -name '*.gcda' -exec rm -f {} +
ctest --preset coverage -R "${1:-.}" -E '^(oom_|hostile_(vocab_and_text|attention_(addresses|fpstate|hidden|threads))$)' --no-tests=error -j "$(nproc 2>/dev/null || echo 2)" >build/coverage/test.log || {
    tail -n 30 build/coverage/test.log
    echo "coverage: tests failed" >&2
    exit 1
}
mkdir -p build/coverage/html
gcovr --root . --object-directory build/coverage --filter 'src/' --exclude-unreachable-branches --gcov-ignore-parse-errors \
    --csv build/coverage/files.csv --html-details build/coverage/html/index.html build/coverage >build/coverage/gcovr.log
# filename,line_total,line_covered,line_percent,branch_total,branch_covered,…
awk -F, '
    function percent(part, all) { return all ? sprintf("%5.1f %%", 100 * part / all) : "    -  " }
    function row(f) {
        return sprintf("%-22s %6d %s  %6d %s", f, lines[f], percent(ran[f], lines[f]), branches[f], percent(taken[f], branches[f]))
    }
    NR == 1 { next }
    {
        folder = $1
        sub(/\/[^\/]*$/, "", folder)
        for (k = 0; k < 2; k++) {
            f = k ? "all" : folder
            lines[f] += $2; ran[f] += $3; branches[f] += $5; taken[f] += $6
        }
        left[$1] = $2 - $3
        share[$1] = percent($3, $2)
    }
    END {
        printf "%-22s %6s %7s  %6s %7s\n", "folder", "lines", "ran", "branch", "taken"
        fflush()
        for (f in lines) if (f != "all") print row(f) | "LC_ALL=C sort"
        close("LC_ALL=C sort")
        print row("all")
    }' build/coverage/files.csv
echo
echo "lines that did not run, by file:"
awk -F, 'NR > 1 && $2 > $3 { printf "%5d  %5.1f %%  %s\n", $2 - $3, 100 * $3 / $2, $1 }' build/coverage/files.csv | sort -rn | head -20
