# qkv heads --effect and --fires, --lens of fill and look, look --against: what is said in every form, that numbers agree, and
# what is refused.
. ./lib.sh
d=$folder/d
mkdir "$d"
m="--model $model"
sentence="the [MASK] opened a man."
effect() { run heads "$sentence" $m --effect --quiet "$@"; }
# nats HEADS FILE: of a table
nats() { awk -F, -v name="$1" '$1 == name { print $2 }' "$2"; }

# ---- Effects -----------------------------------------------------------------------------------

effect
code 0
no_err
out_like '^What 4 heads of .*bert_old are worth$'
out_like '^[^ ]*, at \[MASK\] (token 2), p 0\.[0-9]*\.$'
check "a line for each head" test "$(grep -c '^[01]\.[01] ' "$folder/out")" -eq 4
check "no colour in a file" sh -c "! grep -q '$(printf '\033')' '$folder/out'"
out_says 'becomes 0. All that follows'
effect --top 2
check "--top" test "$(grep -c '^[01]\.[01] ' "$folder/out")" -eq 2

effect --json
code 0
cp "$folder/out" "$d/zero.json"
out_like '^{"tokens":\["\[CLS\]","the","\[MASK\]",.*"ablation":"zero","looked_at":\[{"position":2,"token":'
out_like '"heads":\[{"layer":[01],"head":[01],"nats":[-0-9.e]*,"probability":[-0-9.e]*},.*"groups":\[\],"note":"'
effect --json --threads 3
check "any threads" cmp -s "$folder/out" "$d/zero.json"
effect --json --isa scalar
check "any instruction set" cmp -s "$folder/out" "$d/zero.json"
effect --weights bf16 --patch "$sentence" -o "$d/half.csv"
check "no effect in bf16" test "$(tail -n +2 "$d/half.csv" | awk -F, '$2 != 0 || $3 != 0' | wc -l)" -eq 0

# A group of one head is that head; heads named twice count once; a layer is its heads.
effect --group 1.0 --group 1.0,1.0 --group 0.1,1.0 --group "1.*" --group 1.0,1.1 -o "$d/a.csv"
code 0
check "a line for each set" test "$(wc -l <"$d/a.csv")" -eq 10
check "one head" test "$(nats 1.0 "$d/a.csv" | sort -u | wc -l)" -eq 1
check "twice the same head" test "$(nats 1.0+1.0 "$d/a.csv")" = "$(nats 1.0 "$d/a.csv" | head -n 1)"
check "a layer" test "$(nats 1.0+1.1 "$d/a.csv" | sort -u | wc -l)" -eq 1
check "a sum" test "$(awk -F, '$1 ~ /^(0.1|1.0)$/ && !seen[$1]++ { a += $2 } $1 == "0.1+1.0" { s = $4 } END { print a - s < 1e-7 && s - a < 1e-7 }' "$d/a.csv")" -eq 1
effect --group 1.0 -o "$d/a.tsv"
check "tabs" test "$(head -n 1 "$d/a.tsv" | tr '\t' ,)" = heads,nats,probability,sum_nats
effect -o "$d/a.json"
check "as --json prints" cmp -s "$d/a.json" "$d/zero.json"
for theme in light dark; do
    for ending in png svg pdf; do
        effect --group 1.0,1.1 -o "$d/a.$ending" --theme $theme
        code 0
        check "$ending" test -s "$d/a.$ending"
    done
    check "its title" grep -q '<title>What each head is worth' "$d/a.svg"
done
both=$(effect --group 1.0,1.1 && awk '$1 == "1.0+1.1" { print $2 " nats (sum " $4 ")" }' "$folder/out")
edge=$(effect --edge "2>5" && awk '$1 == "2>5" { print $2 " nats" }' "$folder/out")
effect --group 1.0,1.1 --group "1.*" --edge "2>5" -o "$d/a.svg"
check "what groups and edges are worth" grep -qF "Ablated together: 1.0+1.1 $both, 1.0+1.1 $both. Without an edge: 2&gt;5 $edge. " "$d/a.svg"

