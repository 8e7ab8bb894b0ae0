#!/bin/sh
# deep_step.sh STEP: runs tools/deep/STEP.sh, whose last line of output is "N cases". Prints one line, and the end of the log if it
# failed; all that it says is in build/deep/STEP.log. N is in build/deep/STEP.passed if it passed, and how long it
# took in build/deep/STEP.seconds. QKV_TIDY=1 removes what no later step needs: all together takes 20 GB of the disk. (The step
# fonts is the last that runs tests of the build asan.)
set -u
cd "$(dirname "$0")/.."
step=$1
log=build/deep/$step.log
began=$(date +%s)
status=0
sh -eu "tools/deep/$step.sh" >"$log" 2>&1 </dev/null || status=$?
seconds=$(($(date +%s) - began))
echo "$seconds" >"build/deep/$step.seconds"
cases=$(tail -n 1 "$log" | sed -n 's/^\([0-9]*\) cases$/\1/p')
if [ "$status" -eq 0 ] && [ "${cases:-0}" -gt 0 ]; then
    echo "$cases" >"build/deep/$step.passed"
    echo "deep: $step ok ($cases cases, $seconds s)"
else
    printf '%s\ndeep: %s FAILED (log: %s)\n' "$(tail -n 30 "$log")" "$step" "$log"
fi
if [ "${QKV_TIDY:-0}" = 1 ]; then
    [ "$step" != fonts ] || rm -rf build/asan
    rm -rf "build/$step" "build/deep/${step}_environment"
fi
