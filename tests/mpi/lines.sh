# Lines that ranks share by mpirun, of embed, heads, generate, translate and eval: the bytes of one process; a line that fails, a rank
# that cannot begin, a rank that is killed. Usage: lines.sh QKV FOLDER MODELS MPIEXEC FLAGS...
set -u
qkv=$1 folder=$2 models=$3
shift 3
. "${0%/*}/lib.sh"
mpirun=$*
lines() { # lines N: sentences of 1 to 9 words, and an empty line
    awk -v n="$1" 'BEGIN {
        split("the man a woman reads book dog old sees", word, " ")
        for (i = 1; i <= n; i++) {
            text = ""
            for (k = 0; i != 5 && k < i * 7 % 9 + 1; k++) text = text (k ? " " : "") word[(i * 5 + k * k) % 9 + 1]
            print text
        } }'
}

# same NAME COMMAND...: on $counts ranks; standard output, and standard error without what mpirun says
same() {
    name=$1
    shift
    "$qkv" "$@" >"$folder/one" 2>"$folder/one_err" </dev/null
    code=$?
    grep '^qkv[ :]' "$folder/one_err" >"$folder/one_said"
    for ranks in $counts; do
        $mpirun $ranks "$qkv" "$@" >"$folder/out" 2>"$folder/err" </dev/null
        check "$name, $ranks ranks: not $code" is $? -eq $code
        check "$name, $ranks ranks: other bytes" cmp -s "$folder/one" "$folder/out"
        grep '^qkv[ :]' "$folder/err" >"$folder/said"
        check "$name, $ranks ranks: other messages" cmp -s "$folder/one_said" "$folder/said"
    done
}

counts='1 2 3 4'
lines 3000 >"$folder/texts"
lines 40 >"$folder/prompts"
paste "$folder/prompts" "$folder/prompts" | grep '[a-z].*	.*[a-z]' >"$folder/pairs"
{ lines 900 | grep .; printf 'a\tb\tc\n'; lines 9; } >"$folder/tabs"
for ending in csv json; do
    "$qkv" heads --file "$folder/texts" -o "$folder/heads.$ending" --quiet 2>"$folder/err" || failed=1
    $mpirun 3 "$qkv" heads --file - -o "$folder/shared.$ending" --quiet <"$folder/texts" >"$folder/out" 2>"$folder/err"
    check "heads, $ending: exit $?" is $? -eq 0
    check "heads: another $ending" cmp -s "$folder/heads.$ending" "$folder/shared.$ending"
done
for ending in npy json; do
    "$qkv" embed --file "$folder/texts" -o "$folder/one.$ending" --quiet 2>"$folder/err" || failed=1
    for ranks in 2 3; do
        $mpirun $ranks "$qkv" embed --file "$folder/texts" -o "$folder/of.$ending" --quiet >"$folder/out" 2>"$folder/err"
        check "embed, $ranks ranks: exit $?" is $? -eq 0
        check "embed, $ranks ranks: another $ending" cmp -s "$folder/one.$ending" "$folder/of.$ending"
    done
done
same similar embed --file "$folder/prompts" --similar "the old man" --normalize --pooling max
same generate generate --file "$folder/prompts" --model "$models/gpt2_1" --max-new 12
same drawn generate --file "$folder/prompts" --model "$models/gpt2_1" --max-new 12 --sample --seed 7 --sequences 2
same translate translate --file "$folder/prompts" --model "$models/marian_1" --max-new 12 --align --truncate
same eval eval --text "$folder/prompts" --model "$models/gpt2_1"
# An encoder: 5 pieces and more, of lines with a tab among them, whose second halves are also put to other lines.
{ lines 99; awk '{ print $0 "\t" $2 " " $1 }' "$folder/prompts" | grep '^[a-z]'; } >"$folder/halves"
counts='1 2 3 5'
same "eval of an encoder" eval --text "$folder/halves" --json
counts='1 3'
same "a table" eval --text "$folder/halves"
same "no text" eval --text "$folder/none"
same "an empty text" eval --text /dev/null
counts=3
same "a grammar" eval --grammar "${0%/*}/../../models/default/grammar.txt" --json
counts='1 3'
same heads heads --file "$folder/prompts" --json
same "heads with probes" heads --file "$folder/prompts" --probes --sort entropy
same "heads of a decoder" heads --file "$folder/prompts" --model "$models/gpt2_1"
same "cross heads" heads --file "$folder/pairs" --model "$models/marian_1" --cross --truncate --json
same fires heads --file "$folder/prompts" --fires 1.1 --top 5
same "cross fires" heads --file "$folder/pairs" --model "$models/marian_1" --cross --truncate --fires 0.1 --json
same "heads of no text" heads --file /dev/null
same "heads of no file" heads --file "$folder/none"
same "heads of two tabs" heads --file "$folder/tabs"
same "no such head" heads --file "$folder/prompts" --fires 90.1
counts='1 2 3 4'
same "no file" generate --file "$folder/none" --model "$models/gpt2_1"
same "no model" embed --file "$folder/prompts" --model "$folder/none"

