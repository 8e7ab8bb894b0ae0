# qkv look --q F --k F: weights, tiles and statistics against the textbook in awk's doubles; tokens of any bytes; what is refused.
. ./lib.sh
export LC_ALL=C
d=$folder/d
mkdir "$d"

# array NAME SHAPE COUNT SEED: NAME.npy of f16, whose bytes awk can write (no zeros), and NAME.txt, a number a line.
array() {
    : >"$d/$1.raw"
    awk -v n="$3" -v seed="$4" -v bytes="$d/$1.raw" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++) {
            high = 48 + int(rand() * 15); low = 1 + int(rand() * 127); minus = rand() < 0.4
            printf "%c%c", low, high + (minus ? 128 : 0) >bytes
            word = high * 256 + low; e = int(word / 1024); f = word % 1024
            printf "%.12g\n", (minus ? -1 : 1) * (1024 + f) * 2 ^ (e - 25)
        }
    }' >"$d/$1.txt"
    {
        printf '\223NUMPY\001\000\166\000'
        printf '%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': ($2), }"
        cat "$d/$1.raw"
    } >"$d/$1.npy"
}

# textbook Q K LQ LK D FIRST LAST TILE [POOLING] [SCALE]: the cells that a .csv of one head holds, a line each; FIRST <= j - i <= LAST.
# A tile of which nothing is seen is an empty line. cap, slope, sink and real (the keys that exist) are variables, empty for none.
textbook() {
    awk -v cap="${cap:-0}" -v slope="${slope:-0}" -v sink="${sink:-}" -v real="${real:-$4}" -v lq="$3" -v lk="$4" -v d="$5" -v first="$6" -v last="$7" -v tile="$8" -v pooling="${9:-peak}" -v scale="${10:-0}" '
        FNR == NR { q[n++] = $1; next }
        { k[m++] = $1 }
        END {
            if (!scale) scale = 1 / sqrt(d)
            for (i = 0; i < lq; i++) {
                top = -1e300; sum = 0; seen = 0
                for (j = 0; j < lk; j++) {
                    if (j - i < first || j - i > last || j >= real) continue
                    s = 0
                    for (c = 0; c < d; c++) s += q[i * d + c] * k[j * d + c]
                    s *= scale
                    if (cap > 0) { x = exp(2 * s / cap); s = cap * (x - 1) / (x + 1) }
                    score[j] = s + slope * (j - i); seen++
                    if (score[j] > top) top = score[j]
                }
                for (j = 0; j < real; j++) if (j - i >= first && j - i <= last) sum += exp(score[j] - top)
                if (sink != "") sum += exp(sink - top)
                a = int(i / tile); rows[a] += seen > 0
                for (j = 0; j < lk; j++) {
                    at = a "," int(j / tile)
                    if (j - i < first || j - i > last || j >= real) continue
                    p = exp(score[j] - top) / sum; there[at] = 1
                    if (pooling == "mass") cell[at] += p
                    else if (p > cell[at]) cell[at] = p
                }
            }
            for (a = 0; a * tile < lq; a++)
                for (b = 0; b * tile < lk; b++)
                    if (!there[a "," b]) print ""
                    else printf "%.9g\n", cell[a "," b] / (pooling == "mass" && rows[a] ? rows[a] : 1)
        }' "$1" "$2"
}

