# torch_tests STEP MODULE…: tests of the package for Python beside torch and transformers themselves, in an environment that the
# steps of torch share (sourced). torch from PyPI takes gigabytes of the disk. The package is that of a wheel, with the libraries of
# the release build: the step python tests the wheel itself, whose build takes longer than some of these tests.
package=build/deep/torch_package
torch_package() {
    ./dev build release
    rm -rf $package
    mkdir -p $package
    cp -r python/src/qkv $package/qkv
    mkdir $package/qkv/lib $package/qkv/model
    for library in libqkv libqkvmodel libqkvview; do
        cp -L build/release/$library.so.?.? $package/qkv/lib/
    done
    cp models/default/*.json models/default/vocab.txt models/default/model.safetensors $package/qkv/model/
    python3 python/make_bindings.py include/qkv $package/qkv/_c.py
    cc -std=c17 -O2 -shared -fPIC -fvisibility=hidden -Iinclude python/native/torch_bridge.c -o $package/qkv/lib/libqkvtorch.so \
        -Lbuild/release -lqkv "-Wl,-rpath,\$ORIGIN"
}

torch_tests() {
    step=$1
    shift
    torch_package
    environment=build/deep/torch_environment
    python=$PWD/$environment/bin/python
    [ -x "$python" ] || python3 -m venv $environment
    "$python" -m pip install -q --disable-pip-version-check numpy torch==2.15.0 expecttest transformers==5.24.0 pandas \
        nbclient ipykernel playwright
    cases=$PWD/build/deep/$step.cases
    # Models are made here, of random weights: nothing is looked for elsewhere.
    export HF_HUB_OFFLINE=1 PYTHONPATH="$PWD/$package"
    (cd python/tests && "$python" -W ignore -m unittest -v "$@" 2>&1) | tee "$cases"
    n_cases=$((n_cases + $(sed -n 's/^Ran \([0-9]*\) tests in .*/\1/p' "$cases")))
    grep -q '^OK' "$cases"
}
