# qkv look --plot: the numbers of charts against weights summed in awk's doubles, and of arrays against `attend --stats`; captions,
# what-if, windows; what is refused, and files that cannot be written.
. ./lib.sh
export LC_ALL=C
d=$folder/d
mkdir "$d"
look() { run look --quiet "$@"; }
# numbers FILE COLUMN: of a chart's .csv, one a line
numbers() { tail -n +2 "$1" | cut -d, -f"$2"; }
# near A B: as many numbers, some, none off by more than 2e-6
near() {
    check "no numbers" test -s "$1"
    check "other counts of numbers" test "$(wc -l <"$1")" -eq "$(wc -l <"$2")"
    check "numbers differ" test "$(paste "$1" "$2" | awk '{ e = $1 - $2; if ($1 == "" || !(e < 2e-6 && e > -2e-6)) n++ } END { print n + 0 }')" -eq 0
}

# ---- Texts -------------------------------------------------------------------------------------------

# profile FILE.csv WHAT: what a chart of these weights, a line for each query, has
profile() {
    tail -n +2 "$1" | sed 's/^[^,]*,//' | awk -F, -v what="$2" '
        { for (j = 1; j <= NF; j++) {
              p = $j; sum[j] += p; at[j - NR] += p; n[j - NR] += p != ""
              if (p > 0) h[NR] -= p * log(p)
              if (p > top[NR]) top[NR] = p } }
        END { if (what == "entropy") for (i = 1; i <= NR; i++) print h[i]
              if (what == "largest") for (i = 1; i <= NR; i++) print top[i]
              if (what == "received") for (j = 1; j <= NF; j++) print sum[j]
              if (what == "offsets") for (e = 1 - NR; e < NF; e++) print n[e] ? at[e] / n[e] : 0 }' OFMT=%.9g
}
# plots TEXT OPTIONS...: all three charts against the weights
plots() {
    look "$@" -o "$d/w.csv"
    code 0
    for plot in queries received offsets; do
        look "$@" --plot $plot -o "$d/$plot.csv"
        code 0
        no_out
        no_err
    done
    profile "$d/w.csv" entropy >"$d/expected"
    numbers "$d/queries.csv" 3 >"$d/got"
    near "$d/got" "$d/expected"
    profile "$d/w.csv" largest >"$d/expected"
    numbers "$d/queries.csv" 4 >"$d/got"
    near "$d/got" "$d/expected"
    profile "$d/w.csv" received >"$d/expected"
    numbers "$d/received.csv" 3 >"$d/got"
    near "$d/got" "$d/expected"
    profile "$d/w.csv" offsets >"$d/expected"
    numbers "$d/offsets.csv" 2 >"$d/got"
    near "$d/got" "$d/expected"
}
m="--model $model"
text="the [MASK] opened a man."
plots "$text" $m --head 1.0
check "names and tokens" test "$(head -n 4 "$d/received.csv" | cut -d, -f1,2 | tr '\n' ' ')" = "key,label 0,[CLS] 1,the 2,[MASK] "
check "names of a chart of queries" test "$(head -n 1 "$d/queries.csv")" = "query,label,entropy,largest weight"
check "distances" test "$(cut -d, -f1 "$d/offsets.csv" | sed -n '2p;$p' | tr '\n' ' ')" = "-7 7 "
check "how many distances" test "$(numbers "$d/offsets.csv" 2 | wc -l)" -eq 15
plots "the man" --pair "a dog." $m --head 0.1
plots "$text" $m --head 1.1 --what-if causal
check "a causal model looks at nothing later" test "$(tail -n 1 "$d/offsets.csv")" = 7,0
plots "$text" $m --head 1.1 --what-if temperature=2 --what-if drop=opened
echo "the man opened a door. a dog left. the woman saw the box. it opened when the cat left." >"$d/text"
plots --file "$d/text" --slide 5,2 $m --head 0.0

# The chosen head, and what is said about it.
run look "$text" $m -o "$d/all.png"
chosen=$(sed -n 's/.* --head \([0-9.]*\): .*/\1/p' "$folder/err")
run look "$text" $m --plot received -o "$d/a.csv"
code 0
err_like "^qkv: wrote .*a\.csv, head $chosen: the head in which .*; --head names another$"
look "$text" $m --head "$chosen" --plot received -o "$d/b.csv" --threads 3 --isa scalar
check "the chosen head is another" cmp -s "$d/a.csv" "$d/b.csv"
run look "$text" $m --head 0.1 --plot received -o "$d/a.csv"
err "qkv: wrote $d/a.csv"