# cells FILE.csv: the same of a file
cells() { tail -n +2 "$1" | sed 's/^[^,]*,//' | tr ',' '\n'; }
# near A B: as many numbers, none off by more than 2e-6, none where there should be none
near() {
    check "other counts of numbers" test "$(wc -l <"$1")" -eq "$(wc -l <"$2")"
    check "numbers differ" test "$(paste "$1" "$2" | awk -F '\t' '{ e = $1 - $2; if (!(e < 2e-6 && e > -2e-6) || ($1 == "") != ($2 == "")) n++ } END { print n + 0 }')" -eq 0
}
look() { run look --quiet "$@"; }
# weighs Q K LQ LK D FIRST LAST TILE POOLING SCALE OPTIONS...
weighs() {
    textbook "$d/$1.txt" "$d/$2.txt" "$3" "$4" "$5" "$6" "$7" "$8" "$9" "${10}" >"$d/expected"
    q=$1 k=$2
    shift 10
    look --q "$d/$q.npy" --k "$d/$k.npy" "$@" -o "$d/a.csv"
    code 0
    no_out
    no_err
    cells "$d/a.csv" >"$d/got"
    near "$d/got" "$d/expected"
}
all=-999999
none=999999

# ---- Weights and tiles -----------------------------------------------------------------------------

array q "9, 8" 72 1
array k "9, 8" 72 2
weighs q k 9 9 8 $all $none 1 peak 0
weighs q k 9 9 8 $all 0 1 peak 0 --causal top-left
weighs q k 9 9 8 $all 2 1 peak 0 --causal 2
weighs q k 9 9 8 $all -3 1 peak 0 --causal -3
weighs q k 9 9 8 -2 1 1 peak 0 --window 2,1
weighs q k 9 9 8 -2 0 1 peak 1.5 --window 2,-1 --causal bottom-right --scale 1.5

cap=1.5
weighs q k 9 9 8 $all 0 1 peak 0 --causal top-left --softcap 1.5
cap= slope=-0.25
printf -- '-0.25\n' >"$d/slope.csv"
weighs q k 9 9 8 $all 0 1 peak 0 --causal top-left --alibi "$d/slope.csv"
slope= sink=0.75
printf '0.75\n' >"$d/sink.csv"
weighs q k 9 9 8 $all $none 1 peak 0 --sink "$d/sink.csv"
sink= real=5
weighs q k 9 9 8 $all $none 1 peak 0 --kv-len 5
weighs q k 9 9 8 -2 1 1 peak 0 --window 2,1 --kv-len 5
cap=2 slope=-0.25 sink=0.75
weighs q k 9 9 8 $all $none 1 peak 0 --kv-len 5 --softcap 2 --alibi "$d/slope.csv" --sink "$d/sink.csv"
cap= slope= sink= real=
look --q "$d/q.npy" --k "$d/k.npy" --kv-len 5 --softcap 2 --sink "$d/sink.csv"
out_says 'soft cap 2, sinks, whose share a row lacks, keys from 5 on are padding'
look --q "$d/q.npy" --k "$d/k.npy" --kv-len 5 --softcap 2 --alibi "$d/slope.csv" -o "$d/a.html"
code 0
check "the page's rules" grep -q '"softcap":2' "$d/a.html"
run look --q "$d/q.npy" --k "$d/k.npy" --kv-len 10
code 1
err_like '--kv-len 10: --k has 9 keys'
run look --q "$d/q.npy" --k "$d/k.npy" --sink "$d/q.npy"
code 1
err_like 'shape \[9,8\] is not \[H\], H = 1'
# Lines of a map: the weights of one query that look has, of the keys that it sees.
for rules in "--causal top-left --scale 0.7" "--causal 2" "--causal -3 --scale 2" "--scale 0.7"; do
    look --q "$d/q.npy" --k "$d/k.npy" $rules -o "$d/a.csv"
    sed 1d "$d/a.csv" | sed -n 5p | cut -d, -f2- | tr , '\n' | awk '$1 != "" { print NR - 1, $1 }' | sort -k2,2gr >"$d/expected"
    run map --q "$d/q.npy" --k "$d/k.npy" --query 4 --top 9 $rules --json --pca --quiet
    code 0
    sed 's/.*"lines":{"query":4,"keys":\[//; s/\].*//' "$folder/out" | tr '{' '\n' |
        sed -n 's/^"key":\([0-9]*\),"weight":\([^}]*\)}.*/\1 \2/p' >"$d/got"
    check "lines of a map with $rules" test "$(paste -d' ' "$d/got" "$d/expected" |
        awk '{ e = $2 - $4; if ($1 != $3 || !(e < 2e-6 && e > -2e-6)) n++ } END { print NR, n + 0 }')" = "$(wc -l <"$d/expected") 0"
