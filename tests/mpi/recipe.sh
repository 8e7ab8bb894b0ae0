# The first 200 steps of the embedded model in 8 slices: one hash for any number of ranks and threads.
# Usage: recipe.sh QKV FOLDER GRAMMAR MPIEXEC FLAGS...
set -u
qkv=$1 folder=$2 grammar=$3
shift 3
. "${0%/*}/lib.sh"
first=
for threads in 1 2; do
    for ranks in 1 2 3 4 8; do
        rm -rf "$folder/model"
        QKV_NUM_THREADS=$threads "$@" $ranks "$qkv" train --grammar "$grammar" --out "$folder/model" --steps 200 --batch 256 \
            --lr 0.003 --intermediate 384 --vocab 1600 --len 48 --seed 1 --report-every 100 --slices 8 --quiet \
            >"$folder/out" 2>"$folder/err" || { cat "$folder/err" && failed=1; }
        hash=$(cat "$folder/model/model.safetensors" "$folder/model/train_log.tsv" "$folder/model/train_run.txt" | sha256sum)
        echo "$ranks ranks, $threads threads: $hash"
        test "$hash" = "${first:=$hash}" || failed=1
    done
done
exit $failed
