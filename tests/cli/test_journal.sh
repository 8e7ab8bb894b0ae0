# --journal: work of lines that was stopped goes on from what it has answered, and ends with the same bytes; what is refused.
. "${0%/*}/lib.sh"
decoder=$here/../golden/decoder
journal=$folder/journal lines=$folder/lines
i=0
while [ $i -lt 12 ]; do echo "the man saw dog $i" && i=$((i + 1)); done >"$lines"
awk 'BEGIN { for (i = 0; i < 400; i++) printf "the man "; print "" }' >"$folder/long"
cp -r "$decoder/gpt2_1" "$folder/model"
work="--model $folder/model --max-new 8"
size() { wc -c <"$journal"; }
is_same() { cmp -s "$folder/whole" "$folder/out"; }
stop() { # a line behind the others that is too long
    cat "$folder/long" >>"$lines"
    run generate --file "$lines" $work --journal "$journal"
    code 1
    err_like "journal keeps what was done: the same command goes on from there$"
    sed -i '$d' "$lines"
}

run generate --file "$lines" $work
code 0
cp "$folder/out" "$folder/whole"
run generate --file "$lines" $work --journal "$journal"
code 0
check "other bytes" is_same
check "a journal is left" test ! -e "$journal"

stop
check "not the answers before" is_same
run generate --file "$lines" $work --threads 1 --journal "$journal" --quiet
code 0
check "went on: other bytes" is_same
check "went on: a journal is left" test ! -e "$journal"

# JR01: the last record is cut short, or more of it, as a crash leaves it.
for cut in 1 7 20 300; do
    stop
    truncate -s $(($(size) - cut)) "$journal"
    run generate --file "$lines" $work --journal "$journal"
    code 0
    check "cut by $cut: other bytes" is_same
done
for left in 0 9 40; do
    stop
    truncate -s $left "$journal"
    run generate --file "$lines" $work --journal "$journal"
    code 0
    check "$left bytes left: other bytes" is_same
done

# JR02: a changed byte, a length that is none
stop
cp "$journal" "$folder/kept"
printf 'X' | dd of="$journal" bs=1 seek=$(($(size) - 3)) conv=notrunc 2>"$folder/dd"
run generate --file "$lines" $work --journal "$journal"
code 1
err_like "journal: damaged at byte [0-9]*$"
printf '\377\377\377\377\377\377\377\377' | dd of="$journal" bs=1 seek=8 conv=notrunc 2>"$folder/dd"
run generate --file "$lines" $work --journal "$journal"
code 1
err_like "journal: damaged at byte 8$"
cp "$folder/kept" "$journal"
# JR03: of another command, other lines, other files of the model
run generate --file "$lines" $work --temperature 2 --journal "$journal"
code 1
err_like "journal: of another command: qkv [^ ]* generate --file "
sed -i '3s/dog/the/' "$lines"
run generate --file "$lines" $work --journal "$journal"
code 1
err_like "journal: answer 3 is to other text than there is now$"
sed -i '3s/the 2/dog 2/' "$lines"
cp -p "$folder/model/config.json" "$folder/kept_config"
touch -d 2001-01-01 "$folder/model/config.json"
run generate --file "$lines" $work --journal "$journal"
code 1
err "qkv: $journal: the model's files have changed since"

touch -r "$folder/kept_config" "$folder/model/config.json"
mkdir "$folder/model/1_Pooling" # where modules of a sentence model have their files
echo '{}' >"$folder/model/1_Pooling/config.json"
run generate --file "$lines" $work --journal "$journal"
code 1
err "qkv: $journal: the model's files have changed since"
rm -r "$folder/model/1_Pooling"

# JR06: fewer lines than there are answers: nothing is removed.
cp "$lines" "$folder/all"
sed -i '$d' "$lines"
sed -i '$d' "$lines"
run generate --file "$lines" $work --journal "$journal"
code 1
err_like "journal: has answers to 12 pieces of the input, which now has 10: lines may be added, not taken away$"
check "fewer lines: another journal" cmp -s "$folder/kept" "$journal"
printf 'X' | dd of="$journal" bs=1 seek=$(($(size) - 3)) conv=notrunc 2>"$folder/dd"
run generate --file "$lines" $work --journal "$journal"
code 1
err_like "journal: damaged at byte [0-9]*$"
cp "$folder/kept" "$journal"
cp "$folder/all" "$lines"
run generate --file "$lines" $work --journal "$journal"
code 0
check "all lines again: other bytes" is_same
check "all lines again: a journal is left" test ! -e "$journal"
# JR04: no journal, a folder; test_pipes.sh has one that is in use
echo "a text of mine" >"$journal"
run generate --file "$lines" $work --journal "$journal"
code 1
err "qkv: $journal: is no journal"
check "a text was changed" grep -q '^a text of mine$' "$journal"
run generate --file "$lines" $work --journal "$folder"
code 1
run generate "the man" $work --journal "$journal"
code 2
err_like "^qkv generate: --journal without --file$"
rm "$journal"

