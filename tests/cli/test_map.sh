# qkv map: the same points in every form, what options change, what is refused, and Ctrl-C, which keeps the best so far.
. ./lib.sh
data=$here/data
d=$folder/d
mkdir "$d"
m="--model $model"
sentence="the [MASK] opened a man."
map() { run map "$sentence" $m --quiet "$@"; }
# value NAME: a number of the JSON in out
value() { sed "s/.*\"$1\":\([^,}]*\).*/\1/" "$folder/out"; }

# array N,D FILE: an .npy of the floats on standard input
array() {
    {
        printf '\223NUMPY\001\000\166\000'
        printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
        cat
    } >"$2"
}

# ---- Forms -------------------------------------------------------------------------------------

map --json
code 0
no_err
cp "$folder/out" "$d/a.json"
check "8 queries" test "$(value runs)" = 32
out_like '^{"layer":[01],"head":[01],"method":"tsne","metric":"cosine","perplexity":5\.0,"kl":'
map -o "$d/b.json"
code 0
no_out
check "-o F.json is what --json prints" cmp -s "$d/a.json" "$d/b.json"
map -o "$d/a.csv"
code 0
check "the first line" test "$(head -n 1 "$d/a.csv")" = kind,index,token,x,y,pca_x,pca_y
check "a line for each point" test "$(wc -l <"$d/a.csv")" -eq 17
check "tokens" test "$(tail -n +2 "$d/a.csv" | cut -d, -f3 | tr '\n' ' ')" = "[CLS] the [MASK] opened a man . [SEP] [CLS] the [MASK] opened a man . [SEP] "
# the same coordinates
sed 's/.*"queries":\[/\n/; s/"keys":\[/\n/g' "$d/a.json" | grep -o '"xy":\[[^]]*\]' | sed 's/"xy":\[//; s/\]//' >"$d/json"
tail -n +2 "$d/a.csv" | cut -d, -f4,5 >"$d/csv"
check "16 points" test "$(wc -l <"$d/json")" -eq 16
check "other coordinates in csv" test "$(paste -d, "$d/json" "$d/csv" | awk -F, '
    function far(a, b) { a -= b; return a < -1e-6 || a > 1e-6 } far($1, $3) || far($2, $4) { n++ } END { print n + 0 }')" -eq 0
for kind in png svg pdf; do
    map -o "$d/a.$kind"
    code 0
    no_out
    no_err
    map -o "$d/b.$kind"
    check "other bytes of $kind" cmp -s "$d/a.$kind" "$d/b.$kind"
done
check "the caption" grep -q 'the least of 32 runs' "$d/a.svg"
run map "$sentence" $m -o "$d/a.svg"
code 0
err "qkv: wrote $d/a.svg"

# On a terminal: a mark for each point that is not hidden, labels, a caption; nothing but ASCII if asked.
map
code 0
no_err
out_like '^Layer [01], head [01]: \[MASK\] looks at '
out_like '● query  ▲ key'
out_like '●\[MASK\]\|\[MASK\]●'
map --ascii --head 0.1
code 0
out_like '^Layer 0, head 1: '
check "ASCII in the field" test "$(head -n 12 "$folder/out" | LC_ALL=C grep -c '[^ -~]')" -eq 0
out_like 'o query  ^ key'
check "no wider than the terminal" test "$(awk 'length > 80' "$folder/out" | wc -l)" -le 2
for columns in 20 40 200 1000; do
    said="COLUMNS=$columns qkv map"
    COLUMNS=$columns "$qkv" map "$sentence" $m >"$folder/out" 2>"$folder/err"
    got=$?
    code 0
done

# ---- Options -----------------------------------------------------------------------------------

map --json --threads 1
check "other bytes with one thread" cmp -s "$folder/out" "$d/a.json"
for isa in scalar avx2 avx512 neon; do
    "$qkv" info | grep -q "instructions.* $isa" || continue
    map --json --isa $isa --head 1.1
    code 0
    [ -e "$d/isa" ] || cp "$folder/out" "$d/isa"
    check "other bytes of $isa" cmp -s "$folder/out" "$d/isa"
done
for metric in cosine cosine-plain euclidean inner; do
    map --json --metric $metric --iters 300 --restarts 2
    code 0
    check "metric $metric" grep -q "\"metric\":\"$metric\"" "$folder/out"
    check "2 runs" test "$(value runs)" = 2
    check "300 iterations" test "$(value iterations)" = 300