# Line 21 is too long for the model: what stands before it is written, and it is named.
{ lines 20; lines 400 | tr '\n' ' '; echo; lines 9; } >"$folder/long"
same "a long line" translate --file "$folder/long" --model "$models/marian_1" --max-new 12
check "a long line: not named" grep -q '/long:21: ' "$folder/said"
check "a long line: not 20 answers" is "$(wc -l <"$folder/out")" -eq 20

# A model that one rank does not have: the error of all, and no file.
mkdir "$folder/a" "$folder/b"
cp -r "$models/gpt2_1" "$folder/a/model"
where='cd "$0/$(test "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" -eq 1 && echo b || echo a)" && exec "$@"'
$mpirun 3 sh -c "$where" "$folder" "$qkv" generate --file "$folder/prompts" --model model >"$folder/out" 2>"$folder/err"
check "a model of some: exit 0" is $? -ne 0
check "a model of some: not said once" is "$(grep -c '^qkv: .*model.*(rank 1)$' "$folder/err")" -eq 1
check "a model of some: something was written" test ! -s "$folder/out"

# A model or a tokenizer of the same name and shape that is another one on one rank, and other options: no answers of both.
cp -r "$models/gpt2_1/." "$folder/b/model"
other() { # other NAME MESSAGE COMMAND...
    name=$1 message=$2
    shift 2
    $mpirun 3 sh -c "$where" "$folder" "$qkv" "$@" >"$folder/out" 2>"$folder/err"
    check "$name: exit 0" is $? -ne 0
    check "$name: not said once" is "$(grep -c "^qkv: rank 1 has another $message" "$folder/err")" -eq 1
    check "$name: something was written" test ! -s "$folder/out"
}
$mpirun 3 sh -c "$where" "$folder" "$qkv" eval --text "$folder/prompts" --model model >"$folder/out" 2>"$folder/err"
check "the same model in two folders: exit $?" is $? -eq 0
sed -i '8{h;d};9{G}' "$folder/b/model/vocab.txt"
other "another tokenizer" 'file of the tokenizer than rank 0: vocab.txt (.*), not vocab.txt (' eval --text "$folder/prompts" --model model
cp "$models/gpt2_1/vocab.txt" "$folder/b/model"
size=$(wc -c <"$folder/b/model/model.safetensors")
head -c 4096 /dev/zero | dd of="$folder/b/model/model.safetensors" bs=1 seek=$((size / 2)) conv=notrunc 2>"$folder/err"
for command in eval generate heads embed; do
    case $command in eval) file=--text ;; *) file=--file ;; esac
    other "$command of another model" 'model than rank 0: model (.*), not model (' $command $file "$folder/prompts" --model model
done
# What the other files of a model say: how a text is written, and what stands before one that becomes a vector.
cp "$models/gpt2_1/model.safetensors" "$folder/b/model"
echo '{"repetition_penalty": 3.0}' >"$folder/b/model/generation_config.json"
other "another generation_config.json" 'model than rank 0: model (.*), not model (' generate --file "$folder/prompts" --model model
rm "$folder/b/model/generation_config.json"
# What the tokenizer's own files say: what stands around a text, and around a pair.
echo '{"add_bos_token": true}' >"$folder/b/model/tokenizer_config.json"
for command in eval generate heads embed; do
    case $command in eval) file=--text ;; *) file=--file ;; esac
    other "$command with another add_bos_token" \
        'file of the tokenizer than rank 0: tokenizer_config.json (.*), not config.json (' \
        $command $file "$folder/prompts" --model model
done
$mpirun 3 sh -c "$where" "$folder" "$qkv" train --text "$folder/prompts" --from model --out "$folder/none" --slices 3 --steps 1 \
    >"$folder/out" 2>"$folder/err"
check "training with another add_bos_token: exit 0" is $? -ne 0
check "training with another add_bos_token: not said" grep -q '^qkv: rank 1 has other files of the tokenizer than rank 0$' "$folder/err"
check "training with another add_bos_token: a folder" test ! -e "$folder/none"
rm "$folder/b/model/tokenizer_config.json"
for where_to in a b; do
    rm -r "$folder/$where_to/model"
    cp -r "${0%/*}/../golden/sentence/bert" "$folder/$where_to/model"