# Vectors and sums.
stop_embed() { run embed --file "$lines" -o "$folder/v.npy" --journal "$journal"; }
run embed --file "$lines" -o "$folder/one.npy"
stop_embed
code 0
check "other vectors" cmp -s "$folder/one.npy" "$folder/v.npy"
run eval --text "$lines" --model "$folder/model"
cp "$folder/out" "$folder/whole"
run eval --text "$lines" --model "$folder/model" --journal "$journal"
code 0
check "another measure" is_same
# JR05, a forged answer: of 8 bytes where there were 24, with the mark of its piece and a right checksum, which is gzip's.
pair="--model $decoder/marian_1"
i=0
while [ $i -lt 3 ]; do echo "the man	a dog $i" && i=$((i + 1)); done >"$folder/pairs"
cp "$folder/pairs" "$folder/all"
echo "no pair" >>"$folder/pairs"
run eval --text "$folder/pairs" $pair --journal "$journal"
code 1
cp "$folder/all" "$folder/pairs"
printf '\10\0\0\0\0\0\0\0' >"$folder/head"
tail -c 32 "$journal" | head -c 4 >>"$folder/head"
printf '12345678' >"$folder/data"
truncate -s $(($(size) - 40)) "$journal"
{
    cat "$folder/head"
    cat "$folder/head" "$folder/data" | gzip -c | tail -c 8 | head -c 4
    cat "$folder/data"
} >>"$journal"
run eval --text "$folder/pairs" $pair --journal "$journal"
code 1
err_like "^qkv: an answer in the journal has 8 bytes$"
rm "$journal"

# Numbers of heads, and texts on which one fires: pieces of 256 lines. Line 600 has two tabs.
i=0
while [ $i -lt 599 ]; do echo "the man saw dog $i" && i=$((i + 1)); done >"$folder/texts"
cp "$folder/texts" "$folder/many"
printf 'a\tb\tc\n' >>"$folder/many"
printf 'the man\tthe dog\n' >>"$folder/many"
stop_heads() { # stop_heads OPTION...
    rm -f "$journal"
    run heads --file "$folder/many" --journal "$journal" "$@"
    code 1
    err_like "many:600: more than one tab"
    err_like "journal keeps what was done: the same command goes on from there$"
    cp "$journal" "$folder/kept"
}
goes_on() { # goes_on OPTION...: without line 600
    sed '600d' "$folder/many" >"$folder/whole_lines"
    cp "$folder/many" "$folder/all"
    run heads --file "$folder/whole_lines" "$@"
    code 0
    cp "$folder/out" "$folder/whole"
    cp "$folder/whole_lines" "$folder/many"
    run heads --file "$folder/many" --journal "$journal" "$@"
    code 0
    check "$*: other bytes" is_same
    check "$*: a journal is left" test ! -e "$journal"
    cp "$folder/all" "$folder/many"
}
for asked in "--columns entropy,confidence" "--probes --json" "--fires 1.1 --top 3" "--fires 0.0 --json"; do
    stop_heads $asked
    check "$asked: no answers" test "$(size)" -gt 3000
    goes_on $asked
    stop_heads $asked
    truncate -s $(($(size) - 100)) "$journal"
    goes_on $asked
done
stop_heads --sort entropy
run heads --file "$folder/many" --sort confidence --journal "$journal"
code 1
err_like "journal: of another command: "
cp "$here/../../models/default/grammar.txt" "$folder/grammar.txt"
stop_heads --grammar "$folder/grammar.txt"
touch -d 2001-01-01 "$folder/grammar.txt"
run heads --file "$folder/many" --grammar "$folder/grammar.txt" --journal "$journal"
code 1
err "qkv: $journal: the model's files or $folder/grammar.txt have changed since"