# A patch with the text itself changes nothing; another word, means, and a file of texts change numbers.
effect --patch "$sentence" -o "$d/same.csv"
check "no effect" test "$(tail -n +2 "$d/same.csv" | awk -F, '$2 != 0 || $3 != 0' | wc -l)" -eq 0
effect --patch "a [MASK] opened the man." --json
out_like '"ablation":"patch","patch":"a \[MASK\] opened the man."'
effect --word door --json
out_like '"looked_at":\[{"position":2,"token":"door",'
printf 'the man opened a door.\nthe dog\tthe key\n' >"$d/texts"
effect --ablate mean --reference "$d/texts"
code 0
out_says "its mean over 15 tokens of"
effect --ablate mean --json
out_like '"ablation":"mean"'
check "other numbers" test "$(cmp -s "$folder/out" "$d/zero.json"; echo $?)" -eq 1
feed '"the [MASK]"
"no blank"' heads --jsonl $m --effect
code 1
out_like '^{"tokens":\["\[CLS\]","the","\[MASK\]","\[SEP\]"\]'
out_like '^{"error":"line 2: there is no \[MASK\] in the text"}'

# Language models and encoder-decoders.
g="--model $here/../golden/decoder/gpt2_2/mild"
run heads "the key" $g --effect
code 0
out_like ', as the next token, p '
run heads "the key" $g --effect --loss --json
check "the tokens of the text" test "$(grep -o '"position":' "$folder/out" | wc -l)" -eq 3
b="--model $here/../../models/translator"
for which in "" --cross --decoder; do
    run heads "a red fox" $b --effect $which --target "ein roter fuchs" --top 1
    code 0
    out_like 'tokens of the target, each given the source'
done

# ---- What is refused ---------------------------------------------------------------------------

refused() {
    words=$1
    shift
    run heads "$@" $m
    code 2
    err_like "$words"
}
refused 'there is no \[MASK\] in the text' "the man" --effect
# An edge: what look says of the word before and after.
for edge in "2>0@1.1" "2>1@0" "2>1"; do
    effect --edge "$edge" --json
    code 0
    out_like '"edges":\[{"edge":"[^"]*","n_edges":1,"nats":[-0-9.e]*,"probability":[-0-9.e]*}\]'
    sed 's/.*"edges":\[{\([^}]*\)}.*/\1/; s/.*"nats":\([^,]*\),"probability":\(.*\)/\1 \2/' "$folder/out" >"$d/edge"
    id=$(sed 's/.*"looked_at":\[{[^}]*"id":\([0-9]*\).*/\1/' "$folder/out")
    run look "$sentence" $m --quiet --json --top 1000 --what-if "cut=$edge"
    code 0
    for part in predictions_before predictions; do
        sed "s/.*\"$part\":\[{\"position\":[0-9]*,\"candidates\":\[//; s/}\].*/}/" "$folder/out" | tr '{' '\n' |
            sed -n "s/.*\"id\":$id,\"probability\":\([^}]*\)}.*/\1/p" >>"$d/edge"
    done
    check "$edge: before and after" test "$(paste -sd' ' "$d/edge" | awk '{ a = $4 - $3 - $2; b = log($4 / $3) - $1
        print NF, (a < 1e-6 && a > -1e-6 && b < 2e-5 && b > -2e-5) }')" = "4 1"
done
effect --edge "2>0@1.1" --edge "2>1" -o "$d/a.csv"
check "two rows of edges" test "$(grep -c '^2>' "$d/a.csv")" -eq 2
effect --edge "2>1"
out_like '^edge  *nats  *prob$'
out_like '^2>1  *[-+]'
run heads "$sentence" $m --effect --edge "2>99"
code 1
err_like "^qkv: --edge: '2>99' names no query and key"
refused '\-\-edge goes with --effect' "$sentence" --edge "2>1"
refused "'x' is no list of heads" "$sentence" --effect --group x
refused "'1.2' is no list of heads" "$sentence" --effect --group 1.2
refused "'2\.\*' is no list of heads" "$sentence" --effect --group '2.*'
refused '\-\-group: an empty value' "$sentence" --effect --group ''
refused "'1\.0,,' is no list of heads" "$sentence" --effect --group 1.0,,
refused '\-\-group goes with --effect' "$sentence" --group 1.0
refused '\-\-effect together with --sort' "$sentence" --effect --sort entropy
refused '\-\-patch together with --ablate' "$sentence" --effect --patch a --ablate mean
refused '\-\-reference goes with --ablate mean' "$sentence" --effect --reference x
refused '\-\-word: the text has 2 places' "[MASK] [MASK]" --effect --word door
refused "\-\-word: 'xyzzy' is no token" "$sentence" --effect --word xyzzy
refused '\-\-loss is of a language model' "$sentence" --effect --loss
refused "ends in none of .csv" "$sentence" --effect -o a.html
refused '\-\-fires goes with --file' --fires 0.0 "$sentence"
refused '\-\-fires: there is no 7.0' --file "$d/texts" --fires 7.0
refused "\-\-fires: 'x' is not L.H" --file "$d/texts" --fires x
effect --patch "the [MASK]"
code 1
err_like 'its text has 4 tokens and the text 8: activations are taken token by token'
effect --ablate mean --reference "$d/none"
code 1

