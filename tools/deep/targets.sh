# What steps of other C libraries share (sourced after lib.sh): a tool beside the one of the release build.
release=build/release/qkv
text="I was watching the [MASK] when it opened."

# use_wine: with a folder of its own, made the first time; its server ends with the step
use_wine() {
    export WINEPREFIX="$PWD/build/deep/wine" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
    trap 'wineserver -k || true; rm -f "$check_log"' EXIT
    [ -e "$WINEPREFIX/system.reg" ] || wineboot --init
}

# same_check COMMAND…: `check` on every instruction set of this processor says the same: cases, comparisons, the digest. Not the shares
# of bounds, which expf of the C library has a part in.
same_check() {
    $release info | grep '^instructions' >build/deep/$$.sets
    "$@" info | grep '^instructions' | cmp - build/deep/$$.sets
    $release check --cases 40 --pairs 1 | grep -v '^largest share' >build/deep/$$.here
    "$@" check --cases 40 --pairs 1 >"$check_log"
    grep -v '^largest share' "$check_log" | cmp build/deep/$$.here -
    case_ok "$(sed 's/ (used.*//' build/deep/$$.sets): $(tail -n 1 "$check_log"), here, too"
    rm build/deep/$$.sets build/deep/$$.here
}

# same_answers COMMAND…: what the tool says of the embedded model and of a decoder, a page, attention of files
same_answers() {
    folder=$(mktemp -d build/deep/answers.XXXXXX)
    answers "$folder/here" $release
    answers "$folder/there" "$@"
    for file in "$folder"/here/*; do
        cmp "$file" "$folder/there/${file##*/}"
        case_ok "${file##*/} is the same"
    done
    rm -r "$folder"
}
# answers FOLDER COMMAND…
answers() {
    to=$1
    shift
    mkdir "$to"
    "$@" look "$text" >"$to/look"
    "$@" look "$text" --json >"$to/look.json"
    "$@" look "$text" --quiet -o "$to/page.html"
    "$@" fill "$text" >"$to/fill"
    "$@" embed "$text" --json >"$to/embed.json"
    "$@" generate "I was" --model models/writer --json | sed 's/,"seconds":[^}]*//' >"$to/generate.json"
    "$@" attend --q tests/cli/data/q.npy --k tests/cli/data/k.npy --v tests/cli/data/v.npy --threads 4 -o "$to/o.npy" \
        --lse "$to/lse.npy" --grad-out tests/cli/data/grad.npy --dq "$to/dq.npy" --dk "$to/dk.npy" --dv "$to/dv.npy"
}

# lessons COMMAND…: every command of docs/lessons.md; those that draw are refused by name, and listed
lessons() {
    folder=$(mktemp -d build/deep/lessons.XXXXXX)
    sed -n 's/^|.*| *`qkv \([^`]*\)` *|.*/\1/p' docs/lessons.md >"$folder/lessons"
    while IFS= read -r line; do
        made=$(printf '%s\n' "$line" | sed "s|-o |-o $folder/|; s|--out |--out $folder/|")
        code=0
        eval "\"\$@\" $made" </dev/null >"$folder/out" 2>"$folder/err" || code=$?
        case $line in
        *\ -o\ *.png | *\ -o\ *.svg | *\ -o\ *.pdf)
            [ "$code" -eq 1 ] && grep -q 'QKV_PICTURES=OFF' "$folder/err"
            case_ok "refused, it draws: qkv $line"
            ;;
        *)
            [ "$code" -eq 0 ] || { echo "exit code $code: qkv $line" && cat "$folder/err" && return 1; }
            case_ok "qkv $line"
            ;;
        esac
    done <"$folder/lessons"
    rm -r "$folder"
}

# small_stacks COMMAND…: files are read in 128 KiB, the stack of a thread of musl: JSON of deep nesting, the corpora of the fuzzers.
# A refusal is right, a signal is not.
small_stacks() {
    folder=$(mktemp -d build/deep/stacks.XXXXXX)
    mkdir "$folder/model"
    cp models/writer/* "$folder/model"
    for depth in 15 60 1000000; do
        awk -v n=$depth 'BEGIN { printf "{\"a\":"; for (i = 0; i < n; i++) printf "["; printf "1"; for (i = 0; i < n; i++) printf "]"; print "}" }' \
            >"$folder/nested"
        for name in config tokenizer generation_config; do
            cp "$folder/nested" "$folder/model/$name.json"
            in_128_kib "$@" generate "I was" --model "$folder/model" --max-new 1
            cp "models/writer/$name.json" "$folder/model/$name.json"
        done
        { printf '\006\102\017\0\0\0\0\0' && cat "$folder/nested" && head -c 1000000 /dev/zero | tr '\0' ' '; } >"$folder/nested.safetensors"
        in_128_kib "$@" info "$folder/nested.safetensors"
    done
    for kind in npy npz safetensors gguf; do
        for file in fuzz/corpus/$kind/*; do
            cp "$file" "$folder/file.$kind"
            in_128_kib "$@" info "$folder/file.$kind"
        done
    done
    for file in fuzz/corpus/csv/* fuzz/corpus/table/*; do
        cp "$file" "$folder/file.csv"
        in_128_kib "$@" lookup "$folder/file.csv" apple
    done
    for file in fuzz/corpus/png/* fuzz/corpus/jpeg/*; do in_128_kib "$@" look --image "$file" --model models/seer; done
    in_128_kib "$@" look "$text" --threads 4
    [ "$code" -eq 0 ]
    rm -r "$folder"
    case_ok "$n_read files and a text in stacks of 128 KiB"
}
n_read=0
in_128_kib() {
    code=0
    (ulimit -s 128 && exec "$@") >/dev/null 2>&1 </dev/null || code=$?
    [ "$code" -lt 126 ] || { echo "exit code $code: $*" && return 1; }
    n_read=$((n_read + 1))
}
