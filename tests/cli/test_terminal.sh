# What reaches a terminal: every command, with hostile texts, tokens, names of tensors, keys and paths. Nothing
# but lines, tabs and the tool's own colours may steer it. In JSON the same characters are \uXXXX everywhere.
. ./lib.sh
: "${ON_TERMINAL:?the program that runs a command on a terminal}"
d=$folder/d
mkdir "$d"
# DEL, CSI in one character, a right-to-left override, a line separator, a title for the window, a tag
evil=$(printf 'x\177\302\2331m\342\200\256\342\200\250\033]0;y\007\363\240\201\201z')
export TERM=xterm-256color
unset NO_COLOR

# Valid UTF-8 without controls, but for colours and the line of progress, which are the tool's.
harmless() {
    sed 's/\x1b\[[0-9;]*m//g; s/\r//g; s/\x1b\[K//g' "$1" | tr -d '\n\t' >"$folder/plain"
    iconv -f UTF-8 -t UTF-16 "$folder/plain" >/dev/null 2>&1 || return 1
    ! LC_ALL=C grep -qa "$(printf '[\001-\037\177]\\|\302[\200-\237]\\|\342\200[\250-\256]\\|\342\201[\246-\251]\\|\363\240')" "$folder/plain"
}
# shown CODE ARGUMENTS...: on a terminal
shown() {
    wanted=$1
    shift
    said="qkv $*, on a terminal"
    "$ON_TERMINAL" "$qkv" "$@" <"${input:-/dev/null}" >"$folder/out" 2>"$folder/err"
    got=$?
    code "$wanted"
    check "a terminal gets what could steer it" harmless "$folder/out"
    no_err
}
# json CODE ARGUMENTS...: on a terminal and in a file, which get the same
json() {
    wanted=$1
    shift
    shown "$wanted" "$@"
    said="qkv $*"
    "$qkv" "$@" <"${input:-/dev/null}" >"$folder/piped" 2>/dev/null
    check "JSON holds what could steer a terminal" harmless "$folder/piped"
    for file in out piped; do
        sed 's/^.*\x1b\[K//; s/"seconds":[^,}]*//' "$folder/$file" | grep '^{' >"$folder/$file.objects"
    done
    check "a terminal gets another JSON" cmp -s "$folder/out.objects" "$folder/piped.objects"
}
# says TEXT...: what came holds an escape, so that the case is one
says() {
    check "no '$1' in it" grep -q -F -e "$1" "$folder/out"
}

# ---- Models --------------------------------------------------------------------------------------

bert=$d/$evil.bert # in its vocabulary, too, and in the name of a tensor
mkdir "$bert"
cp "$model/config.json" "$bert"
sed "/^\[/!s/\$/$evil/" "$model/vocab.txt" >"$bert/vocab.txt"
n=$(od -An -tu8 -N8 "$model/model.safetensors" | tr -d ' ')
{
    printf '{"%s":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},' 'ev\u0007\u009b\u202eil'
    tail -c +10 "$model/model.safetensors" | head -c $((n - 1))
} >"$d/header"
while [ $(($(wc -c <"$d/header") % 8)) -ne 0 ]; do printf ' ' >>"$d/header"; done
m=$(wc -c <"$d/header")
{
    printf "\\$(printf %o $((m % 256)))\\$(printf %o $((m / 256)))\0\0\0\0\0\0"
    cat "$d/header"
    tail -c +$((n + 9)) "$model/model.safetensors"
} >"$bert/model.safetensors"
gpt=$d/$evil.gpt # byte-level BPE: its tokens have the bytes of the text
pairs=$d/$evil.pairs
cp -r ../../models/writer "$gpt"
cp -r ../../models/translator "$pairs"

# ---- Texts through models ------------------------------------------------------------------------

