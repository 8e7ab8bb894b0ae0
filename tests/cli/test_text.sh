# tokenize, fill, next, look and info on a tiny random BERT: forms of output, --jsonl, and errors.
. ./lib.sh
m="--model $model"
number='[0-9][0-9.e-]*'

# tokenize
run tokenize "the man opened boxs." $m
code 0
no_err
out "$(printf '2\t[CLS]\n5\tthe\n10\tman\n14\topened\n8\tbox\n25\t##s\n22\t.\n3\t[SEP]')"
run tokenize "the man" --pair "a dog" $m --json
code 0
out '{"ids":[2,5,10,3,6,12,3],"tokens":["[CLS]","the","man","[SEP]","a","dog","[SEP]"]}'
feed "the man" tokenize - $m --json
out '{"ids":[2,5,10,3],"tokens":["[CLS]","the","man","[SEP]"]}'
run tokenize $m --json -- "-a"
out '{"ids":[2,1,6,3],"tokens":["[CLS]","[UNK]","a","[SEP]"]}'
QKV_MODEL=$model
export QKV_MODEL
run tokenize "a key" --json
out '{"ids":[2,6,9,3],"tokens":["[CLS]","a","key","[SEP]"]}'
unset QKV_MODEL

# of a folder without weights only the tokenizer is there; Marian has one for each language
marian=$here/../golden/marian_separate
run tokenize ">>de<< a key" --json --model "$marian"
code 0
out_like '^{"ids":\[[0-9,]*,0\],"tokens":\[">>de<<",.*"</s>"\]}$'
run tokenize ">>de<< a key" --json --target --model "$marian"
code 0
out_like '^{"ids":\[[0-9,]*,0\],"tokens":\[">>de<<",.*"</s>"\]}$'
run tokenize "a key" --target
code 2
err_like '--target needs a --model that is a folder'
run tokenize "$(printf 'a \377 b')" $m
code 1
no_out
err_like '^qkv: .*UTF-8'

# --jsonl: bad lines are answered, the others too, and the exit code is 1
feed '"the man"
["the man", "a dog"]
not json
17
["a", "b", "c"]
"a \u0000 key"' tokenize --jsonl $m
code 1
no_err
check "6 lines" test "$(wc -l <"$folder/out")" -eq 6
out_like '^{"ids":\[2,5,10,3\],"tokens":\["\[CLS\]","the","man","\[SEP\]"\]}$'
out_like '^{"ids":\[2,5,10,3,6,12,3\]'
out_like '^{"error":"line 3: '
out_like '^{"error":"line 4: not a string, nor an array of two strings"}$'
out_like '^{"error":"line 5: not a string, nor an array of two strings"}$'
out_like '^{"ids":\[2,6,9,3\]'
feed '"a key"' tokenize --jsonl $m
code 0

# fill
run fill "the man opened the [MASK] when [MASK] fell." $m --json
code 0
no_err
candidate="{\"token\":\"[^\"]*\",\"id\":[0-9]*,\"probability\":$number}"
five="$candidate,$candidate,$candidate,$candidate,$candidate"
out_like "^{\"predictions\":\[{\"position\":5,\"candidates\":\[$five\]},{\"position\":7,\"candidates\":\[$five\]}\]}$"
run fill "the [MASK]" $m --top 2 --json
out_like "\"candidates\":\[$candidate,$candidate\]}\]}$"
run fill "the [MASK]" $m --top 1000
code 0
check "the vocabulary and a heading" test "$(wc -l <"$folder/out")" -eq 54
out_like '^\[MASK\]$'
check "colour in a file" sh -c "! grep -q '$(printf '\033')' '$folder/out'"
feed '"the [MASK]"
"the man"' fill --jsonl $m
code 1
out_like '^{"predictions":\[{"position":2,'
out_like '^{"error":"line 2: there is no \[MASK\] in the text"}$'

# next
run next "the man left." "he admired the museum." $m --json
code 0
out_like "^{\"is_next\":$number}$"
run next "the man left." "he admired the museum." $m
code 0
out_like '^[01]\.[0-9]\{4\}  B '
feed '["the man","he left"]
"the man"' next --jsonl $m
code 1
out_like '^{"is_next":'
out_like '^{"error":"line 2: not an array of two strings"}$'