# ---- What a head fires on ----------------------------------------------------------------------

printf 'the man opened a door.\n\nthe dog left\nthe\nthe woman was watching a dog when it fell.\n' >"$d/texts"
run heads --file "$d/texts" --fires 1.0 $m --quiet
code 0
check "three texts" test "$(grep -c '^0\.[0-9]*  line [1235]  ' "$folder/out")" -eq 3
check "the largest first" test "$(grep -o '^0\.[0-9]*' "$folder/out")" = "$(grep -o '^0\.[0-9]*' "$folder/out" | sort -r)"
out_says 'Texts without two such tokens: 1.'
run heads --file "$d/texts" --fires 1.0 $m --json
out_like '^{"layer":1,"head":0,"n_texts":4,"n_silent":1,"fires":\[{"line":[135],"weight":0'
cp "$folder/out" "$d/all.json"
run heads --file "$d/texts" --fires 1.0 $m --top 1 --json
check "the best of all" test "$(grep -o '"line":[0-9]*' "$folder/out")" = "$(grep -o '"line":[0-9]*' "$d/all.json" | head -n 1)"
run heads --file "$d/texts" --fires 1.0 $m -o "$d/fires.json" --quiet
check "a file" cmp -s "$d/fires.json" "$d/all.json"
feed "the man left" heads --file - --fires 0.1 $m --json
out_like '"n_texts":1'
printf 'a red fox\tein roter fuchs\n' >"$d/pairs"
run heads --file "$d/pairs" --fires 0.1 --cross $b --json
code 0
out_like '"decoder_inputs":'

# ---- The lens ----------------------------------------------------------------------------------

run fill "$sentence" $m --lens
code 0
out_like '^\[MASK\], token 2: '
check "a line for each layer" test "$(grep -c '^    [012]  ' "$folder/out")" -eq 3
check "the last is the model's" test "$(awk '/^    2 /{ print $2, $3 == $4, $5 }' "$folder/out")" = "$("$qkv" fill "$sentence" $m --top 1 | awk '/^  /{ print $1, 1, 1 }')"
run look "$sentence" $m --lens
cp "$folder/out" "$d/look"
run fill "$sentence" $m --lens
check "the same of look" cmp -s "$folder/out" "$d/look"
run fill "$sentence" $m --lens --json
out_like '^{"lens":\[{"position":2,"token":"[^"]*","id":[0-9]*,"layers":\[{"layer":0,"best":"'
run look "the key" $g --lens
code 0
out_like '^What comes next: '
run fill "the man" $m --lens
code 2
err_like 'there is no \[MASK\] in the text'
run look "the man" $b --lens
code 2
err_like 'has an encoder and a decoder'
# A page has the words of the terminal.
run look "$sentence" $m --lens
sed -n 's/^ *\([0-9]*\)  *\([^ ]*\)  *\([0-9.]*\)  *\([0-9.]*\)  *\([0-9]*\)  *\([0-9.]*\)$/"\2","\3","\4","\5","\6"/p' "$folder/out" |
    paste -s -d, - > "$d/cells"
run look "$sentence" $m --lens --head 0.0 -o "$d/lens.html" --quiet
code 0
check "layers and tokens" grep -q '"tables":\[{"name":"What each layer would predict".*"queries":\[0,1,2' "$d/lens.html"
check "the cells of the terminal" grep -q -F "\"cells\":[$(cat "$d/cells")]" "$d/lens.html"
run look "the key" $g --lens -o "$d/lens.html" --quiet
code 0
check "of a language model" grep -q '"name":"How layers come to .* after token' "$d/lens.html"
run look "a red fox" $b --lens -o "$d/lens.html"
code 1
err_like '\-\-lens is of a model with one stack'
run look "$sentence" $m --lens -o "$d/lens.png"
code 2
err_like '\-\-lens together with -o'
run look "$sentence" $m --lens --head 0.0
code 2
err_like '\-\-lens together with --head'

# ---- A page ------------------------------------------------------------------------------------

