# qkv lookup: weights and values against a softmax by hand, the plain dictionary, tables in every form, what is refused.
. ./lib.sh
d=$folder/d
mkdir "$d"
tables=$here/../../examples/tables

# ---- Transcripts -------------------------------------------------------------------------------

run lookup "$tables/prices.csv" apricot sandwich lemonade monday
code 0
no_err
out_is lookup
run lookup "$tables/traits.csv" puppy pear taxi sofa --top 3
code 0
no_err
out_is lookup_traits
run lookup "$tables/prices.csv" apricot plum --hard
code 0
no_err
out_is lookup_hard

# ---- Against a softmax by hand ------------------------------------------------------------------

# All keys are shown: similarity / temperature -> weights -> value, in doubles.
by_hand() {
    run lookup "$@" --top 64 --json
    code 0
    tr '{}' '\n\n' <"$folder/out" | awk '
        function number(name) { v = $0; if (!sub(".*\"" name "\":", "", v)) return ""; sub(/[,\]].*/, "", v); return v + 0 }
        /"temperature"/ { temperature = number("temperature") }
        /"query"/ { wanted = number("value"); n = 0; sum = 0; value = 0; queries++; bad += check(); shown = 0 }
        /"similarity"/ { s[shown] = number("similarity"); w[shown] = number("weight"); x[shown++] = number("value") }
        function check(  i, total, mean) {
            if (!shown) return 0
            for (i = 0; i < shown; i++) total += exp((s[i] - s[0]) / temperature)
            for (i = 0; i < shown; i++) {
                e = exp((s[i] - s[0]) / temperature) / total
                if (e - w[i] > 2e-6 || w[i] - e > 2e-6) return 1
                mean += e * x[i]
            }
            if (mean - last > 1e-4 || last - mean > 1e-4) return 1
            checked++
            return 0
        }
        { if (/"query"/) last = wanted }
        END { bad += check(); exit !(bad == 0 && checked == queries && queries > 0) }'
    check "weights and values are those of a softmax" test $? -eq 0
}
by_hand "$tables/prices.csv" apricot sandwich taxi
by_hand "$tables/prices.csv" apricot queen --temperature 0.03
by_hand "$tables/prices.csv" apricot --temperature 7
by_hand "$tables/prices.csv" apricot coffee --metric dot
by_hand "$tables/prices.csv" "the apricot was ripe ." --sentence

value() { sed "s/.*\"value\":\([^,]*\),\"unknown.*/\1/" "$folder/out"; }
run lookup "$tables/prices.csv" apricot --temperature 1e-6 --json
soft=$(value)
run lookup "$tables/prices.csv" apricot --hard --json
check "temperature 0 is the nearest key" test "$(value)" = "$soft"
out_like '"temperature":null'
out_like '"unknown":false,"equal":false'
run lookup "$tables/prices.csv" plum --hard --json
out_like '"value":0\.[0-9]*,"unknown":false,"equal":true,"keys":\[{"key":"plum","similarity":[01]\.[0-9]*,"weight":1\.'
# More queries change nothing, nor do threads and instruction sets.
run lookup "$tables/prices.csv" apricot --json
cp "$folder/out" "$d/one.json"
for isa in scalar avx2 avx512 neon; do
    "$qkv" info | grep -q "instructions.* $isa" || continue
    run lookup "$tables/prices.csv" apricot --json --isa $isa --threads 2
    check "other bytes of $isa" cmp -s "$folder/out" "$d/one.json"
done
run lookup "$tables/prices.csv" taxi apricot --json
check "the same beside another query" grep -qF "$(sed 's/.*"results":\[//; s/\]}$//' "$d/one.json")" "$folder/out"

# ---- Words that are none -----------------------------------------------------------------------

run lookup "$tables/prices.csv" nectarine
code 0
err "qkv: 'nectarine' is not a word of the model: it stands for the mean of its 6 pieces, which may mean little"
run lookup "$tables/prices.csv" 日本 --json
code 0
err "qkv: '日本' is not in the vocabulary of the model ([UNK]): what is found means nothing"
out_like '"unknown":true'
feed 'nectarine,1
日本,2
apple,3' lookup - apricot --quiet
code 0
no_err
feed 'nectarine,1
日本,2
apple,3' lookup - apricot
code 0
err "qkv: 1 of 3 keys are not in the vocabulary of the model ([UNK]): who finds them means nothing
qkv: 1 of 3 keys have words that are none of the model's: they stand for the mean of their pieces, which may mean little"
out_like '^    apple .* 3\.00 '
run lookup "$tables/prices.csv" "" --quiet
code 1
err "qkv: the query '' has no tokens"

# ---- Tables ------------------------------------------------------------------------------------

run lookup "$tables/prices.csv" apricot --json
cp "$folder/out" "$d/csv"
tr ',' '\t' <"$tables/prices.csv" >"$d/prices.tsv"
run lookup "$d/prices.tsv" apricot --json
check "tabs" cmp -s "$folder/out" "$d/csv"
sed 's/\(.*\),\(.*\)/"\1" , "\2"/; s/$/\r/' "$tables/prices.csv" >"$d/quoted.csv"
run lookup "$d/quoted.csv" apricot --json
check "quotes, CRLF" cmp -s "$folder/out" "$d/csv"
tail -n +2 "$tables/prices.csv" | "$qkv" lookup - apricot --json >"$folder/out" 2>"$folder/err"
check "no names, standard input" cmp -s "$folder/out" "$d/csv"
feed 'dog,"1, 2, 3, 4, 5, 6, 7, 8, 9"' lookup - puppy
code 0
out_like '1\.00 .* … '
run lookup "$tables/traits.csv" pear --json
out_like '"value":\[0\.[0-9e-]*,0\.[0-9]*,0\.[0-9]*\],"unknown"'
run lookup "$d/none.csv" a
code 1
err_like 'none\.csv'
feed 'a,1
b,x' lookup - a
code 1
err "qkv: standard input: line 2, column 3: 'x' is not a finite number"
printf 'a,\033[2J\n' >"$d/escape.csv"
run lookup "$d/escape.csv" a
code 1
check "no control characters" test "$(tr -d '\n' <"$folder/err" | LC_ALL=C grep -c '[[:cntrl:]]')" -eq 0
printf 'dog\033[2J,1\n' | "$qkv" lookup - puppy --quiet >"$folder/out" 2>"$folder/err"
check "no control characters in keys" test "$(tr -d '\n' <"$folder/out" | LC_ALL=C grep -c '[[:cntrl:]]')" -eq 0
for columns in 20 40 120 1000; do
    said="COLUMNS=$columns qkv lookup"
    COLUMNS=$columns "$qkv" lookup "$tables/traits.csv" puppy >"$folder/out" 2>"$folder/err"
    got=$?
    code 0
done
run lookup "$tables/prices.csv" apricot --ascii
check "ASCII" test "$(LC_ALL=C grep -c '[^ -~]' "$folder/out")" -eq 0
run lookup "$tables/prices.csv" "the man" --model "$model" --quiet
code 0

# ---- Refused -----------------------------------------------------------------------------------

usage lookup "QUERY is missing" lookup "$tables/prices.csv"
usage lookup "TABLE is missing" lookup
usage lookup "--temperature: 0 is not between 1e-6 and 1e6" lookup a b --temperature 0
usage lookup "--hard together with --top" lookup a b --hard --top 3
usage lookup "--hard together with --temperature" lookup a b --hard --temperature 3
usage lookup "--metric: 'l2' is not one of cosine|dot" lookup a b --metric l2
usage lookup "--top: '65' is not a whole number from 1 to 64" lookup a b --top 65
finish
