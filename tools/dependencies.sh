#!/bin/sh
# dependencies.sh PRESET: what a preset of cmake/zig.cmake needs, as cmake/dependencies.txt lists it: zig in build/zig, and the
# libraries, static, for its target, in build/PRESET/root. Nothing is installed: apt-get has lists and a cache of its own in
# build/sources, made from the system's sources.
set -eu
cd "$(dirname "$0")/.."
preset=$1
target=$(sed -n "/\"name\": \"$preset\"/,/}/s/.*\"QKV_ZIG_TARGET\": \"\([^\"]*\)\".*/\1/p" CMakePresets.json)
[ -n "$target" ] || { echo "dependencies.sh: CMakePresets.json has no target for '$preset'" >&2; exit 1; }
zig=$PWD/build/zig
programs=$zig/targets/$target
sources=$PWD/build/sources
root=$PWD/build/$preset/root
# WebAssembly has no longjmp of its own: an exception does it. zlib and libpng take this macro for Mac OS 9.
longjmp="" old_mac=""
case $target in
wasm*) longjmp="-mexception-handling -mllvm -wasm-enable-sjlj" ;;
*macos*) old_mac=-UTARGET_OS_MAC ;;
esac

# get_zig PACKAGE VERSION HASH…
get_zig() {
    wanted="$1==$2"
    shift 2
    [ "$(cat "$zig/version" 2>/dev/null)" != "$wanted" ] || return 0
    python3 -m venv --clear "$zig"
    echo "$wanted $(printf -- '--hash=sha256:%s ' "$@")" >"$zig/requirements.txt"
    "$zig/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r "$zig/requirements.txt"
    (cd "$zig" && ln -s lib/python3*/site-packages/ziglang/zig zig)
    echo "$wanted" >"$zig/version"
}
# CMake wants a program for each task, zig is one for all.
write_programs() {
    mkdir -p "$programs"
    for program in "cc -target $target -fno-sanitize=undefined" ar ranlib rc; do
        name=$programs/${program%% *}
        [ ! -x "$name" ] || continue
        printf '#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR="%s" ZIG_LOCAL_CACHE_DIR="%s"\nexec "%s" %s "$@"\n' \
            "$zig/cache" "$zig/cache" "$zig/zig" "$program" >"$name"
        chmod +x "$name"
    done
}

