#!/bin/sh
# check_hardening.sh BUILD: the tool and the libraries of a release build have what SECURITY.md promises (cmake/hardening.cmake): guarded stacks,
# checked calls of the C library, tables of addresses that are read-only after the start, no stack that runs code, a tool that
# lies anywhere, and marks of the processor's control-flow protection: in every object, and in what is linked as far as the C
# library's start files have them.
set -eu
export LC_ALL=C
build=$1
failed=0 n_checked=0
fail() {
    echo "check_hardening: $*" >&2
    failed=1
}
# holds FILE WHAT PATTERN COMMAND…: what the command says has a line of the pattern
holds() {
    file=$1 what=$2 pattern=$3
    shift 3
    n_checked=$((n_checked + 1))
    "$@" 2>/dev/null | grep -Eq -e "$pattern" || fail "$file: no $what"
}

machine=$(readelf -hW "$build/libqkv.so" | sed -n 's/^ *Machine: *//p')
case $machine in
*X86-64*) marks='x86 feature: IBT, SHSTK' linked='x86 feature:.*SHSTK' ;;
AArch64) marks='AArch64 feature: BTI, PAC' linked= ;;
*) marks= linked= ;;
esac
# Clang for AArch64 knows stack probes only from version 18 on: no check looks for them.

for name in libqkv libqkvmodel libqkvview qkv; do
    file=$build/$name
    [ "$name" = qkv ] || file=$build/$name.so
    [ -f "$file" ] || {
        fail "$file is missing"
        continue
    }
    holds "$file" "GNU_RELRO" ' GNU_RELRO ' readelf -lW "$file"
    holds "$file" "stack without code" ' GNU_STACK .* RW ' readelf -lW "$file"
    holds "$file" "BIND_NOW" 'BIND_NOW|Flags:.* NOW' readelf -dW "$file"
    holds "$file" "__stack_chk_fail" ' UND __stack_chk_fail' readelf -W --dyn-syms "$file"
    holds "$file" "checked call (__…_chk)" ' UND __[a-z]+_chk(@|$)' readelf -W --dyn-syms "$file"
    [ -z "$linked" ] || holds "$file" "mark of shadow stacks" "$linked" readelf -nW "$file"
    case $name in
    qkv)
        holds "$file" "PIE: type DYN" 'Type: *DYN' readelf -hW "$file"
        holds "$file" "PIE: flag" 'Flags:.* PIE' readelf -dW "$file"
        ;;
    *)
        holds "$build/$name.a" "__stack_chk_fail" ' UND __stack_chk_fail' readelf -sW "$build/$name.a"
        [ -n "$marks" ] || continue
        n_checked=$((n_checked + 1))
        n_objects=$(ar t "$build/$name.a" 2>/dev/null | grep -c .) || true
        n_marked=$(readelf -nW "$build/$name.a" 2>/dev/null | grep -c "$marks") || true
        [ "$n_marked" -eq "$n_objects" ] && [ "$n_objects" -gt 0 ] || fail "$build/$name.a: $n_marked of $n_objects objects have \"$marks\""
        ;;
    esac
done
echo "check_hardening: $n_checked checks"
exit $failed
