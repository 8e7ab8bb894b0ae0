# qkv.torch beside torch itself: operators, gradients, torch.compile. Not one of the steps that run without a name: torch from PyPI is
# gigabytes.
. tools/deep/lib.sh
environment=build/deep/torch_environment
python=$PWD/$environment/bin/python
[ -x "$python" ] || python3 -m venv $environment
"$python" -m pip install -q --disable-pip-version-check numpy torch expecttest
"$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall ./python
cd python/tests
"$python" -W ignore -m unittest discover -v -p "test_torch*.py" 2>&1 | tee ../../build/deep/torch.cases
n_cases=$(sed -n 's/^Ran \([0-9]*\) tests in .*/\1/p' ../../build/deep/torch.cases)
grep -q '^OK' ../../build/deep/torch.cases
echo "$n_cases cases"
