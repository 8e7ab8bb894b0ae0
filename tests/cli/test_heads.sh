# qkv heads: the same numbers as look, order and choice of rows, many texts from a file, probes, and what is refused.
. ./lib.sh
d=$folder/d
mkdir "$d"
m="--model $model"
sentence="the man opened the [MASK] when the man left."
number='-*[0-9][0-9.e-]*'
heads() { run heads "$sentence" $m "$@"; }
# field N FILE: a column of a CSV, without its name
field() { tail -n +2 "$2" | cut -d, -f"$1"; }

# ---- One text ----------------------------------------------------------------------------------

heads --json
code 0
no_err
cp "$folder/out" "$d/a.json"
out_like '^{"tokens":\["\[CLS\]","the",'
out_like '"n_queries":10,"heads":\[{"layer":0,"head":0,'
out_like '"rules":\[{"label":"next","number":"mass_next","above":0.5},'
sed 's/.*"heads":\(\[[^]]*\]\).*/\1/' "$d/a.json" >"$d/heads"
run look "$sentence" $m --json
code 0
sed 's/.*"heads":\(\[[^]]*\]\).*/\1/' "$folder/out" >"$d/look"
check "look --json has other heads" cmp -s "$d/heads" "$d/look"
check "4 heads" test "$(grep -o '"layer"' "$d/heads" | wc -l)" -eq 4
heads -o "$d/b.json"
code 0
no_out
err "qkv: wrote $d/b.json"
check "-o F.json is what --json prints" cmp -s "$d/a.json" "$d/b.json"
heads --threads 1 --isa scalar --json
check "other bytes with one thread of scalar code" cmp -s "$folder/out" "$d/a.json"
heads -o "$d/a.csv" --quiet
no_err
heads -o "$d/a.tsv" --quiet
check "the columns" test "$(head -n 1 "$d/a.csv")" = layer,head,label,entropy,entropy_normalized,confidence,mean_distance,mass_cls,mass_sep,mass_punctuation,mass_self,mass_previous,mass_next,effective_keys,mass_window,mass_same_token,mass_duplicate,mass_induction,received_largest,received_early,received_gini,received_key
# The table of docs/statistics.md has a row for each column, and no other.
head -n 1 "$d/a.csv" | tr ',' '\n' | tail -n +4 | sort >"$d/columns"
sed -n '/^| number | formula | range |/,/^$/p' "$here/../../docs/statistics.md" | sed 1,2d | cut -d'|' -f2 | grep -o '`[a-z_]*`' | tr -d '`' |
    sort >"$d/documented"
check "the columns of docs/statistics.md" cmp -s "$d/columns" "$d/documented"
for column in $(cat "$d/columns"); do check "$column in qkv-heads(1)" grep -q "\*$column\*" "$here/../../cli/man/qkv-heads.1.scd"; done
check "a line for each head" test "$(wc -l <"$d/a.csv")" -eq 5
check "tabs for commas" test "$(tr '\t' , <"$d/a.tsv")" = "$(cat "$d/a.csv")"
check "numbers of JSON" test "$(grep -o '"entropy":[^,]*' "$d/heads" | cut -d: -f2 | awk '{ printf "%.6g\n", $1 }')" = "$(field 4 "$d/a.csv" | awk '{ printf "%.6g\n", $1 }')"

