#!/bin/sh
# abi_dump.sh FOLDER: what programs see of each library in build/dist's packages of Debian, types included, as FOLDER/NAME.abi
# (libabigail). tests/abi has those of the last release, by abi_dump.sh tests/abi && gzip -n tests/abi/*.abi.
set -eu
cd "$(dirname "$0")/.."
folder=$1
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
printf '[suppress_function]\nname_regexp = ^qkvi_\ndrop = yes\n[suppress_variable]\nname_regexp = ^qkvi_\ndrop = yes\n' >"$unpacked/private"
for package in build/dist/libqkv*0.1_*.deb build/dist/libqkv*0.1-dbgsym_*.deb; do dpkg -x "$package" "$unpacked"; done
for library in qkv qkvmodel qkvview qkvmpi; do
    abidw --headers-dir include/qkv --drop-private-types --suppressions "$unpacked/private" --no-comp-dir-path --no-corpus-path \
        --no-show-locs --type-id-style hash --debug-info-dir "$unpacked/usr/lib/debug" "$unpacked"/usr/lib/*/lib$library.so.0.1 \
        >"$folder/lib$library.abi"
done
