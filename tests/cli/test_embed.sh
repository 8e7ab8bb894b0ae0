# qkv embed: vectors against the model's own hidden states, ranks against cosines by hand, files, what is refused.
. ./lib.sh
d=$folder/d
mkdir "$d"
printf 'I was watching the door.\nShe opened the box.\r\nThe man saw a dog.\n\nA woman saw the cat.\n' >"$d/texts.txt"

run embed --file "$d/texts.txt"
code 0
no_err
out_is embed
run embed --file "$d/texts.txt" --similar "The boy saw a dog." --top 3
code 0
no_err
out_is embed_similar

# ---- Vectors ------------------------------------------------------------------------------------

# Numbers of one vector a line.
vectors() { tr '{' '\n' <"$1" | grep '"vector":' | sed 's/.*"vector":\[//; s/\].*//'; }
run embed --file "$d/texts.txt" --json
code 0
vectors "$folder/out" >"$d/mean"
check "a vector for each line" test "$(wc -l <"$d/mean")" -eq 5
check "as many numbers as channels" test "$(head -n 1 "$d/mean" | tr ',' '\n' | wc -l)" -eq 128
run embed "I was watching the door." --json --threads 1 --isa scalar
vectors "$folder/out" >"$d/one"
check "a text alone has the same bits" test "$(cat "$d/one")" = "$(head -n 1 "$d/mean")"
feed "I was watching the door." embed --file - --json
vectors "$folder/out" >"$d/one"
check "standard input" test "$(cat "$d/one")" = "$(head -n 1 "$d/mean")"
run embed "I was watching the door." --json --normalize
vectors "$folder/out" | tr ',' '\n' >"$d/one"
head -n 1 "$d/mean" | tr ',' '\n' | paste - "$d/one" | awk '
    { x[NR] = $1; y[NR] = $2; s += $1 * $1 }
    END { for (i in x) { e = y[i] - x[i] / sqrt(s); if (e > 1e-6 || e < -1e-6) bad++ } exit bad > 0 }'
check "normalized" test $? -eq 0
for pooling in cls max sqrt weighted last; do
    run embed "I was watching the door." --pooling $pooling --json
    code 0
    vectors "$folder/out" >"$d/$pooling"
    check "$pooling is the mean" test "$(cat "$d/$pooling")" != "$(head -n 1 "$d/mean")"
done

# Cosines by hand, of the vectors that were printed.
run embed --file "$d/texts.txt" --similar "The man saw a dog." --json
code 0
tr '{' '\n' <"$folder/out" | grep '"index":' | sed 's/.*"index":\([0-9]*\).*"cosine":\([0-9.-]*\).*/\1 \2/' >"$d/ranks"
awk 'FNR == NR { for (c = split($0, v, ","); c > 0; c--) x[NR - 1, c] = v[c]; next }
    {
        p = a = b = 0
        for (c = 1; c <= 128; c++) { p += x[2, c] * x[$1, c]; a += x[2, c] ^ 2; b += x[$1, c] ^ 2 }
        e = p / sqrt(a * b) - $2
        if (e > 1e-6 || e < -1e-6 || (FNR > 1 && $2 > last)) bad++
        last = $2; n++
    }
    END { exit bad > 0 || n != 5 }' "$d/mean" "$d/ranks"
check "cosines and their order" test $? -eq 0
check "the text itself comes first" test "$(head -n 1 "$d/ranks")" = "2 1.0"

run embed --file "$d/texts.txt" -o "$d/a.npy"
code 0
no_out
no_err
run info "$d/a.npy"
out_like 'shape     \[5,128\]'
check "bytes of the array" test "$(wc -c <"$d/a.npy")" -eq $((128 + 5 * 128 * 4))
run embed --file "$d/texts.txt" -o "$d/a.json"
code 0
vectors "$d/a.json" >"$d/again"
check "what --json prints" cmp -s "$d/again" "$d/mean"

# ---- Folders of sentence-transformers ---------------------------------------------------------------