# sorted FILE KEY: the numbers behind a key, from the smallest
sorted_numbers() { grep -o "\"$2\":[^,}]*" "$1" | cut -d: -f2 | sort -g; }
run heads "$sentence" $m --effect --json
sorted_numbers "$folder/out" nats > "$d/nats"
run look "$sentence" $m --effect -o "$d/page.html" --quiet
code 0
sorted_numbers "$d/page.html" effect > "$d/effects"
check "effects of a page" test "$(wc -l < "$d/effects")" -eq 4
check "are those of heads" test "$(paste "$d/nats" "$d/effects" | awk '{ d = $1 - $2; if (d > 1e-6 || d < -1e-6) n++ } END { print n + 0 }')" -eq 0
check "and it says of what" grep -q '"effects":{"what":"ln P([^)]*) at token 2","word":"[^"]*","log_p":-[0-9.]*,"place":2}' "$d/page.html"
# Of a small model a page has them by itself, all or those of the heads that it has; not under a question.
has_effects() { check "$2 effects in a page" test "$(grep -o '"effect":[-0-9]' "$1" | wc -l)" -eq "$2"; }
run look "$sentence" $m -o "$d/asked.html" --effect --quiet
run look "$sentence" $m -o "$d/page.html" --quiet
code 0
check "the same page without --effect" cmp -s "$d/asked.html" "$d/page.html"
run look "$sentence" $m --heads 1.0,0.1 -o "$d/heads.html" --quiet
has_effects "$d/heads.html" 2
check "are those of the same heads" test "$(sorted_numbers "$d/heads.html" effect | grep -c -x -F -f "$d/effects")" -eq 2
run look "$sentence" $m --head 1.1 -o "$d/head.html" --quiet
has_effects "$d/head.html" 1
run look "$sentence" $m --what-if causal -o "$d/causal.html" --quiet
has_effects "$d/causal.html" 0
run look "the man" $m -o "$d/none.html" --quiet
has_effects "$d/none.html" 0
# Of a decoder over an encoder it is the word of the target that the shown query writes, as in the first sentence of look.
for which in --cross --decoder; do
    run look "a red fox" $b $which -o "$d/cross.html" --quiet
    has_effects "$d/cross.html" 8
    check "the word of a target" grep -q '"effects":{"what":"ln P([^)]*) after token [0-9]* of the target"' "$d/cross.html"
    run look "a red fox" $b $which --json
    check "the first head is worth what look says" test "$(
        sed -n 's/.*"findings"[^}]*"probability": *\([0-9.e-]*\), *"without": *\([0-9.e-]*\).*/\1 \2/p' "$folder/out" | {
            read -r whole without
            grep -o '"effect":[-0-9.e]*' "$d/cross.html" | head -n 1 | cut -d: -f2 | awk -v p="$whole" -v q="$without" \
                '{ d = $1 - log(q / p); if (p > 0 && d < 1e-5 && d > -1e-5) print "same" }'
        }
    )" = same
done
run look "the man" $m --effect -o "$d/page.html" --quiet
code 1
err_like 'the model predicts nothing here: a text with \[MASK\], or a language model'
run look "the key" $g --effect -o "$d/page.html" --quiet
code 0
check "of a language model" grep -q '"what":"ln P(.*) after token [0-9]*"' "$d/page.html"
# Groups: the numbers of heads --group.
run heads "$sentence" $m --effect --group "1.*" --json
code 0
sed -n 's/.*"groups":\[.*"nats":\(-*[0-9.]*\),.*"sum_nats":\(-*[0-9.]*\).*/\1 \2/p' "$folder/out" > "$d/group"
run look "$sentence" $m --effect --group "1.*" --group layers --group all -o "$d/page.html" --quiet
code 0
check "a table of groups" grep -q '"name":"What groups of heads are worth".*"rows":\["1\.\*","layer 0","layer 1","all heads"\]' "$d/page.html"
check "together and sum are those of heads" test "$(sed -n 's/.*"value[s]":\[null,\([-0-9.e]*\),\([-0-9.e]*\),null.*/\2 \1/p' "$d/page.html" |
    paste -d ' ' - "$d/group" | awk 'NF == 4 { d = $1 - $3; e = $2 - $4; if (d * d + e * e < 1e-11) print "same" }')" = same