# says PLOT TEXT OPTIONS...: the caption of the picture
says() {
    plot=$1 words=$2
    shift 2
    for theme in light dark; do
        look "$@" --plot $plot --theme $theme -o "$d/a.svg"
        code 0
        check "the caption has no '$words'" sh -c "tr '\n' ' ' <'$d/a.svg' | grep -qF '$words'"
    done
    check "the themes look the same" sh -c "'$qkv' look --quiet \"\$@\" --plot $plot -o '$d/b.svg'; ! cmp -s '$d/a.svg' '$d/b.svg'" sh "$@"
}
says queries "Layer 1, head 0: entropy and largest weight of each query" "$text" $m --head 1.0
says queries "layer 1 of 2, head 0 of 2, counted from 0. Text: “the [MASK] opened a man.” Of each query: the entropy of its weights, in nats" "$text" $m --head 1.0
says received "Layer 0, head 1: attention that each key receives" "$text" $m --head 0.1
says offsets "MODIFIED: not what the model computed (" "$text" $m --head 0.1 --what-if causal
says offsets "Shown from -7 to 0; at all other distances it is 0." "$text" $m --head 0.1 --what-if causal
says queries "Means over " --file "$d/text" --slide 5,2 $m --head 0.0
says queries "Entropies are those of the means." --file "$d/text" --slide 5,2 $m --head 0.0
for kind in png pdf; do
    look "$text" $m --plot queries -o "$d/a.$kind"
    code 0
    look "$text" $m --plot queries -o "$d/b.$kind" --threads 3 --isa scalar
    check "other bytes of $kind" cmp -s "$d/a.$kind" "$d/b.$kind"
done

# ---- Arrays ------------------------------------------------------------------------------------------

# 4 heads of 5 queries, 2 heads of 10 keys, and 4 heads of 5 keys, of the same numbers as elsewhere.
part() {
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
    tail -c +"$2" "$here/data/q.npy" | head -c 640
}
part "4, 5, 8" 129 >"$d/q.npy"
part "2, 10, 8" 769 >"$d/k.npy"
part "4, 5, 8" 769 >"$d/same.npy"
# line NAME HEAD: the numbers of that name of a head of the statistics, one a line; null: nothing
line() { grep "^\"$1\":\[" "$d/stats.json" | sed -n "$2p" | sed 's/^.*\[//;s/\].*//' | tr , '\n' | sed 's/null//'; }
# as_stats K OPTIONS...: the charts of each head against `attend --stats`
as_stats() {
    k=$d/$1.npy
    shift
    run attend --q "$d/q.npy" --k "$k" --v "$k" "$@" -o "$d/o.npy" --stats "$d/stats.json"
    code 0
    for head in 0 1 2 3; do
        for plot in queries received offsets; do
            look --q "$d/q.npy" --k "$k" "$@" --head $head --plot $plot -o "$d/$plot.csv"
            code 0
            no_err
        done
        rows_of "$head"
        numbers "$d/received.csv" 2 >"$d/got"
        line received $((head + 1)) >"$d/expected"
        near "$d/got" "$d/expected"
        numbers "$d/offsets.csv" 2 >"$d/got"
        line weights $((head + 1)) | tac >"$d/expected"
        near "$d/got" "$d/expected"
    done
}
# Of queries that see a key; the others are gaps.
rows_of() {
    line lse $(($1 + 1)) >"$d/lse"
    line largest $((2 * $1 + 1)) | paste "$d/lse" - | awk -F'\t' '{ print $1 == "" ? "" : $2 }' >"$d/largest"
    line entropy $((2 * $1 + 1)) | paste "$d/lse" - | awk -F'\t' '{ print $1 == "" ? "" : $2 }' >"$d/entropy"
    check "the gaps" test "$(numbers "$d/queries.csv" 3 | grep -c '^$')" -eq "$(grep -c '^$' "$d/lse")"
    for pair in 2:entropy 3:largest; do
        numbers "$d/queries.csv" ${pair%:*} | grep . >"$d/got"
        grep . "$d/${pair#*:}" >"$d/expected"
        near "$d/got" "$d/expected"
    done
}
as_stats k
as_stats same --causal top-left
as_stats k --causal bottom-right
as_stats k --causal 2 --window 3,1 --scale 1.5
as_stats k --causal -3 # three queries see no key
check "distances of queries and keys" test "$(cut -d, -f1 "$d/offsets.csv" | tail -n +2 | tr '\n' ' ')" = "-4 -3 -2 -1 0 1 2 3 4 5 6 7 8 9 "
as_stats k --window 2,2

# The rows of the weights, and without --head those of the head with the sharpest queries.
look --q "$d/q.npy" --k "$d/k.npy" --json
most=$(grep -o '"confidence":[0-9.]*' "$folder/out" | cut -d: -f2 | awk '$1 > top { top = $1; h = NR - 1 } END { print h }')
for plot in queries received offsets; do
    look --q "$d/q.npy" --k "$d/k.npy" --plot $plot -o "$d/a.csv" --threads 1 --isa scalar
    code 0
    look --q "$d/q.npy" --k "$d/k.npy" --plot $plot -o "$d/b.csv" --threads 3 --head "$most"
    check "another head, or other bytes" cmp -s "$d/a.csv" "$d/b.csv"
