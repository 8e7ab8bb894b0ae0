# qkv heads and qkv map of encoder-decoders: the encoder, the decoder, cross-attention, with targets of either origin; what is refused.
. ./lib.sh
export LC_ALL=C.UTF-8
d=$folder/d
mkdir "$d"
pair="--model $here/../golden/decoder/bart_3"
sentence="the man was watching the dog"
target="the dog opened the door."
heads() { run heads "$sentence" $pair --quiet "$@"; }
map() { run map "$sentence" $pair --quiet --iters 60 "$@"; }
# value NAME [N]: a number of the n-th head (default: the first) of the last JSON output
value() { grep -o "\"$1\":[^,}]*" "$folder/out" | sed -n "${2:-1}s/.*://p"; }
# near WHAT A B: off by no more than 2e-6
near() { check "$1: $2, not $3" test "$(awk -v a="$2" -v b="$3" 'BEGIN { e = a - b; print (a != "" && b != "" && e < 2e-6 && e > -2e-6) }')" -eq 1; }

# ---- Heads ---------------------------------------------------------------------------------------------

heads
code 0
no_err
out_like ' heads of the encoder$\| heads of the encoder of'
heads --json
out_like '^{"attention":"encoder","tokens":'
heads --cross --target "$target"
code 0
no_err
out_like ' heads of cross-attention'
out_says 'and a target of 8, means over 6 of the latter'
out_says 'Queries are tokens that the decoder read, keys those of the text'
check "no column that compares places" test "$(grep '^head ' "$folder/out" | grep -c 'prev\|self\|next\|dist\|near\|same\|dup\|induc')" -eq 0
check "nor any label of them" test "$(grep -c '^[0-9.]* *\(prev\|next\|same-token\|induction\|duplicate\) ' "$folder/out")" -eq 0
heads --cross --target "$target" --json
code 0
out_like '^{"attention":"cross","tokens":\["\[CLS\]","the",.*"decoder_inputs":\["[^"]*","\[CLS\]","the","dog","opened","the","door","."\],"decoder_predicts":'
out_like '"mean_distance":null,.*"mass_self":null,"mass_previous":null,"mass_next":null,.*"mass_window":null,"mass_same_token":null,"mass_duplicate":null,"mass_induction":null,'
out_like '"rules":\[{"label":"\[CLS\]",' # the first that is about keys alone

# The signature is that of the weights: means over the rows of ordinary decoder tokens.
confidence=$(value confidence) entropy=$(value entropy) punctuation=$(value mass_punctuation)
received=$(value received_largest) key=$(value received_key)
run look "$sentence" $pair --cross --target "$target" --head 0.0 -o "$d/w.csv" --quiet
tail -n +2 "$d/w.csv" | awk -F, '
    { for (j = 2; j <= NF; j++) r[j] += $j }
    !/^(\[|<)/ { n++; top = 0; for (j = 2; j <= NF; j++) { if ($j > top) top = $j; if ($j > 0) h -= $j * log($j) }; c += top }
    END { for (j = 2; j <= NF; j++) if (r[j] > most) { most = r[j]; at = j - 2 }
          printf "%d %.9g %.9g %.9g %d\n", n, c / n, h / n, most / NR, at }' >"$d/means"
read -r rows c h r at <"$d/means"
check "$rows rows" test "$rows" -eq 6
near confidence "$confidence" "$c"
near entropy "$entropy" "$h"
near received "$received" "$r"
check "the key that receives most" test "$key" -eq "$at"
near punctuation "$punctuation" 0 # the text has none

heads --decoder --target "$target" --json
code 0
out_like '^{"attention":"decoder",'
near "nothing after a query" "$(value mass_next)" 0
heads --cross --json # what the model itself writes
code 0
out_like '^{"attention":"cross",.*"decoder_inputs":'
heads --cross --target "$target" -o "$d/h.csv"
code 0
check "no number is an empty field" test "$(sed -n 2p "$d/h.csv" | cut -d, -f7)" = ""
heads --cross --target "$target" --like 0.1 --top 1
out_like '^0.1 '
heads --cross --target "$target" --what-if drop=man --json
code 0
out_like '"modified":'

# Many: a text and its target a line, or the text alone; means are those of the texts.
printf '%s\t%s\n%s\n' "$sentence" "$target" "the dog" >"$d/lines"
heads --cross --target "$target" --json
a=$(value confidence 2)
run heads "the dog" $pair --cross --json --quiet
b=$(value confidence 2)
run heads --file "$d/lines" $pair --cross --json --quiet
code 0
out_like '^{"attention":"cross","n_texts":2,"n_tokens":[0-9]*,"n_decoder_tokens":[0-9]*,'
near "mean over texts" "$(value confidence 3)" "$(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.9g", (a + b) / 2 }')"
run heads --file "$d/lines" $pair --cross --quiet
code 0
out_says 'over 2 texts and their targets'