sentence=$here/../golden/sentence
run embed --model "$sentence/bert" "I was watching the door." --json
code 0
err "qkv: before each text stands the prompt 'query: '"
check "the numbers that modules.json leaves" grep -q '"dim":5,' "$folder/out"
vectors "$folder/out" >"$d/default"
run embed --model "$sentence/bert" "I was watching the door." --json --prompt query --quiet
no_err
vectors "$folder/out" >"$d/query"
check "the default prompt by its name" cmp -s "$d/default" "$d/query"
run embed --model "$sentence/bert" "I was watching the door." --json --prompt document
code 0
no_err
vectors "$folder/out" >"$d/none"
check "a prompt changes the vector" test "$(cat "$d/none")" != "$(cat "$d/default")"
run embed --model "$sentence/bert" "I was watching the door." --json --no-prompt
no_err
vectors "$folder/out" >"$d/no"
check "no prompt, either" cmp -s "$d/none" "$d/no"
usage embed "--prompt together with --no-prompt" embed a --prompt query --no-prompt
run embed --model "$sentence/bert" "I was watching the door." --prompt nobody
code 1
err "qkv: --prompt 'nobody': the model's prompts are: document, long, query"
run embed --model "$sentence/bert" "I was watching the door."
out_says "what modules.json makes of them; model"
run embed --model "$sentence/bert" "I was watching the door." --pooling mean --json
check "a pooling that is asked for stands alone" grep -q '"dim":12,' "$folder/out"
run info "$sentence/bert"
out_like "^sentences     vectors of 5, texts of at most 40 tokens$"
out_like "^              query 'query: ', before every text$"
run info "$sentence/bert" --json
check "prompts as JSON" grep -q '"default_prompt":"query","prompts":{"document":"",' "$folder/out"
run info "$here/../golden/bert_old" --json
check "no prompts" test "$(grep -c prompts "$folder/out")" -eq 0
run embed --model "$sentence/roberta" "I was watching the door, and then I was watching the window."
code 1
err_like "^qkv: the text has [0-9]* tokens, the model makes vectors of 14: --truncate cuts it"
run embed --model "$sentence/roberta" "I WAS watching THE door." --json
vectors "$folder/out" >"$d/upper"
run embed --model "$sentence/roberta" "i was watching the door." --json
vectors "$folder/out" >"$d/lower"
check "do_lower_case" cmp -s "$d/upper" "$d/lower"

# Since its version 6, sentence-transformers leaves the limit to the tokenizer.
cp -r "$sentence/bert" "$d/limit"
sed -i 's/"model_max_length": 40/"model_max_length": 9/' "$d/limit/tokenizer_config.json"
run embed --model "$d/limit" --no-prompt "I was watching the door, and then the window."
code 1
err_like "^qkv: the text has 21 tokens, the model makes vectors of 9: --truncate cuts it"
run info "$d/limit"
out_like ", texts of at most 9 tokens$"

# A run from such a folder leaves one: with its modules, prompts and limits.
cp -r "$here/../../models/default" "$d/from"
for part in 1_Pooling 3_Dense modules.json config_sentence_transformers.json; do
    cp -r "$sentence/bert/$part" "$d/from/$part"
done
printf '[%s,%s]' '{"path":"","type":"sentence_transformers.models.Transformer"}' \
    '{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"}' >"$d/from/modules.json"
run train --from "$d/from" --out "$d/to" --text "$d/texts.txt" --steps 1 --batch 2
code 0
run embed --model "$d/to" "I was watching the door." --json
code 0
err "qkv: before each text stands the prompt 'query: '"
check "both poolings" grep -q '"dim":5,' "$folder/out"

# ---- What is refused ------------------------------------------------------------------------------

usage embed "TEXT or --file is missing" embed
usage embed "--file together with a text" embed a --file "$d/texts.txt"
usage embed "-o together with --json" embed a -o "$d/b.npy" --json
usage embed "-o: '$d/b.csv' ends in none of .npy .json" embed a -o "$d/b.csv"
usage embed "-o: --similar makes a list: FILE.json, or no --similar" embed a --similar b -o "$d/b.npy"
usage embed "--top without --similar or --pairs" embed a --top 3
run embed --file "$d/none.txt"
code 1
err "qkv: $d/none.txt: No such file or directory"
printf 'a\n\377\n' >"$d/bad.txt"
run embed --file "$d/bad.txt"
code 1
err_like "^qkv: $d/bad.txt:2: .*UTF-8"
: >"$d/empty.txt"
run embed --file "$d/empty.txt"
code 1
err "qkv: there is no text"
awk 'BEGIN { for (i = 0; i < 100; i++) printf "door "; print "" }' >"$d/long.txt"
run embed --file "$d/long.txt"
code 1
err_like "^qkv: $d/long.txt:1: the text has 102 tokens, the model makes vectors of 48: --truncate cuts it"
run embed --file "$d/long.txt" --truncate
code 0
err "qkv: 1 of 1 texts cut to 48 tokens"

# ---- Tokens ------------------------------------------------------------------------------------------

