# `qkv attend --x`: q, k and v made of inputs and weights, against the loops of a textbook in double (awk), and its messages.
. ./lib.sh
tables=$here/../../examples/tables

# random FILE ROWS COLUMNS SEED: numbers from -1 to 1 with three digits
random() {
    awk -v rows="$2" -v columns="$3" -v s="$4" 'BEGIN {
        for (r = 0; r < rows; r++) for (c = 0; c < columns; c++) {
            s = s * 16807 % 2147483647
            printf "%.3f%s", s / 1073741823.5 - 1, c < columns - 1 ? "," : "\n" } }' >"$folder/$1.csv"
}
# turned FILE TO: rows become columns
turned() {
    awk -F, '{ for (c = 1; c <= NF; c++) m[NR, c] = $c; n = NF }
        END { for (c = 1; c <= n; c++) for (r = 1; r <= NR; r++) printf "%s%s", m[r, c], r < NR ? "," : "\n" }' \
        "$folder/$1.csv" >"$folder/$2.csv"
}

# oracle X X_KV WQ WK WV HEADS CAUSAL WO BIASES STEPS: what is printed, number after number; "-" is no array
oracle() {
    awk -v x="$1" -v xkv="$2" -v wq="$3" -v wk="$4" -v wv="$5" -v H="$6" -v causal="$7" -v wo="$8" -v biases="$9" -v steps="${10}" '
        function read(file, m,    line, part, n, r, c) {
            for (r = 0; (getline line < (folder file ".csv")) > 0; r++) {
                n = split(line, part, ",")
                for (c = 0; c < n; c++) m[r, c] = part[c + 1] + 0
            }
            n_rows = r; n_columns = n
        }
        function times(a, rows, inner, w, b, y,    r, c, e) {
            for (r = 0; r < rows; r++) for (c = 0; c < n_columns; c++) {
                y[r, c] = b[0, c]
                for (e = 0; e < inner; e++) y[r, c] += a[r, e] * w[e, c]
            }
            return n_columns
        }
        function project(a, rows, name, bias, y,    w, b, inner) {
            if (biases != "-") read(bias, b)
            read(name, w)
            inner = n_rows
            return times(a, rows, inner, w, b, y)
        }
        function show(m, rows, from, to,    r, c) {
            for (r = 0; r < rows; r++) for (c = from; c < to; c++) print m[r, c]
        }
        BEGIN {
            folder = ENVIRON["folder"] "/"
            read(x, X); L = n_rows
            if (xkv == "-") { for (at in X) Y[at] = X[at]; K = L } else { read(xkv, Y); K = n_rows }
            d = project(X, L, wq, "bq", q) / H
            G = project(Y, K, wk, "bk", k) / d
            dv = project(Y, K, wv, "bv", v) / G
            for (h = 0; h < H; h++) {
                g = int(h * G / H)
                if (steps) { show(q, L, h * d, h * d + d); show(k, K, g * d, g * d + d); show(v, K, g * dv, g * dv + dv) }
                for (i = 0; i < L; i++) {
                    most = -1e9; sum = 0
                    for (j = 0; j < K; j++) {
                        dot = 0
                        for (c = 0; c < d; c++) dot += q[i, h * d + c] * k[j, g * d + c]
                        s[i, j] = causal && j > i ? "-inf" : dot / sqrt(d)
                        if (s[i, j] != "-inf" && s[i, j] > most) most = s[i, j]
                    }
                    for (j = 0; j < K; j++) { p[i, j] = s[i, j] == "-inf" ? 0 : exp(s[i, j] - most); sum += p[i, j] }
                    for (j = 0; j < K; j++) p[i, j] /= sum
                    for (c = 0; c < dv; c++) {
                        o[i, h * dv + c] = 0
                        for (j = 0; j < K; j++) o[i, h * dv + c] += p[i, j] * v[j, g * dv + c]
                    }
                }
                show(s, L, 0, K); show(p, L, 0, K); show(o, L, h * dv, h * dv + dv)
            }
            if (H > 1) show(o, L, 0, H * dv)
            if (wo != "-") { n = project(o, L, wo, "bo", y); show(y, L, 0, n) }
        }'
}
export folder