run look "$sentence" $m --effect --heads 0.0,0.1 --group 1.0 -o "$d/page.html" --quiet
code 1
err_like "\-\-group: head 1.0 of '1.0' is not in the page"
run look "$sentence" $m --effect --group 7.0 -o "$d/page.html" --quiet
code 1
err_like "\-\-group: '7.0' is none of layers, labels and all, and no list of heads L.H or layers L.\*, layers 0 to 1, heads 0 to 1"
run look "$sentence" $m --group 1.0 -o "$d/page.html"
code 2
err_like '\-\-group goes with --effect'
run look "$sentence" $m --effect
code 2
err_like '\-\-effect is of a page: -o FILE.html'
run look "$sentence" $m --effect --what-if causal -o "$d/page.html"
code 2
err_like '\-\-effect together with --what-if'

# ---- Two models --------------------------------------------------------------------------------

run look "$sentence" $m --against "$model"
code 0
check "no head differs" test "$(awk '/^[01]\.[01] /{ print $2 }' "$folder/out" | sort -u)" = 0.0000
run look "$sentence" $m --against "$model" --json
out_like '"heads":\[{"layer":0,"head":0,"js":0.0,"n_rows":8,'
run look "$sentence" $m --against "$model" --what-if causal --top 1 --json
check "--top" test "$(grep -o '"js"' "$folder/out" | wc -l)" -eq 1
out_like '"modified":"modified: not what the model computed","what_if":"causal","heads":'
run look "$sentence" $m --against "$model" --what-if causal
out_says "MODIFIED: not what the model computed (causal). A is "
for head in "" "--head 1.0"; do
    run look "$sentence" $m --against "$model" --what-if causal $head -o "$d/against.svg" --quiet
    check "the caption" grep -q 'MODIFIED: not what the model computed (causal)\. A is ' "$d/against.svg"
    run look "$sentence" $m --against "$model" $head -o "$d/against.svg" --quiet
    code 0
    check "a picture" grep -q '<title>.*\(two models\|what changed\)' "$d/against.svg"
done
one="--against together with --head: what changed in one head is a picture, -o FILE.png, .svg or .pdf"
usage look "$one" look "$sentence" --against x --head 1.0
usage look "$one" look "$sentence" --against x --head 1.0 --json
usage look "$one" look "$sentence" --against x --layer 1 --head 0 -o "$d/a.html"
usage look "$one" look --image x --against y --head 1.0 --json
usage look "$one" look --image x --against y --head 1.0 -o "$d/a.html"
run look "$sentence" $m --against "$here/../golden/bert_new"
code 1
err_like 'has 1 layers of 3 heads, and .* 2 of 2: heads are compared in their places'
run look "$sentence" $m --against "$d"
check "no model" test "$got" -ne 0
run look "$sentence" $m --against "$model" -o "$d/a.csv"
code 2
err_like "ends in none of .html .png"
run look "$sentence" $m --against "$model" -o "$d/a.html"
code 0
check "heads of both" test "$(grep -c '^{"layer"\|^,{"layer"' "$d/a.html")" -eq 8
check "two texts" grep -q '"runs":\[.*"name":"A: .*"name":"B: ' "$d/a.html"
check "a table of heads" grep -q '"tables":\[{"name":"Which heads differ.*"others":' "$d/a.html"
run look "a red fox" $b --against "$here/../../models/translator" --cross -o "$d/a.html"
code 2
err_like '\-\-against with --cross writes no page'
run look "a red fox" $b --against "$here/../../models/translator" --cross
code 0

# A space, and the sign that a space is shown by, have one label and are two tokens.
printf 'the cat sat\nthe dog ran\n' >"$d/lines"
run train --arch gpt2 --text "$d/lines" --out "$d/spaces" --steps 1 --batch 2 --layers 1 --heads 1 --hidden 8 --vocab 300 --quiet
code 0
cp -r "$d/spaces" "$d/signs"
sed -i 's/"Ġ":\( *\)/"âĲ£":\1/' "$d/signs/tokenizer.json" "$d/signs/vocab.json"
check "another token" test "$(cat "$d/spaces/tokenizer.json")" != "$(cat "$d/signs/tokenizer.json")"
run look "the cat" --model "$d/spaces" --against "$d/spaces"
code 0
for out in "" "-o $d/signs.html"; do
    run look "the cat" --model "$d/spaces" --against "$d/signs" $out
    code 1
    no_out
    err "qkv: --against: $d/signs has other tokens for the text: weights are compared token by token"
done
# An encoder of two stacks predicts nothing, and the message names what has a decoder's effects.
run look "a red fox" --model "$here/../../models/translator" --effect -o "$folder/pair.html" --quiet
code 1
err_like '^qkv: --effect: an encoder predicts nothing: `qkv heads --cross --effect` tells what the heads of'
run heads "a red fox" --model "$here/../../models/translator" --cross --effect
code 0
finish
