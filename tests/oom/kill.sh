#!/bin/sh
# kill.sh QKV PRELOADED FOLDER: a training run is killed before each of its file operations (kill_at.c). Then --resume ends with the bytes of a
# run that was not killed, loss.png included; or, where no step was kept, the folder is as it was, and the run can begin anew.
set -eu
qkv=$1 preloaded=$2 folder=$3
n_killed=0
rm -rf "$folder"
mkdir -p "$folder"
printf 'the man saw the door .\tit was red .\nthe dog saw a box .\tit was old .\n' >"$folder/text"
small="--text $folder/text --len 16 --batch 2 --steps 3 --checkpoint-every 1 --report-every 1 --threads 1 --quiet"
fail() {
    echo "$*, killed before file operation $n:"
    cat "$folder/said"
    ls -lA "$folder/run"
    exit 1
}
# same A B: the same files, byte for byte
same() { diff -r "$1" "$2" >"$folder/said" 2>&1; }

# killed NAME BEFORE OPTIONS…: BEFORE is a folder that is there before, or none
killed() {
    name=$1 before=$2
    shift 2
    begin() {
        rm -rf "$folder/run"
        [ "$before" = none ] || cp -r "$before" "$folder/run"
    }
    begin
    n=none
    "$qkv" train $small --out "$folder/run" "$@" >"$folder/said" 2>&1 || fail "$name: not killed, it failed"
    rm -rf "$folder/whole"
    mv "$folder/run" "$folder/whole"
    n=0
    while :; do
        begin
        status=0
        QKV_KILL_AT=$n LD_PRELOAD=$preloaded "$qkv" train $small --out "$folder/run" "$@" >"$folder/said" 2>&1 || status=$?
        [ $status -eq 0 ] && break
        [ $status -eq 137 ] || fail "$name: exit code $status"
        n_killed=$((n_killed + 1))
        kept=no
        [ -e "$folder/run/checkpoint.safetensors" ] && kept=yes
        if "$qkv" train $small --out "$folder/run" "$@" --resume >"$folder/said" 2>&1; then
            :
        elif [ $kept = yes ]; then
            fail "$name: it is not resumed"
        else
            find "$folder/run" -name '*.tmp' -delete 2>/dev/null || :
            if [ "$before" != none ]; then
                same "$before" "$folder/run" || fail "$name: no step was kept, and the folder is another"
            elif [ -e "$folder/run/model.safetensors" ]; then
                fail "$name: there is a model, and it is not resumed"
            fi
            "$qkv" train $small --out "$folder/run" "$@" >"$folder/said" 2>&1 || fail "$name: it does not begin anew"
        fi
        same "$folder/whole" "$folder/run" || fail "$name: other files"
        n=$((n + 1))
    done
    [ "$n" -ge 20 ] || fail "$name: it has hardly any file operations"
    echo "$name: killed before each of $n file operations"
}

sizes="--layers 1 --heads 2 --hidden 8"
"$qkv" train $small $sizes --vocab 200 --seed 5 --out "$folder/older" >/dev/null 2>&1
"$qkv" train $small $sizes --vocab 280 --arch gpt2 --out "$folder/gpt2" >/dev/null 2>&1
# as sentence-transformers saves it, with a module in a folder below
mkdir "$folder/gpt2/1_Pooling"
echo '{"pooling_mode_mean_tokens": true}' >"$folder/gpt2/1_Pooling/config.json"
printf '[%s,%s]' '{"path":"","type":"sentence_transformers.models.Transformer"}' \
    '{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"}' >"$folder/gpt2/modules.json"
killed "a new model" none $sizes --vocab 200
killed "over an older model" "$folder/older" $sizes --vocab 200
killed "a model trained further, in its own folder" "$folder/gpt2" --from "$folder/run" --seed 3
rm -rf "$folder"
echo "$n_killed runs were killed"
