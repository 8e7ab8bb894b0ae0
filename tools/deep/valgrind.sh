# cost: 2
# The tool under memcheck: no error, nothing definitely lost. valgrind 3.19 has no AVX-512 and says so to the program, which then
# takes AVX2 by itself.
. tools/deep/lib.sh
./dev build release
export FONTCONFIG_FILE="$PWD/build/release/fonts.conf"
qkv=build/release/qkv
data=tests/cli/data
folder=build/deep/valgrind
rm -rf "$folder"
mkdir -p "$folder"

checked() {
    echo "== qkv $*"
    valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --error-exitcode=99 \
        --suppressions=tests/valgrind.supp "$qkv" "$@" </dev/null
    n_cases=$((n_cases + 1))
}

text="I was watching the [MASK] when it opened."
checked info
for isa in scalar avx2; do
    export QKV_ISA=$isa
    checked look "$text"
    checked look --head 3.0 -o "$folder/look.png" "$text"
    for options in "" "--causal bottom-right --window 2,1" "--softcap 2 --scale 0.5" "--mask $data/additive.npy"; do
        checked attend --q $data/q.npy --k $data/k.npy --v $data/v.npy $options -o "$folder/o.npy" --lse "$folder/lse.npy" \
            --grad-out $data/grad.npy --dq "$folder/dq.npy" --dk "$folder/dk.npy" --dv "$folder/dv.npy" --threads 2
    done
    checked train --text models/default/README.md --out "$folder/model" --layers 1 --heads 2 --hidden 16 --vocab 120 \
        --steps 2 --batch 2 --len 16
    rm -rf "$folder/model"
    unset QKV_ISA
done
checked look "$text"
checked look -o "$folder/grid.png" "$text"
checked look --head 3.0 -o "$folder/look.svg" "$text"
checked look --head 3.0 -o "$folder/look.pdf" "$text"
checked look --json "$text"
checked fill "$text"
checked next "I saw a dog." "It was big."
checked tokenize "Hello, wörld"

echo "$n_cases cases"