done
map --json --perplexity 3.5 --seed 9 --init random --center-keys --balance 2 --no-early-stop --top 0
code 0
check "perplexity" test "$(value perplexity)" = 3.5
check "seed" test "$(value seed)" = 9
check "no lines" grep -q '"lines":{"query":[0-9]*,"keys":\[\]}' "$folder/out"
map --json --balance auto
code 0
out_like '"balance":\(0\.[248]\|1\.0\|1\.25\|2\.5\|5\.0\),'
map --json --pca
code 0
out_like '"method":"pca".*"kl":null'
# The method of Barnes and Hut: by name, the same bytes for any threads and instruction set, in the caption.
map --json
out_like '"gradient":"exact","theta":null'
map --json --method exact
check "the method is exact by itself" cmp -s "$folder/out" "$d/a.json"
map --json --method barnes-hut --theta 0.3 --iters 200
code 0
out_like '"gradient":"barnes-hut","theta":0\.3'
cp "$folder/out" "$d/tree"
for more in "--threads 1" "--threads 3 --isa scalar"; do
    map --json --method barnes-hut --theta 0.3 --iters 200 $more
    check "other bytes with $more" cmp -s "$folder/out" "$d/tree"
done
map --method barnes-hut
code 0
out_like '(Barnes-Hut, \|theta 0\.5), metric'
map --json --query 3 --top 5
code 0
out_like '"lines":{"query":3,"keys":\[{"key":[0-9]*,"weight":[^}]*}\(,{[^}]*}\)\{4\}\]}'
map --json --query opened
code 0
out_like '"lines":{"query":3,'
run map "the man saw the man" $m --query the
code 1
err "qkv: --query: 'the' stands 2 times, at tokens 1 and 4: name one by its number"
run map "the man saw the man" $m --query 4 --json
code 0
out_like '"lines":{"query":4,'
map --pair "the [MASK]" --json
code 0
out_like '"token":"\[SEP\]"'
feed '"the man"' map --jsonl $m
code 0
out_like '^{"layer":'
feed '["the man", 3]' map --jsonl $m
code 1
out_like '^{"error":"line 1: '

# ---- Arrays ------------------------------------------------------------------------------------

run map --q "$data/nothing.npy" --k "$data/nothing.npy"
code 1
err_like 'nothing.npy: cannot open: No such file'
run map --q "$data/q.npy" --k "$data/k.npy"
code 1
err_like 'q.npy: not an array of numbers of \[n, head_dim\]$'
printf '\000\000\200\077\000\000\000\100\000\000\100\100\000\000\200\100\000\000\240\100\000\000\300\100' | array '3, 2' "$d/q.npy"
printf '\000\000\200\077\000\000\000\100\000\000\100\100\000\000\300\177' | array '2, 2' "$d/nan.npy"
printf '\000\000\200\077\000\000\000\100\000\000\100\100' | array '1, 3' "$d/wide.npy"
run map --q "$d/q.npy" --k "$d/q.npy" --query 1 --json
code 0
out_like '"method":"tsne".*"queries":\[{"token":"q0".*"keys":\[{"token":"k0".*"lines":{"query":1,'
run map --q "$d/q.npy" --k "$d/q.npy" -o "$d/q.csv" --quiet
code 0
check "6 points" test "$(wc -l <"$d/q.csv")" -eq 7
run map --q "$d/q.npy" --k "$d/nan.npy"
code 1
err 'qkv: k[1][1] = nan is not finite'
run map --q "$d/q.npy" --k "$d/wide.npy"
code 1
err_like "q.npy has rows of 2 numbers, .*wide.npy of 3$"
run map --q "$d/q.npy" --k "$d/q.npy" --query 3
code 1
err_like "^qkv: --query: '3' is none of 3 queries$"

# ---- Refusals ----------------------------------------------------------------------------------

