# Looking at decoders: GPT-2's causal heads, BART's and Marian's attention to a source, in every form; and what is refused.
. ./lib.sh
d=$folder/d
mkdir "$d"
decoder=$here/../golden/decoder
gpt2="--model $decoder/gpt2_2"
pair="--model $decoder/bart_3"
sentence="the man was watching the dog"
target="the dog opened the door."
looks() { run look "$sentence" $gpt2 --quiet "$@"; }
crosses() { run look "$sentence" $pair --target "$target" --quiet "$@"; }

# ---- GPT-2 --------------------------------------------------------------------------------------------

looks
code 0
no_err
out_like '^What comes next$'
out_says 'Perplexity '
out_says 'over 7 tokens of the text, each given what is before it.'
out_says 'Tokens after a query are hidden from it: no cell.'
check "no word about [MASK]" test "$(grep -c 'of a \[MASK\]\|which \[MASK\]\|no MLM' "$folder/out")" -eq 0

looks --head 1.0 --json
code 0
out_like '"next":\[{"token":"'
out_like '"perplexity":[0-9]'
out_like '"weights":\[\[[01][.0-9]*,null,null,null,null,null,null,null\],'
check "seven probabilities" test "$(sed 's/.*"expected":\[\([^]]*\)\].*/\1/' "$folder/out" | tr ',' '\n' | wc -l)" -eq 7
check "perplexity is that of them" test "$(sed 's/.*"expected":\[\([^]]*\)\],"perplexity":\([0-9.e+]*\).*/\2,\1/' "$folder/out" |
    awk -F, '{ for (i = 2; i <= NF; i++) s -= log($i) / (NF - 1); print (exp(s) / $1 > 0.999999 && exp(s) / $1 < 1.000001) }')" -eq 1
looks --head 1.0 -o "$d/a.csv"
check "rows sum to 1 over what is seen, nothing else is there" test "$(tail -n +2 "$d/a.csv" | awk -F, '{ sum = 0
    for (j = 2; j <= NF; j++) { sum += $j; if ((j - 1 > NR) != ($j == "")) bad++ }
    if (sum < 0.99999 || sum > 1.00001) bad++ } END { print bad + 0 }')" -eq 0
looks -o "$d/a.csv"
check "a line for each weight that is" test "$(wc -l <"$d/a.csv")" -eq $((1 + 9 * 36))
looks -o "$d/a.html"
code 0
check "the page is causal" grep -q '"rules":{"causal":{' "$d/a.html"
run look "$sentence" --model "$decoder/gpt2_1" -o "$d/a.html" --quiet
check "each layer has its scale" grep -q '"scale":0.15811' "$d/a.html"
for ending in png svg pdf npy; do
    looks -o "$d/a.$ending"
    code 0
done
looks --what-if causal
code 1
err_like 'sees itself and those before it only, as it is'
looks --what-if drop=man --head 0.0 -o "$d/b.csv"
check "dropped keys have no weight" test "$(tail -n +2 "$d/b.csv" | awk -F, '$4 != ""' | wc -l)" -eq 0
run heads "$sentence" $gpt2
code 0
run map "$sentence" $gpt2 --query 0 --iters 50 --json
code 0
check "one key to look at" test "$(grep -o '{"key":' "$folder/out" | wc -l)" -eq 1
run explain "$sentence" $gpt2 --head 1.1 --query 2
code 0
out_says '5 of 8 keys stand after the query'
out_like 'Layer norm   z = '
run explain "$sentence" $gpt2 --shuffle
code 1
err_like 'each sees those before it only'

# ---- Pairs --------------------------------------------------------------------------------------------

crosses --cross
code 0
no_err
out_like '^All heads of cross-attention'
out_like 'Cross-attention, layer '
out_like ' the → dog '
out_says 'A row is a token that the decoder read, and the one that it predicts.'
crosses --cross --color always
out_like '^.\[1mAll heads of cross-attention.\[0m$'
out_like '^down: layers, across: heads; brighter is more, 0 to 1$'
crosses --cross --head 0.0 --json
code 0
out_like '"attention":"cross","decoder_inputs":\["[^"]*","\[CLS\]","the","dog","opened","the","door","."\],"decoder_predicts":\["\[CLS\]","the","dog","opened","the","door",".","\[SEP\]"\]'
check "a column for each source token" test "$(sed 's/.*"weights":\[\[\([^]]*\)\].*/\1/' "$folder/out" | tr ',' '\n' | wc -l)" -eq 8
crosses --cross --head 0.0 -o "$d/c.csv"
check "rows by both names" test "$(sed -n '4p' "$d/c.csv" | cut -d, -f1)" = "the → dog"
crosses --decoder --head 0.0 -o "$d/d.csv"
check "the decoder is causal" test "$(sed -n '2p' "$d/d.csv" | cut -d, -f3-)" = ",,,,,,"
crosses --cross -o "$d/c.html"
code 0
check "queries of their own" grep -q '"queries":{"tokens":\["\[CLS\] → \[CLS\]"' "$d/c.html"
for ending in png svg pdf npy; do
    crosses --cross -o "$d/c.$ending"
    code 0