# The text: a title, names, a line for each head, what columns are, rules. No colour, and only ASCII if asked.
heads
code 0
no_err
titled() { check "no title '$1'" sh -c "tr '\n' ' ' <'$folder/out' | grep -q '$1'"; }
titled '^4 heads of .*bert_old on a text of 12 tokens, means over 10 of them '
out_like '^head  .*H/ln n  p max '
check "no colour in a file" sh -c "! grep -q '$(printf '\033')' '$folder/out'"
check "lines of heads" test "$(grep -c '^[01]\.[01] ' "$folder/out")" -eq 4
check "as wide as its head" test "$(grep '^head\|^[01]\.[01] ' "$folder/out" | awk '{ print length }' | sort -u | wc -l)" -eq 1
out_like 'duplicate, induction and coreference-like are found out by --probes'
heads --columns mass_next,entropy
out_like '^head .* H   next $'
heads --color always --columns mass_next
check "colour" grep -q "$(printf '\033\\[4[0-9]')" "$folder/out"
NO_COLOR=1
export NO_COLOR
heads --columns mass_next
check "NO_COLOR" sh -c "! grep -q '$(printf '\033')' '$folder/out'"
unset NO_COLOR
heads --ascii
check "ASCII" test "$(LC_ALL=C grep -c '[^ -~]' "$folder/out")" -eq 0
if command -v script >/dev/null; then
    for columns in 20 60 80 132 1000; do
        said="qkv heads on a terminal of $columns columns"
        script -qec "stty cols $columns rows 50; '$qkv' heads '$sentence' $m --color never" /dev/null </dev/null 2>/dev/null |
            tr -d '\r' >"$folder/out"
        [ $columns -lt 60 ] || check "no wider" test "$(awk -v n=$columns 'length > n' "$folder/out" | wc -l)" -eq 0
        check "4 heads" test "$(grep -c '^[01]\.[01] ' "$folder/out")" -eq 4
    done
    printf 'the man\nthe dog saw\n' >"$d/two"
    for columns in 30 31 36 50; do
        said="qkv heads --file on a terminal of $columns columns, by entropy"
        script -qec "stty cols $columns rows 50; '$qkv' heads --file $d/two $m --color never --sort entropy" /dev/null </dev/null 2>/dev/null |
            tr -d '\r' >"$folder/out"
        out_like '^head  .* H *'
        check "no entropies" test "$(grep -c '^[01]\.[01] .* [0-9.]* *±[0-9.]* *' "$folder/out")" -eq 4
        check "no wider" test "$(grep -c "^[01h][.e].\{$((columns - 1)),\}$" "$folder/out")" -eq 0
    done
fi

# A text without equal tokens has no such numbers: "-", null, empty
run heads "the man" $m --json
out_like '"mass_same_token":null,"mass_duplicate":null,"mass_induction":null'
run heads "the man" $m --columns mass_same_token
out_like '^0.0 .* - $'
run heads "" $m --json
code 0
out_like '^{"tokens":\["\[CLS\]","\[SEP\]"\],"n_queries":2,'
run heads "a man" --pair "a key" $m --json
code 0
out_like '^{"tokens":\["\[CLS\]","a","man","\[SEP\]","a","key","\[SEP\]"\]'
feed '"the man"
["the man", "a key"]
7' heads --jsonl $m
code 1
out_like '^{"tokens":\["\[CLS\]","the","man","\[SEP\]"\],"n_queries":2,'
out_like '^{"error":"line 3: '
feed "the man" heads - $m --json
out_like '^{"tokens":\["\[CLS\]","the","man","\[SEP\]"\]'

# ---- Which heads, in which order ---------------------------------------------------------------

for key in entropy mass_next received_gini received_largest; do
    heads --sort $key -o "$d/s.csv" --quiet
    code 0
    column=$(head -n 1 "$d/s.csv" | tr , '\n' | grep -n "^$key\$" | cut -d: -f1)
    check "$key falls" test "$(field "$column" "$d/s.csv")" = "$(field "$column" "$d/s.csv" | sort -gr)"
    heads --sort $key --reverse -o "$d/s.csv" --quiet
    check "$key rises" test "$(field "$column" "$d/s.csv")" = "$(field "$column" "$d/s.csv" | sort -g)"
done
heads --sort head --reverse -o "$d/s.csv" --quiet
check "the last head first" test "$(field 1,2 "$d/s.csv" | tr '\n' ' ')" = "1,1 1,0 0,1 0,0 "
heads --sort label --top 3 -o "$d/s.csv" --quiet
code 0
check "3 heads" test "$(wc -l <"$d/s.csv")" -eq 4
heads --label broad
code 0
titled '^[0-4] of 4 heads of '
heads --label none --json
code 0
check "no labels" sh -c "! grep -q '\"label\":\"[a-z]*\",\"entropy' '$folder/out' || grep -q '\"label\":\"\",\"entropy' '$folder/out'"
heads --label induction --json
out_like '"heads":\[\],'
heads --like 1.0 --json
code 0
out_like '"heads":\[{"layer":1,"head":0,.*"distance":0.0}'
out_like '"like":"1.0"}$'
heads --like 1.0 -o "$d/s.csv" --quiet
last=$(head -n 1 "$d/s.csv" | tr , '\n' | wc -l)
check "the last column" test "$(head -n 1 "$d/s.csv" | cut -d, -f"$last")" = distance
check "distances rise" test "$(field "$last" "$d/s.csv")" = "$(field "$last" "$d/s.csv" | sort -g)"
# By definition, from the table: all columns but entropy, received_early and received_key, those with a spread
heads -o "$d/a.csv" --quiet
tail -n +2 "$d/a.csv" | awk -F, '
    function column(c,  h, mean, sd) {
        for (h = 1; h <= NR; h++) if (x[h, c] == "") return
        for (h = 1; h <= NR; h++) mean += x[h, c] / NR
        for (h = 1; h <= NR; h++) sd += (x[h, c] - mean) ^ 2 / NR
        if (sd == 0) return
        n++
        for (h = 1; h <= NR; h++) d[h] += (x[h, c] - x[3, c]) ^ 2 / sd
    }
    { for (c = 5; c <= 21; c++) x[NR, c] = $c }
    END {
        for (c = 5; c <= 21; c++) if (c != 20) column(c)
        for (h = 1; h <= NR; h++) printf "%.5f\n", sqrt(d[h] / n)
    }' >"$d/wanted"
