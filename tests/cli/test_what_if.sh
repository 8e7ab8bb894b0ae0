# qkv look --what-if: what is said, before and after, in every form; what is refused; and nothing without it.
. ./lib.sh
d=$folder/d
mkdir "$d"
m="--model $model"
sentence="the [MASK] opened a man."
look() { run look "$sentence" $m --quiet "$@"; }

look --json
cp "$folder/out" "$d/plain.json"
check "no word about it" test "$(grep -c 'modified\|what_if\|before' "$d/plain.json")" -eq 0
look --json --what-if temperature=1
sed 's/"modified":"modified: not what the model computed","what_if":"temperature 1","predictions_before":.*,"heads":/"heads":/' "$folder/out" >"$d/same.json"
sed 's/,"findings":.*/}/' "$d/plain.json" >"$d/bare.json" # there are none where something is asked
check "temperature 1 is the model" cmp -s "$d/same.json" "$d/bare.json"

look --json --what-if causal --what-if drop=man --what-if temperature=2.5
code 0
no_err
out_like '"modified":"modified: not what the model computed","what_if":"causal, temperature 2.5, without man"'
before() { sed 's/.*"predictions_before"://; s/,"heads":.*//' "$1"; }
after() { sed 's/.*"predictions"://; s/,"\(modified\|heads\|note\)":.*//' "$1"; }
check "before is the model's" test "$(before "$folder/out")" = "$(after "$d/plain.json")"
check "after is not" test "$(after "$folder/out")" != "$(after "$d/plain.json")"
cp "$folder/out" "$d/a.json"
look --json --what-if temperature=2.5 --what-if drop=5 --what-if causal --threads 3 --isa scalar
check "the same questions" test "$(after "$folder/out")" = "$(after "$d/a.json")"

# Every row sums to 1 over what is left; keys that are dropped or later have no weight.
look --what-if causal --what-if drop=man --head 1.0 -o "$d/a.csv"
code 0
check "weights" test "$(tail -n +2 "$d/a.csv" | awk -F, '{ sum = 0
    for (j = 2; j <= NF; j++) { sum += $j; if ((j - 1 > NR || j == 7) != ($j == "")) bad++ }
    if (sum < 0.99999 || sum > 1.00001) bad++ } END { print bad + 0 }')" -eq 0
look --what-if no-scale --head 1.0 -o "$d/a.csv"
look --what-if no-scale --what-if temperature=2 --head 1.0 -o "$d/b.csv"
check "temperature joins the scale" test "$(cmp -s "$d/a.csv" "$d/b.csv"; echo $?)" -eq 1

look --what-if causal
code 0
out_like '^As the model is$'
out_like '^\[modified: not what the model computed: causal\]$'
out_like '^Modified: not what the model computed (causal)\. A cell is '
for option in "" "--head 0.1"; do
    look --what-if drop=the $option -o "$d/a.svg"
    code 0
    check "the caption" grep -q 'MODIFIED: not what the model computed (without the)\. Model' "$d/a.svg"
done
look --what-if drop=the --what-if causal -o "$d/a.html"
code 0
check "the badge" grep -q '"modified":"modified: not what the model computed (causal, without the)"' "$d/a.html"
check "what the page hides" grep -q '"dropped":\[0,1,0,0,0,0,0,0\],' "$d/a.html"
check "what the page says of causal" grep -q '"rules":{"causal":{' "$d/a.html"
look -o "$d/a.html"
check "nothing is hidden" test "$(grep -c '"modified":"\|"dropped":\[' "$d/a.html")" -eq 0

# A token by its place, all places of one; lines of JSON each find their own.
feed '"the man opened the door"' look $m --jsonl --what-if drop=the
code 0
out_like '"what_if":"without the (all 2, at tokens 1 and 4)"'
dropped() { grep -o '"dropped":\[[0-9,]*\]' "$d/a.html"; }
run look "the man opened the door" $m --quiet --what-if drop=the -o "$d/a.html"
check "the words" grep -qF '(without the (all 2, at tokens 1 and 4))' "$d/a.html"
check "what is dropped" test "$(dropped)" = '"dropped":[0,1,0,0,1,0,0]'
run look "the man opened the door" $m --quiet --what-if drop=4 -o "$d/a.html"
check "the words" grep -qF '(without the (token 4, one of 2))' "$d/a.html"
check "what is dropped" test "$(dropped)" = '"dropped":[0,0,0,0,1,0,0]'
run look "the man opened the door" $m --quiet --what-if drop=man -o "$d/a.html"
check "the words" grep -qF '(without man)' "$d/a.html"
feed '"a man"' look $m --jsonl --what-if drop=the
code 1
out_like "\"error\":\"line 1: --what-if drop: 'the' is none of the 4 tokens\""
look --what-if drop=99
code 1
err "qkv: --what-if drop: '99' is none of the 8 tokens"
usage look "--what-if: 'causality' is none of causal, no-scale, temperature=T, drop=TOKEN, cut=QUERY>KEY" look "$sentence" $m --what-if causality
usage look "--what-if: 'drop=' is none of causal, no-scale, temperature=T, drop=TOKEN, cut=QUERY>KEY" look "$sentence" $m --what-if drop=
usage look "--what-if temperature: '0' is not a number from 0.001 to 1000" look "$sentence" $m --what-if temperature=0
usage look "--what-if temperature: 'nan' is not a number from 0.001 to 1000" look "$sentence" $m --what-if temperature=nan
usage look "--what-if temperature is given twice" look "$sentence" $m --what-if temperature=2 --what-if temperature=3
usage look "--q and --k together with --what-if" look --q x --k y --what-if causal
# Edges: in one head, whose row is the plain one over what is left; in a layer; everywhere.
look --what-if "cut=2>5@1.1" --head 1.1 -o "$d/cut.csv"
code 0
look --head 1.1 -o "$d/plain.csv"
rows() { tail -n +2 "$1" | cut -d, -f2-; }
rows "$d/plain.csv" | awk -F, 'NR == 3 { for (j = 1; j <= NF; j++) $j = j == 6 ? "" : $j / (1 - keep($6)) } { print }
    function keep(x) { return cut == "" ? cut = x : cut }' OFS=, >"$d/expected"
check "the row without that key" test "$(rows "$d/cut.csv" | paste -d, - "$d/expected" | awk -F, '{
    n = NF / 2
    for (j = 1; j <= n; j++) { e = $j - $(j + n); if (!(e < 2e-6 && e > -2e-6) || ($j == "") != ($(j + n) == "")) bad++ }
    if (n != 8) bad++ } END { print NR, bad + 0 }')" = "8 0"
