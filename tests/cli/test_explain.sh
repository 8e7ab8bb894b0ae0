# qkv explain: transcripts of each kind of lesson, what they say about differences, pages, JSON, and what is refused.
. ./lib.sh
d=$folder/d
mkdir "$d"
sentence="I was watching the [MASK] when it opened."

# ---- Transcripts -------------------------------------------------------------------------------

run explain
code 0
no_err
out_is explain_example
run explain "$sentence" --shapes
code 0
no_err
out_is explain_text
out_like '^Layer 3, head 0: \[MASK\] looks at opened with 0\.881$'
check "the head and query that look shows" "$qkv" look "$sentence" >"$folder/out"
out_like '^Layer 3, head 0  \[MASK\] looks at opened with 0\.88$'
run explain --no-scale
code 0
no_err
out_is explain_no_scale
run explain --positions --length 12 --dim 32
code 0
no_err
out_is explain_positions
run explain --shuffle
code 0
no_err
out_is explain_shuffle

# ---- The steps and the library agree ------------------------------------------------------------

# Every line of the last step has a difference below 1e-5.
for where in "--head 0.0 --query 0" "--head 2.3 --query it" "--head 3.1 --query [SEP]" "--layer 1 --head 2"; do
    run explain "$sentence" $where
    code 0
    check "small differences at $where" awk '
        /largest difference/ { on = 1; next }
        on && $NF ~ /e-/ { n++; if ($NF + 0 >= 1e-5) exit 1 }
        END { if (n != 6) exit 1 }' "$folder/out"
done
run explain "the [MASK] opened a man." --model "$model" --pair "it left."
code 0
out_like ' segment 0 '
run explain "$sentence" --query 9 --json
code 0
no_err
cp "$folder/out" "$d/a.json"
out_like '^{"layer":[0-3],"head":[0-3],"query":9,"tokens":\["\[CLS\]",'
out_like '"differences":{"embedded":[0-9.e-]*,"q":'
check "weights of --json are those of attend" awk 'BEGIN { RS = "\"weights\":\\[" } NR == 2 {
    n = split($0, w, /[],]/); for (i = 1; i <= 11; i++) sum += w[i]; exit !(sum > 0.999999 && sum < 1.000001) }' "$folder/out"
for threads in 1 3; do
    run explain "$sentence" --query 9 --json --threads $threads
    check "other bytes with $threads threads" cmp -s "$folder/out" "$d/a.json"
done
for isa in scalar avx2 avx512 neon; do
    "$qkv" info | grep -q "instructions.* $isa" || continue
    run explain "$sentence" --query 9 --json --isa $isa
    check "other bytes of $isa" cmp -s "$folder/out" "$d/a.json"
done
feed '"the door"' explain --jsonl
code 0
out_like '^{"layer":'
run explain --no-scale --json --seed 3
code 0
out_like '^{"seed":3,"n_keys":64,"rows":\[{"d":4,"scale":1\.0,"variance":'

# Without positions each word has the same output; with them it has not.
for seed in 0 1 2 3; do
    run explain --shuffle "Anna was watching the door when it opened." --seed $seed
    code 0
    check "blind: seed $seed" test "$(tr '\n' ' ' <"$folder/out" | grep -o 'difference  *[0-9.e-]*[0-9]' | awk '
        { d[++n] = $2 + 0 } END { print (n == 2 && d[1] < 1e-5 && d[2] > 0.01) }')" = 1
done

# ---- Vectors without a model -------------------------------------------------------------------

run explain --query river --causal
code 0
no_err
out_is explain_causal
out_like '^    4  bank .* -∞ .* 0\.000'
for query in fish near the river bank; do
    for causal in "" --causal; do
        run explain --query $query $causal
        code 0
        check "small differences of $query" test "$(tr '\n' ' ' <"$folder/out" | grep -o 'difference: o [0-9.e+-]*, *log Σ exp s [0-9.e+-]*[0-9]' |
            awk '{ print ($3 + 0 < 1e-6 && $NF + 0 < 1e-6) }')" = 1
    done
done
weights=$here/../../models/default/model.safetensors:bert.embeddings
arrays="--q $weights.token_type_embeddings.weight --k $weights.position_embeddings.weight"
run explain $arrays --v $weights.position_embeddings.weight --query 1
code 0
no_err
out_like '^Query 1 of 2 and 48 keys$'
out_like '^ *24 others '
out_like 'Largest difference: o [0-9.]*e-0[789], '
run explain $arrays --v $weights.token_type_embeddings.weight
code 1
err_like 'position_embeddings.weight has 48 rows, .*token_type_embeddings.weight has 2$'
run explain --q $weights.LayerNorm.weight --k $weights.LayerNorm.weight --v $weights.LayerNorm.weight
code 1
err_like 'not an array of numbers of \[n, channels\]'

