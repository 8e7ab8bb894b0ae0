# cost: 7
# The live page: in Chromium and in Firefox from disk, beside the tool, byte by byte; the package in Node.
. tools/deep/lib.sh
. tools/deep/wasm_tests.sh
./dev live
folder=build/deep/live
images="models/seer tests/golden/image/files"
mkdir -p $folder
seed=$(date +%s)
echo "seed $seed"
python3 -c 'import json, sys
sys.path.insert(0, "tests/live")
from sentences import sentences
print("\n".join(json.dumps(text) for text in sentences(30, int(sys.argv[1]))))' "$seed" >$folder/lines
for module in build/live/qkv-wasm/engine-*.wasm; do
    # Node 20 has no relaxed SIMD
    case $module in *relaxed*) node -e 'process.exit(parseInt(process.versions.node) < 22 ? 1 : 0)' || continue ;; esac
    rm -rf $folder/pages
    mkdir $folder/pages
    in_node tests/live/engine.mjs "$module" models/default $folder/lines $images $folder/pages
    python3 tests/live/compare.py build/release/qkv $folder/lines $images $folder/pages
    in_node tests/live/hostile.mjs "$module" models/default tests/golden/gguf/tiny.gguf "$seed" >$folder/log 2>&1 || {
        cat $folder/log
        exit 1
    }
    grep '^FAILED' $folder/log && exit 1
    grep ' cases$' $folder/log
    case_ok "$module"
done
(cd build/live/qkv-wasm && in_node --input-type=module -e '
    import {load} from "qkv-wasm";
    const {engine, name} = await load();
    console.log(name, engine.look("the [MASK] opened").predictions[0].candidates[0].token)')
case_ok "the package"

python=$(browser_python)
# browser_tests PROGRAM [ARGUMENT…]: its last line is "N cases"
browser_tests() {
    program=$1
    shift
    "$python" "tests/live/$program.py" build/release/qkv build/live/qkv.html $folder "$@" | tee $folder/log
    n_cases=$((n_cases + $(tail -n 1 $folder/log | cut -d ' ' -f 1)))
    ! grep '^FAILED' $folder/log
}
browser_tests live 50 "$seed"
browser_tests firefox
echo "$n_cases cases"