# ---- Maps ----------------------------------------------------------------------------------------------

map
code 0
out_like '^Encoder, layer '
out_says ', the encoder, layer '
map --json
out_like '^{"attention":"encoder",'
map --cross --target "$target" --head 0.0
code 0
no_err
out_like '^Cross-attention, layer 0, head 0: '
out_like '^● query: read → predicts  ▲ key: source$'
out_says "the decoder's attention to the source, layer 0 of"
out_says 'queries of 8 tokens that the decoder read (and those that it predicts), keys of 8 tokens of the source'
map --cross --target "$target" --head 0.0 --ascii
check "only ASCII" test "$(LC_ALL=C tr -d '\000-\177' <"$folder/out" | wc -c)" -eq 0
map --cross --target "the dog" --head 0.0 --json
code 0
out_like '"queries":\[{"token":"[^"]*","predicts":"\[CLS\]","xy":'
check "8 keys, and 4 queries" test "$(grep -o '"token"' "$folder/out" | wc -l)" -eq 12
map --cross --target "the dog" --head 0.0 --query the --top 1 --json
line=$(sed 's/.*"lines":{"query":\([0-9]*\),"keys":\[{"key":\([0-9]*\),"weight":\([^}]*\)}.*/\1 \2 \3/' "$folder/out")
run look "$sentence" $pair --cross --target "the dog" --head 0.0 -o "$d/w.csv" --quiet
near "the weight of the line" "${line##* }" "$(sed -n 4p "$d/w.csv" | tr ',' '\n' | tail -n +2 | sort -g | tail -n 1)"
check "of the row that read it" test "${line%% *}" -eq 2
map --decoder --target "$target" --head 0.0 --query 0 --json
code 0
check "one key to look at" test "$(grep -o '{"key":' "$folder/out" | wc -l)" -eq 1
map --cross --target "$target" -o "$d/m.csv"
code 0
check "queries by both names" grep -q '^query,3,dog → opened,\|^query,2,the → dog,' "$d/m.csv"
for ending in png svg pdf json; do
    map --cross --target "$target" -o "$d/m.$ending"
    code 0
done
check "a legend" grep -q 'key: source' "$d/m.svg"

# ---- What does not go ----------------------------------------------------------------------------------

for command in heads map; do
    goes=$([ $command = heads ] && echo '--cross, --decoder or --effect' || echo '--cross or --decoder')
    usage $command "--target goes with $goes" $command "$sentence" $pair --target "$target"
    usage $command '--cross together with --decoder' $command "$sentence" $pair --cross --decoder
    usage $command '--cross together with --pair' $command "$sentence" $pair --cross --pair "$target"
    usage $command '--decoder together with --jsonl' $command $pair --decoder --jsonl
    run $command "$sentence" --cross
    code 2
    err_like 'has no decoder over an encoder'
done
usage heads '--cross together with --probes' heads "$sentence" $pair --cross --probes
usage heads '--sort: mass_previous compares queries with keys of the same text, and --cross has two texts' \
    heads "$sentence" $pair --cross --sort mass_previous
usage heads '--label: prev compares queries with keys of the same text, and --cross has two texts' \
    heads "$sentence" $pair --cross --label prev
usage map '--q and --k together with --cross' map --q Q --k K --cross
heads --decoder --target "$target" --what-if causal
code 1
err_like 'sees itself and those before it only, as it is'
run heads --file "$d/lines" --model "$here/../golden/decoder/gpt2_2" --what-if causal
code 1
err_like 'sees itself and those before it only, as it is'
map --cross --target "$target" --head 9.0
code 2
err_like 'the decoder has layers 0 to '
finish