# look
run look "the [MASK] opened a man." $m --json
code 0
head="{\"layer\":[01],\"head\":[01],\"label\":\"[^\"]*\",\"entropy\":$number,\"entropy_normalized\":$number,\"confidence\":$number,[^}]*}"
out_like "^{\"tokens\":\[\"\[CLS\]\",\"the\",\"\[MASK\]\",\"opened\",\"a\",\"man\",\".\",\"\[SEP\]\"\],\"predictions\":\[{\"position\":2,\"candidates\":\[$five\]}\],\"heads\":\[$head,$head,$head,$head\],\"sharpest\":{\"layer\":[01],\"head\":[01],\"query\":2,\"key\":[0-9],\"weight\":$number},\"findings\":\[{\"text\":\"To fill \[MASK\], head .*}\]}$"
run look "the [MASK]" $m --json --head 1.0
row="\[$number,$number,$number,$number\]"
out_like "\"layer\":1,\"head\":0,\"weights\":\[$row,$row,$row,$row\]}$"
cp "$folder/out" "$folder/first"
run look "the [MASK]" $m --json --head 0 --layer 1 --threads 3
check "--layer and --head give something else" cmp -s "$folder/first" "$folder/out"
run look "the [MASK]" $m --head 1.0 -o "$folder/look.json"
code 0
no_out
err "qkv: wrote $folder/look.json"
check "-o .json differs from --json" cmp -s "$folder/first" "$folder/look.json"
for picture in "--head 1.0 --theme dark" "--head 1.0 --theme light" "--theme dark" ""; do
    run look "the [MASK]" $m $picture -o "$folder/a.png" --quiet
    code 0
    no_out
    no_err
    check "a PNG" test "$(head -c 4 "$folder/a.png" | tail -c 3)" = PNG
done
run look "the [MASK]" $m -o "$folder/none/a.png"
code 1
err_like '^qkv: .*none'
check "a temporary file is left" sh -c "! ls -a '$folder' | grep -q 'png\.'"
feed '["the man","a [MASK]"]
"' look --jsonl $m
code 1
out_like '^{"tokens":\["\[CLS\]","the","man","\[SEP\]","a","\[MASK\]","\[SEP\]"\],"predictions":'
out_like '^{"error":"line 2: '

# A model without heads still looks, and says that it predicts nothing.
bare="--model $here/data/bare"
run look "the man opened a [MASK]." $bare
code 0
no_err
out_like '^The model has no MLM head, so it predicts nothing.$'
out_like '^Layer 0, head [01]  \[MASK\] looks at '
run look "the [MASK]" $bare --json
code 0
out_like '"predictions":\[\],"note":"the model has no MLM head, so it predicts nothing","heads":\['
run fill "the [MASK]" $bare
code 1
no_out
err_like '^qkv: .*no MLM head'
run next "the man" "a door" $bare
code 1
no_out
err_like '^qkv: .*no NSP head'
run eval $bare --text "$here/lib.sh"
code 1
no_out

# look without [MASK], without words, and at text that is longer than the model
run look "the man opened a door" $m
code 0
out_like '^Layer [01], head [01]'
tr '\n' ' ' <"$folder/out" >"$folder/joined" # where the caption breaks depends on the length of a path
check "the rule is not named" grep -q 'the head in which one content' "$folder/joined"
run look "" $m --json
code 0
long=$(printf 'the man %.0s' 1 2 3 4 5 6 7 8 9 10 11 12)
run look "$long" $m --json
code 1
err "qkv: the text has 26 tokens, the model takes 23: --slide N looks at windows of it, --truncate cuts it"
run look "$long" $m --json --truncate
code 0
err "qkv: text cut from 26 to 23 tokens"
run look "the" --pair "$long" $m --json --truncate --quiet
code 0
no_err
out_like '^{"tokens":\["\[CLS\]","the","\[SEP\]","the","man",.*"man","the","\[SEP\]"\]'

