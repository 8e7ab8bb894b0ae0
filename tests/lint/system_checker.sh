#!/bin/sh
# system_checker.sh CHECKER: tools/check_system.py complains of what it must, and of nothing else.
set -eu
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/core" "$tree/src/files" "$tree/cli/common"

# verdict FILE LINES...: "ok" or the complaints of a tree with that file
verdict() {
    case $1 in cli/*) file=$tree/$1 ;; *) file=$tree/src/$1 ;; esac
    shift
    printf '%s\n' "$@" >"$file"
    if python3 "$checker" "$tree" >"$tree/out"; then echo ok; else grep -c 'common/os.h\|core/os.h' "$tree/out"; fi
    rm "$file"
}
expect() {
    want=$1
    shift
    got=$(verdict "$@")
    [ "$got" = "$want" ] && return
    echo "of $*: $got instead of $want" >&2
    failed=1
}
checker=$1
failed=0
printf '#include <fcntl.h>\n#if defined(__linux__)\n#endif\n' >"$tree/src/core/os_posix.c"
cp "$tree/src/core/os_posix.c" "$tree/cli/common/os_posix.c"
expect ok files/a.c '#include <stdio.h>' '#include <pthread.h>' '#if defined(__x86_64__) || defined(__clang__)'
expect 1 files/a.c '#include <fcntl.h>'
expect 1 files/a.c '#include <sys/stat.h>'
expect 1 files/a.h '  #  include <windows.h>'
expect 2 files/a.c '#ifdef _WIN32' '#elif defined(__APPLE__)'
expect 1 core/a.c '#if !defined(X) && defined(__GLIBC__)'
expect 1 core/os.h '#ifdef O_TMPFILE'
expect 1 cli/common/a.c '#include <sys/stat.h>'
expect ok files/a.c '/* #include <fcntl.h> */' 'int __linux__;'
exit $failed
