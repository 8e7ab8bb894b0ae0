# What `qkv look -o` writes: the same numbers as --json in .npy and .csv, the same bytes each time, quoting, limits.
. ./lib.sh
m="--model $model"
text="the [MASK] opened a man."
d=$folder/d
mkdir "$d"
look() { run look "$text" $m --quiet "$@"; }

# numbers FILE: of an f32 array of version 1, one a line; weights: those of --json, one a line
numbers() {
    length=$(od -An -j8 -N2 -tu2 "$1" | tr -d ' ')
    od -An -v -w4 -tf4 -j$((length + 10)) "$1" | tr -d ' '
}
weights() { sed 's/.*"weights":\[\[//; s/\]\]}$//; s/\],\[/,/g' "$1" | tr ',' '\n'; }
# near A B WHAT: as many numbers, and the same floats (od prints as few digits as tell a float)
near() {
    check "$3: $(wc -l <"$1") numbers, not $(wc -l <"$2")" test "$(wc -l <"$1")" -eq "$(wc -l <"$2")"
    check "$3: other numbers" test "$(paste "$1" "$2" | awk '
        { d = $1 - $2; if (d < 0) d = -d; if (!(d <= 6.1e-8 * $2)) n++ } END { print n + 0 }')" -eq 0
}

# Each head alone: JSON, .npy and .csv have the same numbers; the array of all heads is those one after the other.
look -o "$d/all.npy"
code 0
check "the shape of all heads" grep -aq "'shape': (2, 2, 8, 8)" "$d/all.npy"
look -o "$d/all.csv"
code 0
check "the first line of all heads" test "$(head -n 1 "$d/all.csv")" = layer,head,query,key,weight
check "a line for each weight" test "$(wc -l <"$d/all.csv")" -eq $((2 * 2 * 8 * 8 + 1))
: >"$d/parts"
: >"$d/places"
for head in 0.0 0.1 1.0 1.1; do
    look --head $head --json
    code 0
    weights "$folder/out" >"$d/json"
    check "64 weights" test "$(wc -l <"$d/json")" -eq 64
    cat "$d/json" >>"$d/parts"
    look --head $head -o "$d/a.npy"
    code 0
    check "the shape of a head" grep -aq "'shape': (8, 8)" "$d/a.npy"
    numbers "$d/a.npy" >"$d/npy"
    near "$d/npy" "$d/json" "$head.npy"
    look --head $head -o "$d/a.csv"
    code 0
    check "tokens as the first line" test "$(head -n 1 "$d/a.csv")" = "query,[CLS],the,[MASK],opened,a,man,.,[SEP]"
    check "tokens as the first column" test "$(tail -n +2 "$d/a.csv" | cut -d, -f1 | tr '\n' ' ')" = "[CLS] the [MASK] opened a man . [SEP] "
    tail -n +2 "$d/a.csv" | cut -d, -f2- | tr ',' '\n' >"$d/csv"
    check "$head.csv is not what --json says" cmp -s "$d/json" "$d/csv"
    for i in 0 1 2 3 4 5 6 7; do for j in 0 1 2 3 4 5 6 7; do echo "${head%.*},${head#*.},$i,$j"; done; done >>"$d/places"
done
numbers "$d/all.npy" >"$d/npy"
near "$d/npy" "$d/parts" all.npy
tail -n +2 "$d/all.csv" | paste -d, - /dev/null | sed 's/,$//' | cut -d, -f1-4 | cmp -s - "$d/places"
check "the places of all.csv" test $? -eq 0
tail -n +2 "$d/all.csv" | cut -d, -f5 >"$d/csv"
check "all.csv is not what --json says" cmp -s "$d/parts" "$d/csv"
look -o "$d/a.json"
look --json
check "-o .json is not what --json says" cmp -s "$folder/out" "$d/a.json"

# A row of weights sums to 1.
check "rows sum to 1" awk -F, 'NR > 1 { s = 0; for (i = 2; i <= NF; i++) s += $i; if (s < 0.99999 || s > 1.00001) exit 1 }' "$d/a.csv"

# The same bytes in another process, theme by theme; the themes differ.
for kind in png svg pdf; do
    for head in "" "--head 1.0"; do
        for theme in light dark; do
            look $head --theme $theme -o "$d/$theme.$kind"
            code 0
            no_out
            no_err
            cp "$d/$theme.$kind" "$d/first"
            look $head --theme $theme -o "$d/$theme.$kind" --threads 3 --isa scalar
            check "$kind: other bytes" cmp -s "$d/first" "$d/$theme.$kind"
        done
        check "$kind: the themes are the same" sh -c "! cmp -s '$d/light.$kind' '$d/dark.$kind'"
    done
