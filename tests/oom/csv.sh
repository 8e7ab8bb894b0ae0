#!/bin/sh
# csv.sh QKV PRELOADED: a table that memory runs out for is an error and no file; with memory it is written.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sentence="The man was watching the door when it opened."
status=0
LD_PRELOAD=$2 "$1" look "$sentence" -o "$folder/a.csv" >"$folder/out" 2>&1 || status=$?
"$1" look "$sentence" -o "$folder/b.csv" 2>/dev/null
[ "$(wc -c <"$folder/b.csv")" -gt 40000 ] || { echo "the table is too small for this test"; exit 1; }
[ "$status" -eq 1 ] && [ ! -e "$folder/a.csv" ] && grep -q 'out of memory' "$folder/out" && exit 0
echo "status $status, $(cat "$folder/out")"
ls -l "$folder"
exit 1
