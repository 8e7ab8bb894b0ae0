#!/bin/sh
# run.sh BUILD FOLDER: installs BUILD into a prefix in FOLDER, compares what is there with files.txt, moves it, and builds and
# runs strangers' programs against it: with pkg-config and with find_package, shared and static, as C and as C++17. The last
# line counts what was checked. FOLDER should have a space in its path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
n_checked=0
checked() {
    echo "ok: $*"
    n_checked=$((n_checked + 1))
}

version=$("$here/../../tools/check_version.sh")
series=${version%.*} # as in the SONAME

# The list: whatever is installed.
first=$folder/first
rm -rf "$first" "$folder/moved" "$folder/static" "$folder/programs" "$folder/cmake"
cmake --install "$build" --prefix "$first"
(cd "$first" && find . ! -type d | sed 's/^..//' | LC_ALL=C sort) >"$folder/files.txt"
{
    cat "$here/files.txt"
    [ ! -f "$build/libqkvmpi.a" ] || cat "$here/files_mpi.txt"
} | sed "s/VERSION$/$version/; s/SERIES$/$series/" | LC_ALL=C sort >"$folder/listed.txt"
diff "$folder/listed.txt" "$folder/files.txt" || {
    echo "installed files have changed (<: committed list tests/install/files.txt, >: installed)" >&2
    exit 1
}
checked "$(grep -c . "$folder/files.txt") files, as listed"
! grep -rlF "$first" "$first" || {
    echo "these files name the place where they were installed" >&2
    exit 1
}
checked "no file names the prefix"

# Everything from here on happens at another place; one copy has static libraries only.
prefix=$folder/moved
mv "$first" "$prefix"
cp -R "$prefix" "$folder/static"
find "$folder/static" -name '*.so*' -exec rm {} +
"$prefix/bin/qkv" look "I saw the [MASK]." >/dev/null
checked "the tool runs"

# interrupted "qkv …": runs it until it has printed the address that it serves, in the file out; then one signal, as Ctrl-C sends
interrupted() {
    (eval "exec $1") &
    tries=0
    until grep -q '^http' out || ! kill -0 $! || [ $((tries += 1)) -gt 6000 ]; do sleep 0.1; done
    kill -s INT $!
    wait $! && grep -q '^http' out
}

# Examples run anywhere: those of the tutorial, and of each command's help. Left out are those that need a user's files or models, or minutes.
mkdir -p "$folder/elsewhere"
(cd "$folder/elsewhere" && "$prefix/bin/qkv" learn all --pictures . >/dev/null 2>&1)
checked "qkv learn, with $(find "$folder/elsewhere" -name '*.png' | wc -l) pictures"
for command in $("$prefix/bin/qkv" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    COLUMNS=200 "$prefix/bin/qkv" help "$command" | sed -n 's/^    qkv //p'
done | grep -v 'q\.npy\|q\.csv\|\.jpg\|e5-small\|opus-mt\|pairs\.tsv\|^bench\|^check\|> ~' >"$folder/examples.txt"
(cd "$folder/elsewhere" && PATH="$prefix/bin:$PATH" && export PATH && while IFS= read -r line; do
    line=$(printf '%s\n' "$line" | sed 's/--steps [0-9]*/--steps 2 --layers 1 --heads 1 --hidden 16/')
    case $line in *--steps*) ;; train*) line="$line --steps 2" ;; esac
    case $line in *--serve*) run=interrupted ;; *) run=eval ;; esac
    $run "qkv $line" </dev/null >out 2>err || {
        echo "after installation: qkv $line: $(cat err)" >&2
        exit 1
    }
done <"$folder/examples.txt")
[ "$(wc -l <"$folder/examples.txt")" -ge 30 ]
checked "$(wc -l <"$folder/examples.txt") examples of help"

# runs PROGRAM WHAT KIND: it works, and needs our libraries at run time only if it is to
runs() {
    LD_LIBRARY_PATH=$prefix/lib "$1" "$folder/picture.png" >"$1.txt"
    needed=$(readelf -d "$1" | grep -c 'NEEDED.*libqkv' || true)
    case $3 in shared) [ "$needed" -gt 0 ] ;; *) [ "$needed" -eq 0 ] ;; esac
    checked "$2, $3: $(cat "$1.txt")"
}

# pkg-config quotes the spaces of its answer for a shell.
mkdir -p "$folder/programs"
for kind in shared static; do
    case $kind in shared) tree=$prefix static= ;; *) tree=$folder/static static=--static ;; esac
    export PKG_CONFIG_PATH="$tree/lib/pkgconfig"
    for pair in attend:qkv picture:qkvview; do
        source=$here/outside/${pair%:*}.c
        flags="$(pkg-config --cflags "${pair#*:}") -Wall -Wextra -Werror"
        libraries=$(pkg-config $static --libs "${pair#*:}")
        for compiler in "gcc -std=c99 -x c" "g++ -std=c++17 -x c++"; do
            out=$folder/programs/${pair%:*}_${compiler%% *}_$kind
            eval "$compiler \"\$source\" -x none $flags -o \"\$out\" $libraries"
            runs "$out" "pkg-config, ${compiler%% -x*}" $kind
        done
    done
done

cmake -S "$here/outside" -B "$folder/cmake" -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" "-DQKV_SERIES=$series"
cmake --build "$folder/cmake"
for kind in shared static; do
    for language in c cxx; do
        for program in attend picture; do
            runs "$folder/cmake/${program}_${language}_$kind" "find_package, $language" $kind
        done
    done
done
echo "$n_checked cases"