shown 0 tokenize "the $evil" --model "$gpt"
says '\x7f'
json 0 tokenize "the $evil" --model "$gpt" --json
shown 0 tokenize "[MASK] [MASK]" --model "$bert" -v
says 'tensor: ev\x07\xc2\x9b'
shown 0 fill "[MASK] $evil" --model "$bert" --quiet
says '\u{9b}'
json 0 fill "[MASK] $evil" --model "$bert" --json --quiet
says '\u007F\u009B1m\u202E\u2028'
says '\uDB40\uDC41'
shown 0 next "$evil" "the $evil" --model "$bert" --quiet
shown 2 fill "$evil" --model "$bert" --quiet
for command in look heads map explain; do
    shown 0 $command "[MASK] $evil" --model "$bert" --quiet
    says '\xc2\x9b'
    json 0 $command "[MASK] $evil" --model "$bert" --quiet --json
    shown 1 $command "[MASK] $evil" --model "$d/none$evil" --quiet
done
shown 0 look "the $evil man" --model "$gpt"
says '\x7f'
json 0 look "the $evil man" --model "$gpt" --json
shown 0 look "the $evil man" --model "$gpt" --head 0.0 --what-if temperature=2 --what-if drop=0
for file in "$d/$evil.json" "$d/$evil.csv" "$d/$evil.html" "$d/$evil.png"; do
    shown 0 look "the $evil man" --model "$gpt" --head 0.0 -o "$file"
    says 'wrote '
    says '\u{9b}'
done
check "the file of JSON holds what could steer a terminal" harmless "$d/$evil.json"
shown 0 look "the $evil man the man the man" --slide 3 --model "$gpt"
json 0 look "the $evil man the man the man" --slide 3 --model "$gpt" --json
shown 0 heads "the $evil man" --model "$gpt"
shown 0 map "the $evil man" --model "$gpt" --head 0.0 --query 1
json 0 map "the $evil man" --model "$gpt" --head 0.0 --json
shown 0 map "the $evil man" --model "$gpt" --head 0.0 -o "$d/$evil.svg"
shown 0 explain "the $evil man" --model "$gpt" --head 0.0 --query 1
shown 2 explain "the man" --model "$gpt" --query "$evil"
shown 0 explain --shuffle "[MASK] $evil" --model "$bert" --quiet
shown 0 look "the $evil dog" --cross --target "$evil" --align --model "$pairs"
json 0 look "the $evil dog" --cross --target "$evil" --align --model "$pairs" --json
shown 0 look "the $evil dog" --cross --target "$evil" --head 0.0 --model "$pairs"
shown 0 heads "the $evil dog" --decoder --target "$evil" --model "$pairs"
shown 0 map "the $evil dog" --cross --target "$evil" --head 0.0 --model "$pairs"
input=$d/lines
printf '"the %s"\n"not a pair"\nbroken %s\n' "$evil" "$evil" >"$input"
json 1 look --jsonl --model "$gpt"
says '"error"'
json 1 tokenize --jsonl --model "$gpt"
json 1 next --jsonl --model "$bert" --quiet
unset input

# ---- Texts that models write: escaped on a terminal, bytes as they are elsewhere -----------------

shown 0 generate "$evil" --model "$gpt" --max-new 8 --show-prompt
says '\u{9b}1m'
run generate "$evil" --model "$gpt" --max-new 8 --show-prompt
check "a file does not get the bytes" grep -q -F -e "$evil" "$folder/out"
json 0 generate "$evil" --model "$gpt" --max-new 8 --seed 7 --temperature 4 --json
shown 0 generate "the" --model "$gpt" --max-new 60 --temperature 50 --top-k 1000 --seed 3
says '\u{'
shown 0 generate "the" --model "$gpt" --max-new 60 --temperature 50 --top-k 1000 --seed 3 --sequences 3
shown 0 translate "the $evil dog" --model "$pairs" --align
json 0 translate "the $evil dog" --model "$pairs" --align --json
printf 'the %s\n' "$evil" >"$d/$evil.txt"
shown 0 translate --file "$d/$evil.txt" --model "$pairs"
shown 1 translate --file "$d/none$evil" --model "$pairs"

