#!/bin/sh
# check_symbols.sh BUILD: an object of one instruction set exports its table and nothing else (else the linker could pick its
# copy of a shared function for a processor that lacks the instructions); libraries define only qkv_…, qkvi_… and qkvmpi_…;
# everything that one library takes from another is exported by its shared form.
set -eu
export LC_ALL=C
here=$(cd "$(dirname "$0")/.." && pwd)
build=$1
failed=0
fail() {
    echo "$@" >&2
    failed=1
}

# defined FILE: "object symbol" of every global definition in an archive
defined() { nm -A -g --defined-only "$1" 2>/dev/null | sed -E 's/^[^:]*:([^:]*):.* ([^ ]+)$/\1 \2/'; }

for object in $(ar t "$build/libqkv.a" | grep '^\(isa\|blocks\)_'); do # isa_avx2_attend.c.o, blocks_avx2.c.o
    name=${object%.c.o}
    case $name in
    isa_*_table) table=qkvi_$(echo "$name" | sed 's/^isa_\(.*\)_table$/\1_kernels/') ;;
    *) table=qkvi_${name#isa_} ;;
    esac
    symbols=$(defined "$build/libqkv.a" | awk -v object="$object" '$1 == object { print $2 }')
    [ "$symbols" = "$table" ] || fail "$object exports $(echo $symbols), not just $table"
done

[ "$(ar t "$build/libqkv.a" | grep -c '^isa_.*_table')" -ge 2 ] || fail "hardly any instruction set in $build/libqkv.a"

for library in libqkv libqkvmodel libqkvview libqkvmpi; do
    [ -f "$build/$library.a" ] || continue
    strangers=$(defined "$build/$library.a" | awk '$2 !~ /^qkv(i|mpi)?_/ { print $2 " (" $1 ")" }')
    [ -z "$strangers" ] || fail "$library defines names that are not ours: $(echo $strangers)"
done

# Sorted lists of names: what a library defines, what it needs, what its shared form offers.
names() { sort -u >"$lists/$1"; }
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
for library in libqkv libqkvmodel libqkvview libqkvmpi; do
    [ -f "$build/$library.a" ] || continue
    defined "$build/$library.a" | awk '{ print $2 }' | names $library.defined
    nm -u "$build/$library.a" 2>/dev/null | awk '$1 == "U" { print $2 }' | names $library.needed
    nm --dynamic --defined-only "$build/$library.so" | awk '{ sub(/@.*/, "", $3); print $3 }' | names $library.offered
done
for pair in libqkvmodel:libqkv libqkvview:libqkv libqkvview:libqkvmodel libqkvmpi:libqkv; do
    user=${pair%:*} provider=${pair#*:}
    [ -f "$build/$user.a" ] || continue
    hidden=$(comm -12 "$lists/$user.needed" "$lists/$provider.defined" | comm -23 - "$lists/$provider.offered")
    [ -z "$hidden" ] || fail "$user needs what $provider.so hides, for lack of the visibility pragma:" $hidden
done
exit $failed
