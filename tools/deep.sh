#!/bin/sh
# What `./dev test --deep [STEP…]` runs: the builds and the tests that take too long for every day. Each step is a script
# tools/deep/STEP.sh that stands alone and begins with "# cost: M", its minutes on the reference processor; its last line of output is
# "N cases". "page" means all steps page-*; no STEP means every one. Prints a line for each, the end of its log if it failed, and the
# totals. All that a step says is in build/deep/STEP.log.
set -u
cd "$(dirname "$0")/.."
mkdir -p build/deep
steps=$(grep -l '^# cost: ' tools/deep/*.sh | sed 's|^tools/deep/\(.*\)\.sh$|\1|')
chosen=""
for name in "$@"; do
    found=$(printf '%s\n' $steps | grep -x "$name\(-.*\)\{0,1\}") || {
        echo "deep: there is no step '$name', of" $steps >&2
        exit 2
    }
    chosen="$chosen $found"
done
[ $# -gt 0 ] || chosen=$steps
QKV_TEST_PACE=${QKV_TEST_PACE:-$(tools/pace.sh)}
export QKV_TEST_PACE

n_steps=0 n_ok=0 n_cases=0
for step in $chosen; do
    log=build/deep/$step.log
    began=$(date +%s)
    status=0
    sh -eu "tools/deep/$step.sh" >"$log" 2>&1 </dev/null || status=$?
    cases=$(tail -n 1 "$log" | sed -n 's/^\([0-9]*\) cases$/\1/p')
    n_steps=$((n_steps + 1))
    if [ "$status" -eq 0 ] && [ "${cases:-0}" -gt 0 ]; then
        n_ok=$((n_ok + 1))
        n_cases=$((n_cases + cases))
        echo "deep: $step ok ($cases cases, $(($(date +%s) - began)) s)"
    else
        printf '%s\ndeep: %s FAILED (log: %s)\n' "$(tail -n 30 "$log")" "$step" "$log"
    fi
done
echo "deep: $n_ok steps passed ($n_cases cases), $((n_steps - n_ok)) failed"
[ "$n_ok" -eq "$n_steps" ]
