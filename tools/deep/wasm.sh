# cost: 6
# WebAssembly, by zig: the kernels on simd128 and on relaxed SIMD, in wasmtime and in Node, have the bits of this processor.
. tools/deep/lib.sh
. tools/deep/wasm_tests.sh
need_wasm qkv-check-relaxed qkv-check-exact fma-tile
build/release/qkv-check --isa scalar --cases 40 --pairs 0 | tail -n 1 >"build/deep/$$.digest"

# same_digest VARIANT ENGINE COMMAND…
same_digest() {
    variant=$1 engine=$2
    shift 2
    check_kernels "$@" "build/wasm/qkv-check-$variant.wasm" --cases 40 --pairs 0
    grep '^instruction sets: .*wasm' "$check_log"
    tail -n 1 "$check_log" | cmp - "build/deep/$$.digest"
    case_ok "$variant in $engine: $(cat "build/deep/$$.digest"), here, too"
}
seed=$(date +%s)
in_node tests/wasm/run.mjs build/wasm/fma-tile.wasm 60000 "$seed" >"$check_log" || {
    cat "$check_log"
    exit 1
}
case_ok "the tile of exact FMA, seed $seed: $(tail -n 1 "$check_log")"
same_digest relaxed wasmtime "$wasm_python" tests/wasm/run.py
same_digest exact wasmtime "$wasm_python" tests/wasm/run.py
same_digest exact node in_node tests/wasm/run.mjs
# Node 22 knows relaxed SIMD, Node 20 does not: what a browser without it says, too, before it takes the other module.
if node -e 'process.exit(parseInt(process.versions.node) < 22)'; then
    same_digest relaxed node in_node tests/wasm/run.mjs
else
    if node --no-warnings tests/wasm/run.mjs build/wasm/qkv-check-relaxed.wasm 2>"$check_log"; then exit 1; fi
    grep -i 'CompileError.*invalid\|CompileError.*relaxed' "$check_log"
    case_ok "an engine without relaxed SIMD refuses the module"
fi
rm "build/deep/$$.digest"
echo "$n_cases cases"
