#!/bin/sh
# Writes anew what is committed of what the tool says: update.sh QKV. Then `git diff` shows what changed.
set -eu
qkv=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$(dirname "$0")"
for test in usage manual; do
    UPDATE=1 sh "test_$test.sh" "$qkv" "$folder/$test"
done
