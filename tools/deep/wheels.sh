# cost: 15
# Wheels for older Linux and for musl, made by one command: the tag, symbols, libraries and licences of each. Those for glibc are
# installed in environments of their own and run tests of the package, for AArch64 under qemu. Of those for musl, programs by zig run
# with the libraries, under Debian's loader of musl; no Python imports them here.
. tools/deep/lib.sh
. tools/deep/targets.sh
./dev wheel --all
folder=$PWD/build/deep/wheels
rm -rf "$folder"
mkdir -p "$folder"

# has_tag PLATFORM TAG: auditwheel finds that the wheel of the platform fits this tag, and no older one
has_tag() {
    wheel=$(echo build/wheels/*"$1"*.whl)
    python3 tools/check_wheel.py "$wheel"
    python/environment/bin/auditwheel show "$wheel" >"$folder/audit"
    grep -q "platform tag: \"$2\"" "$folder/audit" || { cat "$folder/audit" && return 1; }
    case_ok "$wheel: sizes, licences, $2"
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
