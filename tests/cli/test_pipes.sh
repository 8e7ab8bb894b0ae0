# Texts from pipes: what is read once, from its beginning to its end, may be a pipe with a writer. A pipe without a
# writer, a device and a folder are refused at once, and so is a pipe where weights or arrays are expected. No run waits.
. ./lib.sh
printf 'the man saw a key .\tit was a key .\n' >"$folder/text"
printf 'man,1\nkey,2\n' >"$folder/table"
printf 'a\nb\nc\nd\ne\n' >"$folder/names"
cp "$here/../../models/default/grammar.txt" "$folder/grammar"
{ # an array [5,8] of zeros
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 8), }"
    head -c 160 /dev/zero
} >"$folder/q.npy"
mkfifo "$folder/pipe"

# reader NAME PATH: the command that reads the text NAME, from a path
reader() {
    m="--model $model --quiet"
    small="--out $folder/trained --layers 1 --heads 2 --hidden 16 --len 12 --batch 2 --steps 1 --threads 1 --quiet"
    arrays="--q $folder/q.npy --k $folder/q.npy"
    case $1 in
    look) echo "text look --file $2 $m" ;;
    heads) echo "text heads --file $2 $m" ;;
    embed) echo "text embed --file $2 --json $m" ;;
    eval) echo "text eval --text $2 $m" ;;
    lookup) echo "table lookup $2 key --model $model" ;;
    judge) echo "text eval --check $2 --grammar $folder/grammar" ;;
    judging) echo "grammar eval --check $folder/text --grammar $2" ;;
    tokens) echo "names look $arrays --tokens $2" ;;
    train) echo "text train --text $2 --vocab 200 $small" ;;
    esac
}

for name in look heads embed eval lookup judge judging tokens train; do
    set -- $(reader $name "$folder/pipe")
    source=$1
    set -- $(reader $name "$folder/$source")
    shift
    run "$@"
    code 0
    cp "$folder/out" "$folder/as_file"
    rm -rf "$folder/trained"

    # A writer that takes its time: the same answer. It has the pipe before the tool opens it, and we read from it, too,
    # so that it may write at any time.
    set -- $(reader $name "$folder/pipe")
    shift
    exec 5<>"$folder/pipe" 3>"$folder/pipe" 4<"$folder/pipe" 5>&-
    {
        sleep 0.3
        cat "$folder/$source"
    } >&3 &
    exec 3>&-
    run "$@"
    code 0
    exec 4<&-
    check "another answer from a pipe" cmp -s "$folder/as_file" "$folder/out"
    wait
    rm -rf "$folder/trained"

    run "$@"
    code 1
    no_out
    err_like "$folder/pipe: is a pipe without a writer$"
    for path in /dev/zero "$folder"; do
        set -- $(reader $name $path)
        shift
        run "$@"
        code 1
        no_out
        err_like "$path: "
    done
    check "a folder was made" test ! -e "$folder/trained"
done

# What is not read from its beginning to its end
mkdir "$folder/model"
mkfifo "$folder/pipe.npy" "$folder/pipe.npz" "$folder/pipe.safetensors" "$folder/model/config.json"
cp "$model/vocab.txt" "$model/model.safetensors" "$folder/model"
for command in "look --q $folder/pipe.npy --k $folder/q.npy" "attend --q $folder/q.npy --k $folder/pipe.npz:k --v $folder/q.npy -o $folder/o.npy" \
    "info $folder/pipe.safetensors" "info --strict $folder/pipe.safetensors" "fill [MASK] --model $folder/model" \
    "train --text $folder/text --out $folder/trained --from $folder/model"; do
    run $command
    code 1
    no_out
    err_like "^qkv: .*$folder/.*: is not a regular file"
done

# JR04: a journal that another command is using. (test_journal.sh runs on Windows, too, where flock locks nothing.)
: >"$folder/journal"
exec 9<"$folder/journal"
flock 9
run embed --file "$folder/text" -o "$folder/v.npy" --journal "$folder/journal"
code 1
err "qkv: $folder/journal: another command is using it"
exec 9<&-
finish
