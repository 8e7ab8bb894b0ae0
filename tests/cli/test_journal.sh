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

# The last record is cut short, or more of it, as a crash leaves it.
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
run generate --file "$lines" $work --temperature 2 --journal "$journal"
code 1
err_like "journal: of another command: qkv [^ ]* generate --file "
sed -i '3s/dog/the/' "$lines"
run generate --file "$lines" $work --journal "$journal"
code 1
err_like "journal: answer 3 is to other text than there is now$"
sed -i '3s/the 2/dog 2/' "$lines"
touch -d 2001-01-01 "$folder/model/config.json"
run generate --file "$lines" $work --journal "$journal"
code 1
err "qkv: $journal: the model's files have changed since"
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
# A forged answer: of 8 bytes where there were 16, with the mark of its piece and a right checksum, which is gzip's.
pair="--model $decoder/marian_1"
i=0
while [ $i -lt 3 ]; do echo "the man	a dog $i" && i=$((i + 1)); done >"$folder/pairs"
cp "$folder/pairs" "$folder/all"
echo "no pair" >>"$folder/pairs"
run eval --text "$folder/pairs" $pair --journal "$journal"
code 1
cp "$folder/all" "$folder/pairs"
printf '\10\0\0\0\0\0\0\0' >"$folder/head"
tail -c 24 "$journal" | head -c 4 >>"$folder/head"
printf '12345678' >"$folder/data"
truncate -s $(($(size) - 32)) "$journal"
{
    cat "$folder/head"
    cat "$folder/head" "$folder/data" | gzip -c | tail -c 8 | head -c 4
    cat "$folder/data"
} >>"$journal"
run eval --text "$folder/pairs" $pair --journal "$journal"
code 1
err_like "^qkv: an answer in the journal has 8 bytes$"
rm "$journal"
run eval --text "$lines" --journal "$journal"
code 2
err_like "^qkv eval: --journal is of lines"
run embed "a text" --journal "$journal"
code 2
finish