# ---- Scores alone ------------------------------------------------------------------------------

run explain --scores 4,-1,2.1
code 0
no_err
out_is explain_scores
run explain --scores "-1e3, -inf ,1000,999.5" --json
code 0
no_err
out_like '^{"scores":\[-1000.0,null,1000.0,999.5\],"weights":\[0.0,0.0,0.622459[0-9]*,0.377540[0-9]*\],"lse":1000.474[0-9]*,"entropy":0.662[0-9]*,"difference":'
run explain --scores 3,2,1
code 0
out_like '^    2  1.000 .* 0.090 '
for scores in "1,,2" "1,nan" "inf" "1e39" "1 2" "x" "1,2,"; do
    run explain --scores "$scores"
    code 2
    err_like "^qkv explain: --scores: '.*', number [0-9]*, is no number from -1e38 to 1e38, nor -inf"
done
usage explain "--scores: all are -inf, so no key is seen: there are no weights" explain --scores=-inf,-inf
usage explain "--scores: more than 100" explain --scores "$(seq -s , 101)"
run explain --scores "$(seq -s , 100)" -o "$d/page.html"
code 0
for with in hello --no-scale --positions --shuffle "--query 1" --causal --shapes "--head 0.0" "--model $model" "--seed 1" "--weights int8" --ids; do
    run explain --scores 1,2 $with
    code 2
done
for with in "--weights int8" --check-finite --truncate --ids; do
    usage explain "${with% *} without a TEXT" explain $with
    usage explain "${with% *} together with --positions" explain --positions $with
done

# ---- How it is shown ---------------------------------------------------------------------------

run explain "$sentence" --ascii
code 0
check "ASCII" test "$(LC_ALL=C grep -c '[^ -~]' "$folder/out")" -eq 0
for columns in 20 40 60 200 1000; do
    said="COLUMNS=$columns qkv explain"
    COLUMNS=$columns "$qkv" explain "$sentence" >"$folder/out" 2>"$folder/err"
    got=$?
    code 0
    no_err
done
# Columns that have no room stand below the others, under their names.
for columns in 30 31 36 40 47 59 80; do
    narrow $columns explain
    for name in 'k 0' water money q·k '−max' weight '|x|'; do out_says "$name"; done
done
narrow 30 explain --no-scale
for name in variance largest gradient entropy; do out_like " $name\( \|$\)"; done
# A long text: the keys with the largest weights, and the rest summed up.
long=$(for i in 1 2 3 4 5; do printf 'the man saw the dog and '; done)
run explain "$long" --head 0.1
code 0
out_like ' others '
out_like ' Σ  *[0-9.]*  *1\.000'

# ---- Pages -------------------------------------------------------------------------------------

page() {
    run explain "$@" -o "$d/page.html"
    code 0
    no_out
    check "no script" test "$(grep -ciE '<script|http[^-]|javascript|url\(' "$d/page.html")" -eq 0
    check "a policy" grep -q "default-src 'none'" "$d/page.html"
    check "as many sections ended as begun" test \
        "$(grep -o '<section' "$d/page.html" | wc -l)" -eq "$(grep -o '</section' "$d/page.html" | wc -l)"
}
page "$sentence" --shapes
err "qkv: wrote $d/page.html"
check "a step" grep -q '<h2>Mix the values</h2>' "$d/page.html"
check "16 steps" test "$(grep -c '^<section' "$d/page.html")" -eq 16
page
page --no-scale
page --positions --length 5 --dim 6
check "a map" test "$(grep -o '<rect x' "$d/page.html" | wc -l)" -eq 30
page --shuffle
# What a token holds stays text.
mkdir "$d/hostile"
cp "$model/config.json" "$model/model.safetensors" "$d/hostile/"
sed 's/^door$/<b>/; s/^man$/\&"x"/; s/^dog$/‮x/' "$model/vocab.txt" >"$d/hostile/vocab.txt"
page "the < b > man [MASK]" --model "$d/hostile"
check "no tag from a token" test "$(grep -ciE '<b>|<b ' "$d/page.html")" -eq 0
check "no direction from a token" test "$(grep -c '‮' "$d/page.html")" -eq 0

# ---- Pictures ----------------------------------------------------------------------------------