own_apt_get() {
    apt-get -qq -o Dir::State="$sources" -o Dir::State::status="$sources/status" -o Dir::Cache="$sources/cache" \
        -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$sources/parts" \
        -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}
# The system's sources, asked for source packages instead of binary ones.
list_sources() {
    mkdir -p "$sources/parts" "$sources/lists/partial" "$sources/cache/archives/partial"
    : >"$sources/status"
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$sources/parts/${list##*/}"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >"$sources/parts/own-${list##*/}"
    done
    own_apt_get update
}
# are_right FILE HASH…
are_right() { (cd "$sources" 2>/dev/null && printf '%s %s\n' "$@" | awk '{ print $2 "  " $1 }' | sha256sum --check --status 2>/dev/null); }
# get_source PACKAGE[=VERSION] FILE HASH…
get_source() {
    package=$1
    shift
    are_right "$@" && return
    [ -n "$listed" ] || list_sources
    listed=yes
    (cd "$sources" && own_apt_get source --download-only "$package") || true
    are_right "$@" || { echo "dependencies.sh: apt-get has no $package with the files of cmake/dependencies.txt" >&2; exit 1; }
}

# Small: little of the tool's time is theirs. What of them is not called is left out when it is linked, and our shared libraries show
# none of them. (zig compiles its C library again for every set of options: those of a build type are not used to ask what the
# target has.)
flags="-Os -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -fno-unwind-tables -fvisibility=hidden"
configure() {
    folder=$1
    shift
    cmake -G Ninja -S "$folder" -B "$folder/build" --toolchain "$PWD/cmake/zig.cmake" "-DQKV_ZIG_TARGET=$target" "-DQKV_ROOT=$root" \
        "-DCMAKE_INSTALL_PREFIX=$root" -DCMAKE_INSTALL_LIBDIR:STRING=lib -DCMAKE_BUILD_TYPE=MinSizeRel -DBUILD_SHARED_LIBS=OFF \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_EXE_LINKER_FLAGS=-s -Wno-dev \
        "-DCMAKE_C_FLAGS_MINSIZEREL=$flags" "$@"
}
by_cmake() {
    configure "$@"
    cmake --build "$folder/build"
    cmake --install "$folder/build"
}
# What has no way to leave out its programs or its shared library: one target, and its files by hand.
part_by_cmake() {
    folder=$1 part=$2 archive=$3 headers=$4 description=$5
    shift 5
    configure "$folder" "$@"
    cmake --build "$folder/build" --target "$part"
    mkdir -p "$root/lib/pkgconfig" "$root/include"
    (
        cd "$folder/build"
        cp $headers "$root/include"
        cp "$(find . -name '*.a')" "$root/lib/$archive"
        cp "$description" "$root/lib/pkgconfig"
    )
}
# licence NAME FILE…
licence() {
    name=$1
    shift
    mkdir -p "$root/share/licences"
    cat "$@" >"$root/share/licences/$name.txt"
}
# build_source PACKAGE[=VERSION] FILE HASH…
build_source() {
    package=${1%=*}
    shift
    [ "$(cat "$root/$package" 2>/dev/null)" != "$flags $*" ] || return 0
    here=$PWD/build/$preset/sources/$package
    rm -rf "$here"
    mkdir -p "$here" "$root"
    tar -xf "$sources/$1" -C "$here" --strip-components=1
    [ $# -eq 2 ] || (
        cd "$here"
        tar -xf "$sources/$3"
        grep -v '^#' debian/patches/series | while read -r change; do patch --strip=1 --input="debian/patches/$change"; done
    )
    case $package in
    zlib)
        mkdir -p "$here/win32" && : >"$here/win32/zlib1.rc" # Debian leaves it out, and CMake looks for it
        part_by_cmake "$here" zlibstatic libz.a "zconf.h ../zlib.h" zlib.pc "-DCMAKE_C_FLAGS=$old_mac"
        licence zlib "$here/LICENSE"
        ;;
    jansson)
        by_cmake "$here" -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
        licence jansson "$here/LICENSE"
        ;;
    utf8proc)
        by_cmake "$here"
        licence utf8proc "$here/LICENSE.md"
        ;;
    libpng*)
        by_cmake "$here" -DPNG_SHARED=OFF -DPNG_TESTS=OFF "-DZLIB_ROOT=$root" "-DCMAKE_C_FLAGS=$longjmp$old_mac"
        licence png "$here/LICENSE"
        ;;
    libjpeg*)
        part_by_cmake "$here" jpeg-static libjpeg.a "jconfig.h ../jpeglib.h ../jmorecfg.h ../jerror.h" pkgscripts/libjpeg.pc \
            -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_SIMD=OFF "-DCMAKE_C_FLAGS=$longjmp"
        licence jpeg62-turbo "$here/LICENSE.md" "$here/README.ijg"
        ;;
    esac
    echo "$flags $*" >"$root/$package"
}

listed=""
grep -v '^#' cmake/dependencies.txt | while read -r kind name arguments; do
    if [ "$kind" = zig ]; then
        get_zig "$name" $arguments
        write_programs
    else
        get_source "$name" $arguments
        build_source "$name" $arguments
    fi
done
# What a program with musl, WASI's libc or mingw-w64 inside has to bring along.
libc=$(echo "$zig"/lib/python3*/site-packages/ziglang/lib/libc)
case $target in
*musl*) licence musl "$libc/musl/COPYRIGHT" ;;
*wasi*) licence wasi-libc "$libc"/wasi/LICENSE* "$libc/musl/COPYRIGHT" ;;
*windows*) # that of its threads is the first comment of their files
    sed '/\*\//q' "$libc/mingw/winpthreads/thread.c" >"$root/winpthreads"
    licence mingw-w64 "$libc/mingw/COPYING" "$root/winpthreads"
    ;;
esac
