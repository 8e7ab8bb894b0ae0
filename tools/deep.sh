#!/bin/sh
# What `./dev test --deep [STEP…]` runs: the builds and the tests that take too long for every day. Each step is a script in
# tools/deep/ whose last line of output is "N cases"; all that it says is in build/deep/STEP.log. One line for each, and the
# totals at the end.
set -u
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- gcc clang levels tsan valgrind qemu arm64 reproducible install shells page
mkdir -p build/deep
n_ok=0 n_failed=0 n_cases=0
for step in "$@"; do
    if [ ! -f "tools/deep/$step.sh" ]; then
        echo "deep: there is no step '$step'" >&2
        exit 2
    fi
    log=build/deep/$step.log
    began=$(date +%s)
    status=0
    sh -eu "tools/deep/$step.sh" >"$log" 2>&1 || status=$?
    seconds=$(($(date +%s) - began))
    cases=$(tail -n 1 "$log" | sed -n 's/^\([0-9]*\) cases$/\1/p')
    if [ "$status" -eq 0 ] && [ "${cases:-0}" -gt 0 ]; then
        echo "deep: $step ok ($cases cases, $seconds s)"
        n_ok=$((n_ok + 1))
        n_cases=$((n_cases + cases))
    else
        tail -n 30 "$log"
        echo "deep: $step FAILED (log: $log)"
        n_failed=$((n_failed + 1))
    fi
done
echo "deep: $n_ok steps passed ($n_cases cases), $n_failed failed"
[ "$n_failed" -eq 0 ]