done
seq -f tok%g 5 >"$d/tokens"
look --q "$d/q.npy" --k "$d/same.npy" --tokens "$d/tokens" --plot queries -o "$d/a.csv"
check "tokens of queries" test "$(sed -n '2p' "$d/a.csv" | cut -d, -f1,2)" = 0,tok1
says received "Head 2: attention that each key receives" --q "$d/q.npy" --k "$d/k.npy" --head 2
says offsets "Layer 7, head 2: mean weight by distance" --q "$d/q.npy" --k "$d/k.npy" --head 7.2
says queries "Gaps: queries that see no key (3)." --q "$d/q.npy" --k "$d/k.npy" --causal -3
says received "Left out: queries that see no key (3)." --q "$d/q.npy" --k "$d/k.npy" --causal -3

# A query that is no number: a gap, left out of what keys receive, and said.
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 1), }"
    printf '\000\074\000\176\000\100' # 1, NaN, 2
} >"$d/nan.npy"
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': (4, 1), }"
    printf '\000\074\000\074\000\074\000\074'
} >"$d/ones.npy"
for plot in queries received offsets; do look --q "$d/nan.npy" --k "$d/ones.npy" --plot $plot -o "$d/$plot.csv"; done
check "a gap" test "$(tail -n +2 "$d/queries.csv" | cut -d, -f1,3 | tr '\n' ' ')" = "0,0.25 1, 2,0.25 "
numbers "$d/received.csv" 2 >"$d/got"
printf '0.5\n%.0s' 1 2 3 4 >"$d/expected"
near "$d/got" "$d/expected"
numbers "$d/offsets.csv" 2 >"$d/got"
printf '0.25\n%.0s' 1 2 3 4 5 6 >"$d/expected"
near "$d/got" "$d/expected"
says queries "Gaps: queries whose weights are no numbers (1)." --q "$d/nan.npy" --k "$d/ones.npy"
says offsets "Left out: queries whose weights are no numbers (1)." --q "$d/nan.npy" --k "$d/ones.npy"

# More than a chart has room for: 524,289 zeros.
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': (524289, 1), }"
    head -c 1048578 /dev/zero
} >"$d/zeros.npy"
look --q "$d/zeros.npy" --k "$d/zeros.npy" --plot received -o "$d/none.csv"
code 1
err "qkv: --plot: 524289 queries and 524289 keys are more than the 524288 that a chart has room for; FILE.json has means over all"
check "a file was written" test ! -e "$d/none.csv"

# ---- What is refused -----------------------------------------------------------------------------------

usage look "--plot: 'rows' is not one of queries|received|offsets" look x --plot rows -o a.png
usage look "--plot writes a chart: -o FILE.png, .svg, .pdf or .csv" look x --plot queries
for kind in html npy json gif; do
    usage look "-o: 'a.$kind' ends in none of .png .svg .pdf .csv, which --plot writes" look x --plot queries -o a.$kind
done
usage look "--plot is of one head: --head L.H, not --heads" look x --plot queries --heads 1.0 -o a.png
usage look "--plot together with --json: the numbers of a chart are -o FILE.csv" look x --plot queries --json
usage look "--plot together with --jsonl: the numbers of a chart are -o FILE.csv" look --plot queries --jsonl
usage look "--plot together with --pool: a chart has no tiles" look --q x --k y --pool mass --plot queries -o a.png

# ---- Files: whole or not at all --------------------------------------------------------------------------

rm -rf "$d/f"
mkdir "$d/f"
for kind in png svg pdf csv; do
    ln -s /dev/full "$d/f/x.$kind"
    look "$text" $m --plot received -o "$d/f/x.$kind"
    code 1
    err_like "^qkv: .*x\.$kind: .*No space left on device$"
    look --q "$d/q.npy" --k "$d/k.npy" --plot offsets -o "$d/f/x.$kind"
    code 1
    err_like "^qkv: .*x\.$kind: .*No space left on device$"
    rm "$d/f/x.$kind"
    look "$text" $m --plot received -o "$d/f/none/x.$kind"
    code 1
    err_like "none/x\.$kind: .*No such file or directory$"
done
check "something is left" test -z "$(ls -A "$d/f")"
{ # a computation of many seconds on one thread of scalar code
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (16384, 64), }"
    head -c $((16384 * 64 * 4)) /dev/zero
} >"$d/long.npy"
for kind in png csv; do
    echo "what was there" >"$d/f/x.$kind"
    interrupt INT look --q "$d/long.npy" --k "$d/long.npy" --isa scalar --threads 1 --plot received -o "$d/f/x.$kind"
    code 130
    no_out
    err_like '^qkv: interrupted$'
    check "the old file has changed" test "$(cat "$d/f/x.$kind")" = "what was there"
done
check "something else is there" test "$(echo $(ls -A "$d/f"))" = "x.csv x.png"
finish
