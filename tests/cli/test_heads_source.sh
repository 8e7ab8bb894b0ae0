# Heads have one source: `look --q F --k F` of a run's own queries and keys, which its page holds, has the numbers, labels and weights
# of the run, byte for byte; and labels are not given to random heads of a short text.
. ./lib.sh
export LC_ALL=C
d=$folder/d
mkdir "$d"

# npy NAME SHAPE: NAME.raw, floats, as NAME.npy
npy() {
    {
        printf '\223NUMPY\001\000\166\000'
        printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }"
        cat "$d/$1.raw"
    } >"$d/$1.npy"
}
# The bytes of a page's text: five digits to the base of 85 are four bytes, the lowest first (docs/page.md).
base85() {
    LC_ALL=C awk '{
        digits = "()*+,-./0123456789:;=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~"
        for (at = 1; at < length($0); at += 5) {
            word = 0
            for (d = 0; d < 5; d++) word = word * 85 + index(digits, substr($0, at + d, 1)) - 1
            for (b = 0; b < 4; b++) {
                printf "\\%03o", word % 256
                word = int(word / 256)
            }
        }
        print ""
    }' | while IFS= read -r octal; do printf "$octal"; done
}

# same_source TEXT HEAD DIM CAUSAL MODEL...: one head of a text, and of its q and k
same_source() {
    text=$1 head=$2 dim=$3 causal=$4
    shift 4
    run look "$text" "$@" --quiet --head "$head" -o "$d/page.html"
    code 0
    run look "$text" "$@" --quiet --head "$head" --json
    code 0
    sed 's/^{"tokens":\["\(.*\)"\],"\(predictions\|next\)".*/\1/; s/","/\n/g' "$folder/out" >"$d/tokens"
    n=$(wc -l <"$d/tokens")
    layer=${head%.*}
    grep -o "{\"layer\":$layer,\"head\":${head#*.},\"label\"[^}]*}" "$folder/out" | sed 's/}$//' >"$d/numbers"
    grep -o '"weights":.*' "$folder/out" >"$d/weights"
    check "the head is there" test -s "$d/numbers"
    check "its weights are there" test -s "$d/weights"
    sed -n 's/.*id="qkv-head-0"[^>]*>\([^<]*\)<.*/\1/p' "$d/page.html" | base85 >"$d/all.raw"
    bytes=$((n * dim * 4))
    check "the page has floats" test "$(wc -c <"$d/all.raw")" -eq $((2 * bytes + 4 * n))
    head -c $bytes "$d/all.raw" >"$d/q.raw"
    tail -c +$((bytes + 1)) "$d/all.raw" | head -c $bytes >"$d/k.raw"
    npy q "$n, $dim"
    npy k "$n, $dim"
    run look --q "$d/q.npy" --k "$d/k.npy" --tokens "$d/tokens" $causal --head "$head" --quiet --json
    code 0
    grep -o "{\"layer\":$layer,\"head\":${head#*.},\"label\"[^}]*" "$folder/out" | sed 's/,"n_empty_rows".*//' >"$d/other"
    check "other numbers of the same head" cmp -s "$d/numbers" "$d/other"
    grep -o '"weights":.*' "$folder/out" >"$d/other"
    check "other weights of the same head" cmp -s "$d/weights" "$d/other"
}
dim=$("$qkv" info "$model" --json | sed 's/.*"head_dim":\([0-9]*\).*/\1/')
for head in 0.0 0.1 1.0 1.1; do same_source "the man saw a dog." $head "$dim" "" --model "$model"; done
gpt2=$here/../golden/decoder/gpt2_1/mild
dim=$("$qkv" info "$gpt2" --json | sed 's/.*"head_dim":\([0-9]*\).*/\1/')
same_source "the man saw the dog" 0.0 "$dim" "--causal top-left" --model "$gpt2"
same_source "the door opened." 0.1 "$dim" "--causal top-left" --model "$gpt2"

# ---- Random heads ------------------------------------------------------------------------------------------

# random LENGTH SEED: 144 heads of q and k, normal numbers of a deviation of 2, as floats of 16 bits
random() {
    awk -v n=$((144 * $1 * 16)) -v seed="$2" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++) {
            u = 2 * sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()); minus = u < 0; if (minus) u = -u
            e = 0; m = u
            while (m >= 2) { m /= 2; e++ }
            while (m < 1 && e > -13) { m *= 2; e-- }
            word = int((e + 15) * 1024 + (m - 1) * 1024 + 0.5)
            low = word % 256; if (low == 0) low = 1
            high = int(word / 256); if (high == 0) high = 1
            printf "%c%c", low, high + (minus ? 128 : 0)
        }
    }' >"$d/random.raw"
    {
        printf '\223NUMPY\001\000\166\000'
        printf '%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': (144, $1, 16), }"
        cat "$d/random.raw"
    } >"$d/r$2.npy"
}
# labelled LABEL: how many heads have it
labelled() { grep -o "\"label\":\"$1\"" "$folder/out" | wc -l; }
random 11 1
random 11 2
run look --q "$d/r1.npy" --k "$d/r2.npy" --causal top-left --quiet --json
code 0
early=$(grep -o '"received_early":[0-9.]*' "$folder/out" | cut -d: -f2 | awk '$1 > 0.3' | wc -l)
check "most random heads of 11 tokens are above the threshold ($early)" test "$early" -gt 48
check "and are called sinks" test "$(labelled sink)" -eq 0
check "other labels than broad" test "$(grep -o '"label":"[^"]' "$folder/out" | grep -vc '"b')" -le 2
random 40 3
random 40 4
run look --q "$d/r3.npy" --k "$d/r4.npy" --causal top-left --quiet --json
code 0
check "random heads of 40 tokens are sinks" test "$(labelled sink)" -le 1
finish