heads --like 1.0 -o "$d/s.csv" --quiet
tail -n +2 "$d/s.csv" | sort | cut -d, -f"$last" | awk '{ printf "%.5f\n", $1 }' >"$d/got"
check "distances: $(tr '\n' ' ' <"$d/got") not $(tr '\n' ' ' <"$d/wanted")" cmp -s "$d/got" "$d/wanted"

# ---- Many texts --------------------------------------------------------------------------------

printf 'the man opened the box.\n\n  \t\nthe man left.\the admired the museum.\r\nthe dog the dog the dog' >"$d/texts"
run heads --file "$d/texts" $m --json
code 0
no_err
cp "$folder/out" "$d/many.json"
out_like '^{"n_texts":3,"n_tokens":[0-9]*,"n_queries":[0-9]*,"heads":\[{"layer":0,"head":0,'
out_like '"label_share":[01][.0-9]*,"spread":{"entropy":'
run heads --file - $m --json
code 1
err 'qkv: standard input: no line has any text'
said="standard input"
"$qkv" heads --file - $m --json <"$d/texts" >"$folder/out" 2>"$folder/err"
check "from standard input" cmp -s "$folder/out" "$d/many.json"
"$qkv" heads --file - $m --json --threads 1 <"$d/texts" >"$folder/out" 2>"$folder/err"
check "with one thread" cmp -s "$folder/out" "$d/many.json"
# Means and deviations of the texts alone
run heads "the man opened the box." $m -o "$d/1.csv" --quiet
run heads "the man left." --pair "he admired the museum." $m -o "$d/2.csv" --quiet
run heads "the dog the dog the dog" $m -o "$d/3.csv" --quiet
run heads --file "$d/texts" $m -o "$d/many.csv"
code 0
no_out
err "qkv: wrote $d/many.csv"
check "first columns" test "$(head -n 1 "$d/many.csv" | cut -d, -f1-7)" = layer,head,label,label_share,entropy,entropy_sd,entropy_normalized
for column in 4 9 13 16 17 19; do
    name=$(head -n 1 "$d/1.csv" | cut -d, -f$column)
    at=$(head -n 1 "$d/many.csv" | tr , '\n' | grep -n "^$name\$" | cut -d: -f1)
    for i in 1 2 3; do field $column "$d/$i.csv" >"$d/c$i"; done
    paste -d, "$d/c1" "$d/c2" "$d/c3" | awk -F, '{
        n = 0; sum = 0; squares = 0
        for (i = 1; i <= 3; i++) if ($i != "") { n++; sum += $i }
        for (i = 1; i <= 3; i++) if ($i != "") squares += ($i - sum / n) ^ 2
        printf "%.5f %.5f\n", sum / n, (n > 1 ? sqrt(squares / (n - 1)) : -1) }' >"$d/wanted"
    field "$at,$((at + 1))" "$d/many.csv" | awk -F, '{ printf "%.5f %.5f\n", $1, $2 == "" ? -1 : $2 }' >"$d/got"
    check "$name: $(cat "$d/got"), not $(cat "$d/wanted")" cmp -s "$d/got" "$d/wanted"
done
run heads --file "$d/texts" $m
titled '^4 heads of .*bert_old, means and standard deviations over 3 texts '
out_like '±'
run heads --file "$d/texts" $m --ascii
out_like '+-'
# One text: its own numbers, no spread
printf 'the man left.\n' >"$d/one"
run heads --file "$d/one" $m --json
out_like '"spread":{"entropy":null,'