for kind in png svg pdf; do
    for lesson in --no-scale "--positions --length 20 --dim 33"; do
        run explain $lesson -o "$d/a.$kind"
        code 0
        no_out
        err "qkv: wrote $d/a.$kind"
        "$qkv" explain $lesson -o "$d/b.$kind" --quiet
        check "other bytes of $kind" cmp -s "$d/a.$kind" "$d/b.$kind"
    done
done
check "the caption" grep -q 'Colours run from -1 to 1' "$d/a.svg"
run explain --positions --length 1 --dim 2 -o "$d/a.png" --theme dark
code 0

# ---- Refused -----------------------------------------------------------------------------------

usage explain "--query: '5' is none of fish, near, the, river, bank, nor 0 to 4" explain --query 5
usage explain "--query together with --no-scale" explain --no-scale --query 1
usage explain "--causal together with a text" explain hello --causal
usage explain "--k is missing: arrays are --q, --k and --v" explain --q a.npy
usage explain "--q is missing: arrays are --q, --k and --v" explain --v a.npy
usage explain "a text together with --q" explain hello --q a --k b --v c
usage explain "--query: '48' is no row of $weights.position_embeddings.weight, which has rows 0 to 47" \
    explain --q $weights.position_embeddings.weight --k $weights.position_embeddings.weight \
    --v $weights.position_embeddings.weight --query 48
usage explain "a text together with --no-scale" explain --no-scale hello
usage explain "--no-scale together with --positions" explain --no-scale --positions
usage explain "--no-scale together with --shuffle" explain --shuffle --no-scale
usage explain "--positions together with --shuffle" explain --shuffle --positions
usage explain "--seed without --no-scale or --shuffle" explain --seed 3
usage explain "--length without --positions" explain --length 3
usage explain "--dim without --positions" explain hello --dim 4
usage explain "--dim: '1' is not a whole number from 2 to 4096" explain --positions --dim 1
usage explain "--json without a TEXT" explain --json
usage explain "--json together with --shuffle" explain --shuffle --json
usage explain "--model without a TEXT" explain --model "$model"
usage explain "--head without a TEXT" explain --head 0.0
usage explain "--head: there is no 9.0: the model has layers 0 to 3, heads 0 to 3" explain hello --head 9.0
usage explain "--query: the text has no token 'door'" explain "the box" --query door
usage explain "--query: there is no token 4: the text has tokens 0 to 3" explain "the box" --query 4
usage explain "--query: 'the' stands 2 times, at tokens 1 and 2: name one by its number" explain "the the" --query the
usage explain "--query: 'the' stands 3 times, at tokens 1, 2 and 3: name one by its number" explain "the the the" --query the
usage explain "--shuffle looks at a head of layer 0, not of layer 2" explain --shuffle --head 2.0
usage explain "-o: 'a.txt' ends in something else than .html" explain -o a.txt
usage explain "-o: 'a.txt' ends in none of .html .png .svg .pdf" explain --no-scale -o a.txt
usage explain "-o: 'a.png' ends in a picture's ending: only --no-scale and --positions draw one" explain hello -o a.png
usage explain "-o together with --json" explain hello -o a.html --json
run explain hello -o "$d/nowhere/a.html"
code 1
err_like 'nowhere/a.html'
run explain "$long $long $long"
code 1
err_like 'the text has .* tokens, the model takes 48: --truncate cuts it'

# Arrays as text, with names for their rows.
printf '1,0\n0,1\n1,1\n' >"$folder/k.csv"
printf '10\n20\n30\n' >"$folder/v.csv"
printf 'door\nkey\nhouse\n' >"$folder/tokens.txt"
vectors="--q $folder/k.csv --k $folder/k.csv --v $folder/v.csv"
run explain $vectors --tokens "$folder/tokens.txt" --query key
code 0
no_err
out_like '^    key with key: 0.000·0.000 + 1.000·1.000 = 1.000'
out_like '^    0  door '
run explain $vectors --q-tokens "$folder/tokens.txt" --query house
code 0
out_like '^    house with k2: '
printf 'key\nkey\nhouse\n' >"$folder/twice.txt"
usage explain "--query: 'key' stands 2 times, at tokens 0 and 1: name one by its number" explain $vectors --tokens "$folder/twice.txt" --query key
run explain $vectors --tokens "$folder/v.csv" --query 1
code 0
out_like '^    20 with 20: '
run explain $vectors --tokens "$here/test_explain.sh"
code 1
err "qkv: --tokens $here/test_explain.sh: more than 3 lines, --k has 3 keys"
run explain $vectors --query key
code 2
err_like "^qkv explain: --query: 'key' is no row of "
run explain --tokens "$folder/tokens.txt"
code 2
err_like '^qkv explain: --tokens without --q, --k and --v$'
finish