# ---- Tables, vectors, arrays ---------------------------------------------------------------------

printf 'key%s,value %s\n%s,1\nthe%s,2\nman,3\n' "$evil" "$evil" "$evil" "$evil" >"$d/t$evil.csv"
shown 0 lookup "$d/t$evil.csv" "$evil" the --model "$gpt"
says '\u{9b}1m'
shown 0 lookup "$d/t$evil.csv" "$evil" --hard --model "$gpt"
shown 0 lookup "$d/t$evil.csv" "$evil" --sentence --model "$bert"
json 0 lookup "$d/t$evil.csv" "$evil" --model "$gpt" --json
says '"query":"x\u007F\u009B1m\u202E\u2028\u001B]0;y\u0007\uDB40\uDC41z"'
shown 1 lookup "$d/none$evil" "$evil" --model "$gpt"
printf '%s\n' "$evil" >"$d/broken.csv"
shown 1 lookup "$d/broken.csv" "the" --model "$gpt"
shown 0 embed "$evil" "the man" "a dog" --model "$bert" --quiet
says '\u{9b}1m'
shown 0 embed "$evil" "the man" --similar "$evil" --model "$bert" --quiet
json 0 embed "$evil" "the man" --model "$bert" --json --quiet
says '"text":"x\u007F\u009B1m\u202E\u2028\u001B]0;y\u0007\uDB40\uDC41z"'
json 0 embed "the man" "$evil" --similar "$evil" --model "$bert" --json --quiet
shown 1 embed --file "$d/none$evil" --model "$bert" --quiet
run embed "the" "man" "$evil" --model "$bert" --quiet -o "$d/q$evil.npy"
code 0
printf '%s\nb\302\233\nc\n' "$evil" >"$d/names"
shown 0 look --q "$d/q$evil.npy" --k "$d/q$evil.npy" --tokens "$d/names"
says '\u{9b}1m'
json 0 look --q "$d/q$evil.npy" --k "$d/q$evil.npy" --tokens "$d/names" --json
says '\u009B1m'
shown 0 look --q "$d/q$evil.npy" --k "$d/q$evil.npy" --tokens "$d/names" -o "$d/w$evil.csv"
shown 1 look --q "$d/q$evil.npy" --k "$d/q$evil.npy" --tokens "$d/t$evil.csv.none"
shown 0 map --q "$d/q$evil.npy" --k "$d/q$evil.npy"
shown 0 explain --q "$d/q$evil.npy" --k "$d/q$evil.npy" --v "$d/q$evil.npy"
shown 2 explain --q "$d/q$evil.npy" --k "$d/q$evil.npy" --v "$d/q$evil.npy" --query "$evil"
run attend --q data/q.npy --k data/q.npy --v data/q.npy -o "$d/o$evil.npz:a$evil"
code 0
shown 0 info "$d/o$evil.npz"
json 0 info "$d/o$evil.npz" --json
shown 0 info "$d/o$evil.npz:a$evil"
shown 1 info "$d/o$evil.npz:b$evil"
run embed "the" "man" "$evil" --model "$bert" --quiet -o "$d/v$evil.npy"
printf '\223NUMPY\001\000\166\000%-117s\n\001\001\001\001\001\001\001\001\001' \
    "{'descr': '|b1', 'fortran_order': False, 'shape': (3, 3), }" >"$d/m$evil.npy"
for stats in "$d/s$evil.json" /dev/stdout; do
    shown 0 attend --q "$d/v$evil.npy" --k "$d/v$evil.npy" --v "$d/v$evil.npy" --mask "$d/m$evil.npy" \
        -o "$d/o.npy" --stats "$stats"