# ---- Probes ------------------------------------------------------------------------------------

heads --probes --json
code 0
out_like '"duplicate":0[.0-9e-]*,"induction":0[.0-9e-]*,"antecedent":null'
out_like '"probes":{"n_texts":32,"period":[0-9]*,"n_probes":0,"seed":1,"note":"coreference-like does not apply: '
out_like '{"label":"duplicate","number":"duplicate","above":0.4}'
cp "$folder/out" "$d/p.json"
heads --probes --json --threads 1
check "the same probes with one thread" cmp -s "$folder/out" "$d/p.json"
heads --probes --json --seed 2
check "other probes with another seed" sh -c "! cmp -s '$folder/out' '$d/p.json'"
heads --probes
out_like '^Probes (\*): 32 texts of [0-9]* random tokens said twice. coreference-like does not'
heads --grammar "$d/texts"
code 1
err_like "^qkv: $d/texts:1: "
heads --grammar "$d/none"
code 1
err_like "^qkv: $d/none: "
door="I was watching the door when [MASK] opened."
run heads "$door" --probes --json
if [ $got -eq 0 ]; then # a build with the embedded model
    out_like '"layer":3,"head":0,"label":"coreference-like"'
    out_like '"layer":3,"head":0,[^}]*"antecedent":1.0}'
    out_like '"n_probes":512,"seed":1,"chance":0.2[0-9]*}'
    cp "$folder/out" "$d/p.json"
    run heads "$door" --grammar "$here/../../models/default/grammar.txt" --json
    check "the embedded grammar" cmp -s "$folder/out" "$d/p.json"
    run heads "$door" --json
    out_like '"layer":3,"head":0,"label":""'
    run heads "$door" --probes --label coreference-like --sort antecedent --columns antecedent
    out_like '^3.0   coreference-like   1.00 $'
fi

# ---- What if -----------------------------------------------------------------------------------

for what in causal no-scale temperature=2 drop=man; do
    run look "$sentence" $m --json --what-if $what
    sed 's/.*"heads":\(\[[^]]*\]\).*/\1/' "$folder/out" >"$d/look"
    heads --json --what-if $what
    code 0
    no_err
    sed 's/.*"heads":\(\[[^]]*\]\).*/\1/' "$folder/out" >"$d/heads"
    check "look --what-if $what has other heads" cmp -s "$d/heads" "$d/look"
    out_like '"modified":"modified: not what the model computed","what_if":"'
done
heads --what-if causal --what-if temperature=2
out_like '^\[modified: not what the model computed: causal, temperature 2\]$'
run heads --file "$d/one" $m --what-if causal --json
code 0
out_like '"what_if":"causal"}$'
grep -o '"received_key":[0-9]*' "$folder/out" >"$d/keys"
run heads "the man left." $m --what-if causal --json
check "one text is its own mean" test "$(grep -o '"received_key":[0-9]*' "$folder/out")" = "$(cat "$d/keys")"
heads --what-if drop=zebra
code 1
err_like "^qkv: --what-if drop: 'zebra' is none of the 12 tokens"
usage heads '--what-if drop=man together with --file: its texts have other tokens' heads --file F --what-if drop=man
usage heads '--what-if together with --probes, which are of the model as it is' heads text --what-if causal --probes

# ---- What is refused ---------------------------------------------------------------------------