done
sed -i 's/"query: "/"other: "/' "$folder/b/model/config_sentence_transformers.json"
other "another prompt" 'model than rank 0: model (.*), not model (' embed --file "$folder/prompts" --model model
cp "$folder/a/model/config_sentence_transformers.json" "$folder/b/model"
for change in '"type_id": *1/"type_id": 0' '"normalized": *true/"normalized": false'; do # of a pair; of an added token
    sed "s/$change/" "$folder/a/model/tokenizer.json" >"$folder/b/model/tokenizer.json"
    check "no $change" sh -c '! cmp -s "$0/a/model/tokenizer.json" "$0/b/model/tokenizer.json"' "$folder"
    for command in heads embed; do
        other "$command with another $change" 'file of the tokenizer than rank 0: tokenizer.json (.*), not tokenizer.json (' \
            $command --file "$folder/prompts" --model model
    done
done
for options in "eval --text $folder/prompts --stride" "generate --file $folder/prompts --max-new" "heads --file $folder/prompts --top" \
    "embed --file $folder/prompts --similar the --top"; do
    $mpirun 3 sh -c 'exec "$@" $((3 + (${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} == 1)))' sh "$qkv" $options \
        >"$folder/out" 2>"$folder/err"
    check "$options: exit 0" is $? -ne 0
    check "$options: not said once" is "$(grep -c "^qkv: rank 1 has another command than rank 0: qkv .* 4, not qkv .* 3\$" "$folder/err")" -eq 1
    check "$options: something was written" test ! -s "$folder/out"
done

# kill -9 of a rank: the job ends, and no file is there.
i=0
while [ $i -lt 60 ]; do cat "$folder/texts" && i=$((i + 1)); done >"$folder/many"
$mpirun 3 sh -c 'echo $$ >>"$0" && exec "$@"' "$folder/ranks" "$qkv" embed --file "$folder/many" \
    -o "$folder/killed.npy" >"$folder/out" 2>"$folder/err" &
until_of $! has_computed "$folder/ranks" 3 20
victim=$(tail -n 1 "$folder/ranks")
check "no rank to kill" kill -9 "$victim"
wait $job
check "killed: exit 0" is $? -ne 0
check "killed: a file" test ! -e "$folder/killed.npy"

# killed BYTES COMMAND...: on 3 ranks, one of which is killed once the journal has so many bytes
killed() {
    bytes=$1
    shift
    rm -f "$folder/ranks"
    $mpirun 3 sh -c 'echo $$ >>"$0" && exec "$@"' "$folder/ranks" "$qkv" "$@" --journal "$folder/journal" \
        >"$folder/out" 2>"$folder/err" &
    until_of $! has_bytes "$folder/journal" "$bytes"
    kill -9 "$(tail -n 1 "$folder/ranks")"
    wait $job
}
# ends NAME COMMAND...: 2 ranks go on from there to $folder/whole, and leave no journal
ends() {
    name=$1
    shift
    check "$name killed: no journal" test -s "$folder/journal"
    $mpirun 2 "$qkv" "$@" --journal "$folder/journal" >"$folder/out" 2>"$folder/err"
    check "$name went on: exit $?" is $? -eq 0
    check "$name went on: other bytes" cmp -s "$folder/whole" "$folder/out"
    check "$name went on: a journal is left" test ! -e "$folder/journal"
}

# With a journal the rest is done by another number of ranks, and the vectors are those of one process.
head -n 15000 "$folder/many" >"$folder/texts"
"$qkv" embed --file "$folder/texts" -o "$folder/whole.npy" --quiet 2>"$folder/err" || failed=1
killed 100000 embed --file "$folder/texts" -o "$folder/killed.npy"
check "killed: no journal" test -s "$folder/journal"
$mpirun 2 "$qkv" embed --file "$folder/texts" -o "$folder/killed.npy" --journal "$folder/journal" --quiet \
    >"$folder/out" 2>"$folder/err"
check "went on: exit $?" is $? -eq 0
check "went on: other vectors" cmp -s "$folder/whole.npy" "$folder/killed.npy"
check "went on: a journal is left" test ! -e "$folder/journal"

# Heads, too.
"$qkv" heads --file "$folder/texts" --json --quiet >"$folder/whole" 2>"$folder/err" || failed=1
killed 100000 heads --file "$folder/texts" --json
ends heads heads --file "$folder/texts" --json --quiet

# And eval of an encoder.
lines 1500 >"$folder/texts"
"$qkv" eval --text "$folder/texts" --json >"$folder/whole" 2>"$folder/err" || failed=1
killed 20000 eval --text "$folder/texts" --json
ends eval eval --text "$folder/texts" --json
exit $failed
