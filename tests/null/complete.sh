#!/bin/sh
# complete.sh NULLS HEADERS: every public function that takes pointers is called with each of them NULL.
# Those of mpi.h need mpiexec: tests/mpi calls them.
set -eu
public=$(ls "$2"/*.h | grep -v '/mpi[.]h$' | xargs cat | grep -v '^#' | tr '\n' ' ' | sed 's|/\*|\n/*|g; s|\*/|*/\n|g' | grep -v '^/\*' | tr '\n' ' ' | tr ';{}' '\n\n\n' |
    sed -n 's/.*QKV_API *\(QKV_NODISCARD\)* //p' |
    sed 's/(\*[a-z_]*)([^()]*)/*/g' |
    awk -F'[(]' '{ n = gsub(/[^,]*[*[][^,]*/, "", $2); name = $1; gsub(/.*[ *]/, "", name); if (n) print name, n }' | sort -u)
called=$("$1" list | sort -u)
[ -n "$public" ] || { echo "no functions found in $2"; exit 1; }
[ "$public" = "$called" ] && exit 0
echo "public functions and their pointers, and those that are called with NULL (< public, > called):"
printf '%s\n' "$public" >public.txt
printf '%s\n' "$called" | diff public.txt - || true
exit 1