map --perplexity 16
code 1
err 'qkv: perplexity = 16 is not at least 1 and less than the 16 points'
map --perplexity nan
code 2
map --balance -3
code 1
err 'qkv: balance = -3 is not in 1e-6 ... 1e6'
map --method barnes-hut --theta 2
code 1
err 'qkv: theta = 2 is not in 0 ... 1'
map --query zebra
code 1
err "qkv: --query: 'zebra' is none of the 8 tokens"
map --query 8
code 1
for wrong in "--metric dot" "--method x" "--balance x" "--balance nan" "--theta x" "--iters 0" "--iters 100000001" "--restarts 0" "--top 65" "--seed -1" "--init x" "--head 9.9" \
    "-o x.npy" "-o x" "-o $d/x.png --json" "--q $d/q.npy" "--k $d/q.npy" "--q $d/q.npy --k $d/q.npy"; do
    map $wrong
    code 2
    no_out
done
for wrong in "--perplexity 0|--perplexity: 0 is not at least 1" "--theta 0|--theta: 0 is not above 0" \
    "--balance 0|--balance: 0 is not in 1e-6 ... 1e6" "--method exact --theta 0.3|--theta together with --method exact"; do
    map ${wrong%|*}
    code 2
    err_like "^qkv map: ${wrong#*|}\$"
done
for wrong in "--perplexity 3" "--method exact" "--theta 0.3" "--iters 5" "--restarts 2" "--init random" "--seed 1" --no-early-stop; do
    map --pca $wrong
    code 2
    err_like "^qkv map: --pca together with ${wrong%% *}, which is of t-SNE\$"
done
for scale in 0 -0.0 1e-50; do
    run map --q "$d/q.npy" --k "$d/q.npy" --query 0 --scale $scale
    code 2
    err_like '^qkv map: --scale: .* is no factor: as a float it is 0$'
done
run map
code 2
err_like '^qkv map: TEXT is missing$'
run map --q "$d/q.npy" --k "$d/q.npy" --head 1.1
code 2
err_like '^qkv map: --q and --k together with --head$'
map -o "$d/none/x.png"
code 1
err_like 'No such file or directory'

# ---- Layers with a window ----------------------------------------------------------------------

# Lines go to the keys that the head's query sees: four of them in this model.
run map "she was when . , ? w0 w1 w2 w3" --model "$here/../golden/llama/mistral_1" --head 1.1 --query 8 --top 20 --json --quiet
code 0
check "lines of a window" test "$(grep -o '"key":' "$folder/out" | wc -l)" -eq 4

# ---- Ctrl-C ------------------------------------------------------------------------------------

# A signal that comes before the map has begun is another case, so it is sent again, after four times as much CPU.
for signal in INT TERM; do
    rm -f "$d/x.csv"
    for ticks in 10 40 160 640 2560; do
        interrupt $signal map "$sentence" $m --iters 100000000 --no-early-stop -o "$d/x.csv"
        [ -f "$d/x.csv" ] && break
    done
    unset ticks
    code $([ $signal = INT ] && echo 130 || echo 143)
    no_out
    err_like '^qkv: stopped: this is the best of 1 begun runs$'
    err_like "^qkv: wrote .*x.csv$"
    err_like '^qkv: interrupted$'
    check "the map is not whole" test "$(wc -l <"$d/x.csv")" -eq 17
done
# A terminal without UTF-8
LANG=C run map "the man opened the [MASK]." $m --restarts 1 --iters 50
code 0
out_says 'D = (1 - cos)^2'
check "no sign beyond ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' \"\$1\"" - "$folder/out"


# Names for the rows of arrays.
printf '1,0\n0,1\n1,1\n2,1\n' >"$folder/k.csv"
printf 'door\nkey\nhouse\nbox\n' >"$folder/tokens.txt"
run map --q "$folder/k.csv" --k "$folder/k.csv" --tokens "$folder/tokens.txt" --query house -o "$folder/named.csv"
code 0
check "labels" test "$(cut -d, -f3 "$folder/named.csv" | tr '\n' ' ')" = "token door key house box door key house box "
run map --q "$folder/k.csv" --k "$folder/k.csv" --q-tokens "$folder/tokens.txt" -o "$folder/named.csv"
code 0
check "labels" test "$(cut -d, -f3 "$folder/named.csv" | tr '\n' ' ')" = "token door key house box k0 k1 k2 k3 "
run map "I saw the dog." --tokens "$folder/tokens.txt"
code 2
err_like '^qkv map: --tokens without --q and --k$'
run map --q "$folder/k.csv" --k "$folder/k.csv" --tokens "$folder/none"
code 1
err_like '^qkv: --tokens .*none'
finish
