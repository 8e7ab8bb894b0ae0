#!/bin/sh
# complete.sh OOM HEADERS: every function of the headers that returns a status is swept, and nothing else is claimed to be.
set -eu
public=$(cat "$2"/*.h | tr '\n' ' ' | grep -o 'QKV_NODISCARD  *qkv_status  *qkv_[a-z0-9_]*' | sed 's/.* //' | sort -u)
swept=$("$1" list | grep '^qkv_' | sort -u)
[ -n "$public" ] || { echo "no functions found in $2"; exit 1; }
[ "$public" = "$swept" ] && exit 0
echo "public functions and the list of swept ones differ (- not swept, + not public):"
for name in $public; do echo "$swept" | grep -qx "$name" || echo "- $name"; done
for name in $swept; do echo "$public" | grep -qx "$name" || echo "+ $name"; done
exit 1