# The terminal: 24 bits, 256 and 16 colours, none, ASCII
escape=$(printf '\033')
look() { run look "the [MASK] opened a man." $m "$@"; }
colored() { check "no colour '$1'" grep -q "$escape\[$1" "$folder/out"; }
plain() { check "an escape sequence" sh -c "! grep -q '$escape' '$folder/out'"; }
narrow() { check "a line passes $1 columns" sh -c "! sed 's/$escape\[[0-9;]*m//g' '$folder/out' | grep -q '.\{$(($1 + 1))\}'"; }
look
code 0
no_err
plain
narrow 80
COLORTERM=truecolor
export COLORTERM
look --color always
colored '48;2;'
narrow 80
COLORTERM=
TERM=xterm-256color
look --color always
colored '48;5;'
TERM=xterm
look --color always
colored '4[0-7]m'
look --color never
plain
NO_COLOR=1
export NO_COLOR
look
plain
look --ascii
check "something beyond ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$folder/out'"
unset NO_COLOR
for COLUMNS in 40 60 120; do
    look --color always
    code 0
    narrow $COLUMNS
done
COLUMNS=80
TERM=dumb

# The embedded model, where there is one
if "$qkv" info | grep -q 'none is embedded'; then
    run look "the man"
    code 1
    no_out
    err "qkv: no model is embedded in this build: name one with --model or QKV_MODEL"
else
    run look "I was watching the [MASK] when it opened."
    code 0
    no_err
    out_like '^\[MASK\]$'
    out_like '^Layer [0-9], head [0-9]  \[MASK\] looks at '
    run info --json
    code 0
    out_like '"embedded":{"architecture":"bert","source":"embedded"'
fi

# info
run info "$model"
code 0
out_like '^layers  *2 of 2 heads of 10$'
run info "$model" --json
out_like '^{"architecture":"bert","source":".*","n_layers":2,"n_heads":2,"hidden":20,"head_dim":10,"intermediate":37,"vocab_size":53,"max_len":23,'
run info "$here/data/k.npy"
code 0
out_like '^shape  *\[2,2,7,8\]$'
run info "$here/data/boolean.npy" --json
out '{"type":"bool","shape":[4,1,7],"n_elems":28}'
run info "$model/model.safetensors"
code 0
out_like '^F32   bert.embeddings.LayerNorm.beta  \[20\]$'
out_like '^[0-9]* tensors$'
run info "$model/model.safetensors" --json
out_like '^{"tensors":\[{"name":"bert.embeddings.LayerNorm.beta","type":"F32","shape":\[20\]},'
run info "$here/data/k.safetensors"
code 1
no_out
run info "$folder/none"
code 1
no_out
err_like '^qkv: .*none'
run look x --model "$folder/none"
code 1
err_like '^qkv: .*none'

# ---- Token ids in place of a text ---------------------------------------------------------------------

# The ids of a text are that text: the same weights, numbers and maps, where no word is of several tokens.
text="the man saw [MASK] ."
run tokenize "$text" $m --json
ids=$(sed 's/.*"ids":\[\([0-9,]*\)\].*/\1/' "$folder/out")
for words in "$ids" "$(echo "$ids" | tr ',' ' ')"; do
    run look "$text" $m -o "$folder/a.npy" --quiet
    run look --ids "$words" $m -o "$folder/b.npy" --quiet
    code 0
    no_err
    check "the weights of the text" cmp -s "$folder/a.npy" "$folder/b.npy"
done
run look "$text" $m --json --quiet
sed 's/,"findings":.*//' "$folder/out" >"$folder/a.json"
run look --ids "$ids" $m --json --quiet
sed 's/,"findings":.*//' "$folder/out" >"$folder/b.json"
check "its predictions and numbers" cmp -s "$folder/a.json" "$folder/b.json"
run heads "$text" $m --json --quiet
cp "$folder/out" "$folder/a.json"
run heads --ids "$ids" $m --json --quiet
check "its table" cmp -s "$folder/a.json" "$folder/out"
feed '"2 7 3"' look --ids --jsonl $m --quiet
code 0
check "three tokens" test "$(sed 's/.*"tokens":\[\([^]]*\]"\),/\1/' "$folder/out" | grep -c CLS)" -eq 1
run look --ids "$ids" $m -o "$folder/a.html" --quiet
code 0
run explain --ids "$ids" $m --quiet
code 0
for wrong in 53 -1 x 1e3 2147483648 99999999999999999999; do
    run look --ids "2 $wrong 3" $m
    code 1
    err "qkv: --ids: '$wrong' is no token: ids are numbers from 0 to 52"
done
run look --ids " , " $m
code 1
err "qkv: --ids: there is no id"
usage look "--ids together with --pair" look --ids "2 3" --pair "a dog" $m
usage heads "--ids together with --file" heads --ids --file x $m
usage map "--ids together with --q" map --ids --q x --k x
finish
