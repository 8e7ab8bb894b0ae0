#!/bin/sh
# check_symbols.sh BUILD: an object of one instruction set exports its table and nothing else (else the linker could pick its
# copy of a shared function for a processor that lacks the instructions); libraries define only qkv_… and qkvi_…;
# everything that the other libraries take from libqkv is exported by libqkv.so.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=$1
failed=0
fail() {
    echo "$@" >&2
    failed=1
}

# defined FILE: "object symbol" of every global definition in an archive
defined() { LC_ALL=C nm -A -g --defined-only "$1" 2>/dev/null | sed -E 's/^[^:]*:([^:]*):.* ([^ ]+)$/\1 \2/'; }

for source in "$here"/src/kernels/isa_*.c; do
    object=$(basename "$source")
    isa=${object#isa_}
    symbols=$(defined "$build/libqkv.a" | awk -v object="$object.o" '$1 == object { print $2 }')
    [ "$symbols" = "qkvi_kernels_${isa%.c}" ] ||
        fail "$object exports $(echo $symbols), not just qkvi_kernels_${isa%.c}"
done

for library in libqkv libqkvmodel libqkvview; do
    [ -f "$build/$library.a" ] || continue
    strangers=$(defined "$build/$library.a" | awk '$2 !~ /^qkvi?_/ { print $2 " (" $1 ")" }')
    [ -z "$strangers" ] || fail "$library defines names that are not ours: $(echo $strangers)"
done

exported=$(LC_ALL=C nm --dynamic --defined-only "$build/libqkv.so" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u)
ours=$(defined "$build/libqkv.a" | awk '{ print $2 }' | sort -u)
for library in libqkvmodel libqkvview; do
    [ -f "$build/$library.a" ] || continue
    for symbol in $(LC_ALL=C nm -u "$build/$library.a" 2>/dev/null | awk '{ print $2 }' | sort -u); do
        printf '%s\n' "$ours" | grep -qx "$symbol" || continue
        printf '%s\n' "$exported" | grep -qx "$symbol" ||
            fail "$library needs $symbol, which libqkv.so hides: its header lacks the visibility pragma"
    done
done
exit $failed
