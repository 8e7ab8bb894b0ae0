# qkv.torch, qkv.transformers and qkv.inspect beside torch and transformers themselves: operators, gradients, torch.compile, models,
# heads. Not one of the steps that run without a name: torch from PyPI is gigabytes.
. tools/deep/lib.sh
environment=build/deep/torch_environment
python=$PWD/$environment/bin/python
[ -x "$python" ] || python3 -m venv $environment
"$python" -m pip install -q --disable-pip-version-check numpy torch expecttest 'transformers>=5' pandas
"$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall ./python
cd python/tests
# Models are made here, of random weights: nothing is looked for elsewhere.
HF_HUB_OFFLINE=1 "$python" -W ignore -m unittest -v test_torch test_transformers test_inspect test_readme 2>&1 |
    tee ../../build/deep/torch.cases
n_cases=$(sed -n 's/^Ran \([0-9]*\) tests in .*/\1/p' ../../build/deep/torch.cases)
grep -q '^OK' ../../build/deep/torch.cases
echo "$n_cases cases"