done
usage map '--scale is of the lines that --query asks for' map --q "$d/q.npy" --k "$d/k.npy" --scale 2
usage map '--causal goes with --q and --k, not with a text' map "a dog" --causal top-left
usage look '--softcap: 0 is not above 0' look --q "$d/q.npy" --k "$d/k.npy" --softcap 0
usage look '--mpi together with --kv-len' look --q "$d/q.npy" --k "$d/k.npy" --mpi --kv-len 3

array long "1030, 8" 8240 3
weighs q long 9 1030 8 $all $none 2 peak 0 --pool peak
weighs q long 9 1030 8 $all $none 2 mass 0 --pool mass
weighs q long 9 1030 8 $all 1021 2 mass 0 --pool mass --causal bottom-right
weighs q long 9 1030 8 -1 3 2 mass 0 --pool mass --window 1,3
weighs long q 1030 9 8 $all 0 2 peak 0 --pool peak --causal top-left
look --q "$d/q.npy" --k "$d/long.npy" -o "$d/a.csv" --pool mass --threads 1 --isa scalar
cp "$d/a.csv" "$d/b.csv"
look --q "$d/q.npy" --k "$d/long.npy" -o "$d/a.csv" --pool mass --threads 3
check "other bytes by other threads and instructions" cmp -s "$d/a.csv" "$d/b.csv"

# ---- Heads: named, grouped, all ----------------------------------------------------------------------

array gq "1, 4, 6, 8" 192 4
array gk "2, 6, 8" 96 5
for head in 0 1 2 3; do
    tail -n +$((48 * head + 1)) "$d/gq.txt" | head -n 48 >"$d/one_q.txt"
    tail -n +$((48 * (head / 2) + 1)) "$d/gk.txt" | head -n 48 >"$d/one_k.txt"
    textbook "$d/one_q.txt" "$d/one_k.txt" 6 6 8 $all 0 1 >"$d/expected$head"
    look --q "$d/gq.npy" --k "$d/gk.npy" --causal top-left --head $head -o "$d/a.csv"
    code 0
    cells "$d/a.csv" >"$d/got"
    near "$d/got" "$d/expected$head"
done
look --q "$d/gq.npy" --k "$d/gk.npy" --causal top-left -o "$d/a.csv"
check "the first line" test "$(head -n 1 "$d/a.csv")" = head,query,key,weight
tail -n +2 "$d/a.csv" | cut -d, -f4 >"$d/got"
cat "$d/expected0" "$d/expected1" "$d/expected2" "$d/expected3" | grep . >"$d/expected"
near "$d/got" "$d/expected"
check "a line for each weight that is" test "$(wc -l <"$d/got")" -eq $((4 * 21))
look --q "$d/gq.npy" --k "$d/gk.npy" -o "$d/a.npy"
check "its shape" grep -aq "'shape': (4, 6, 6)" "$d/a.npy"
# nans FILE.npy: how many of its floats are no numbers
nans() { tail -c +129 "$1" | od -An -v -tf4 | tr -s ' ' '\n' | grep -c nan; }
check "no weight is NaN" test "$(nans "$d/a.npy")" -eq 0
look --q "$d/gq.npy" --k "$d/gk.npy" --causal top-left -o "$d/a.npy"
check "hidden weights are" test "$(nans "$d/a.npy")" -eq $((4 * 15))

# ---- Hidden keys have no cell -----------------------------------------------------------------------

