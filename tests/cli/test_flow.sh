# `qkv look TEXT --norms` and `--rollout`: the same numbers in every file, what they are made of, and what is refused.
. ./lib.sh
m="--model $model"
text="the [MASK] opened a man."
d=$folder/d
mkdir "$d"
look() { run look "$text" $m --quiet "$@"; }

# numbers FILE: of an f32 array of version 1, one a line; rows NAME: a member of the last output, one number a line
numbers() {
    length=$(od -An -j8 -N2 -tu2 "$1" | tr -d ' ')
    od -An -v -w4 -tf4 -j$((length + 10)) "$1" | tr -d ' '
}
rows() { sed 's/.*"'"$1"'":\[\[*//; s/\]\].*//; s/\],\[/,/g' "$folder/out" | tr ',' '\n'; }
# near A B BOUND WHAT: as many numbers, and each within BOUND of the other
near() {
    check "$4: $(wc -l <"$1") numbers, not $(wc -l <"$2")" test "$(wc -l <"$1")" -eq "$(wc -l <"$2")"
    check "$4: other numbers" test "$(paste "$1" "$2" | awk -v bound="$3" '
        { d = $1 - $2; if (d < 0) d = -d; if (!(d <= bound * (1 + ($2 < 0 ? -$2 : $2)))) n++ } END { print n + 0 }')" -eq 0
}

# ---- Norms: weights times what each key has to give ------------------------------------------------
look --norms
code 0
out_says 'in percent of the largest'
out_says 'Kobayashi et al. 2020'
: >"$d/all"
for head in 0.0 0.1 1.0 1.1; do
    look --head $head --json
    rows weights >"$d/weights"
    look --norms --head $head --json
    code 0
    rows norms >"$d/norms"
    cat "$d/norms" >>"$d/all"
    check "weights beside norms" test "$(grep -c '"weights"' "$folder/out")" -eq 0
    sed 's/.*"value_norms":\[*//; s/\],"layer".*//' "$folder/out" | tr -d '][' | tr ',' '\n' |
        tail -n +$((8 * (2 * ${head%.*} + ${head#*.}) + 1)) | head -n 8 >"$d/keys"
    awk 'NR == FNR { norm[NR] = $1; next } { print $1 * norm[(FNR - 1) % 8 + 1] }' "$d/keys" "$d/weights" >"$d/products"
    near "$d/norms" "$d/products" 1e-5 "$head: weights times norms"
    look --norms --head $head -o "$d/a.npy"
    code 0
    numbers "$d/a.npy" >"$d/npy"
    near "$d/npy" "$d/norms" 1e-6 "$head.npy"
    look --norms --head $head -o "$d/a.csv"
    tail -n +2 "$d/a.csv" | cut -d, -f2- | tr ',' '\n' >"$d/csv"
    near "$d/csv" "$d/norms" 1e-7 "$head.csv"
done
look --norms -o "$d/all.npy"
code 0
check "the shape of all heads" grep -aq "'shape': (2, 2, 8, 8)" "$d/all.npy"
numbers "$d/all.npy" >"$d/npy"
near "$d/npy" "$d/all" 1e-6 all.npy
look --norms -o "$d/all.csv"
check "the first line of all heads" test "$(head -n 1 "$d/all.csv")" = layer,head,query,key,norm
look --norms --what-if drop=1 --head 0.0 --json
code 0
check "a key that is dropped has no cell" test "$(rows norms | awk 'NR % 8 == 2 && $1 != "null"' | wc -l)" -eq 0

# ---- Rollout: the product of (A + I) / 2 over layers -----------------------------------------------
look -o "$d/w.npy"
numbers "$d/w.npy" >"$d/w"
for fuse in mean max min; do
    awk -v fuse=$fuse '{ w[NR - 1] = $1 } END {
        for (i = 0; i < 8; i++) for (j = 0; j < 8; j++) r[i, j] = i == j
        for (l = 0; l < 2; l++) {
            for (i = 0; i < 8; i++) {
                sum = 0
                for (j = 0; j < 8; j++) {
                    a = w[((2 * l) * 8 + i) * 8 + j]; b = w[((2 * l + 1) * 8 + i) * 8 + j]
                    f = fuse == "mean" ? (a + b) / 2 : fuse == "max" ? (a > b ? a : b) : (a < b ? a : b)
                    m[i, j] = f + (i == j); sum += m[i, j]
                }
                for (j = 0; j < 8; j++) m[i, j] /= sum
            }
            for (i = 0; i < 8; i++) for (j = 0; j < 8; j++) {
                s[i, j] = 0
                for (k = 0; k < 8; k++) s[i, j] += m[i, k] * r[k, j]
            }
            for (i = 0; i < 8; i++) for (j = 0; j < 8; j++) r[i, j] = s[i, j]
        }
        for (i = 0; i < 8; i++) for (j = 0; j < 8; j++) print r[i, j]
    }' "$d/w" >"$d/wanted"
    look --rollout --fuse $fuse --json
    code 0
    check "the fuse" grep -q "\"fuse\":\"$fuse\"" "$folder/out"
    rows rollout >"$d/rollout"
    near "$d/rollout" "$d/wanted" 2e-6 "rollout by $fuse"
    look --rollout --fuse $fuse -o "$d/r.npy"
    code 0
    check "the shape of a rollout" grep -aq "'shape': (8, 8)" "$d/r.npy"
    numbers "$d/r.npy" >"$d/npy"
    near "$d/npy" "$d/rollout" 1e-6 "rollout by $fuse as .npy"
done
look --rollout -o "$d/r.csv"
check "tokens as the first line" test "$(head -n 1 "$d/r.csv")" = "query,[CLS],the,[MASK],opened,a,man,.,[SEP]"
look --rollout
code 0
out_says 'half the mean of its heads'
look --rollout --fuse max
out_says 'half the largest weight of its heads'

# ---- Decoders hide what follows; pairs have two towers ---------------------------------------------
run look "The man saw" --model "$here/../../models/writer" --rollout -o "$d/g.npy" --quiet
code 0
check "tokens that follow have no cell" test "$(numbers "$d/g.npy" | grep -ci nan)" -gt 0
run look "a red fox" --model "$here/../../models/translator" --decoder --rollout
code 0
out_says 'Cross-attention is left out'
run look "a red fox" --model "$here/../../models/translator" --cross --norms --head 0.0 --json
code 0
check "norms of the source's keys" grep -q '"norms"' "$folder/out"
run look "a red fox" --model "$here/../../models/translator" --cross --rollout
code 2
err_like '\-\-rollout together with --cross'

# ---- Pictures, and what is refused -----------------------------------------------------------------
for ending in svg pdf png; do
    for what in --norms "--norms --head 1.0" --rollout; do
        look $what -o "$d/p.$ending"
        code 0
    done
done
for with in "--plot received -o $d/x.png" "--slide 4" "--lens" "--against $model" "--effect -o $d/x.html"; do
    look --norms $with
    code 2
    look --rollout $with
    code 2
done
look --rollout --head 0.0
code 2
look --norms --rollout
code 2
look --norms --fuse max
code 2
err_like '\-\-fuse goes with --rollout'
look --norms -o "$d/x.html"
code 2
err_like 'which --norms writes'
look --rollout -o "$d/x.html"
code 2
err_like 'which --rollout writes'
finish
