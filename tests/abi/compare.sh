#!/bin/sh
# compare.sh LIBRARY: its exported symbols with their versions must be those of LIBNAME.symbols here. A symbol that went missing
# breaks programs; a new one is a promise. If the change is meant:
#     sh tests/abi/compare.sh --print LIBRARY >tests/abi/LIBNAME.symbols
set -eu
here=$(dirname "$0")

exported() {
    LC_ALL=C nm --dynamic --defined-only --with-symbol-versions "$1" |
        LC_ALL=C awk '$2 != "A" { sub(/@@?/, " ", $3); print $3 }' | LC_ALL=C sort
}

if [ "$1" = --print ]; then
    exported "$2"
    exit
fi
name=$(basename "$1")
if ! difference=$(exported "$1" | diff "$here/${name%%.*}.symbols" -); then
    echo "exported symbols of $name have changed (<: committed list, >: library):" >&2
    echo "$difference" >&2
    exit 1
fi