# rects FILE.svg: how many cells are drawn, and strips of the scale, which are as many
rects() { grep -c "<path .*fill:rgb" "$1"; }
look --q "$d/gq.npy" --k "$d/gk.npy" --head 0 -o "$d/all.svg"
look --q "$d/gq.npy" --k "$d/gk.npy" --head 0 --window 0,0 -o "$d/a.svg"
gone=$(($(rects "$d/all.svg") - $(rects "$d/a.svg"))) # 30, and the ticks of another scale
check "a picture without $gone cells" test $gone -gt 24 -a $gone -lt 36
check "its caption" grep -q 'Keys that a query does not see have no cell' "$d/a.svg"
look --q "$d/gq.npy" --k "$d/gk.npy" -o "$d/all.svg"
look --q "$d/gq.npy" --k "$d/gk.npy" --window 0,0 -o "$d/a.svg"
check "a picture of all heads without them" test $(($(rects "$d/all.svg") - $(rects "$d/a.svg"))) -eq $((4 * 30))
look --q "$d/gq.npy" --k "$d/gk.npy" --head 0 --causal top-left
out_says 'Keys that a query does not see have no cell.'
check "the first query has one cell on the terminal" test "$(grep -c '^ *0 [^ ]* *100 *$' "$folder/out")" -eq 1
array wide_k "4, 11, 8" 352 6
look --q "$d/gq.npy" --k "$d/wide_k.npy" -o "$d/all.png" # all heads, of other lengths
code 0
look --q "$d/gq.npy" --k "$d/gk.npy" --head 7.3 --json
out_like '"heads":\[{"layer":7,"head":3,'
look --q "$d/q.npy" --k "$d/k.npy" --head 11.5 --json
out_like '"heads":\[{"layer":11,"head":5,'
look --q "$d/gq.npy" --k "$d/gk.npy" --heads 3,1 -o "$d/a.html"
check "two heads, in their order" test "$(grep -o '"layer":0,"head":[0-9]*' "$d/a.html" | tr '\n' ' ')" = '"layer":0,"head":3 "layer":0,"head":1 '

# ---- Statistics: those of the weights ------------------------------------------------------------------

textbook "$d/q.txt" "$d/k.txt" 9 9 8 $all 0 1 >"$d/p"
look --q "$d/q.npy" --k "$d/k.npy" --causal top-left --json
code 0
out_like '"n_heads":1,"n_kv_heads":1,"n_queries":9,"n_keys":9,"head_dim":8,"scale":0.353553391,"seen":\[null,0\],'
value() { sed "s/.*\"$1\":\([^,}]*\).*/\1/" "$folder/out"; }
awk '{ i = int((NR - 1) / 9); j = (NR - 1) % 9; p = $1
       if (p > 0) h -= p * log(p); if (p > top[i]) top[i] = p
       far += p * (i > j ? i - j : j - i); if (i == j) self += p; if (j == i - 1) prev += p; two[i] += p * p
       if (i != j && p > most) { most = p; where = i " " j } }
     END { OFMT = "%.9g"; for (i = 0; i < 9; i++) { c += top[i]; e += 1 / two[i]; full += log(i + 1) }
           print h / 9; print h / full; print c / 9; print far / 9; print self / 9; print prev / 9; print e / 9; print most; print where }' \
    "$d/p" >"$d/all"
head -n 8 "$d/all" >"$d/expected"
for name in entropy entropy_normalized confidence mean_distance mass_self mass_previous effective_keys weight; do value $name; done >"$d/got"
near "$d/got" "$d/expected"
check "where the largest weight is" test "$(value query) $(value key)" = "$(tail -n 1 "$d/all")"
out_like '"mass_cls":null'
look --q "$d/q.npy" --k "$d/k.npy" --causal -3 --json
out_like '"n_empty_rows":3,"n_nan_rows":0'

# ---- Tokens: any bytes -----------------------------------------------------------------------------------

