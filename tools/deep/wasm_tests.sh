# What steps of WebAssembly share (sourced after lib.sh).
wasm_python=build/deep/wasm_environment/bin/python

# Node 20 may crash while it ends, after the last line of the program: by SIGSEGV, or by SIGTRAP where V8 found it. Who looks at that line,
# or at files, sees whether the program came to its end.
in_node() {
    node --no-warnings "$@" || case $? in 133 | 139) ;; *) return 1 ;; esac
}

# need_wasm TARGET…: these of the preset wasm, the release build's tool and checker, Node, and wasmtime of PyPI
need_wasm() {
    ./dev build release qkv-tool qkv-check
    ./dev build wasm "$@"
    [ -x $wasm_python ] || python3 -m venv build/deep/wasm_environment
    $wasm_python -c 'import wasmtime' 2>/dev/null || $wasm_python -m pip install -q --disable-pip-version-check wasmtime
}
