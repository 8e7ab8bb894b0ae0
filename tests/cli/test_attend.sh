# `qkv attend` against what numpy computed in float64 (data/make.py), and its messages.
. ./lib.sh
data=$here/data
export folder

# The numbers of an f32 or f16 array of version 1, one a line; and its shape as the file says it.
numbers() {
    length=$(od -An -j8 -N2 -tu2 "$1" | tr -d ' ')
    if [ "$(type "$1")" = f2 ]; then
        od -An -v -w2 -tu2 -j$((length + 10)) "$1" | awk '{
            e = int($1 / 1024) % 32; f = $1 % 1024
            x = e ? (1024 + f) * 2 ^ (e - 25) : f * 2 ^ -24
            print $1 < 32768 ? x : -x }'
    else
        od -An -v -w4 -tf4 -j$((length + 10)) "$1" | tr -d ' '
    fi
}
type() { head -c 300 "$1" | grep -a -o "'descr': '<[a-zA-Z0-9]*" | tail -1 | tail -c 3; }
shape() { head -c 300 "$1" | tr -d '\0\n ' | grep -a -o "'shape':([0-9,]*)" | tail -1; }

# near A B [SHARE]: same type and shape, every number within 2e-6 of the other, and SHARE of it more; infinities are
# equal.
near() {
    check "no file $1" test -s "$1"
    test -s "$1" || return
    check "$1 has the type $(type "$1"), expected $(type "$2")" test "$(type "$1")" = "$(type "$2")"
    check "$1 has $(shape "$1"), expected $(shape "$2")" test "$(shape "$1")" = "$(shape "$2")"
    numbers "$1" >"$folder/a"
    numbers "$2" >"$folder/b"
    check "$1 has another count of numbers" test "$(wc -l <"$folder/a")" -eq "$(wc -l <"$folder/b")"
    distance=$(paste "$folder/a" "$folder/b" | awk -v share="${3:-0}" '
        $1 != $2 { d = $1 - $2; if (d < 0) d = -d
                   d -= share * ($2 < 0 ? -$2 : $2)
                   if ($1 ~ /n/ || $2 ~ /n/) d = 999
                   if (d > m) m = d }
        END { print m + 0 }')
    check "$1 differs by $distance" awk "BEGIN { exit !($distance <= 2e-6) }"
}
o=$folder/o.npy
qkv_arrays="--q $data/q.npy --k $data/k.npy --v $data/v.npy"

# attend CASE OPTIONS...: o and lse
attend() {
    name=$1
    shift
    rm -f "$folder"/*.npy
    run attend $qkv_arrays -o "$o" --lse "$folder/lse.npy" "$@"
    code 0
    no_out
    no_err
    near "$o" "$data/${name}_o.npy"
    near "$folder/lse.npy" "$data/${name}_lse.npy"
}
# gradients CASE OPTIONS...: dq, dk and dv too
gradients() {
    attend "$@" --grad-out "$data/grad.npy" --dq "$folder/dq.npy" --dk "$folder/dk.npy" \
        --dv "$folder/dv.npy"
    for part in dq dk dv; do near "$folder/$part.npy" "$data/${name}_$part.npy"; done
}

gradients plain
gradients plain --isa scalar --threads 2
attend top_left --causal top-left
attend top_left --causal 0
gradients bottom_right --causal bottom-right
attend bottom_right --causal=2
attend offsets --causal 3,-2
attend window --window 2,1 --q-offset 1
attend window --window 2,1 --q-offset 1,1
gradients kv_len --kv-len 5,0
attend boolean --mask "$data/boolean.npy"
attend additive --mask "$data/additive.npy"
attend short --mask "$data/short.npy"
gradients softcap --scale 0.5 --softcap 1.5
gradients prefix --causal 0 --prefix 4,0
gradients chunk --chunk 3 --q-offset 1
gradients segments --segments "$data/segments_k.npy" --segments-q "$data/segments_q.npy"
gradients bits --mask-bits "$data/bits.npy"
gradients alibi --causal bottom-right --alibi "$data/alibi.npy"
gradients sink --causal -1 --sink "$data/sink.npy" --grad-lse "$data/grad_lse.npy" --dsink "$folder/dsink.npy"
near "$folder/dsink.npy" "$data/sink_dsink.npy"
run attend --q "$data/q.npy" --k "$data/k_square.npy" --v "$data/v_square.npy" --segments "$data/segments.npy" -o "$o"
code 0
near "$o" "$data/documents_o.npy"
gradients dropout --causal bottom-right --dropout 0.3,1099511627783
attend plain --dropout 0,5
gradients dmask --mask "$data/additive.npy" --dmask "$folder/dmask.npy"
near "$folder/dmask.npy" "$data/dmask_dmask.npy"
gradients dcolumns --mask "$data/columns.npy" --softcap 1.5 --dropout 0.5,3 --dmask "$folder/dmask.npy"
near "$folder/dmask.npy" "$data/dcolumns_dmask.npy"
attend plain --window -1,-1
attend plain --q-len 5 --kv-len 7

# lists NAME OPTIONS...: arrays, output and gradients of that name
lists() {
    name=$1
    shift
    rm -f "$folder"/*.npy
    run attend --q "$data/${name}_q.npy" --k "$data/${name}_k.npy" --v "$data/${name}_v.npy" \
        -o "$o" --lse "$folder/lse.npy" --grad-out "$data/${name}_grad.npy" --dq "$folder/dq.npy" \
        --dk "$folder/dk.npy" --dv "$folder/dv.npy" "$@"
    code 0
    no_err
    for part in o lse dq dk dv; do near "$folder/$part.npy" "$data/${name}_$part.npy"; done
}
lists packed --cu-seqlens "$data/cu_q.npy" --cu-seqlens-k "$data/cu_k.npy" --causal bottom-right
lists packed --cu-seqlens "$data/cu_q.npy" --cu-seqlens-k "$data/cu_k.npy" --causal 1,5,0 --kv-len 4,5,7
lists blocks --block-mask "$data/blocks.npy" --block-len 32
lists blocks --block-mask "$data/blocks.npy" --block-len 32 --isa scalar --threads 3

# Types of 16 bits: what numpy rounds, within a unit in the last place; outputs in the type, bf16 as f32.
typed() {
    type=$1 share=$2
    shift 2
    rm -f "$folder"/*.npy
    run attend "$@" --dtype "$type" --class f32 --causal bottom-right -o "$o" --lse "$folder/lse.npy" \
        --grad-out "$data/grad.npy" --dq "$folder/dq.npy" --dk "$folder/dk.npy" --dv "$folder/dv.npy"
    code 0
    no_out
    no_err
    near "$folder/lse.npy" "$data/${type}_lse.npy"
    for part in o dq dk dv; do near "$folder/$part.npy" "$data/${type}_$part.npy" "$share"; done
}
typed f16 0.001 $qkv_arrays
typed bf16 0.008 $qkv_arrays
typed bf16 0.008 --q "$data/q_untyped.npy" --k "$data/halves.safetensors:k" --v "$data/v.npy"
typed f16 0.001 --q "$data/q_swapped.npy" --k "$data/k.npy" --v "$data/halves.safetensors:v"
typed bf16 0.008 --q "$data/q_double.npy" --k "$data/k.npy" --v "$data/v.npy" --threads 3 --isa scalar
run attend $qkv_arrays --dtype f32 -o "$folder/f32.npy"
code 0
run attend $qkv_arrays --class f32 -o "$o"
code 0
check "--dtype f32 is not the default" cmp -s "$folder/f32.npy" "$o"
run attend --q "$data/q_swapped.npy" --k "$data/k.npy" --v "$data/v.npy" -o "$o"
code 0
check "NP05: big-endian floats differ" cmp -s "$folder/f32.npy" "$o"
for type in f32 f16; do
    run attend --q "$data/q_untyped.npy" --k "$data/k.npy" --v "$data/v.npy" --dtype $type -o "$o"
    code 1
    err "qkv: $data/q_untyped.npy: npy type <V2 is not supported, unless it is said to be bf16"
done
run attend $qkv_arrays --dtype f64 -o "$o"
code 2
run attend $qkv_arrays --dtype f16 --explain --isa scalar --threads 1
code 0
out_like 'q, k, v of 16 bits become f32 on the way, which is exact'

# Instruction sets and threads do not change a bit.
run attend $qkv_arrays -o "$folder/one.npy" --threads 1
for isa in $("$qkv" info | sed -n 's/^instructions  *\(.*\) (used.*/\1/p'); do
    run attend $qkv_arrays -o "$folder/$isa.npy" --isa "$isa" --threads 3
    code 0
    check "$isa gives other bits" cmp -s "$folder/one.npy" "$folder/$isa.npy"
done

# float64 is converted; ranks 2 and 3 give results of rank 2 and 3.
run attend --q "$data/q_double.npy" --k "$data/k.npy" --v "$data/v.npy" -o "$o"
code 0
near "$o" "$data/plain_o.npy"
run attend --q "$data/q_half.npy" --k "$data/q_half.npy" --v "$data/q_half.npy" -o "$o" --lse "$folder/lse.npy"
code 0
check "shape $(shape "$o")" test "$(shape "$o")" = "'shape':(5,8)"
check "shape $(shape "$folder/lse.npy")" test "$(shape "$folder/lse.npy")" = "'shape':(5,)"

# Rows that do not exist are 0 and -inf.
run attend $qkv_arrays -o "$o" --lse "$folder/lse.npy" --q-len 0
code 0
check "rows beyond --q-len" test "$(numbers "$o" | sort -u)" = 0
check "lse beyond --q-len" test "$(numbers "$folder/lse.npy" | sort -u)" = -inf

run attend $qkv_arrays -o "$o" --json
code 0
out_like '^{"n_batch":2,"n_heads":4,"n_kv_heads":2,"len_q":5,"len_k":7,"head_dim":8,"head_dim_v":6,"isa":"[a-z0-9]*","threads":[0-9]*,"seconds":[0-9.e-]*}$'
run attend $qkv_arrays -o "$o" -v
err_like '^qkv: 2 x 4 heads, 5 queries, 7 keys: '

# --explain: what would run, with -o also what it gives
run attend $qkv_arrays --explain --isa scalar --threads 1 --causal bottom-right
code 0
no_err
out_is explain
run attend $qkv_arrays --explain --isa scalar --threads 1 --grad-out "$data/grad.npy" --json
code 0
no_err
out_is explain_json
run attend $qkv_arrays --explain --isa scalar --threads 3 -o "$o" --json
code 0
near "$o" "$data/plain_o.npy"
out_like '"threads":3,"forward":{"kernel":"attend_block","isa":"scalar","arithmetic":"f32","threads":1,.*},"seconds":[0-9.e-]*}$'
rm -f "$o"
run attend $qkv_arrays --explain --q-len 0
code 0
out_like '^  kernel  *attend_block$'
check "--explain wrote a file" test ! -e "$o"

# Failures: exit code 1, a message, and no output file.
broken "--q has shape [2,4,5,8], --k has [2,4,5,6]: the head sizes differ" \
    --q "$data/q.npy" --k "$data/grad.npy" --v "$data/grad.npy"
broken "--dmask: $data/boolean.npy holds booleans, which have no gradient" \
    $qkv_arrays --mask "$data/boolean.npy" --grad-out "$data/grad.npy" --dmask "$folder/dmask.npy"
broken "--k has shape [2,2,7,8], --v has [2,4,5,6]: the heads differ" \
    --q "$data/q.npy" --k "$data/k.npy" --v "$data/grad.npy"
broken "--q has shape [2,2,7,8], --k has [2,4,5,8]: the heads of q are no multiple of those of k" \
    --q "$data/k.npy" --k "$data/q.npy" --v "$data/q.npy"
broken "--q has shape [5,8], --k has [2,2,7,8]: the ranks differ" \
    --q "$data/q_half.npy" --k "$data/k.npy" --v "$data/v.npy"
broken "--q $data/boolean.npy: holds booleans, not numbers" \
    --q "$data/boolean.npy" --k "$data/k.npy" --v "$data/v.npy"
integers="integers are 0 or 1, which sees; numbers that are added to scores are floating-point, in text with a point: -2.0"
broken "--mask $data/grad.npy: shape [2,4,5,6] does not broadcast to [2,2,7,7]" \
    --q "$data/k.npy" --k "$data/k.npy" --v "$data/v.npy" --mask "$data/grad.npy"
packed="--q $data/packed_q.npy --k $data/packed_k.npy --v $data/packed_v.npy"
broken "--cu-seqlens: 10 queries and 16 keys: name where the keys' sequences begin with --cu-seqlens-k" \
    $packed --cu-seqlens "$data/cu_q.npy"
broken "--cu-seqlens $data/cu_k.npy: ends with 16, but the arrays have 10 rows" \
    $packed --cu-seqlens "$data/cu_k.npy" --cu-seqlens-k "$data/cu_k.npy"
broken "--cu-seqlens: --q has 2 batches; sequences are packed in one" $qkv_arrays --cu-seqlens "$data/cu_q.npy"
broken "--cu-seqlens $data/segments_q.npy: shape [2,5] is not [N + 1]" \
    $packed --cu-seqlens "$data/segments_q.npy" --cu-seqlens-k "$data/cu_k.npy"
broken "--cu-seqlens $data/segments.npy: ends with 2, but the arrays have 10 rows" \
    $packed --cu-seqlens "$data/segments.npy" --cu-seqlens-k "$data/cu_k.npy"
broken "--block-mask $data/blocks.npy: shape [2,3,3] does not broadcast to [1,2,2,2], blocks of 64 queries and keys (--block-len)" \
    --q "$data/blocks_q.npy" --k "$data/blocks_k.npy" --v "$data/blocks_v.npy" --block-mask "$data/blocks.npy"
broken "--block-mask $data/segments.npy: [4] is 2: integers are 0 or 1, which sees" $qkv_arrays --block-mask "$data/segments.npy"
broken "--block-mask $data/grad.npy: does not hold booleans" $qkv_arrays --block-mask "$data/grad.npy"
broken "--segments: 5 queries and 7 keys: name the queries' segments with --segments-q" \
    $qkv_arrays --segments "$data/segments_k.npy"
broken "--segments $data/segments_q.npy: shape [2,5] is neither [B,L] nor [L], B = 2, L = 7" \
    $qkv_arrays --segments "$data/segments_q.npy"
broken "--segments $data/sink.npy: does not hold integers" $qkv_arrays --segments "$data/sink.npy"
broken "--mask-bits $data/segments_k.npy: shape [2,7] does not broadcast to [2,4,5,1], the last of them bytes of 8 keys" \
    $qkv_arrays --mask-bits "$data/segments_k.npy"
broken "--alibi $data/additive.npy: shape [5,7] is not [H], H = 4" $qkv_arrays --alibi "$data/additive.npy"
broken "--sink $data/boolean.npy: does not hold numbers" \
    $qkv_arrays --sink "$data/boolean.npy"
broken "--grad-lse $data/sink.npy: shape [4] is not that of lse, q's without the last" \
    $qkv_arrays --grad-out "$data/grad.npy" --grad-lse "$data/sink.npy" --dq "$folder/dq.npy"
broken "--prefix: 8 is more than the array's length, 7" $qkv_arrays --causal 0 --prefix 8
broken "--kv-len: 3 numbers for 2 batches" $qkv_arrays --kv-len 1,2,3
broken "--kv-len: 8 is more than the array's length, 7" $qkv_arrays --kv-len 8
broken "--grad-out has shape [2,4,5,8], --q has [2,4,5,8]: it must have the shape of the output, that of q with v's last size" \
    $qkv_arrays --grad-out "$data/q.npy" --dq "$folder/dq.npy"
run attend --q "$folder/none.npy" --k "$data/k.npy" --v "$data/v.npy" -o "$o"
code 1
err_like '^qkv: .*none.npy.*No such file'
# Arrays as text, integers and vectors: the same numbers from each form; small results are printed.
printf 'size,sweet\n1,0\n0,1\n' >"$folder/q.csv"
printf '1\t0\n0\t1\n1\t1\n' >"$folder/k.tsv"
printf '10.5\n20\n30\n' >"$folder/v.csv"
text="--q $folder/q.csv --k $folder/k.tsv --v $folder/v.csv"
run attend $text
code 0
no_err
out 'weights [2,3]
    0.401112    0.197776    0.401112
    0.197776    0.401112    0.401112
output [2,1]
     20.2006
     22.1323'
run attend $text --causal 0 --json
code 0
out_like '"weights":\[\[1.0,0.0,0.0\],\[0.330238461,0.669761539,0.0\]\],"o":\[\[10.5\],\[16.8627338\]\],"lse":\[0.707106769,1.10794032\],"seconds":'
run attend $text -o "$o"
code 0
no_out
check "shape $(shape "$o")" test "$(shape "$o")" = "'shape':(2,1)"
run attend $text --lse "$folder/lse.npy"
code 0
out_like '^output \[2,1\]$'
check "no lse" test -s "$folder/lse.npy"
printf 'true,true,false\ntrue,false,false\n' >"$folder/mask.csv"
run attend $text --mask "$folder/mask.csv"
code 0
out_like '^           1           0           0$'
printf '0,0,-inf\n0,-inf,-inf\n' >"$folder/mask.csv"
run attend $text --mask "$folder/mask.csv"
code 0
out_like '^           1           0           0$'
printf '0.5\n' >"$folder/one.csv"
run attend $text --sink "$folder/one.csv"
code 0
run attend $text --dtype f16
code 1
err "qkv: --q $folder/q.csv: holds integers, which are read with --dtype f32"
sed 's/0/0.0/' "$folder/k.tsv" >"$folder/kf.csv"
run attend --q "$folder/kf.csv" --k "$folder/kf.csv" --v "$folder/v.csv" --dtype f16
code 0
out_like '^output \[3,1\]$'
run attend --q "$folder/q.csv" --k "$folder/k.tsv" --v "$data/q_half.npy"
code 1
err "qkv: --k has shape [3,2], --v has [5,8]: the lengths differ"
broken "--k $data/sink.npy: shape [4] is none of [B,H,L,D], [H,L,D], [L,D]" \
    --q "$data/q_half.npy" --k "$data/sink.npy" --v "$data/v.npy"
run attend $qkv_arrays --q-len 1 --causal 0
code 0
out_like '^batch 1, head 3$'
positions=$here/../../models/default/model.safetensors:bert.embeddings.position_embeddings.weight
run attend --q "$positions" --k "$positions" --v "$positions"
code 1
err_like 'numbers, and up to 1024 are printed: -o F.npy writes them$'
# One query [D] and one number for each key [L], in integers: the output is one number, as numpy has it.
vector() { # NAME SHAPE NUMBERS...: integers of 64 bits
    name=$1 shape=$2
    shift 2
    {
        printf '\223NUMPY\001\000\166\000'
        printf '%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': $shape, }"
        for number in "$@"; do printf "\\$(printf %03o "$number")\000\000\000\000\000\000\000"; done
    } >"$folder/$name.npy"
}
vector one_q '(2,)' 1 0
vector one_v '(3,)' 10 20 30
run attend --q "$folder/one_q.npy" --k "$folder/k.tsv" --v "$folder/one_v.npy" --json
code 0
out_like '"weights":\[0.40111208,0.197775811,0.40111208\],"o":20.0,"lse":1.62062109'
run attend --q "$folder/one_q.npy" --k "$folder/k.tsv" --v "$folder/one_v.npy" -o "$o" --lse "$folder/lse.npy"
code 0
check "shape $(shape "$o")" test "$(shape "$o")" = "'shape':()"
check "shape $(shape "$folder/lse.npy")" test "$(shape "$folder/lse.npy")" = "'shape':()"
run attend --q "$folder/one_q.npy" --k "$folder/k.tsv" --v "$folder/v.csv" -o "$o"
code 0
check "shape $(shape "$o")" test "$(shape "$o")" = "'shape':(1,)"

# A NaN has no sign to print.
printf '1,nan\ninf,-inf\n' >"$folder/nan.csv"
printf '1,2\n3,4\n' >"$folder/x.csv"
run attend --q "$folder/nan.csv" --k "$folder/x.csv" --v "$folder/x.csv"
code 0
check "a sign" test "$(tr -d ' \n' <"$folder/out")" = 'weights[2,2]nannannannanoutput[2,2]nannannannan'

# --stats: JSON of every head; what it says of weights agrees with itself and with o's files.
stats=$folder/stats.json
# lists NAME: the list of that name of the first head, one number a line
lists() { awk -v name="\"$1\":[" 'index($0, name) == 1 { sub(/^[^[]*\[/, ""); sub(/\].*/, ""); gsub(/,/, "\n"); print; exit }' "$stats"; }
rm -f "$folder"/*.npy "$stats"
run attend $qkv_arrays -o "$o" --lse "$folder/lse.npy" --stats "$stats" --causal 0
code 0
no_out
no_err
near "$o" "$data/top_left_o.npy"
check "$stats is no JSON" python3 -c "import json, sys; json.load(open(sys.argv[1]))" "$stats"
check "not 8 heads" test "$(grep -c '^{"batch"' "$stats")" = 8
check "the first query sees one key" test "$(lists entropy | head -1),$(lists effective_keys | head -1)" = 0,1
check "received is not the number of rows" test "$(lists received | awk '{ s += $1 } END { printf "%.5f", s }')" = 5.00000
check "n_queries" test "$(lists n_queries | tr '\n' ,)" = 5,4,3,2,1,0,0,
numbers "$folder/lse.npy" | head -5 >"$folder/a"
lists lse >"$folder/b"
check "lse is another one" test "$(paste "$folder/a" "$folder/b" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d } END { print (m < 1e-6) }')" = 1
# Beside a sink a row of one key has weights that sum to less than 1, and no entropy: the file says what entropy is of.
printf '0.5\n' >"$folder/sink.csv"
printf '1,2\n' >"$folder/one.csv"
run attend --q "$folder/one.csv" --k "$folder/one.csv" --v "$folder/one.csv" -o "$o" --stats "$stats" --sink "$folder/sink.csv"
code 0
check "the weight of the key" grep -q '"largest":\[0\.954[0-9]*\]' "$stats"
check "no entropy" grep -q '"entropy":\[0\],' "$stats"
check "what it is of" grep -qF 'these three of p_ij / sum_j p_ij, which a sink alone makes another p_ij' "$stats"
# Every option that decides what is seen and what a score is, those with numbers too.
printf '0,0,1\n' >"$folder/k.csv"
printf '1,0,1\n' >"$folder/q.csv"
printf '1,1,1\n' >"$folder/ones.csv"
printf '1,2\n3,4\n5,6\n' >"$folder/x.csv"
arrays="--q $folder/x.csv --k $folder/x.csv --v $folder/x.csv"
run attend $arrays -o "$o" --stats "$stats" --softcap 1.5 --segments "$folder/k.csv" --segments-q "$folder/q.csv"
code 0
check "options of segments" grep -qF "\"options\":{\"segments\":\"$folder/k.csv\",\"segments_q\":\"$folder/q.csv\",\"softcap\":1.5}" "$stats"
printf '1\n' >"$folder/block.csv"
printf '0\n1\n3\n' >"$folder/cu.csv"
run attend $arrays -o "$o" --stats "$stats" --block-mask "$folder/block.csv" --block-len 32
code 0
check "options of blocks" grep -qF "\"options\":{\"block_mask\":\"$folder/block.csv\",\"block_len\":32}" "$stats"
run attend $arrays -o "$o" --stats "$stats" --cu-seqlens "$folder/cu.csv" --cu-seqlens-k "$folder/cu.csv"
code 0
check "options of sequences" grep -qF "\"options\":{\"cu_seqlens\":\"$folder/cu.csv\",\"cu_seqlens_k\":\"$folder/cu.csv\"}" "$stats"
run attend $qkv_arrays -o "$o" --stats "$stats" --q-len 0
code 0
check "means of no rows are null" grep -q '"means":{"entropy":null' "$stats"
rm -f "$stats"
run attend $qkv_arrays -o "$folder/no/o.npy" --stats "$stats"
code 1
check "statistics without the output" test ! -e "$stats"
run attend $qkv_arrays -o "$o" --stats "$folder/no/stats.json"
code 1
err_like '^qkv: .*no/stats.json'
run attend $qkv_arrays -o "$folder/no/o.npy"
code 1
err_like '^qkv: .*no/o.npy'
check "a temporary file is left" sh -c "! ls '$folder' | grep -q 'npy\.'"

# ---- Over ranks, which tests/mpi has ------------------------------------------------------------

usage attend "--mpi together with --mask" attend $qkv_arrays --mpi --mask x.npy -o "$o"
usage attend "--mpi together with --grad-out" attend $qkv_arrays --mpi --grad-out x.npy -o "$o"
usage attend "--mpi goes with -o" attend $qkv_arrays --mpi

# ---- Masks of 0 and 1, as tokenizers make them ---------------------------------------------------

# npy DESCR SHAPE: a file of the bytes that standard input has in octal
npy() {
    dict="{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
    printf '\223NUMPY\001\000%b%s\n' "\\0$(printf %03o $((${#dict} + 1)))\\0000" "$dict"
    printf '%b' "$(cat)"
}
: | npy '<f4' '(0, 8)' >"$folder/none.npy"
run attend --q "$folder/none.npy" --k "$data/q_half.npy" --v "$data/q_half.npy" -o "$o" --stats "$stats"
code 0
check "statistics of no queries have a map" test "$(grep -c '"map":{"n_tiles_q"' "$stats")" -eq 0
# ones WIDTH: 0 and 1 of mask.csv as little-endian integers of so many bytes
ones() {
    tr ',' '\n' <"$folder/mask.csv" | while read -r bit; do
        printf '\\0%03o' "$bit"
        for more in $(seq 2 "$1"); do printf '\\0000'; done
    done
}
printf '%s\n' 1,1,0,1,0,1,1 1,0,0,1,0,1,1 0,0,1,0,0,0,0 1,1,1,1,1,1,1 0,1,0,1,0,1,0 >"$folder/mask.csv"
sed 's/1/true/g; s/0/false/g' "$folder/mask.csv" >"$folder/words.csv"
ones 8 | npy '<i8' '(5, 7)' >"$folder/i8.npy"
ones 4 | npy '<i4' '(5, 7)' >"$folder/i4.npy"
ones 1 | npy '|u1' '(5, 7)' >"$folder/u1.npy"
run attend $qkv_arrays --mask "$folder/words.csv" -o "$folder/words.npy"
code 0
no_err
for mask in mask.csv i8.npy i4.npy u1.npy; do
    run attend $qkv_arrays --mask "$folder/$mask" -o "$folder/o.npy"
    code 0
    no_err
    check "$mask is not the mask of true and false" cmp -s "$folder/o.npy" "$folder/words.npy"
done
# With a point they are numbers, which are added; that is said, as it may not be meant.
sed 's/[01]/&.0/g' "$folder/mask.csv" >"$folder/added.csv"
run attend $qkv_arrays --mask "$folder/added.csv" -o "$folder/o.npy"
code 0
err "qkv: --mask $folder/added.csv: floating-point numbers, which are added to scores, though all are 0 or 1; to tell who sees, store booleans or integers"
check "added" test "$(cmp -s "$folder/o.npy" "$folder/words.npy"; echo $?)" -eq 1
sed 's/1.0,0.0/1.0,-inf/' "$folder/added.csv" >"$folder/inf.csv"
run attend $qkv_arrays --mask "$folder/inf.csv" -o "$folder/o.npy"
code 0
no_err
# Other integers are named, with their place.
sed '3s/0,0,1/0,0,7/' "$folder/mask.csv" >"$folder/seven.csv"
broken "--mask $folder/seven.csv: [2,2] is 7: $integers" $qkv_arrays --mask "$folder/seven.csv"
printf '%s\n' 0,-10000 >"$folder/low.csv"
broken "--mask $folder/low.csv: [0,1] is -10000: $integers" $qkv_arrays --mask "$folder/low.csv"
printf '1,0,1\n1,1,0\n' >"$folder/batch.csv"
broken "--mask $folder/batch.csv: shape [2,3] does not broadcast to [2,4,5,7]" $qkv_arrays --mask "$folder/batch.csv"
printf '%s\n' 1,1,1,0,0,1,1 1,1,1,1,1,1,1 >"$folder/batch.csv"
broken "--mask $folder/batch.csv: shape [2,7] does not broadcast to [2,4,5,7]; [batch, keys] is to be [batch,1,1,keys]" \
    $qkv_arrays --mask "$folder/batch.csv"

# ---- Standard input ------------------------------------------------------------------------------

run attend $qkv_arrays -o "$folder/o.npy"
"$qkv" attend --q - --k "$data/k.npy" --v "$data/v.npy" -o "$folder/p.npy" <"$data/q.npy" 2>"$folder/err"
check "q" cmp -s "$folder/o.npy" "$folder/p.npy"
cat "$data/v.npy" | "$qkv" attend --q "$data/q.npy" --k "$data/k.npy" --v - -o "$folder/p.npy" 2>"$folder/err"
check "v of a pipe" cmp -s "$folder/o.npy" "$folder/p.npy"
"$qkv" attend $qkv_arrays --mask - -o "$folder/p.npy" <"$folder/mask.csv" 2>"$folder/err"
check "a mask as text" cmp -s "$folder/p.npy" "$folder/words.npy"
"$qkv" info - <"$data/q.npy" >"$folder/out" 2>"$folder/err"
out_like '^shape  *\[2,4,5,8\]$'
refused() { # WORDS ARGS...: what is said of standard input, in $input
    words=$1
    shift
    said="qkv attend $*"
    "$qkv" attend "$@" <"$input" >"$folder/out" 2>"$folder/err"
    got=$?
    code 1
    no_out
    err "qkv: $words"
}
input=$data/q.npy
refused "'-' can be read only once" --q - --k - --v "$data/v.npy"
refused "--q has shape [2,4,5,8], --k has [2,4,5,6]: the head sizes differ" --q - --k "$data/grad.npy" --v "$data/grad.npy"
refused "--mask -: shape [2,4,5,8] does not broadcast to [2,4,5,7]" $qkv_arrays --mask -
input=/dev/null
refused "standard input: no line has a number" --q - --k "$data/k.npy" --v "$data/v.npy"
input=$folder/seven.csv
refused "--mask -: [2,2] is 7: $integers" $qkv_arrays --mask -
printf 'PK\003\004' >"$folder/zip"
input=$folder/zip
refused "standard input: is a zip: a .npz is read from a file, as FILE:NAME" --q - --k "$data/k.npy" --v "$data/v.npy"
head -c 200 "$data/q.npy" >"$folder/cut"
input=$folder/cut
refused "standard input: the npy header claims 1280 bytes of data, 72 are there" --q - --k "$data/k.npy" --v "$data/v.npy"
finish