look --head 1.0 -o "$d/plain.csv"
look --what-if "cut=2>5@1.1" --head 1.0 -o "$d/cut.csv"
check "another head of the layer has its bits" cmp -s "$d/cut.csv" "$d/plain.csv"
look --what-if "cut=2>5@1" --head 1.0 -o "$d/cut.csv"
check "in a layer it is another one" test "$(rows "$d/cut.csv" | awk -F, '{ for (j = 1; j <= NF; j++) if ($j == "") print NR, j }')" = "3 6"
look --what-if "cut=2>5@1.*" --head 1.0 -o "$d/b.csv"
check "the layer, written as a group" cmp -s "$d/cut.csv" "$d/b.csv"
look --what-if "cut=the>[MASK]" --what-if drop=man --head 0.1 -o "$d/cut.csv"
check "everywhere, beside a dropped key" test "$(rows "$d/cut.csv" | awk -F, '{ for (j = 1; j <= NF; j++) if ($j == "") printf "%d.%d ", NR, j }')" = \
    "1.6 2.3 2.6 3.6 4.6 5.6 6.6 7.6 8.6 "
look --what-if "cut=2>5@1.1"
code 0
out_like '^\[modified: not what the model computed: without the edge 2>5@1\.1\]$'
run look "the man opened the door" $m --quiet --what-if "cut=the>door" --json
out_like '"what_if":"without the edge the>door (2 edges)"'
look --what-if "cut=2>5@1.1" -o "$d/a.html"
code 0
check "heads of the layer have masks" test "$(grep -o '"mask":"' "$d/a.html" | wc -l)" -eq 2
for form in svg png json npy; do
    look --what-if "cut=2>5" -o "$d/a.$form"
    code 0
done
# Of two heads of a layer only one is another; both are other ones than with the key dropped.
numbers() { run heads "$sentence" $m --json --quiet "$@"; tr '{' '\n' <"$folder/out" | grep '^"layer":'; }
numbers >"$d/plain"
numbers --what-if "cut=2>5@1.1" >"$d/cut"
check "numbers of one head differ" test "$(diff "$d/plain" "$d/cut" | grep -c '^>')" -eq 1
check "which is 1.1" test "$(diff "$d/plain" "$d/cut" | sed -n 's/^> "layer":\([0-9]*\),"head":\([0-9]*\),.*/\1.\2/p')" = 1.1
look --what-if "cut=2>5@9.9"
code 1
err_like "^qkv: --what-if cut: '2>5@9\.9': the attention has layers 0 to [0-9]* of heads 0 to [0-9]*$"
for edge in "2>99" "x>2" "2>" ">2" "99>2@1.1"; do
    look --what-if "cut=$edge"
    code 1
    err_like "names no query and key of the 8 tokens$"
done
usage look "--what-if: 'cut=2' is none of causal, no-scale, temperature=T, drop=TOKEN, cut=QUERY>KEY" look "$sentence" $m --what-if cut=2
usage look "--what-if cut=2>3 together with --slide: windows have other tokens" look "$sentence" $m --slide 4 --what-if "cut=2>3"
many=
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do many="$many --what-if causal"; done
usage look "--what-if is given more than 16 times" look "$sentence" $m $many
finish
