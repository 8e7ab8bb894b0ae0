# A text of a file or of standard input means the same whichever editor wrote it: CR LF and LF end a line alike, and a byte order
# mark at the beginning is left out, which is said.
. ./lib.sh
d=$folder
mark=$(printf '\357\273\277')
printf 'the man saw\n\na dog ran\n' >"$d/lf"
sed 's/$/\r/' "$d/lf" >"$d/crlf"
{ printf '%s' "$mark" && cat "$d/lf"; } >"$d/bom"
{ printf '%s' "$mark" && cat "$d/crlf"; } >"$d/both"
head -c -1 "$d/lf" >"$d/open" # no end of the last line
small="--layers 1 --heads 1 --hidden 8 --vocab 300 --len 24 --steps 2 --batch 2 --quiet"
cp "$here/../../models/default/grammar.txt" "$d/grammar"
for arch in gpt2 bert; do
    run train --arch $arch --text "$d/lf" --out "$d/$arch" $small
    code 0
done

# alike ARGS...: FILE among them is each of the files, and the answer one; `-` is read from it
alike() {
    for kind in lf crlf bom both open; do
        set -- "$kind" "$@"
        shift
        said="qkv $* (FILE: $kind)"
        "$qkv" $(printf '%s ' "$@" | sed "s|FILE|$d/$kind|g") <"$d/$kind" >"$d/out" 2>"$d/err"
        got=$?
        code 0
        [ $kind = lf ] && cp "$d/out" "$d/first"
        check "another answer than that of LF" cmp "$d/first" "$d/out"
        case $kind in
        bom | both) err_like 'qkv: .*: begins with a byte order mark, which is left out' ;;
        *) check "no remark" sh -c "! grep -q 'byte order mark' '$d/err'" ;;
        esac
    done
}
for model in "$d/gpt2" "$d/bert"; do
    alike tokenize - --model "$model"
    alike look - --model "$model" --json
    alike look --file FILE --model "$model" --json
    alike heads --file FILE --model "$model" --json
    alike eval --text FILE --model "$model"
done
alike heads --file - --model "$d/gpt2" --json
alike generate --file FILE --model "$d/gpt2" --max-new 4
alike generate --file - --model "$d/gpt2" --max-new 4
alike generate - --model "$d/gpt2" --max-new 4
alike embed --file FILE --model "$d/bert" --json
alike eval --text - --model "$d/gpt2"
alike eval --text - --model "$d/bert"
alike eval --check - --grammar "$d/grammar"
alike look - --model "$d/gpt2" --slide 4 --json

# What the library reads: a model of the same bits. A remark needs no model that was trained.
for arch in gpt2 bert; do
    "$qkv" train --arch $arch --text - --out "$d/$arch-" $small <"$d/lf"
    said="qkv train --text -"
    check "the bits of a file" cmp "$d/$arch/model.safetensors" "$d/$arch-/model.safetensors"
    for kind in crlf bom both; do
        run train --arch $arch --text "$d/$kind" --out "$d/$arch-$kind" ${small% --quiet}
        code 0
        [ $kind = crlf ] || err_like "qkv: $d/$kind: begins with a byte order mark, which is left out"
        check "the bits of LF" cmp "$d/$arch/model.safetensors" "$d/$arch-$kind/model.safetensors"
        check "the vocabulary of LF" cmp "$d/$arch/tokenizer.json" "$d/$arch-$kind/tokenizer.json"
    done
done
{ printf '%s' "$mark" && cat "$d/grammar"; } >"$d/grammar-bom"
run eval --check "$d/lf" --grammar "$d/grammar" --json
cp "$d/out" "$d/first"
run eval --check "$d/both" --grammar "$d/grammar-bom" --json
code 0
err_like "grammar-bom: begins with a byte order mark"
err_like "both: begins with a byte order mark"
check "the same answer" cmp "$d/first" "$d/out"

