# The package for Python: installed by pip into an environment of its own, its tests, types and style. NumPy, mypy and ruff come from
# PyPI.
. tools/deep/lib.sh
environment=build/deep/python_environment
python=$PWD/$environment/bin/python
[ -x "$python" ] || python3 -m venv $environment
"$python" -m pip install -q --disable-pip-version-check numpy mypy ruff
"$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall ./python
cd python/tests
"$python" -m unittest -v 2>&1 | tee ../../build/deep/python.cases
n_cases=$(sed -n 's/^Ran \([0-9]*\) tests in .*/\1/p' ../../build/deep/python.cases)
grep -q '^OK' ../../build/deep/python.cases
cd ../..
"$python" -m ruff check python
# A copy of what was installed, with its made modules: within site-packages mypy would take that folder for a source of its own.
rm -rf build/deep/python_types
mkdir -p build/deep/python_types
cp -r "$("$python" -c 'import qkv; print(qkv.__path__[0])')" build/deep/python_types/qkv
"$python" -m mypy --config-file python/pyproject.toml --cache-dir build/deep/mypy build/deep/python_types/qkv
n_cases=$((n_cases + 2))
echo "$n_cases cases"