# JR05, forged answers: the first one of the journal, with other bytes and a right checksum.
int() { # int N...: each as 8 bytes, at most 65,535
    for n in "$@"; do
        printf "\\$(printf %o $((n & 255)))\\$(printf %o $((n / 256)))\\0\\0\\0\\0\\0\\0"
    done
}
forge() { # forge: the first answer is $folder/data
    at=8
    for record in 1 2; do at=$((at + 16 + $(od -An -t u8 -j $at -N 8 "$folder/kept"))); done
    int $(wc -c <"$folder/data") >"$folder/head"
    tail -c +$((at + 9)) "$folder/kept" | head -c 4 >>"$folder/head"
    head -c $at "$folder/kept" >"$journal"
    {
        cat "$folder/head"
        cat "$folder/head" "$folder/data" | gzip -c | tail -c 8 | head -c 4
        cat "$folder/data"
    } >>"$journal"
    cp "$journal" "$folder/forged"
}
refused() { # refused MESSAGE OPTION...: and the journal stays
    message=$1
    shift
    forge
    run heads --file "$folder/many" --journal "$journal" "$@"
    code 1
    err_like "^qkv: $message in the journal \(has\|have\) $(($(wc -c <"$folder/data") - ${less:-0})) bytes$"
    check "$message: another journal" cmp -s "$folder/forged" "$journal"
}
stop_heads --sort entropy
printf 'short' >"$folder/data"
refused "an answer" --sort entropy
int 1 0 0 0 0 >"$folder/data"
less=40 refused "numbers of heads" --sort entropy
printf '\377\377\377\377\377\377\377\377' >"$folder/data" # -1 texts
int 0 0 0 >>"$folder/data"
refused "an answer" --sort entropy
int 1 2 0 0 0 >"$folder/data" # more texts cut than there are
refused "an answer" --sort entropy
int 1 0 0 0 24 7 >"$folder/data" # a record longer than the answer
refused "an answer" --sort entropy
int 1 0 0 0 8 7 7 >"$folder/data" # more than one record
less=48 refused "numbers of heads" --sort entropy
int 0 0 0 0 7 >"$folder/data" # more than no record
refused "an answer" --sort entropy
stop_heads --fires 1.1
fire() { # fire LINE QUERY KEY QUERIES KEYS: with one id
    int 1 0 1 0 68 "$@" 0 0 0 3 >"$folder/data"
}
fire 1 0 0 1 1
forge
run heads --file "$folder/many" --journal "$journal" --fires 1.1
code 1
err_like "many:600: more than one tab"
for odd in "0 0 0 1 1" "1 1 0 1 1" "1 0 1 1 1" "1 0 0 2 2" "1 0 0 1 0" "1 0 0 0 1"; do
    fire $odd
    less=44 refused "a text" --fires 1.1
done
int 1 0 1 0 8 7 >"$folder/data"
less=40 refused "a text" --fires 1.1
rm "$journal"
run heads "the man" --journal "$journal"
code 2
err_like "^qkv heads: --journal goes with --file$"
run embed "a text" --journal "$journal"
code 2

# Eval of a model that fills blanks: pieces of 32 pairs. Its tokenizer has a word more than its embedding has rows.
cp -r "$model" "$folder/encoder"
echo zzz >>"$folder/encoder/vocab.txt"
words=$(sed -n '/^[a-z]*$/p' "$model/vocab.txt" | head -n 6 | tr '\n' ' ')
awk -v words="$words" 'BEGIN {
    n = split(words, word, " ")
    for (i = 0; i < 100; i++) print word[i % n + 1], word[i * i % n + 1] (i % 3 ? "" : "\t" word[i * 5 % n + 1])
}' >"$folder/texts"
filling() { run eval --text "$folder/texts" --model "$folder/encoder" --json "$@"; } # filling OPTION...
stop_filling() { # in the third piece
    rm -f "$journal"
    sed -i '70s/$/ zzz/' "$folder/texts"
    filling --journal "$journal"
    code 1
    err_like "^qkv: a text has the token [0-9]*, and the model has rows 0 to [0-9]*$"
    sed -i '70s/ zzz//' "$folder/texts"
    cp "$journal" "$folder/kept"
}
filling
code 0
cp "$folder/out" "$folder/whole"
stop_filling
for cut in 0 1 500; do
    truncate -s $(($(wc -c <"$folder/kept") - cut)) "$journal"
    filling --journal "$journal" --threads 1
    code 0
    check "eval of an encoder, cut by $cut: other bytes" is_same
    check "eval of an encoder: a journal is left" test ! -e "$journal"
    cp "$folder/kept" "$journal"
done
sed -i '40s/$/ /' "$folder/texts"
filling --journal "$journal"
code 1
err_like "journal: answer 2 is to other text than there is now$"
sed -i '40s/ $//' "$folder/texts"
printf '123456789' >"$folder/data"
forge
filling --journal "$journal"
code 1
err_like "^qkv: 9 bytes are no answer to a piece of a text$"
int 33 0 0 >"$folder/data"
forge
filling --journal "$journal"
code 1
err_like "^qkv: 24 bytes are no answer to a piece of a text$"
run eval --grammar "$folder/grammar.txt" --journal "$journal"
code 2
err_like "^qkv eval: --journal without --text$"
finish
