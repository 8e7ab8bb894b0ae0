# Texts from anywhere: what is not UTF-8, what leaves nothing, what is very long, in every command that takes a text.
. ./lib.sh
m="--model $model"
empty='{"ids":[2,3],"tokens":["[CLS]","[SEP]"]}'
a_key='{"ids":[2,6,9,3],"tokens":["[CLS]","a","key","[SEP]"]}'
unknown='{"ids":[2,1,3],"tokens":["[CLS]","[UNK]","[SEP]"]}'

# bytes FORMAT TEXT...   standard input of the next `given` is what printf makes of it
bytes() { printf "$@" >"$folder/in"; }
# given ARGS...          runs the tool on that, under a limit of processor time that only a loop within a loop reaches
limit=$(cpu_seconds 60)
given() {
    said="qkv $*  < bytes"
    (ulimit -t $limit && "$qkv" "$@" <"$folder/in" >"$folder/out" 2>"$folder/err")
    got=$?
}
# repeat N TEXT          N bytes of a text, again and again, without newlines
repeat() { yes "$2" | tr -d '\n' | head -c "$1"; }

# Not UTF-8 (TK01a): truncated, overlong, surrogates, past the last code point, bytes that never occur
for bad in '\303' '\342\202' '\300\200' '\340\200\200' '\355\240\200' '\364\220\200\200' '\376' '\377\376' '\200'; do
    bytes "a key $bad x"
    given tokenize - $m
    code 1
    no_out
    err "qkv: text is not valid UTF-8 at byte 6"
    bytes "\"a key\"\n[\"a\",\"key $bad\"]\n\"a key\"\n"
    given tokenize --jsonl $m
    code 1
    no_err
    out "$a_key
{\"error\":\"line 2: not valid UTF-8 at byte 10\"}
$a_key"
    for name in look fill tokenize; do
        run $name "$(printf "[MASK] $bad")" $m
        code 1
        no_out
        err "qkv: text is not valid UTF-8 at byte 7"
        run $name "a [MASK]" --pair "$(printf "k$bad")" $m
        code 1
        err "qkv: pair is not valid UTF-8 at byte 1"
    done
    run next "$(printf "$bad")" "b" $m
    code 1
    err "qkv: text is not valid UTF-8 at byte 0"
    run next "a" "$(printf "b$bad")" $m
    code 1
    err "qkv: pair is not valid UTF-8 at byte 1"
    printf "the man saw a key\na key $bad\tx\n" >"$folder/bad.txt"
    run train --text "$folder/bad.txt" --out "$folder/none" --steps 2
    code 1
    err "qkv: $folder/bad.txt:2: not valid UTF-8 at byte 6 of the line"
    check "a folder was made" test ! -e "$folder/none"
    run eval --text "$folder/bad.txt" $m
    code 1
    no_out
    err "qkv: $folder/bad.txt:2: not valid UTF-8 at byte 6 of the line"
done

# Dropped (TK01b): NUL, U+FFFD, private use. Kept (TK01c): noncharacters, unassigned. Marks alone (TK01e).
bytes '"a \\u0000k\\ufffde\\ue000y\\udbff\\udffd"\n"a\\u0000"\n"\\u0301"\n"\\u0316\\u0301 \\u0301"\n"\\ufdd0"\n"\\uffff"\n"\\u0378"\n"\\u0000"\n""\n'
given tokenize --jsonl $m
code 0
no_err
out "$a_key
{\"ids\":[2,6,3],\"tokens\":[\"[CLS]\",\"a\",\"[SEP]\"]}
$empty
$empty
$unknown
$unknown
$unknown
$empty
$empty"
bytes 'a \000k\357\277\275e\356\200\200y'
given tokenize - $m --json
code 0
out "$a_key"
bytes '\314\201'
for name in look "next a"; do
    given $name - $m
    code 0
    no_err
done

# What is no text has an answer in its place, and the exit code is 1, in every command
bytes '"\\ud800"\n"\\ud800\\u0041"\n"\\udc00 x"\n\n"a\000b"\n["a"]\n{"a":1}\n"a"x\n[1,"a"]\n[["a","b"]]\n["a","b","c"]\nnull\n"a\n\377\n["a [MASK]","\\u0000"]\n"a'
for name in tokenize look fill next; do
    given $name --jsonl $m
    code 1
    no_err
    check "16 lines" test "$(wc -l <"$folder/out")" -eq 16
    check "15 errors" test "$(grep -c '^{"error":"line [0-9]*: .*"}$' "$folder/out")" -eq 15
    check "the answer is not the 15th" sh -c "! sed -n 15p '$folder/out' | grep -q error"
    out_like '^{"error":"line 1: invalid Unicode'
    out_like '^{"error":"line 14: not valid UTF-8 at byte 0"}$'
done

# What suits one model and not another is an error of its line as well
long=$(repeat 600 'the man ')
bytes "\"$long\"\n\"the [MASK]\"\n"
for name in look fill; do
    given $name --jsonl $m
    code 1
    no_err
    check "line 1 is no error of its own" test "$(head -n 1 "$folder/out" | sed "s|--slide N looks at windows of it, ||")" = \
        '{"error":"line 1: the text has 152 tokens, the model takes 23: --truncate cuts it"}'
    out_like '^{.*"predictions":\[{"position":2,'
done
bytes '"the [MASK]"\n["a [MASK]","b"]\n'
given fill --jsonl --model data/bare
code 1
check "2 errors" test "$(grep -c '^{"error":"line [12]: .*no MLM head.*"}$' "$folder/out")" -eq 2

# Very long (TK01d): one word, a letter with accents out of order, tokens, beginnings of [MASK], escapes
repeat 10000000 a >"$folder/in"
given tokenize - $m --json
code 0
out "$unknown"
{
    printf e
    repeat 8000000 "$(printf '\314\201\314\226')"
} >"$folder/in"
given tokenize - $m --json
code 0
check "more than one word" test "$(tr , '\n' <"$folder/out" | wc -l)" -lt 20
repeat 10000000 'the man ' >"$folder/in"
given tokenize - $m --json
code 0
check "2500002 tokens" test "$(tr , '\n' <"$folder/out" | grep -c '^"')" -ge 2500000
given look - $m --json --truncate
code 0
err "qkv: text cut from 2500002 to 23 tokens"
repeat 5000000 '[MASK' >"$folder/in"
given tokenize - $m
code 0
check "2000002 tokens" test "$(wc -l <"$folder/out")" -eq 2000002
{
    printf '"'
    repeat 9999996 '\u0000'
    printf 'a key"\n["the man","'
    repeat 10000000 'x'
    printf '"]\n"a key"\n'
} >"$folder/in"
given tokenize --jsonl $m
code 0
out "$a_key
{\"ids\":[2,5,10,3,1,3],\"tokens\":[\"[CLS]\",\"the\",\"man\",\"[SEP]\",\"[UNK]\",\"[SEP]\"]}
$a_key"

# Two megabytes of one line, and of one word, in every other command that reads a text: an answer, or how many tokens are too many
gpt2="--model $here/../golden/decoder/gpt2_1"
for unit in 'the man ' x; do
    repeat 2000000 "$unit" >"$folder/in"
    for name in "next a -" "heads -" "explain -" "map - --json"; do
        given $name --truncate $m
        code 0
    done
    for name in "look -" "next - b" "map -" "explain -" "embed --file -" "heads --file - --fires 0.1"; do
        given $name $m
        [ "$unit" = x ] && code 0 && continue
        code 1
        err_like 'the text has 50000[24] tokens, the model '
    done
    for name in "generate -" "generate --file -"; do
        given $name $gpt2 --max-new 1
        [ "$unit" = x ] && code 0 && continue
        code 1
        err_like 'a prompt of 500002 tokens leaves no room'
    done
done

# Longer than a text may be: refused, and the next line is answered. A line of brackets costs no memory.
{
    printf '"'
    repeat 67108864 a
    printf '"\n'
    repeat 9000000 '[{},'
    printf '\n"a key"'
} >"$folder/in"
given tokenize --jsonl $m
code 1
no_err
out '{"error":"line 1: longer than 67108864 bytes"}
{"error":"line 2: not a string, nor an array of two strings"}
{"ids":[2,6,9,3],"tokens":["[CLS]","a","key","[SEP]"]}'
given tokenize - $m
code 1
no_out
err "qkv: standard input: longer than 67108864 bytes"
rm "$folder/in"

# A long text in a table, which has a few of its columns: each of its bytes is looked at a few times
for what in x "$(printf '\033')"; do
    repeat 4000000 "$what" >"$folder/long.txt"
    said="qkv embed --similar, a text of many '$what'"
    (ulimit -t $limit && "$qkv" embed --file "$folder/long.txt" --similar "a key" --truncate $m --color never </dev/null >"$folder/out" 2>"$folder/err")
    got=$?
    code 0
    check "a line of it" test "$(wc -c <"$folder/out")" -lt 1000
done

# A page of many queries and keys: no map over all pairs, which would take nearly all of its time
awk 'BEGIN { for (i = 0; i < 700; i++) printf "%.4f,%.4f,%.4f\n", sin(i), sin(i * 1.7), sin(i * i) }' >"$folder/rows.csv"
run look --q "$folder/rows.csv" --k "$folder/rows.csv" -o "$folder/rows.html" --quiet
code 0
check "a map over all pairs" grep -q '"map_note":"t-SNE, cosine, perplexity 30, Barnes-Hut, ' "$folder/rows.html"

# Long lines of a text to train or measure on
small="--layers 1 --heads 2 --hidden 8 --batch 4 --steps 2 --quiet"
for what in 'a ' 'x' "$(printf '\314\201\314\226')" "$(printf '\344\270\255')"; do
    { repeat 1048572 "$what"; echo; } >"$folder/long.txt"
    said="qkv eval and train, lines of $what"
    (ulimit -t $limit && "$qkv" eval --text "$folder/long.txt" $m --json </dev/null >"$folder/out" 2>"$folder/err")
    got=$?
    code 0
    (ulimit -t $limit && "$qkv" train --text "$folder/long.txt" --out "$folder/model" $small </dev/null >"$folder/out" 2>"$folder/err")
    got=$?
    code 0
    no_err
    rm -r "$folder/model"
done
{ repeat 1048577 x; echo; } >"$folder/long.txt"
run train --text "$folder/long.txt" --out "$folder/none" $small
code 1
err "qkv: $folder/long.txt:1: a line of more than 1048576 bytes"
printf ' \t \n\r\n\n' >"$folder/blank.txt"
for name in train eval; do
    if [ $name = train ]; then set -- --out "$folder/none"; else set -- $m; fi
    run $name "$@" --text "$folder/blank.txt"
    code 1
    err "qkv: $folder/blank.txt: no line has any text"
done
# Nothing but what is dropped: no word to learn from, and no harm
printf '\314\201\n\000\t\000\n' >"$folder/nothing.txt"
run train --text "$folder/nothing.txt" --out "$folder/model" $small
code 0
no_err
run eval --text "$folder/nothing.txt" --model "$folder/model" --json
code 0
out_like '^{"total":{"slot":"all","n_blanks":0,'
rm "$folder/long.txt"
finish
