#!/bin/sh
# What `./dev test --deep [STEP…]` runs: the builds and the tests that take too long for every day. Each step is a script in
# tools/deep/, run by tools/deep_step.sh: one line for each, and the totals at the end. Steps that keep one core busy (emulators,
# valgrind, the checker of kernels) come last and run beside each other, one for each core.
set -u
cd "$(dirname "$0")/.."
narrow="arm64 qemu levels valgrind" # the longest first
[ $# -gt 0 ] || set -- fonts clang tsan ubsan mpich reproducible install shells page python torch $narrow
mkdir -p build/deep
beside="" n_steps=0
rm -f build/deep/*.passed build/deep/*.seconds
for step in "$@"; do
    if [ ! -f "tools/deep/$step.sh" ]; then
        echo "deep: there is no step '$step'" >&2
        exit 2
    fi
    n_steps=$((n_steps + 1))
    case " $narrow " in
    *" $step "*) beside="$beside $step" ;;
    *) sh tools/deep_step.sh "$step" ;;
    esac
done
[ -z "$beside" ] || printf '%s\n' $beside | xargs -n 1 -P "$(nproc 2>/dev/null || echo 2)" sh tools/deep_step.sh
n_ok=0 n_cases=0
for passed in build/deep/*.passed; do
    [ -f "$passed" ] || continue
    n_ok=$((n_ok + 1))
    n_cases=$((n_cases + $(cat "$passed")))
done
echo "deep: $n_ok steps passed ($n_cases cases), $((n_steps - n_ok)) failed"
[ "$n_ok" -eq "$n_steps" ]