done
says '\u009B1m'
check "statistics hold what could steer a terminal" harmless "$d/s$evil.json"
shown 1 attend --q "$d/none$evil" --k "$d/v$evil.npy" --v "$d/v$evil.npy" -o "$d/o.npy"
shown 1 attend --q "$d/v$evil.npy" --k "$d/v$evil.npy" --v "$d/v$evil.npy" -o "$d/none/$evil.npy"

# ---- Files of models -----------------------------------------------------------------------------

shown 0 info "$bert" -v
says 'ev\x07\xc2\x9b'
json 0 info "$bert" --json
shown 0 info "$bert/model.safetensors"
json 0 info "$bert/model.safetensors" --json
shown 1 info "$bert/model.safetensors" --strict
json 1 info "$bert/model.safetensors" --strict --json
shown 1 info "$d/none$evil"
printf '{"model_type": "%s"}' 'ev\u009b\u202eil' >"$d/config.json"
shown 1 info "$d"

# ---- Training, evaluation, the rest --------------------------------------------------------------

printf 'one %s\nthe man saw the dog\na man\n' "$evil" >"$d/text"
shown 0 train --text "$d/text" --out "$d/t$evil" --layers 1 --heads 1 --hidden 8 --vocab 300 --steps 2 --batch 2
says '\u{9b}1m'
shown 0 eval --text "$d/text" --model "$d/t$evil"
json 0 eval --text "$d/text" --model "$d/t$evil" --json
shown 0 eval --text "$d/text" --model "$gpt"
shown 1 train --text "$d/none$evil" --out "$d/u"
shown 1 train --text "$d/text" --eval "$d/none$evil" --out "$d/u"
grammar=$here/../../models/default/grammar.txt
printf 'Anna saw %s the cat in the garden. It was there alone.\n' "$evil" >"$d/said$evil"
shown 0 eval --grammar "$grammar" --check "$d/said$evil"
says '\u{9b}1m'
json 0 eval --grammar "$grammar" --check "$d/said$evil" --json
says '\u009B1m'
sed "s/^noun dog = animal/noun dog$evil = animal/; s/dog puppy/do${evil}g puppy/" "$grammar" >"$d/g$evil"
"$ON_TERMINAL" "$qkv" eval --grammar "$d/g$evil" >"$folder/out" 2>&1
check "a terminal gets what could steer it" harmless "$folder/out"
shown 1 bench --compare "$d/none$evil" --from "$d/none$evil"
printf '{"isa": "%s", "threads": 1, "cases": []}' "$evil" | tr -d '\177\033\007' >"$d/b$evil"
shown 1 bench --compare "$d/b$evil" --from "$d/b$evil"
shown 2 generate --file "$d/none" --journal "$d/journal"
check "a journal on a terminal: not said" grep -q -- '--journal prints to a file or a pipe' "$folder/out"
shown 2 check --isa "$evil"
shown 2 help "$evil"
shown 2 "$evil"
for command in look fill next heads map explain lookup embed generate translate attend train eval bench check info tokenize help; do
    shown 2 $command "--$evil"
    shown 2 $command "--quiet=$evil"
done
QKV_MODEL=$d/none$evil shown 1 look "the man"
QKV_ISA=$evil shown 2 look "the man"
QKV_NUM_THREADS=$evil shown 2 look "the man"
# What takes longer than a second tells its time; then this has been seen.
said="qkv eval, on a terminal"
seq 4000 | sed 's/.*/The man saw the dog near the old house when the woman opened the door.	The dog ran away from him./' >"$d/long"
QKV_NUM_THREADS=1 "$ON_TERMINAL" "$qkv" eval --text "$d/long" </dev/null >"$folder/out" 2>"$folder/err" &
process=$!
until grep -q 'measuring ... [1-9]' "$folder/out" || ! kill -0 $process 2>/dev/null; do sleep 0.1; done
kill -TERM $process
wait $process
got=$?
check "no time" grep -q 'measuring ... [1-9]' "$folder/out"
code 143
finish