# Pipes that the library reads: the first bytes are looked at, and none is lost, however slowly they come.
piped() { # piped ARGS...: `both` through a pipe; the answer to LF
    said="cat both | qkv $*"
    "$qkv" "$@" <"$d/lf" >"$d/first" 2>"$d/err"
    cat "$d/both" | "$qkv" "$@" >"$d/out" 2>"$d/err"
    got=$?
    code 0
    err "qkv: standard input: begins with a byte order mark, which is left out"
    check "another answer than that of LF" cmp "$d/first" "$d/out"
    said="slowly | qkv $*"
    { head -c 1 "$d/both" && sleep 0.1 && tail -c +2 "$d/both"; } | "$qkv" "$@" >"$d/out" 2>"$d/err"
    got=$?
    code 0
    err "qkv: standard input: begins with a byte order mark, which is left out"
    check "another answer than that of LF" cmp "$d/first" "$d/out"
}
piped eval --text - --model "$d/bert"
piped eval --check - --grammar "$d/grammar" --json
mkfifo "$d/pipe"
cat "$d/both" >"$d/pipe" &
run eval --text "$d/pipe" --model "$d/bert"
code 0
err "qkv: $d/pipe: begins with a byte order mark, which is left out"
run eval --text "$d/lf" --model "$d/bert"
cp "$d/out" "$d/first"
printf '\357\273' | "$qkv" eval --text - --model "$d/bert" >"$d/out" 2>"$d/err"
got=$?
code 1
check "no remark" sh -c "! grep -q 'byte order mark' '$d/err'"

# Tables, and arrays as text
printf 'a,1,2\nb,2,1\n' >"$d/t.csv"
{ printf '%s' "$mark" && sed 's/$/\r/' "$d/t.csv"; } >"$d/both.csv"
printf '1,2\n2,1\n' >"$d/n.csv"
{ printf '%s' "$mark" && sed 's/$/\r/' "$d/n.csv"; } >"$d/numbers.csv"
for where_from in file - pipe.csv; do
    said="qkv lookup and attend, $where_from"
    [ -e "$d/pipe.csv" ] || mkfifo "$d/pipe.csv"
    table=$d/both.csv numbers=$d/numbers.csv
    case $where_from in -) table=- numbers=- ;; pipe.csv) table=$d/pipe.csv numbers=$d/pipe.csv ;; esac
    name=$table
    [ $table = - ] && name="standard input"
    [ $where_from = pipe.csv ] && cat "$d/both.csv" >"$d/pipe.csv" &
    "$qkv" lookup "$table" a --json <"$d/both.csv" >"$d/out" 2>"$d/err"
    got=$?
    code 0
    err "qkv: $name: begins with a byte order mark, which is left out"
    [ $where_from = file ] && name=$d/numbers.csv
    [ $where_from = pipe.csv ] && cat "$d/numbers.csv" >"$d/pipe.csv" &
    "$qkv" attend --q "$numbers" --k "$d/n.csv" --v "$d/n.csv" <"$d/numbers.csv" >"$d/out" 2>"$d/err"
    got=$?
    code 0
    err "qkv: $name: begins with a byte order mark, which is left out"
done
run heads "the man saw" --grammar "$d/grammar-bom" --model "$d/bert"
err_like "grammar-bom: begins with a byte order mark"

# Names of arrays, and lines of JSON
printf '1,0\n0,1\n1,1\n' >"$d/q.csv"
printf 'the\nman\nsaw\n' >"$d/names"
{ printf '%s' "$mark" && sed 's/$/\r/' "$d/names"; } >"$d/names-both"
run look --q "$d/q.csv" --k "$d/q.csv" --tokens "$d/names" --json
code 0
cp "$d/out" "$d/first"
run look --q "$d/q.csv" --k "$d/q.csv" --tokens "$d/names-both" --json
code 0
err_like "names-both: begins with a byte order mark"
check "the same names" cmp "$d/first" "$d/out"
said="qkv tokenize --jsonl"
printf '%s"the man"\r\n"a dog"\r\n' "$mark" | "$qkv" tokenize --jsonl --model "$d/bert" >"$d/out" 2>"$d/err"
got=$?
code 0
err_like "qkv: standard input: begins with a byte order mark"
check "two answers" test "$(grep -c '"ids"' "$d/out")" -eq 2

# Only at the beginning, only one, and a carriage return within a line is text.
printf 'a\rb\r\n%sc' "$mark" >"$d/within"
said="qkv tokenize - < a CR b CR LF mark c"
"$qkv" tokenize - --model "$d/gpt2" --json <"$d/within" >"$d/out" 2>"$d/err"
got=$?
code 0
no_err
out '{"ids":[65,202,66,199,172,120,124,67],"tokens":["a","č","b","Ċ","ï","»","¿","c"]}'
printf '%s' "$mark" >"$d/mark"
run tokenize - --model "$d/gpt2" --json
cp "$d/out" "$d/first"
said="qkv tokenize - < mark"
"$qkv" tokenize - --model "$d/gpt2" --json <"$d/mark" >"$d/out" 2>"$d/err"
check "an empty text" cmp "$d/first" "$d/out"
err "qkv: standard input: begins with a byte order mark, which is left out"
finish
