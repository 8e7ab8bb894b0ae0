#!/bin/sh
# check_spills.sh BUILD: the tile kernels of the vector instruction sets keep their accumulators in registers: no instruction of
# theirs moves a vector to or from the stack.
set -eu
build=$1
failed=0
for isa in avx2 avx512; do
    object=$(find "$build/CMakeFiles/qkv.dir" -name "isa_$isa.c.o" 2>/dev/null | head -1)
    [ -n "$object" ] || continue
    spills=$(objdump -d --no-show-raw-insn "$object" | awk '
        /^[0-9a-f]+ <.*>:$/ { name = $2; tile = name ~ /<(attend_scores|attend_values|small_scores|small_values)_[0-9]+>|<gemm_tile>/; n += tile }
        tile && /[yz]mm/ && /\(%r[sb]p[,)]/ { print name, $0 }
        END { if (!n) print "no tile kernel found in", "'"$object"'" }')
    [ -z "$spills" ] && continue
    printf '%s\n' "$spills" >&2
    failed=1
done
exit $failed