printf '[CLS]\r\nthe\n</script><b>\n\033[31mred\n\377\376\n\n"a",b\n[SEP]\n.' >"$d/tokens"
look --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/tokens" -o "$d/a.csv"
code 0
check "tokens of the table" test "$(head -n 1 "$d/a.csv")" = 'query,[CLS],the,</script><b>,\u{1b}[31mred,\xff\xfe,,"""a"",b",[SEP],.'
look --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/tokens"
code 0
check "a control character on the terminal" test "$(grep -c "$(printf '\033')" "$folder/out")" -eq 0
look --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/tokens" -o "$d/a.html"
code 0
check "a token that is markup" test "$(grep -c '</script><b>' "$d/a.html")" -eq 0
look --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/tokens" --json
code 0
out_like '"tokens":\["\[CLS\]","the","</script><b>"'
check "masses by tokens" test "$(value mass_cls)" != null
printf '%.0sx\0y\n' 1 2 3 4 5 6 7 8 9 >"$d/zeros"
look --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/zeros" -o "$d/a.csv"
check "a zero byte" test "$(head -n 1 "$d/a.csv" | cut -d, -f2)" = 'x\u{0}y'
# What a spreadsheet would take for a formula is read back as it was: `lookup` reads the file that `look` wrote.
printf '=1+1\n-2\n+a\n@b\n"=c"\n'"'"'d\n -e\n=f,g\n=h;"i"' >"$d/formulas"
look --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/formulas" -o "$d/a.csv"
code 0
check "formulas of the table" test "$(head -n 1 "$d/a.csv")" = 'query,=1+1,-2,+a,@b,"""=c""",'"'"'d," -e","=f,g","=h;""i"""'
tail -n +2 "$d/a.csv" >"$d/rows.csv"
grep -v '^ ' "$d/formulas" >"$d/keys" # keys are read without blanks at their ends
while IFS= read -r token; do
    run lookup --hard --model "$model" --quiet --json -- "$d/rows.csv" "$token"
    code 0
    out_like '"equal":true'
done <"$d/keys"

# a page of other queries than keys; queries with names of their own
look --q "$d/q.npy" --k "$d/long.npy" -o "$d/cross.html"
code 0
check "a page of 9 queries and 1030 keys" grep -q '"queries":{"tokens":\["q0","q1",.*"q8"\],"n":9}' "$d/cross.html"
printf 'a\nb\nc\nd\ne\nf\ng\nh\ni\n' >"$d/names"
look --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/tokens" --q-tokens "$d/names" --causal -1 -o "$d/cross.html"
code 0
check "queries have names" grep -q '"queries":{"tokens":\["a","b",.*"i"\],"n":9}' "$d/cross.html"
check "and places" grep -q '"rules":{"causal":{[^}]*},"q_offset":{"q_offset":-1,' "$d/cross.html"
rm "$d/cross.html"

# refused MESSAGE OPTIONS...
refused() {
    message=$1
    shift
    rm -f "$d/out.html"
    look "$@"
    code 1
    no_out
    err "qkv: $message"
}
printf 'a\nb\n' >"$d/short"
refused "--tokens $d/short: 2 lines, --k has 9 keys" --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/short"
seq 12 >"$d/many"
refused "--tokens $d/many: more than 9 lines, --k has 9 keys" --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/many"
refused "--tokens $d/many: more than 9 lines: it names the keys of --k, not the 1030 queries" --q "$d/long.npy" --k "$d/k.npy" --tokens "$d/many"
head -c 5000 /dev/zero | tr '\0' x >"$d/wide"
refused "--tokens $d/wide: line 1 has more than 4096 bytes" --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/wide"
refused "--tokens /dev/zero: is neither a file nor a pipe" --q "$d/q.npy" --k "$d/k.npy" --tokens /dev/zero
refused "--tokens $d: Is a directory" --q "$d/q.npy" --k "$d/k.npy" --tokens "$d"
refused "--tokens $d/none: No such file or directory" --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/none"

# ---- Arrays that do not fit ------------------------------------------------------------------------------