# near: rows of the output are the numbers of $folder/want, within 2e-6 and 1e-5 of each, which are printed with 6 digits
near() {
    grep '^ ' "$folder/out" | tr -s ' ' '\n' | grep . >"$folder/got"
    check "$(wc -l <"$folder/got") numbers, not $(wc -l <"$folder/want")" test "$(wc -l <"$folder/got")" -eq "$(wc -l <"$folder/want")"
    far=$(paste "$folder/got" "$folder/want" | awk '
        $1 == $2 { next }
        { d = $1 - $2; if (d < 0) d = -d; if ($1 ~ /n/ || $2 ~ /n/ || d > 2e-6 + 1e-5 * ($2 < 0 ? -$2 : $2)) print NR ": " $1 " " $2 }' | head -1)
    check "number $far" test -z "$far"
}
# projected X X_KV HEADS CAUSAL WO BIASES OPTIONS...: against the oracle
projected() {
    x=$1 other=$2 heads=$3 causal=$4 wo=$5 biases=$6
    shift 6
    oracle $x $other wq wk wv $heads $causal $wo $biases 0 >"$folder/want"
    run attend --x "$folder/$x.csv" --wq "$folder/wq.csv" --wk "$folder/wk.csv" --wv "$folder/wv.csv" "$@"
    code 0
    no_err
    near
}

# The tables of docs/lessons.md, step by step, and its masked scores.
for name in x wq wk wv; do cp "$tables/$name.csv" "$folder"; done
lesson="--x $tables/x.csv --wq $tables/wq.csv --wk $tables/wk.csv --wv $tables/wv.csv"
projected x - 1 0 - -
run attend $lesson
code 0
out_like '^scores \[3,3\]$'
oracle x - wq wk wv 1 1 - - 1 >"$folder/want"
run attend $lesson --causal 0 --explain --isa scalar --threads 1
code 0
no_err
out_is attend_steps
sed '/^forward$/,$d' "$folder/out" >"$folder/steps"
mv "$folder/steps" "$folder/out"
near
run attend $lesson --json --isa scalar --threads 1 --causal 0
code 0
out_like '"head_dim_v":3,"isa":"scalar","threads":1,"scores":\[\[[0-9.]*,null,null\],\[.*\],"weights":\[\[1.0,0.0,0.0\],.*,"o":\[\[1.0,0.0,3.0\],.*,"lse":\[[0-9.,]*\],"seconds"'
run attend $lesson --json --explain
code 0
out_like '"q":\[\[1.0,0.0,1.0\],\[1.0,1.0,1.0\],\[1.0,1.0,0.0\]\],"k":\[\[1.0,2.0,0.0\],.*"v":.*"scores":.*"lse":.*"forward":{"kernel"'

# Heads, biases, W_O, a mask, fewer heads of keys, other inputs.
random x 5 6 1
random wq 6 8 2
random wk 6 8 3
random wv 6 4 4
random wo 4 3 5
random bq 1 8 6
random bk 1 8 7
random bv 1 4 8
random bo 1 3 9
added="--bq $folder/bq.csv --bk $folder/bk.csv --bv $folder/bv.csv"
projected x - 1 0 - -
projected x - 2 1 - - --heads 2 --causal 0
out_like '^heads side by side \[5,4\]$'
projected x - 1 0 wo - --wo "$folder/wo.csv"
out_like '^projected \[5,3\]$'
projected x - 4 1 wo yes --heads 4 --causal 0 --wo "$folder/wo.csv" $added --bo "$folder/bo.csv"
out_like '^projected \[5,3\]$'
cp "$folder/out" "$folder/whole"
full="--heads 4 --causal 0 --wo $folder/wo.csv $added --bo $folder/bo.csv"
run attend --x "$folder/x.csv" --wq "$folder/wq.csv" --wk "$folder/wk.csv" --wv "$folder/wv.csv" $full --explain --isa scalar --threads 1
code 0
out_like '^q = x W_Q + b_Q \[5,2\]$'
out_like "^scores = q k' / sqrt(2), -inf where a key is hidden \[5,5\]$"
out_like '^projected = heads W_O + b_O \[5,3\]$'
oracle x - wq wk wv 4 1 wo yes 1 >"$folder/want"
sed '/^forward$/,$d' "$folder/out" >"$folder/steps"
mv "$folder/steps" "$folder/out"
near
for name in wq wk wv wo; do turned $name t$name; done
run attend --x "$folder/x.csv" --wq "$folder/twq.csv" --wk "$folder/twk.csv" --wv "$folder/twv.csv" --transposed-weights \
    --heads 4 --causal 0 --wo "$folder/two.csv" $added --bo "$folder/bo.csv"
code 0
check "transposed weights give something else" cmp -s "$folder/out" "$folder/whole"
random wk 6 4 3
random wv 6 6 4
random wo 12 5 5
projected x - 4 0 wo - --heads 4 --wo "$folder/wo.csv"
out_like '^heads side by side \[5,12\]$'
random y 3 7 10
random wk 7 8 11
random wv 7 2 12
projected x y 2 0 - - --heads 2 --x-kv "$folder/y.csv"
out_like '^scores \[5,3\]$'
run attend --x "$folder/x.csv" --x-kv "$folder/y.csv" --wq "$folder/wq.csv" --wk "$folder/wk.csv" --wv "$folder/wv.csv" --explain
code 0
out_like '^k = x_kv W_K \[3,8\]$'

# What scores are when more than a product is in them.
random wk 6 8 3
random wv 6 4 4
base="--x $folder/x.csv --wq $folder/wq.csv --wk $folder/wk.csv --wv $folder/wv.csv"
scores() { awk '/^[a-z]/ { on = /^scores/; next } on' "$folder/out" | tr -s ' ' '\n' | grep .; }
# changed EXPRESSION OPTIONS...: each score, in awk a function of the plain one s, of i and j
run attend $base
scores >"$folder/plain"
changed() {
    awk "{ s = \$1; i = int((NR - 1) / 5); j = (NR - 1) % 5; print($1) }" "$folder/plain" >"$folder/want"
    shift
    run attend $base "$@"
    code 0
    scores >"$folder/got"
    far=$(paste "$folder/got" "$folder/want" | awk '$1 != $2 { d = $1 - $2; if (d < 0) d = -d; if ($1 ~ /n/ || d > 2e-5) print $1, $2 }' | head -1)
    check "a score: $far" test -z "$far"
    check "25 scores" test "$(wc -l <"$folder/got")" -eq 25
}
changed 's * sqrt(8) / 2' --scale 0.5
changed '-s * sqrt(8)' --scale -1
changed '0 * s' --scale 0
changed '3 * (1 - 2 / (exp(2 * s / 3) + 1))' --softcap 3
changed 'j >= i - 1 && j <= i ? s : "-inf"' --window 1,0
printf '0.25\n' >"$folder/slope.csv"
changed 's + 0.25 * (j - i)' --alibi "$folder/slope.csv"
printf '0.5,1.5,-inf,0.0,-1.0\n' >"$folder/mask.csv"
changed 'j == 2 ? "-inf" : s + (j == 0) / 2 + 1.5 * (j == 1) - (j == 4)' --mask "$folder/mask.csv"
printf '1,1,0,1,1\n' >"$folder/mask.csv"
changed 'j == 2 ? "-inf" : s' --mask "$folder/mask.csv"
changed 's' --dropout 0.5,1
out_like '^weights before dropout \[5,5\]$'
changed 'i > 2 ? "-inf" : s' --q-len 3
run attend $base --heads 2 --softcap 2 --scale 0.5 --explain --mask "$folder/mask.csv"
out_like "^scores = 2 tanh(0.5 q k' / 2), -inf where a key is hidden \[5,5\]$"

# Files: shapes of o and lse, a batch, .npz, and standard input.
shape() { head -c 300 "$1" | tr -d '\0\n ' | grep -a -o "'shape':([0-9,]*)" | tail -1; }
data_of() { tail -c +"$(($(od -An -j8 -N2 -tu2 "$1") + 11))" "$1"; }
o=$folder/o.npy
shaped() { # O LSE OPTIONS...
    want_o=$1 want_lse=$2
    shift 2
    rm -f "$o" "$folder/lse.npy"
    run attend "$@" -o "$o" --lse "$folder/lse.npy" --stats "$folder/stats.json"
    code 0
    no_out
    no_err
    check "o has $(shape "$o")" test "$(shape "$o")" = "'shape':($want_o)"
    check "lse has $(shape "$folder/lse.npy")" test "$(shape "$folder/lse.npy")" = "'shape':($want_lse)"
    check "no statistics" grep -q '"entropy"' "$folder/stats.json"
}
shaped 5,4 5, $base
shaped 5,4 1,5 $base --heads 1
shaped 5,4 2,5 $base --heads 2
random wo 4 3 5
shaped 5,3 2,5 $base --heads 2 --wo "$folder/wo.csv"
data_of "$o" | od -An -v -w4 -tf4 | tr -d ' ' >"$folder/written"
run attend $base --heads 2 --wo "$folder/wo.csv"
awk '/^projected/ { on = 1; next } on' "$folder/out" | tr -s ' ' '\n' | grep . >"$folder/printed"
check "-o writes other numbers than are printed" \
    test "$(paste "$folder/written" "$folder/printed" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5) n++ } END { print n + 0, NR }')" = "0 15"
integers() { # NAME SHAPE: numbers of standard input as an array of 64-bit integers
    dict="{'descr': '<i8', 'fortran_order': False, 'shape': $2, }"
    {
        printf '\223NUMPY\001\000%b%s\n' "\\0$(printf %03o $((${#dict} + 1)))\\0000" "$dict"
        tr ', ' '\n\n' | while read -r n; do printf '%b' "\\0$(printf %03o "$n")\\0\\0\\0\\0\\0\\0\\0"; done
    } >"$folder/$1.npy"
}
printf '1,0,1,0,0,1,0,1,1,1,0,0\n' | integers one '(3, 4)'
printf '2,0,1,3,0,2,0,0,1,0,0,5\n' | integers two '(3, 4)'
printf '1,0,1,0,0,1,0,1,1,1,0,0,2,0,1,3,0,2,0,0,1,0,0,5\n' | integers both '(2, 3, 4)'
weights="--wq $tables/wq.csv --wk $tables/wk.csv --wv $tables/wv.csv"
for name in one two; do
    shaped 3,3 3,3 --x "$folder/$name.npy" $weights --heads 3 --causal 0
    data_of "$o" >"$folder/$name.bytes"
    data_of "$folder/lse.npy" >"$folder/$name.lse"
done
shaped 2,3,3 2,3 --x "$folder/both.npy" $weights
shaped 2,3,3 2,3,3 --x "$folder/both.npy" $weights --heads 3 --causal 0 --threads 2
data_of "$o" >"$folder/bytes"
check "a batch has other outputs" test "$(cat "$folder/one.bytes" "$folder/two.bytes" | cksum)" = "$(cksum <"$folder/bytes")"
data_of "$folder/lse.npy" >"$folder/bytes"
check "a batch has another lse" test "$(cat "$folder/one.lse" "$folder/two.lse" | cksum)" = "$(cksum <"$folder/bytes")"
run attend --x "$folder/both.npy" $weights --json
code 0
out_like '"n_batch":2,.*"scores":\[\[\[.*\]\]\],"weights":\[\[\[.*\]\]\],"o":\[\[\[.*\]\]\],"lse":\[\[[0-9.,]*\],\[[0-9.,]*\]\],"seconds"'
run attend --x "$folder/both.npy" $weights --heads 3
out_like '^batch 1, head 2$'
check "two batches of outputs" test "$(grep -c '^heads side by side \[3,3\]$' "$folder/out")" -eq 2
run attend --x "$folder/one.npy" $weights -o "$folder/p.npz:x"
run attend --x "$folder/p.npz:x" --wq "$tables/x.csv" --wk "$tables/x.csv" --wv "$tables/x.csv"
code 0
out_like '^output \[3,4\]$'
run attend $lesson
mv "$folder/out" "$folder/named"
"$qkv" attend --x - $weights <"$tables/x.csv" >"$folder/out" 2>"$folder/err"
check "standard input gives something else" cmp -s "$folder/out" "$folder/named"
printf '0\n2\n3\n' | integers cu '(3,)'
shaped 3,3 3, $lesson --cu-seqlens "$folder/cu.npy"
run attend $lesson --cu-seqlens "$folder/cu.npy"
code 0
check "scores of packed sequences" test "$(grep -c '^[a-z]' "$folder/out")" -eq 1

# More than is printed.
random x 40 6 1
run attend $base
code 0
check "1600 scores are shown" test "$(head -1 "$folder/out")" = 'output [40,4]'
run attend $base --explain
code 0
err "qkv: scores and weights are not shown: up to 1024 numbers are, of one sequence in each batch"
out_like "^v = x W_V \[40,4\]$"
out_like '^forward$'
random x 10 6 1
random y 70 6 2
run attend $base --x-kv "$folder/y.csv"
code 0
check "scores of 70 keys" test "$(head -1 "$folder/out")" = 'weights [10,70]'
run attend $base --x-kv "$folder/y.csv" --explain
code 0
err "qkv: scores are not shown: up to 64 keys are"
random y 200 6 2
run attend $base --x-kv "$folder/y.csv" --explain --json
code 0
err_like '^qkv: k = x_kv W_K: more than 1024 numbers, not shown$'
out_like '"q":\[\[.*,"o":'
check "k is not few" test "$(grep -c '"k":' "$folder/out")" -eq 0
random x 300 6 1
run attend $base
code 1
err "qkv: the output has 1200 numbers, and up to 1024 are printed: -o F.npy writes them"
random x 5 6 1

# Mistakes on the command line.
w="--wq wq --wk wk --wv wv"
usage attend "--x together with --q: q, k and v are made of --x" attend --x x $w --q q
usage attend "--x together with --v: q, k and v are made of --x" attend --x x --v v
usage attend "--x needs --wq F: queries are x W_Q" attend --x x --wk wk --wv wv
usage attend "--x needs --wk F: keys are x W_K" attend --x x --wq wq --wv wv
usage attend "--x needs --wv F: values are x W_V" attend --x x --wq wq --wk wk
usage attend "--wq needs --x" attend --q q --k k --v v --wq wq
usage attend "--x-kv needs --x" attend --q q --x-kv x
usage attend "--heads needs --x" attend --q q --k k --v v --heads 2
usage attend "--transposed-weights needs --x" attend --q q --k k --v v --transposed-weights
usage attend "--bo needs --wo" attend --x x $w --bo b
usage attend "--heads: '0' is not a whole number from 1 to 65536" attend --x x $w --heads 0
usage attend "--x together with --grad-out: gradients are those of --q, --k and --v" attend --x x $w --grad-out g --dq d.npy
usage attend "--x together with --dv: gradients are those of --q, --k and --v" attend --x x $w --dv d.npy
usage attend "--x goes with --dtype f32, in which it is projected" attend --x x $w --dtype bf16
usage attend "--mpi together with --x" attend --x x $w --mpi -o o.npy
usage attend "--k F is missing" attend --q q --v v
usage attend "--q F is missing" attend

# Arrays that do not go together.
f=$folder
parts="--wk $f/wk.csv --wv $f/wv.csv"
random odd 5 8 1
broken "--wq $f/odd.csv has shape [5,8], --x $f/x.csv has [5,6]: W has a row for each column of x, as in x W" \
    --x "$f/x.csv" --wq "$f/odd.csv" $parts
broken "--wq $f/twq.csv has shape [8,6], --x $f/x.csv has [5,6]: W has a row for each column of x, as in x W; --transposed-weights takes [D,E], as torch.nn.Linear stores it" \
    --x "$f/x.csv" --wq "$f/twq.csv" $parts
broken "--wq $f/wq.csv has shape [6,8], --x $f/x.csv has [5,6]: --transposed-weights: W has a column for each column of x" \
    --x "$f/x.csv" --wq "$f/wq.csv" $parts --transposed-weights
broken "--wk $f/wk.csv has shape [6,8], --x-kv $f/odd.csv has [5,8]: W has a row for each column of x, as in x W; --transposed-weights takes [D,E], as torch.nn.Linear stores it" $base --x-kv "$f/odd.csv"
random odd 6 7 1
broken "--wq $f/wq.csv has shape [6,8], --wk $f/odd.csv has [6,7]: queries and keys have as many columns" \
    --x "$f/x.csv" --wq "$f/wq.csv" --wk "$f/odd.csv" --wv "$f/wv.csv"
broken "--wq $f/twq2.csv has shape [8,6], --wk $f/todd.csv has [7,6]: queries and keys have as many columns" \
    --x "$f/x.csv" --wq "$(turned wq twq2 && echo "$f/twq2.csv")" --wk "$(turned odd todd && echo "$f/todd.csv")" --wv "$f/twv.csv" --transposed-weights
broken "--heads 3: --wq $f/wq.csv makes 8 columns, which are no multiple of it" $base --heads 3
random odd 6 6 1
broken "--wq $f/wq.csv has shape [6,8], --wk $f/odd.csv has [6,6]: queries and keys have as many columns in each head, and the heads of keys divide --heads" \
    --x "$f/x.csv" --wq "$f/wq.csv" --wk "$f/odd.csv" --wv "$f/wv.csv" --heads 4
random odd 6 5 1
broken "--wk $f/wk.csv has shape [6,8], --wv $f/odd.csv has [6,5]: the columns of values are no multiple of the heads of keys" \
    --x "$f/x.csv" --wq "$f/wq.csv" --wk "$f/wk.csv" --wv "$f/odd.csv" --heads 2
broken "--wo $f/odd.csv has shape [6,5], the output before it has [5,4]: W has a row for each column of output, as in output W" $base --wo "$f/odd.csv"
broken "--bq $f/bv.csv: shape [4] is not [D], D = 8, the columns that --wq $f/wq.csv makes" $base --bq "$f/bv.csv"
broken "--x $here/data/q.npy: shape [2,4,5,8] is neither [B,L,E] nor [L,E]" --x "$here/data/q.npy" $weights
broken "--x $here/data/sink.npy: shape [4] is neither [B,L,E] nor [L,E]" --x "$here/data/sink.npy" $weights
broken "--wq $here/data/sink.npy: shape [4] is not [E,D]" --x "$f/x.csv" --wq "$here/data/sink.npy" $parts
broken "--wv $f/both.npy: shape [2,3,4] is not [D,E]" --x "$f/one.npy" --wq "$f/one.npy" --wk "$f/one.npy" --wv "$f/both.npy" --transposed-weights
broken "--x $f/one.npy has shape [3,4], --x-kv $f/both.npy has [2,3,4]: the ranks differ" --x "$f/one.npy" --x-kv "$f/both.npy" $weights
printf '1,0,1,0,0,1,0,1,1,1,0,0\n' | integers single '(1, 3, 4)'
broken "--x $f/both.npy has shape [2,3,4], --x-kv $f/single.npy has [1,3,4]: the batches differ" --x "$f/both.npy" --x-kv "$f/single.npy" $weights
printf 'true,false\n' >"$f/yes.csv"
broken "--x $f/yes.csv: does not hold numbers" --x "$f/yes.csv" $weights
: | integers none '(0, 4)'
shaped 0,3 0, --x "$f/none.npy" $weights
broken "--wq $f/none.npy: shape [0,4] is not [E,D]" --x "$f/one.npy" --wq "$f/none.npy" --wk "$tables/wk.csv" --wv "$tables/wv.csv"
run attend --x "$f/missing.csv" $weights
code 1
err_like '^qkv: .*missing.csv.*No such file'
finish
