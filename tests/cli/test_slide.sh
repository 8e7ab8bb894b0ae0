# qkv look --file and --slide: windows are texts of their own, what is shown is their mean; what is refused; Ctrl-C.
. ./lib.sh
d=$folder/d
mkdir "$d"
m="--model $model"

# Words that are one token each, 28 of them, on lines of their own.
words="the man opened a door . the dog left a man . a door opened the man . the man left . a dog opened a man ."
printf '%s\n' $words >"$d/text"
n=$(wc -l <"$d/text")
piece() { tail -n +$(($1 + 1)) "$d/text" | head -n "$2" | tr '\n' ' '; }
numbers() { tail -n +2 "$1" | sed 's/^[^,]*,//' | tr ',' '\n'; }

run look --file "$d/text" $m
code 1
no_out
err "qkv: the text has $((n + 2)) tokens, the model takes 23: --slide N looks at windows of it, --truncate cuts it"
run look --file "$d/text" $m --truncate --json
code 0
err "qkv: text cut from $((n + 2)) to 23 tokens"
head -n 9 "$d/text" >"$d/few"
run look --file "$d/few" $m --json
cp "$folder/out" "$d/a.json"
run look "$(piece 0 9)" $m --json
check "a file is a text" cmp -s "$folder/out" "$d/a.json"
feed "$(piece 0 9)" look --file - $m --json
check "so is standard input" cmp -s "$folder/out" "$d/a.json"

# means SIZE STARTS...: the mean of windows, and of the same texts alone
means() {
    size=$1 slide=$2
    shift 2
    run look --file "$d/text" $m --slide "$slide" --head 1.1 --quiet -o "$d/mean.csv"
    code 0
    no_err
    : >"$d/all"
    for start in "$@"; do
        run look "$(piece $start $size)" $m --head 1.1 --quiet -o "$d/one.csv"
        numbers "$d/one.csv" >"$d/one"
        paste "$d/all" "$d/one" | awk '{ printf "%.9g\n", $1 + $NF }' >"$d/sum"
        [ -s "$d/all" ] || cp "$d/one" "$d/sum"
        cp "$d/sum" "$d/all"
    done
    numbers "$d/mean.csv" >"$d/mean"
    check "as many numbers" test "$(wc -l <"$d/mean")" -eq $(((size + 2) * (size + 2)))
    check "the mean of $*" test "$(paste "$d/mean" "$d/all" | awk -v n=$# '{ e = $1 - $2 / n; if (!(e < 1e-6 && e > -1e-6)) bad++ } END { print bad + 0 }')" -eq 0
    check "places" test "$(head -n 1 "$d/mean.csv" | cut -d, -f1-4)" = "query,[CLS],1,2"
}
means 8 8 0 8 16 $((n - 8))
means 10 10,5 0 5 10 15 $((n - 10))
means 21 21,21 0 $((n - 21))

run look --file "$d/text" $m --slide 10,5 --json
code 0
check "windows" test "$(grep -o '"first":[0-9]*' "$folder/out" | tr '\n' ' ')" = "\"first\":0 \"first\":5 \"first\":10 \"first\":15 \"first\":$((n - 10)) "
out_like '"slide":{"n":10,"stride":5,"n_tokens":'
out_like '"places":\["\[CLS\]","1","2","3","4","5","6","7","8","9","10","\[SEP\]"\]'
value() { sed "s/.*\"heads\":\[{[^}]*\"$1\":\([^,}]*\).*/\1/" "$folder/out"; }
cp "$folder/out" "$d/means.json"
for name in entropy effective_keys mass_window received_gini; do
    cp "$d/means.json" "$folder/out"
    mean=$(value $name)
    total=$(for start in 0 5 10 15 $((n - 10)); do
        run look "$(piece $start 10)" $m --json
        value $name
    done | awk '{ s += $1 } END { printf "%.6f", s / NR }')
    check "the mean $name $mean is not $total" awk "BEGIN { e = $mean - $total; exit !(e < 2e-6 && e > -2e-6) }"
done

# A number that a window does not have, since no word stands there twice, is left out.
run look "the man the man opened a door dog" $m --slide 4 --json
same=$(value mass_same_token)
run look "the man the man" $m --json
check "the mean mass_same_token $same" test "$same" = "$(value mass_same_token)" -a "$same" != null
run look "opened a door dog" $m --json
check "a window without" test "$(value mass_same_token)" = null

run look --file "$d/text" $m --slide 10,5
code 0
out_like '^Windows  first token, sharpest look'
LANG=C run look --file "$d/text" $m --slide 10,5
check "no sign beyond ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' \"\$1\"" - "$folder/out"
out_like '^Means over 5 windows of 12 tokens with'
run look --file "$d/text" $m --slide 10,5 --quiet -o "$d/a.svg"
check "the caption" grep -q 'Means over 5 windows of 12 tokens with the special ones' "$d/a.svg"
run look --file "$d/text" $m --slide 10,5 -o "$d/a.html"
code 0
check "five texts" test "$(grep -o '"name":"[0-9]*: ' "$d/a.html" | wc -l)" -eq 5
check "twenty heads" test "$(grep -c 'id="qkv-head-' "$d/a.html")" -eq 20
run look --file "$d/text" $m --slide 10,5 --heads 1.1,0.0 --quiet -o "$d/a.html"
check "ten heads" test "$(grep -o '"layer":[01],"head":[01],"run":[0-4]' "$d/a.html" | wc -l)" -eq 10
run look --file "$d/text" $m --slide 10,5 --what-if causal --json
out_like '"what_if":"causal"'
run look "the dog" $m --slide 10 --json
check "a short text is one window" test "$(grep -o '"n_windows":1' "$folder/out")" = '"n_windows":1'
: >"$d/empty"
run look --file "$d/empty" $m --slide 4 --json
code 0

# ---- What is refused -------------------------------------------------------------------------------

run look --file "$d/text" $m --slide 22
code 1
err "qkv: --slide 22: with 2 special tokens more than the 23 that the model takes"
run look --file "$d/none" $m
code 1
err "qkv: $d/none: No such file or directory"
run look --file "$d" $m
code 1
err "qkv: $d: Is a directory"
printf 'a \377 b' >"$d/broken"
run look --file "$d/broken" $m
code 1
err_like 'UTF-8'
for value in 0 -3 x 4,0 4,2,1 4,; do
    usage look "--slide: '$value' is not N or N,STRIDE, whole numbers from 1" look a $m --slide $value
done
usage look "--slide: a stride of 9 leaves out tokens between windows of 4" look a $m --slide 4,9
usage look "--slide together with --pair" look a $m --slide 4 --pair b
usage look "--slide together with --truncate" look a $m --slide 4 --truncate
usage look "--what-if drop=a together with --slide: windows have other tokens" look a $m --slide 4 --what-if drop=a
usage look "--file together with a text" look a --file b
usage look "--file together with --jsonl" look --jsonl --file b
usage look "--file together with --q" look --q a --k b --file c
usage look "--q and --k together with --slide" look --q a --k b --slide 4

# Ctrl-C between windows: nothing is written.
for copy in 1 2 3 4 5 6 7 8; do cat "$d/text" "$d/text" >"$d/twice" && cp "$d/twice" "$d/text"; done
interrupt INT look --file "$d/text" $m --slide 4,1 --isa scalar --threads 1 -o "$d/stopped.json"
code 130
check "a file was written" test ! -e "$d/stopped.json"
finish