done
crosses --cross --plot received -o "$d/c.svg"
code 0
crosses --align
code 0
out_like '^Alignment$'
out_like '^  door  *[a-z]'
out_says 'proves no translation'
crosses --align --json
out_like '"alignment":{"layer":[0-9]*,"n_heads":[0-9]*,"words":\[{"target":"the","source":"[a-z]*","source_word":[1-6],"weight":0\.'
crosses --align --head 0.0 --json
out_like '"n_heads":1,'
# Pharaoh's format: the same pairs of words, by their numbers.
crosses --align --json
grep -o '"source_word":[0-9-]*' "$folder/out" | cut -d: -f2 >"$d/words" # source_word counts special tokens
crosses --align --quiet -o "$d/align.txt"
code 0
check "a pair for each word of the target" test "$(tr ' ' '\n' <"$d/align.txt" | wc -l)" -eq "$(wc -l <"$d/words")"
tr ' ' '\n' <"$d/align.txt" | cut -d- -f2 | paste -sd' ' >"$d/got"
check "words of the target from 0 on" test "$(cat "$d/got")" = "$(seq -s ' ' 0 $(($(wc -l <"$d/words") - 1)))"
least=$(sort -n "$d/words" | head -n 1) first=$(tr ' ' '\n' <"$d/align.txt" | cut -d- -f1 | sort -n | head -n 1)
tr ' ' '\n' <"$d/align.txt" | cut -d- -f1 | awk -v add=$((least - first)) '{ print $1 + add }' >"$d/got"
check "words of the text" cmp -s "$d/got" "$d/words"
run look "$sentence" $pair
code 0
out_says 'An encoder predicts nothing: --cross shows what its decoder looks at.'
out_like '^All heads of the encoder'
out_like '^Encoder, layer '

# ---- Edges of decoders and of cross-attention --------------------------------------------------------

run look "$sentence" $gpt2 --what-if "cut=2>0" --head 0.0 -o "$d/a.csv" --quiet
code 0
check "no cell" test "$(tail -n +2 "$d/a.csv" | sed -n 3p | cut -d, -f2)" = ""
run look "$sentence" $gpt2 --what-if "cut=0>2"
code 1
err_like "cut: '0>2' is no edge: each token sees itself and those before it$"
for option in --cross --decoder; do
    crosses $option --what-if "cut=2>1@0.1" --head 0.1 -o "$d/a.csv" --quiet
    code 0
    check "no cell with $option" test "$(tail -n +2 "$d/a.csv" | sed -n 3p | cut -d, -f3)" = ""
    crosses $option --head 0.0 -o "$d/b.csv" --quiet
    crosses $option --what-if "cut=2>1@0.1" --head 0.0 -o "$d/a.csv" --quiet
    check "another head with $option" cmp -s "$d/a.csv" "$d/b.csv"
done

# ---- What does not go ---------------------------------------------------------------------------------

run look "$sentence" $pair --cross --quiet # what the model itself writes
code 0
out_like '^All heads of cross-attention'
usage look '--target goes with --cross, --decoder or --align' look "$sentence" $pair --target "$target"
usage look '--cross together with --decoder' look "$sentence" $pair --cross --decoder --target "$target"
usage look '--cross together with --slide' look "$sentence" $pair --cross --slide 3 --target "$target"
usage look '--plot offsets: --cross has queries and keys of two texts, between which there are no distances' \
    look "$sentence" $pair --cross --target "$target" --plot offsets -o "$d/x.svg"
run look "$sentence" $gpt2 --cross --target "$target"
code 2
err_like 'look: --cross: .* has no decoder over an encoder'
run look "$sentence" $gpt2 --align --target "$target"
code 2
err_like 'look: --align: .* has no decoder over an encoder'
crosses --cross --head 9.9
code 2
err_like 'the decoder has layers 0 to '
crosses --align -o "$d/x.csv"
code 2
# A decoder that classifies has labels and no words; padding at the end of a text is not what it reads.
scored=$here/../golden/classify/gpt2
run look "2 6 7" --ids --model "$scored" --json
code 0
check "labels of a decoder" grep -q '"labels":\[{"label":' "$folder/out"
sed 's/.*"labels":\[//; s/\].*//' "$folder/out" >"$folder/labels"
run look "2 6 7 0 0" --ids --model "$scored" --json
code 0
check "padding counts" test "$(sed 's/.*"labels":\[//; s/\].*//' "$folder/out")" = "$(cat "$folder/labels")"
run generate "a b" --model "$scored"
code 1
err_like 'is a gpt2 that classifies texts, and writes none: `qkv look` has its labels'
run eval --text "$here/../../examples/text/said.txt" --model "$scored"
code 1
err_like 'a gpt2 that classifies texts does not predict their tokens'
finish