array wide "9, 4" 36 6
array three "3, 9, 8" 216 7
array batch "2, 1, 9, 8" 144 8
array line "72," 72 9
array none "0, 8" 0 10
refused "--q has shape [9,8], --k has [9,4]: the head sizes differ" --q "$d/q.npy" --k "$d/wide.npy"
refused "--q has shape [1,4,6,8], --k has [3,9,8]: the heads of q are no multiple of those of k" --q "$d/gq.npy" --k "$d/three.npy"
refused "--q $d/batch.npy: shape [2,1,9,8] is none of [L,D], [H,L,D], [1,H,L,D]" --q "$d/batch.npy" --k "$d/k.npy"
refused "--k $d/line.npy: shape [72] is none of [L,D], [H,L,D], [1,H,L,D]" --q "$d/q.npy" --k "$d/line.npy"
refused "--k $d/none.npy: shape [0,8] has nothing to look at" --q "$d/q.npy" --k "$d/none.npy"
refused "--q $here/data/boolean.npy: holds booleans, not numbers" --q "$here/data/boolean.npy" --k "$d/k.npy"
refused "there is no head 4: --q has heads 0 to 3" --q "$d/gq.npy" --k "$d/gk.npy" --head 4
printf 'one\ntwo\n' >"$d/two"
refused "--q-tokens $d/two: 2 lines, --q has 9 queries" --q "$d/q.npy" --k "$d/k.npy" --q-tokens "$d/two"
refused "--q-tokens $d/many: more than 9 lines: it names the queries of --q, not the 1030 keys" --q "$d/q.npy" --k "$d/long.npy" --q-tokens "$d/many"
array tall "4100, 1" 4100 11
refused "1 head of 4100 x 4100 weights are more than the limit of 16777216: -o FILE.html has every weight at any length, FILE.png a pooled map, --pool its cells, FILE.json statistics" \
    --q "$d/tall.npy" --k "$d/tall.npy" -o "$d/out.csv"
check "a file was written" test ! -e "$d/out.csv"

usage look "--q without --k" look --q x.npy
usage look "--k without --q" look --k x.npy
usage look "TEXT is missing" look
usage look "--q and --k together with a text" look "the dog" --q x --k y
usage look "--q and --k together with --model" look --q x --k y --model z
for command in look map; do
    usage $command "--q and --k together with --weights" $command --q x --k y --weights int8
    usage $command "--q and --k together with --check-finite" $command --q x --k y --check-finite
    usage $command "--q and --k together with --truncate" $command --q x --k y --truncate
done
usage map "--q and --k together with --layer" map --q x --k y --layer 0
usage look "--scale goes with --q and --k, not with a text" look "the dog" --scale 2
usage look "--scale: 0 is no factor: as a float it is 0" look --q "$d/q.npy" --k "$d/k.npy" --scale 0
usage look "--scale: 1e-50 is no factor: as a float it is 0" look --q "$d/q.npy" --k "$d/k.npy" --scale 1e-50
usage look "--map is of a page: -o FILE.html" look "the dog" --map cosine -o "$d/a.png"
usage look "--map together with --slide" look --file "$d/names" --slide 4 --map inner -o "$d/a.html"
usage look "--q-tokens goes with --q and --k, not with a text" look "the dog" --q-tokens f
usage look "--tokens goes with --q and --k, not with a text" look "the dog" --tokens f
usage look "--causal: 'left' is not top-left, bottom-right or an offset" look --q x --k y --causal left
usage look "--window: '3' is not LEFT,RIGHT (-1: unbounded)" look --q x --k y --window 3
usage look "--head: '1,2' is not L.H or H" look --q x --k y --head 1,2
usage look "--heads 1.2,2.2 names several layers: arrays are of one" look --q x --k y --heads 1.2,2.2 -o a.html

# ---- The heads of a page of a text -------------------------------------------------------------------------

