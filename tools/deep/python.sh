# cost: 5
# The package for Python as a wheel: its tag, size and licences; its tests with the Python that is here, types and style; the first
# tests with every other Python that is found; GGUF files beside folders. NumPy, onnx, mypy, ruff, gguf and matplotlib come from
# PyPI.
. tools/deep/lib.sh
wheel=$(current_wheel)
folder=build/deep/python
rm -rf $folder
mkdir -p $folder
case $wheel in
*-py3-none-manylinux_2_[0-2][0-9]_* | *-py3-none-manylinux_2_3[0-4]_*) n_cases=$((n_cases + 1)) ;;
*) echo "$wheel: not for glibc 2.34" && exit 1 ;;
esac
python3 tools/check_wheel.py "$wheel"
n_cases=$((n_cases + 1))

# environment_of PYTHON FOLDER PACKAGE…: the wheel in an environment of its own
environment_of() {
    with=$1 environment=$2
    shift 2
    "$with" -m venv "$environment"
    "$environment/bin/python" -m pip install -q --disable-pip-version-check "$wheel" "$@"
}
environment_of python3 $folder/environment onnx nbclient ipykernel mypy ruff gguf matplotlib
python=$PWD/$folder/environment/bin/python
cd python/tests
"$python" -m unittest -v 2>&1 | tee ../../build/deep/python.cases
cd ../..
n_cases=$((n_cases + $(sed -n 's/^Ran \([0-9]*\) tests in .*/\1/p' build/deep/python.cases)))
grep -q '^OK' build/deep/python.cases
./dev build release qkv-tool
"$python" tests/tools/test_gguf.py build/release/qkv
n_cases=$((n_cases + 1))
"$python" -m ruff check python
case_ok ruff
# A copy of what was installed, with its made modules: within site-packages mypy would take that folder for a source of its own.
mkdir -p $folder/types
cp -r "$("$python" -c 'import qkv; print(qkv.__path__[0])')" $folder/types/qkv
for platform in linux win32 darwin; do
    "$python" -m mypy --platform $platform --config-file python/pyproject.toml --cache-dir build/deep/mypy $folder/types/qkv
    case_ok "types on $platform"
done
# qkv.mpi on the ranks of mpirun, with the libqkvmpi of this machine: more ranks than cores is meant
./dev build release
if [ -e build/release/libqkvmpi.so ]; then
    "$python" -m pip install -q --disable-pip-version-check mpi4py
    mpiexec --version | grep -q 'Open MPI\|OpenRTE' && more_than_cores=--oversubscribe || more_than_cores=
    export QKV_MPI_LIBRARY=$PWD/build/release/libqkvmpi.so OMPI_MCA_mpi_yield_when_idle=1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    for size in 1 2 3 5; do
        QKV_NUM_THREADS=1 timeout "$(patience 240)" mpiexec $more_than_cores -n $size "$python" python/tests/ranks_mpi.py
        n_cases=$((n_cases + 1))
    done
fi
for version in 3.10 3.11 3.12 3.13 3.14; do
    command -v "python$version" >/dev/null && "python$version" -c 'import venv' 2>/dev/null || continue
    environment_of "python$version" "$folder/python$version"
    (cd python/tests && "../../$folder/python$version/bin/python" -m unittest test_attention test_models)
    echo "python $version: ok"
    n_cases=$((n_cases + 1))
done
echo "$n_cases cases"