# numbers FILE.npy: one a line
numbers() {
    length=$(od -An -j8 -N2 -tu2 "$1" | tr -d ' ')
    od -An -v -w4 -tf4 -j$((length + 10)) "$1" | tr -d ' '
}
text="The door moved when it opened."
# the mean of its tokens is the vector of a text
run embed "$text" --tokens -o "$d/tokens.npy"
code 0
run embed "$text" --pooling mean -o "$d/text.npy"
code 0
numbers "$d/tokens.npy" | awk '{ s[NR % 128] += $1 } END { n = NR / 128; for (c = 1; c <= 128; c++) print s[c % 128] / n }' >"$d/mean"
numbers "$d/text.npy" >"$d/pooled"
check "9 tokens" test "$(numbers "$d/tokens.npy" | wc -l)" -eq $((9 * 128))
check "the mean" test "$(paste "$d/mean" "$d/pooled" | awk '{ e = $1 - $2; if (!(e < 1e-5 && e > -1e-5)) n++ } END { print n + 0 }')" -eq 0
# cosines by hand, of the last layer and of the embeddings
for layer in 0 4; do
    for i in 0 1; do
        [ $i = 0 ] && said=$text || said="The dog saw it."
        run embed "$said" --tokens --word it --layer $layer -o "$d/$i.npy"
        code 0
    done
    cosine=$(paste "$d/0.npy" "$d/1.npy" >/dev/null; numbers "$d/0.npy" >"$d/x"; numbers "$d/1.npy" >"$d/y"
        paste "$d/x" "$d/y" | awk '{ a += $1 * $2; b += $1^2; c += $2^2 } END { printf "%.3f", a / sqrt(b * c) }')
    run embed "$text" "The dog saw it." --tokens --word it --json
    code 0
    got_cosine=$(sed 's/.*"cosine_with_first":\[//; s/\].*//' "$folder/out" | tr , '\n' | sed -n $((layer + 1))p | awk '{ printf "%.3f", $1 }')
    check "layer $layer: $got_cosine, not $cosine" test "$got_cosine" = "$cosine"
    run embed "$text" "The dog saw it." --tokens --word it
    code 0
    out_like "^    text 1, token 4 .* $cosine"
done
run embed "$text" "The dog saw it." --tokens
code 0
out_like '^16 tokens of 2 texts$'
out_like '^       1  4   it '
run embed "$text" --tokens --json
check "tokens" test "$(grep -o '"position"' "$folder/out" | wc -l)" -eq 9
for columns in 30 36 44 60 80; do
    narrow $columns embed "The door moved when it opened." "The dog saw it." --tokens --word it
    for layer in 'layer 0' 1 2 3 4; do out_like " $layer\( \|$\)"; done
    narrow $columns embed "a dog" "a cat saw the dog" "the mouse"
    out_like ' nearest'
done
usage embed "--word goes with --tokens" embed a --word b
usage embed "--layer goes with --tokens" embed a --layer 1
usage embed "--tokens together with --pooling, which is of texts" embed a --tokens --pooling mean
run embed "$text" --tokens --word cat
code 1
err "qkv: --word: 'cat' is no token of the texts; 'qkv tokenize' shows them"
run embed "$text" --tokens --layer 5
code 1
err "qkv: --layer 5: the model has layers 0 (embeddings) to 4"

# ---- Pairs, by a classifier of them ------------------------------------------------------------------

# What look says of each pair, in the order of the file; one label comes sorted, several do not.
printf 'the door\tit opened .\nthe dog\tshe left\r\n\ta key\n' >"$d/pairs.tsv"
classify=$here/../golden/classify
for model in modernbert_cls bert; do
    run embed --pairs "$d/pairs.tsv" --model "$classify/$model" --json
    code 0
    no_err
    grep -o '"labels":\[[^]]*\]' "$folder/out" >"$d/labels"
    : >"$d/alone"
    for pair in "the door|it opened ." "the dog|she left" "|a key"; do
        run look "${pair%|*}" --pair "${pair#*|}" --model "$classify/$model" --json
        grep -o '"labels":\[[^]]*\]' "$folder/out" >>"$d/alone"
    done
    check "$model: the labels of each pair" cmp -s "$d/labels" "$d/alone"
    check "$model: three pairs" test "$(wc -l <"$d/labels")" -eq 3
done
run embed --pairs "$d/pairs.tsv" --model "$classify/modernbert_cls"
code 0
out_like '^3 pairs, the largest first$'
check "the largest first" sh -c "sed -n 's/^ *\(0\.[0-9]*\) .*/\1/p' '$folder/out' | sort -rc"
run embed --pairs "$d/pairs.tsv" --model "$classify/bert" --top 2
out_like '^3 pairs$'
out_like 'NEGATIVE\|POSITIVE\|neutral'
out_like '^ *and 1 more: --json and -o have all$'
run embed --pairs "$d/pairs.tsv" --model "$classify/bert" -o "$d/pairs.npy" --quiet
code 0
run info "$d/pairs.npy"
out_like '3 x 3\|\[3, 3\]\|(3, 3)\|3,3'
feed "a key" embed --pairs - --model "$classify/bert"
code 1
err "qkv: standard input:1: a pair is two texts with one TAB between them"
run embed --pairs "$d/pairs.tsv"
code 1
err_like 'the model has no classifier of texts, which --pairs needs$'
run embed --pairs "$d/pairs.tsv" --model "$classify/bert_tokens"
code 1
err_like 'the model has no classifier of texts, which --pairs needs$'
usage embed "--pairs together with --similar" embed --pairs "$d/pairs.tsv" --similar x
usage embed "--pairs together with a text" embed --pairs "$d/pairs.tsv" x
finish
