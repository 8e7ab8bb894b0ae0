# cost: 27
# Wheels for older Linux, musl, Windows and macOS, made by one command: tag, contents, symbols, libraries and licences of each. Those for
# glibc are installed in environments of their own and run tests of the package, for AArch64 under qemu. Of those for musl, programs by
# zig run with the libraries, under Debian's loader of musl. Of that for Windows, wine loads the libraries as Python does, and they
# compute what those for Linux do. Of those for macOS, what they export and ask for is read.
. tools/deep/lib.sh
. tools/deep/targets.sh
./dev wheel --all
folder=$PWD/build/deep/wheels
rm -rf "$folder"
mkdir -p "$folder"

# has_tag PLATFORM TAG: auditwheel finds that the wheel of the platform fits this tag, and no older one
has_tag() {
    contents_of "$1"
    python/environment/bin/auditwheel show "$wheel" >"$folder/audit"
    grep -q "platform tag: \"$2\"" "$folder/audit" || { cat "$folder/audit" && return 1; }
    case_ok "$wheel: $2"
}
contents_of() {
    wheel=$(echo build/wheels/*"$1"*.whl)
    python3 tools/check_wheel.py "$wheel"
    case_ok "$wheel: sizes, licences, tags, RECORD"
}
# libraries_of PLATFORM: the wheel of that platform, unpacked; prints the folder of its libraries
libraries_of() {
    python3 -m zipfile -e build/wheels/*"$1"*.whl "$folder/$1"
    echo "$folder/$1/qkv/lib"
}
# symbols_of PLATFORM LIBC: no symbol of glibc that is newer than 2.17 (LIBC glibc) or none at all (musl), no library of others
symbols_of() {
    libraries=$(libraries_of "$1")
    readelf --version-info --wide "$libraries"/* | grep -o 'GLIBC_2\.[0-9]*' | sort -uV >"$folder/versions" || true
    case $2 in
    glibc) [ -s "$folder/versions" ] && [ "$(tail -n 1 "$folder/versions" | cut -d . -f 2)" -le 17 ] ;;
    musl) [ ! -s "$folder/versions" ] ;;
    esac
    readelf --dynamic --wide "$libraries"/* | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u >"$folder/needed"
    ! grep -vx 'libqkv.*\.so\.[0-9.]*\|lib\(c\|m\|pthread\|dl\)\.so\.6\|libpthread\.so\.0\|libdl\.so\.2\|libc\.musl-.*\.so\.1\|ld-linux-.*' "$folder/needed"
    case_ok "$1: $(tail -n 1 "$folder/versions")$(tr '\n' ' ' <"$folder/needed")"
}
for machine in x86_64 aarch64; do
    has_tag manylinux2014_$machine manylinux_2_17_$machine
    symbols_of manylinux2014_$machine glibc
    has_tag musllinux_1_2_$machine musllinux_1_2_$machine
    symbols_of musllinux_1_2_$machine musl
done

# declared PLATFORM TARGET: what the declarations for ctypes say is so there: sizes, offsets. names gets the functions that they bind;
# those that draw are in no library of the wheel.
declared() {
    package=$folder/$1/qkv
    PYTHONDONTWRITEBYTECODE=1 python3 tests/wheel/layout.py "$package" >"$folder/layout.c"
    build/zig/targets/"$2"/cc -c -std=c17 -Wall -Werror -Iinclude "$folder/layout.c" -o "$folder/layout.o"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$package python3 -c 'import _c; print(*_c.FUNCTIONS, sep="\n")' | sort >"$folder/bound"
    cut -d ' ' -f 1 tests/abi/libqkvview.symbols | sort | comm -23 "$folder/bound" - >"$folder/names"
    [ "$(wc -l <"$folder/names")" -gt 150 ]
    case_ok "$1: $(grep -c offsetof "$folder/layout.c") fields lie where ctypes looks for them"
}
# only_ours FILE: a list of exports has all names, and none of other libraries; some are the linker's and the C library's
only_ours() {
    comm -23 "$folder/names" "$1" >"$folder/missing"
    grep -v -e 'qkvi\{0,1\}_.*' -x -e __dso_handle -e _mh_dylib_header -e _CRT_INIT -e __mingw_module_is_dll -e atexit "$1" \
        >>"$folder/missing" || true
    [ ! -s "$folder/missing" ] || { cat "$folder/missing" && return 1; }
}

for processor in arm64 x86_64; do
    platform=macosx_11_0_$processor
    contents_of $platform
    libraries=$(libraries_of $platform)
    case $processor in arm64) declared $platform aarch64-macos.11.0 ;; *) declared $platform x86_64-macos.11.0 ;; esac
    : >"$folder/found"
    for file in "$libraries"/*; do
        python3 tools/macho.py "$file" --check >"$folder/macho" || { cat "$folder/macho" && exit 1; }
        [ "$(sed -n '1s/, .*//p' "$folder/macho")" = $processor ]
        grep -qx "is called @rpath/${file##*/}" "$folder/macho"
        python3 tools/macho.py "$file" --exports >>"$folder/found"
    done
    sort "$folder/found" >"$folder/exports"
    only_ours "$folder/exports"
    case_ok "$platform: $(wc -l <"$folder/names") functions, found beside each other, of libSystem since macOS 11"
done

# Under wine: LIBQKV LIBQKVMODEL MODEL as tests/wheel/libraries.c has them, beside those of the wheel for this system.
contents_of win_amd64
libraries=$(libraries_of win_amd64)
declared win_amd64 x86_64-windows-gnu
for file in "$libraries"/*; do objdump -p "$file"; done >"$folder/objdump"
sed -n 's/.*DLL Name: //p' "$folder/objdump" | tr 'A-Z' 'a-z' | sort -u >"$folder/needed"
if grep -v -x -e 'api-ms-win-crt-.*' -e kernel32.dll -e libqkv.dll "$folder/needed"; then exit 1; fi
awk '/Ordinal\/Name Pointer. Table/ { inside = 1; next } !NF { inside = 0 } inside { print $NF }' "$folder/objdump" | sort >"$folder/exports"
only_ours "$folder/exports"
case_ok "win_amd64: $(wc -l <"$folder/names") functions, and what every Windows 10 has"
# (In a folder above it, zig would call its own files by other names, and compile its C library again.)
root=$PWD
(cd "$folder" && "$root/build/zig/targets/x86_64-windows-gnu/cc" -O3 -s -I"$root/include" "$root/tests/wheel/libraries.c" -o libraries.exe)
cc -O1 -Iinclude tests/wheel/libraries.c -ldl -o "$folder/libraries"
cp -R "$folder/win_amd64" "$folder/Zoë 文"
use_wine
here=$folder/manylinux2014_$(uname -m)/qkv there="$folder/Zoë 文/qkv"
"$folder/libraries" "$here"/lib/libqkv.so.* "$here"/lib/libqkvmodel.so.* models/default <"$folder/names" >"$folder/computed"
wine "$folder/libraries.exe" "$there/lib/libqkv.dll" "$there/lib/libqkvmodel.dll" "$there/model" <"$folder/names" |
    tr -d '\r' >"$folder/computed_there"
cmp "$folder/computed" "$folder/computed_there"
case_ok "under wine: $(tr '\n' ';' <"$folder/computed") as on Linux"

python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install -q --disable-pip-version-check build/wheels/*manylinux2014_"$(uname -m)"*.whl
for test in test_attention test_arrays test_cache test_checked test_models test_looking; do
    (cd python/tests && "$folder/environment/bin/python" -m unittest $test)
    case_ok "$test with the wheel for glibc 2.17"
done

# Python of Debian's arm64, under qemu; pip finds the wheels by their tags.
arm64=build/deep/arm64-python
tools/arm64_root.sh $arm64 python3 libstdc++6 musl
emulated="qemu-aarch64 -L $PWD/$arm64/root"
arm64_python="$emulated $PWD/$arm64/root/usr/bin/python3"
version=$($arm64_python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$folder/environment/bin/python" -m pip install -q --disable-pip-version-check --target "$folder/arm64" --only-binary :all: \
    --platform manylinux2014_aarch64 --python-version "$version" --find-links build/wheels qkv
(cd python/tests && PYTHONPATH=$folder/arm64 PYTHONDONTWRITEBYTECODE=1 $arm64_python -m unittest test_arrays)
case_ok "test_arrays under qemu with the wheel for glibc 2.17 and AArch64"
sed "s|^python3 -|PYTHONPATH=$folder/arm64 $arm64_python -|" debian/tests/python >"$folder/test_python"
AUTOPKGTEST_TMP=$folder sh "$folder/test_python"
case_ok "attention beside NumPy, and a look at the model, under qemu"

# on_musl MACHINE LOADER…: examples, linked with the libraries of the wheel
on_musl() {
    machine=$1
    shift
    libraries=$folder/musllinux_1_2_$machine/qkv/lib
    for name in first gradient_step train_layer causal_decode onnx_step fill_mask; do
        build/zig/targets/"$machine"-linux-musl/cc -dynamic -O1 -Iinclude "examples/$name.c" "$libraries"/libqkv*.so.* -lm -o "$folder/$name"
        sh examples/expected/compare.sh "examples/expected/$name.txt" "$@" --library-path "$libraries" "$folder/$name" models/default
        case_ok "$name on musl, $machine"
    done
}
on_musl x86_64 "/lib/ld-musl-x86_64.so.1"
on_musl aarch64 $emulated $arm64/root/lib/ld-musl-aarch64.so.1
echo "$n_cases cases"
