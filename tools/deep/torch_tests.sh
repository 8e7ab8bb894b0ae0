# qkv.torch, qkv.transformers, qkv.inspect and the notebooks beside torch and transformers themselves: operators, gradients,
# torch.compile, models, heads. torch from PyPI takes gigabytes of the disk.
. tools/deep/lib.sh
wheel=$(echo build/wheel/*"$(uname -m).whl")
[ -e "$wheel" ] && [ -z "$(find src include python/src python/native -newer "$wheel" -name '*.[chp]*' | head -n 1)" ] || ./dev wheel
wheel=$(echo build/wheel/*"$(uname -m).whl")
environment=build/deep/torch_environment
python=$PWD/$environment/bin/python
[ -x "$python" ] || python3 -m venv $environment
"$python" -m pip install -q --disable-pip-version-check numpy torch==2.15.0 expecttest transformers==5.24.0 pandas \
    nbclient ipykernel playwright
"$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall "$wheel"
cd python/tests
# Models are made here, of random weights: nothing is looked for elsewhere.
HF_HUB_OFFLINE=1 "$python" -W ignore -m unittest -v test_torch test_torch_compile test_torch_replaced test_torch_threads \
    test_torch_distributed test_transformers test_inspect test_cell test_readme test_notebooks 2>&1 | tee ../../build/deep/torch.cases
n_cases=$(sed -n 's/^Ran \([0-9]*\) tests in .*/\1/p' ../../build/deep/torch.cases)
grep -q '^OK' ../../build/deep/torch.cases
echo "$n_cases cases"