m="--model $model"
run look "the man saw a dog." $m --quiet --heads 1.1,0.0 -o "$d/a.html"
code 0
check "two heads, in their order" test "$(grep -o '"layer":[01],"head":[0-9]*' "$d/a.html" | tr '\n' ' ')" = '"layer":1,"head":1 "layer":0,"head":0 '
usage look "--heads chooses the heads of a page: -o FILE.html" look "the dog" $m --heads 0.0,1.0
usage look "--heads: '1.' is not L.H or H" look "the dog" $m --heads 0.0,1. -o a.html
usage look "--heads: '' is not L.H or H" look "the dog" $m --heads 0.0, -o a.html
usage look "--heads names 0.0 twice" look "the dog" $m --heads 0.0,0.0 -o a.html
usage look "--heads: 1 names no layer: L.1" look "the dog" $m --heads 1 -o a.html
usage look "--heads: there is no 5.0: the model has layers 0 to 1, heads 0 to 1" look "the dog" $m --heads 5.0 -o a.html
usage look "--heads together with --head" look "the dog" $m --heads 0.0 --head 0.1 -o a.html

# ---- Pictures, the same bytes by any thread ------------------------------------------------------------------

for kind in png svg pdf html; do
    name=long
    [ $kind = html ] && name=q # a map of 2,060 points takes its time
    look --q "$d/$name.npy" --k "$d/$name.npy" --causal top-left -o "$d/a.$kind"
    code 0
    [ $kind = pdf ] && continue
    look --q "$d/$name.npy" --k "$d/$name.npy" --causal top-left -o "$d/b.$kind" --threads 3
    check "other bytes of $kind" cmp -s "$d/a.$kind" "$d/b.$kind"
done
check "the caption" grep -q 'Pooled: a cell stands for a tile of 2 queries (rows) and 2 keys (columns), numbered by its first, and is the largest weight in it (peak)' "$d/a.svg"
look --q "$d/long.npy" --k "$d/long.npy" --pool mass -o "$d/a.svg"
check "the other caption" grep -q 'and is the weight on its keys, mean over its queries (mass); rows sum to 1' "$d/a.svg"
look --q "$d/gq.npy" --k "$d/gk.npy" -o "$d/a.svg"
code 0
for columns in 30 80 200; do
    said="COLUMNS=$columns qkv look"
    COLUMNS=$columns "$qkv" look --q "$d/long.npy" --k "$d/long.npy" >"$folder/out" 2>"$folder/err"
    got=$?
    code 0
done
# Other numbers of queries and keys: rows are queries.
look --q "$d/q.npy" --k "$d/long.npy"
code 0
out_like "^Pooled: a cell is the largest weight of a tile of 1 x 16\.$"
check "five lines of nine queries" test "$(grep -c '^ *[02468] ' "$folder/out")" -ge 5
look --q "$d/long.npy" --k "$d/q.npy" --tokens "$d/names"
code 0
out_like "^Pooled: a cell is the largest weight of a tile of 16 x 1\.$"
array five "5, 8" 40 12
printf "first\nsecond\nthird\nfourth\nfifth\n" >"$d/queries"
look --q "$d/five.npy" --k "$d/q.npy" --tokens "$d/names" --q-tokens "$d/queries"
code 0
for query in first second third fourth fifth; do out_like "^ *$query "; done
look --q "$d/five.npy" --k "$d/q.npy" -o "$d/a.csv"
textbook "$d/five.txt" "$d/q.txt" 5 9 8 $all $none 1 | awk '{ n = int($1 * 100 + 0.5); if (n) print n }' >"$d/expected"
COLUMNS=200
look --q "$d/five.npy" --k "$d/q.npy"
grep '^ *q[0-4] ' "$folder/out" | sed 's/^ *q[0-4] //; s/[^0-9]/ /g' | tr -s ' ' '\n' | sed '/^$/d' >"$d/got"
check "the percents of the textbook" cmp -s "$d/got" "$d/expected"
finish
