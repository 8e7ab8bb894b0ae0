# torch_tests STEP MODULE…: tests of the package for Python beside torch and transformers themselves, in an environment that the
# steps of torch share (sourced). torch from PyPI takes gigabytes of the disk.
torch_tests() {
    step=$1
    shift
    wheel=$(current_wheel)
    environment=build/deep/torch_environment
    python=$PWD/$environment/bin/python
    [ -x "$python" ] || python3 -m venv $environment
    "$python" -m pip install -q --disable-pip-version-check numpy torch==2.15.0 expecttest transformers==5.24.0 pandas \
        nbclient ipykernel playwright
    "$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall "$wheel"
    cases=$PWD/build/deep/$step.cases
    # Models are made here, of random weights: nothing is looked for elsewhere.
    (cd python/tests && HF_HUB_OFFLINE=1 "$python" -W ignore -m unittest -v "$@" 2>&1) | tee "$cases"
    n_cases=$((n_cases + $(sed -n 's/^Ran \([0-9]*\) tests in .*/\1/p' "$cases")))
    grep -q '^OK' "$cases"
}
