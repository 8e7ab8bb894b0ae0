#!/bin/sh
# check_spills.sh BUILD: the tile kernels of the vector instruction sets keep their accumulators in registers. Compiled by gcc,
# no instruction of theirs moves a vector to or from the stack; compiled by clang, none inside the innermost loops that
# multiply and add (it may park a finished tile on its way to memory). Below %rbp there are locals, above it there are none.
# Of scores the loops count in both: a tile that is finished with maxima or a mask takes more registers than there are. (Saving
# the lower halves of v8 to v15, as AArch64 demands of functions, moves d registers.) Tiles of class dp count where they are
# made of its instruction.
set -eu
build=$1
failed=0 n_objects=0
for isa in avx2 avx512 avx512bf16 neon; do
    objects=$(find "$build/CMakeFiles/qkv.dir" -name "isa_${isa}_*.c.o" 2>/dev/null | sort)
    [ -n "$objects" ] || continue
    n_objects=$((n_objects + 1))
    case $isa in
    neon)
        objdump=$(command -v aarch64-linux-gnu-objdump || echo objdump)
        spill='(str|stp|stur|ldr|ldp|ldur|st1|ld1)[ \t]+[{]?[qv][0-9].*\[(sp|x29)'
        sum='fml[as][ \t]'
        ;;
    *)
        objdump=objdump
        spill='[yz]mm.*(\(%rsp[,)]|-0x[0-9a-f]*\(%rbp[,)])|(\(%rsp[,)]|-0x[0-9a-f]*\(%rbp[,)]).*[yz]mm'
        sum="vfmadd|vdpbf16ps"
        ;;
    esac
    if $objdump -s -j .comment $(echo "$objects" | head -1) | cut -c 45- | tr -d '\n' | grep -q clang; then whole=0; else whole=1; fi
    spills=$($objdump -d --no-show-raw-insn $objects | spill=$spill sum=$sum awk -v isa="$isa" -v whole="$whole" '
        function hex(text,  n, k) {
            for (k = 1; k <= length(text); k++) n = 16 * n + index("0123456789abcdef", substr(text, k, 1)) - 1
            return n
        }
        # A conditional jump backward closes a loop; one without another inside it is innermost. Prints the spills that count.
        function report(  k, l, inner) {
            for (k = 1; k <= n_spills; k++) {
                inner = whole && name !~ /(attend|dp)_scores/
                for (l = 1; l <= n_loops && !inner; l++)
                    inner = first[l] <= at[k] && at[k] <= last[l] && sums[l]
                if (inner) print name, line[k]
            }
            n_spills = n_loops = n_sums = 0
        }
        /^[0-9a-f]+ <.*>:$/ {
            report()
            name = $2
            tile = name ~ /<(attend_scores|attend_values|small_scores|small_values)_[0-9]+>|<gemm_tile>/
            if (isa == "avx512bf16") tile = tile || name ~ /<(dp_scores|dp_values)_[0-9]+>|<dp_tile>/
            n_tiles += tile
        }
        !tile || !/^ / { next }
        { sub(/:$/, "", $1); here = hex($1) }
        $0 ~ ENVIRON["spill"] && !/vp?broadcast/ { at[++n_spills] = here; line[n_spills] = $0 }
        $0 ~ ENVIRON["sum"] { sum_at[++n_sums] = here }
        $2 ~ /^(j[^m]|b\.|cbn?z|tbn?z)/ { # its target is the last word, but for the name of the place
            to = $0
            sub(/ <.*/, "", to)
            sub(/.*[ \t]/, "", to)
            to = hex(to)
            if (to > here) next
            n_loops++
            first[n_loops] = to
            last[n_loops] = here
            sums[n_loops] = 0
            for (l = 1; l <= n_sums; l++) if (sum_at[l] >= first[n_loops]) sums[n_loops] = 1
            for (l = 1; l < n_loops; l++) if (first[l] > first[n_loops]) sums[n_loops] = 0
        }
        END { report(); if (!n_tiles) print "no tile kernel found in the objects of", isa }')
    [ -z "$spills" ] && continue
    printf '%s\n' "$spills" >&2
    failed=1
done
[ "$n_objects" -gt 0 ] || {
    echo "check_spills: no object of a vector instruction set in $build" >&2
    failed=1
}
exit $failed