usage heads 'TEXT or --file is missing' heads
usage heads '--file together with a text' heads --file F text
usage heads '--file together with --pair' heads --file F --pair text
usage heads '--file together with --jsonl' heads --file F --jsonl
usage heads "-o: 'a.png' ends in none of .csv .tsv .json" heads text -o a.png
usage heads '-o together with --json' heads text -o a.csv --json
usage heads "--sort: there is no column 'entropie'; did you mean 'entropy'?" heads text --sort entropie
columns="entropy (H), entropy_normalized (H/ln n), confidence (p max), mean_distance (dist), mass_cls ([CLS]), mass_sep ([SEP]), mass_punctuation (punct), mass_self (self), mass_previous (prev), mass_next (next), effective_keys (N eff), mass_window (near), mass_same_token (same), mass_duplicate (dup), mass_induction (induc), received_largest (recv), received_early (early), received_gini (Gini), received_key (key), duplicate (dup*), induction (induc*), antecedent (coref*)"
usage heads "--sort: there is no column 'x': there are head, label, $columns, distance (unlike)" heads text --sort x
run help heads
for column in $(echo "$columns" | grep -o '[a-z_]* (' | tr -d ' ('); do check "$column in the help" grep -q " $column\( \|$\)" "$folder/out"; done
usage heads "--seed goes with --probes" heads text --seed 2
usage heads "--columns: there is no column 'mass_nxt'; did you mean 'mass_next'?" heads text --columns entropy,mass_nxt
usage heads "--columns: there is no column '': there are $columns, distance (unlike)" heads text --columns entropy,,mass_next
usage heads "--sort: there is no column 'Ginny'; did you mean 'Gini'?" heads text --sort Ginny
# Columns are called as their headings, too.
for names in 'H entropy' 'p_max confidence' '[CLS] mass_cls' 'N_eff effective_keys' 'key received_key'; do
    heading=$(echo "${names% *}" | tr _ ' ')
    heads --sort "${names#* }" --json
    cp "$folder/out" "$d/by_name"
    heads --sort "$heading" --json
    code 0
    check "$heading is not ${names#* }" cmp -s "$folder/out" "$d/by_name"
    heads --columns "${names#* }" --sort "${names#* }"
    cp "$folder/out" "$d/by_name"
    heads --columns "$heading" --sort "$heading"
    code 0
    check "$heading is not ${names#* }" cmp -s "$folder/out" "$d/by_name"
done
usage heads "--label: 'wide' is none of next, prev, [CLS], [SEP], punctuation, broad, sink, duplicate, induction, same-token, coreference-like, none" heads text --label wide
usage heads '--like sorts by distance: --sort entropy does not go with it' heads text --like 0.0 --sort entropy
usage heads '--reverse without --sort or --like' heads text --reverse
usage heads "--sort: antecedent is known with --probes only" heads text --sort antecedent
usage heads "--columns: antecedent is known with --probes only" heads text --columns entropy,antecedent
usage heads "--sort: distance is known with --like only" heads text --sort distance
usage heads "--like: there is no 7.0: the model has layers 0 to 1, heads 0 to 1" heads text --like 7.0 $m
usage heads "--like: 'first' is not L.H" heads text --like first $m
usage heads "--top: '0' is not a whole number from 1 to 2147483647" heads text --top 0
# Files: named with the line, and nothing is written
bad() {
    printf "$1" >"$d/bad"
    run heads --file "$d/bad" $m -o "$d/not.csv"
    code 1
    no_out
    err_like "^qkv: $d/bad:$2"
    check "something was written" test ! -e "$d/not.csv"
}
bad 'the man\nthe dog\377 left\n' '2: .*UTF-8'
bad 'the man\n\na\tb\tc\n' '3: more than one tab: a line is a text, or two$'
bad 'the man\n\tb\n' '2: no text before the tab$'
bad 'the man\nb\t \n' '2: no text after the tab$'
bad 'the man\n\none two three four five six seven eight nine ten 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n' '3: the text has [0-9]* tokens, the model takes [0-9]*: --truncate cuts it$'
bad '' ' no line has any text$'
bad '\n \n\t\n' ' no line has any text$'
printf 'the man\n\none two three four five six seven eight nine ten 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n' >"$d/bad"
run heads --file "$d/bad" $m --truncate --json
code 0
err 'qkv: 1 of 2 texts cut'
run heads --file "$d" $m
code 1
err "qkv: $d: Is a directory"
run heads --file "$d/none" $m
code 1
err "qkv: $d/none: No such file or directory"
run heads "text" $m -o "$d/no/such/folder.csv"
code 1
err_like "^qkv: $d/no/such/folder.csv: "
head -c 67108865 /dev/zero | tr '\0' a >"$d/bad"
run heads --file "$d/bad" $m
code 1
err "qkv: $d/bad:1: longer than 67108864 bytes"
awk 'BEGIN { for (i = 0; i < 80000; i++) print "the man opened the box when the dog left." }' >"$d/long"
interrupt INT heads --file "$d/long" $m -o "$d/not.csv"
code 130
no_out
err_like '^qkv: nothing was written$'
check "something was written" test ! -e "$d/not.csv"
rm "$d/bad" "$d/long"
printf 'a\0b the man\n' >"$d/nul"
run heads --file "$d/nul" $m --json
code 0
finish