done
check "no <svg>" grep -q '^<svg ' "$d/light.svg"
check "no text in the SVG" grep -q '>\[MASK\]</text>' "$d/light.svg"
check "no title in the SVG" grep -q '<title>Layer 1, head 0: \[MASK\] looks at ' "$d/light.svg"
check "no PDF" test "$(head -c 5 "$d/light.pdf")" = "%PDF-"
check "a date in the PDF" sh -c "! grep -aq Date '$d/light.pdf'"
if command -v xmllint >/dev/null 2>&1; then check "the SVG is not XML" xmllint --noout "$d/light.svg" "$d/dark.svg"; fi

# Tokens with commas, quotes and line breaks: quoted as RFC 4180 says. The vocabulary of the tiny model, with other words.
odd=$folder/odd
mkdir "$odd"
cp "$model"/* "$odd"
{
    sed -n 1,6p "$model/vocab.txt"
    echo ','
    echo '"'
    tail -n +9 "$model/vocab.txt"
} >"$odd/vocab.txt"
run look 'the , " man' --model "$odd" --head 0.0 --quiet -o "$d/odd.csv"
code 0
check "quotes" test "$(head -n 1 "$d/odd.csv")" = 'query,[CLS],the,",","""",man,[SEP]'

# A page: what is said, the same bytes for any threads, one head alone, the old file where writing fails. Its numbers: unit_view_page
# and tests/page/browser.py.
run look "$text" $m -o "$d/a.html"
code 0
no_out
check "the page's line" grep -Eq '^qkv: 4 of 4 heads, 0\.[0-9][0-9] MB$' "$folder/err"
check "a page" grep -q '^<!doctype html>$' "$d/a.html"
check "its tokens" grep -q '"tokens":\["\[CLS\]","the","\[MASK\]","opened","a","man",".","\[SEP\]"\]' "$d/a.html"
check "four heads" test "$(grep -c 'id="qkv-head-' "$d/a.html")" -eq 4
check "a map of the first, by 32 runs" test "$(grep -c '"map":".*"map_note":"t-SNE, cosine, .*KL .* 32 runs' "$d/a.html")" -eq 1
check "maps of the others, by 8" test "$(grep -c '"map":".*"map_note":"t-SNE, cosine, .*KL .* 8 runs' "$d/a.html")" -eq 3
look -o "$d/b.html" --threads 3 --isa scalar
code 0
no_err
check "other bytes" cmp -s "$d/a.html" "$d/b.html"
look --head 1.0 -o "$d/b.html"
code 0
check "one head" test "$(grep -c 'id="qkv-head-' "$d/b.html")" -eq 1
check "that head" grep -q '"layer":1,"head":0,' "$d/b.html"
look -o "$d/none/b.html"
code 1
check "where it could not be written" grep -q 'none/b.html' "$folder/err"

# More weights than a CSV may hold: the message says what to do. A model of one head for 4200 tokens.
printf 'the man opened a door .\na dog left .\n' >"$folder/text"
run train --text "$folder/text" --out "$folder/long" --layers 1 --heads 1 --hidden 8 --vocab 120 --len 4200 --steps 1 \
    --batch 1 --quiet
code 0
printf 'a %.0s' $(seq 4100) >"$folder/long_text"
long() {
    said="qkv look - $*"
    "$qkv" look - --model "$folder/long" "$@" <"$folder/long_text" >"$folder/out" 2>"$folder/err"
    got=$?
}
limit="1 head of 4102 x 4102 weights are more than the limit of 16777216 weights"
long -o "$d/long.csv"
code 1
err "qkv: $limit; .npy holds more"
long --head 0.0 -o "$d/long.csv"
code 1
err "qkv: $limit; .npy holds more"
check "a file was written" test ! -e "$d/long.csv"
long -o "$d/long.npy" --quiet
code 0
check "the shape of the long one" grep -aq "'shape': (1, 1, 4102, 4102)" "$d/long.npy"
rm -f "$d/long.npy"

# A page of more points than a map may have says so; Ctrl-C ends a map, and the page has the best so far. A signal that comes
# before the map is one before the page, so it is sent again, after four times as much CPU.
long -o "$d/long.html" --quiet
code 0
check "why there is no map" grep -q '"map_note":"There is no map: n_queries + n_keys = 8204 .*`--map cosine` makes one of up to 65536 points\."' "$d/long.html"
check "there is a map" test "$(grep -c '"map":"' "$d/long.html")" -eq 0
head -c 2000 "$folder/long_text" >"$folder/text"
input=$folder/text
for ticks in 25 100 400 1600 6400; do
    rm -f "$d/long.html"
    interrupt INT look - --model "$folder/long" --isa scalar --threads 1 -o "$d/long.html"
    [ -f "$d/long.html" ] && break
done
unset input ticks
code 130
no_out
err_like '^qkv: stopped: maps are the best so far, or absent$'
err_like '^qkv: interrupted$'
check "the best so far" grep -q '"map_note":"t-SNE, cosine, perplexity 30, Barnes-Hut, theta 0.5; KL [0-9.]*, stopped before its end' "$d/long.html"
finish
