#!/bin/sh
# check_baseline.sh BUILD: only the objects of an instruction set use its registers; everything else runs on any x86-64. A name
# with a v in front, or a ymm or zmm register, is AVX or later. (bench/suite/peak_loops.c measures each set, in functions made for it, and asks
# the processor first. tzcnt is how compilers spell bsf.)
set -eu
build=$1
failed=0
for library in qkv qkvmodel qkvview qkv-commands qkv-tool; do
    find "$build/CMakeFiles/$library.dir" -name '*.o' ! -name 'isa_avx*' ! -name 'blocks_avx*' ! -name 'amx.c.o' ! -name 'peak_loops.c.o'
done >"$build/baseline.objects"
[ "$(grep -c . "$build/baseline.objects")" -gt 50 ] || {
    echo "check_baseline: hardly any objects in $build" >&2
    exit 1
}
while IFS= read -r object; do
    later=$(objdump -d --no-show-raw-insn "$object" | grep -E '^ +[0-9a-f]+:\s+(v[a-z0-9]+ .*%[xyz]mm|.*%[yz]mm|k[a-z]+ .*%k[0-7]|(andn|bextr|bls[a-z]+|lzcnt|mulx|pdep|pext|rorx|s[ahr][lr]x|popcnt|movbe) )' | head -3) || true
    [ -z "$later" ] && continue
    echo "$object: instructions of a later processor:" >&2
    printf '%s\n' "$later" >&2
    failed=1
done <"$build/baseline.objects"
rm -f "$build/baseline.objects"
exit $failed
