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
run lookup "$tables/prices.csv" nectarine plum nectarine --quiet
check "a table for each query" test "$(grep -c '^nectarine$' "$folder/out")" -eq 2
run lookup "$tables/prices.csv" nectarine plum nectarine
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
# The answer is there on any terminal: columns that have no room stand below the others.
for columns in 30 31 36 44 45 52 59 80; do
    narrow $columns lookup "$tables/prices.csv" apricot
    for name in cosine weight price; do out_like " $name\( \|$\)"; done
    narrow $columns lookup "$tables/traits.csv" puppy --top 3
    for name in cosine weight $(head -n 1 "$tables/traits.csv" | cut -d, -f2-4 | tr , ' '); do out_like " $name\( \|$\)"; done
done
run lookup "$tables/prices.csv" apricot --ascii
check "ASCII" test "$(LC_ALL=C grep -c '[^ -~]' "$folder/out")" -eq 0
run lookup "$tables/prices.csv" "the man" --model "$model" --quiet
code 0

# ---- Vectors of one's own, sums, a plane ---------------------------------------------------------

# softmax of cosines by 0.1, from the two tables: what --json says, with the query as a sum of signs
own() { # QUERY SIGNS WORDS...
    run lookup "$tables/people.csv" --vectors "$tables/vectors.csv" "$1" --json --top 8
    code 0
    no_err
    sed 's/.*"value":\([-0-9.e]*\),"unknown".*/\1/' "$folder/out" >"$d/value"
    awk -F, -v terms="$2" 'FNR == 1 { next } NR == FNR { x[$1] = $2; y[$1] = $3; next } { v[$1] = $2 }
        END { n = split(terms, t, ";"); for (i = 1; i <= n; i++) { s = substr(t[i], 1, 1) "1"; w = substr(t[i], 2); qx += s * x[w]; qy += s * y[w] }
              for (w in v) { c = (qx * x[w] + qy * y[w]) / sqrt((qx^2 + qy^2) * (x[w]^2 + y[w]^2)); e = exp((c - 1) / 0.1); z += e; o += e * v[w] }
              print o / z }' "$tables/vectors.csv" "$tables/people.csv" >"$d/wanted"
    check "$1: $(cat "$d/value"), not $(cat "$d/wanted")" awk -v a="$(cat "$d/value")" -v b="$(cat "$d/wanted")" 'BEGIN { exit !(a - b < 1e-5 && b - a < 1e-5) }'
}
own boy "+boy"
own "king - man + woman" "+king;-man;+woman"
own "girl + king" "+girl;+king"
run lookup "$tables/people.csv" --vectors "$tables/vectors.csv" "king - man + woman" --top 1
out_like '^    queen *1.000 '
out_says "$tables/vectors.csv."
# Words of lessons that the model does not have. What docs/lessons.md says of each holds.
first() { "$qkv" lookup "$tables/prices.csv" --vectors "$tables/words.csv" --top 3 "$1" | awk 'NR > 2 && NR < 6 { print $1 }' | sort | tr '\n' ' '; }
for query in fruit nectarine supermarket minute person; do
    run lookup "$tables/prices.csv" --vectors "$tables/words.csv" $query
    code 0
    no_err
    said="qkv lookup … --vectors words.csv $query"
    case $query in
    fruit | nectarine) wanted="apple cherry plum " ;;
    supermarket) wanted="burger omelette pizza " ;;
    minute) out_says "No key stands out" ;;
    person) wanted="glove hat scarf " ;;
    esac
    [ $query = minute ] || check "the first three are $(first $query)" test "$(first $query)" = "$wanted"
    [ $query = minute ] || check "no key stands out" sh -c '! grep -q "stands out" "$1"' - "$folder/out"
done
run lookup "$tables/people.csv" --vectors "$tables/vectors.csv" boy --json
check "vectors" grep -q '"vectors":"own"' "$folder/out"
# of a model: a word less itself and more another is the other one
run lookup "$tables/prices.csv" apricot --json
cp "$folder/out" "$d/plain"
run lookup "$tables/prices.csv" "apple - apple + apricot" --json
check "a sum is not its word" test "$(grep -o '"value":[0-9.]*' "$folder/out" | cut -c1-13 | head -n 1)" = "$(grep -o '"value":[0-9.]*' "$d/plain" | cut -c1-13 | head -n 1)"
for ending in png svg pdf; do
    run lookup "$tables/people.csv" --vectors "$tables/vectors.csv" "king - man + woman" boy -o "$d/a.$ending" --title Plane
    code 0
    err "qkv: wrote $d/a.$ending"
done
for word in queen princess "king - man + woman" boy; do check "no $word" grep -q ">$word</text>" "$d/a.svg"; done
check "the title" grep -q '<title>Plane</title>' "$d/a.svg"
check "two numbers as they are" grep -q 'They are drawn as they are. Lines go from king - man + woman' "$d/a.svg"
check "their span" grep -q 'the points span 2.4000 x 2.1000' "$d/a.svg"
run lookup "$tables/prices.csv" apricot --temperature 0.03 --top 12 -o "$d/a.svg" --quiet
check "lines of all keys" test "$(grep -c 'stroke-opacity:0.75' "$d/a.svg")" -eq 3 # the others have less than 0.01
run lookup "$tables/prices.csv" apricot -o "$d/a.svg" --quiet
code 0
check "components" grep -q '128 numbers each, drawn by their first two principal components' "$d/a.svg"
run lookup "$tables/people.csv" --vectors "$tables/vectors.csv" emperor
code 1
err "qkv: the query 'emperor' is none of the 8 words of $tables/vectors.csv"
run lookup "$tables/prices.csv" --vectors "$tables/vectors.csv" king
code 1
err "qkv: the key 'apple' is none of the 8 words of $tables/vectors.csv"
run lookup "$tables/people.csv" --vectors "$tables/vectors.csv" "king - "
code 1
err "qkv: the query '' is none of the 8 words of $tables/vectors.csv"
usage lookup "--vectors together with --sentence" lookup a b --vectors c --sentence
usage lookup "--vectors together with --model" lookup a b --vectors c --model d
usage lookup "--vectors together with --weights" lookup a b --vectors c --weights int8
usage lookup "--vectors together with --check-finite" lookup a b --vectors c --check-finite
usage lookup "-o: '$d/a.csv' ends in none of .png .svg .pdf" lookup a b -o "$d/a.csv"
usage lookup "-o together with --hard" lookup a b --hard -o "$d/a.png"
usage lookup "--size is of a picture: -o FILE.png, .svg or .pdf" lookup a b --size 640

# ---- Refused -----------------------------------------------------------------------------------

usage lookup "QUERY is missing" lookup "$tables/prices.csv"
usage lookup "TABLE is missing" lookup
usage lookup "--temperature: 0 is not between 1e-6 and 1e6" lookup a b --temperature 0
usage lookup "--hard together with --top" lookup a b --hard --top 3
usage lookup "--hard together with --temperature" lookup a b --hard --temperature 3
usage lookup "--metric: 'l2' is not one of cosine|dot" lookup a b --metric l2
usage lookup "--top: '65' is not a whole number from 1 to 64" lookup a b --top 65
finish
