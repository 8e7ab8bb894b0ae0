# Help, and what a wrong command line says.
. ./lib.sh

run help
code 0
no_err
out_is help
run --help
code 0
out_is help
for command in look fill next heads map explain lookup attend train eval info bench check tokenize help; do
    run help $command
    code 0
    no_err
    out_is help_$command
    check "a command of help is broken" awk '/^[^ ]/ && before ~ /^    qkv/ { exit 1 } { before = $0 }' "$folder/out"
    run $command --help
    code 0
    out_is help_$command
done

# Of every command no line is too wide, and no option of the usage is cut off.
run help
code 0
check "a line of help passes 80 columns" sh -c "! grep -q '.\{81\}' '$folder/out'"
for command in $("$qkv" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    run help "$command"
    code 0
    check "a line of help passes 80 columns" sh -c "! grep -q '.\{81\}' '$folder/out'"
    check "the usage is cut off" awk '/^$/ { exit open } { open += gsub(/\[/, "") - gsub(/\]/, "") }' "$folder/out"
done

# Every option has its text, and every text its option: cli/help/COMMAND.txt, and common.txt of those that several commands take.
texts=$here/../../cli/help
for command in $("$qkv" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    said="the texts of $command"
    "$qkv" help "$command" --format scdoc | sed -n 's/^\*\(-[a-z0-9-]*\)\*.*/## \1/p' | grep -vx '## -h' >"$folder/taken"
    cat "$folder/taken" >>"$folder/all_taken"
    grep '^## ' "$texts/$command.txt" >"$folder/own"
    check "its name" test "$(head -1 "$texts/$command.txt")" = "# $command"
    check "texts of no option" test -z "$(grep -vxFf "$folder/taken" "$folder/own")"
    check "options without a text" test -z "$(cat "$folder/own" "$texts/common.txt" | grep -vxFf - "$folder/taken")"
done
said="common.txt"
check "texts of no option" test -z "$(grep '^## ' "$texts/common.txt" | grep -vxFf "$folder/all_taken")"
run --version
code 0
out_like '^qkv [0-9]*\.[0-9]*\.[0-9]*\(-dev\)\{0,1\}$'

run
code 2
no_out
err "qkv: a command is missing
Try 'qkv help'."
run lok x
code 2
err "qkv: unknown command 'lok'; did you mean 'look'?
Try 'qkv help'."
run zzzzzz
code 2
err "qkv: unknown command 'zzzzzz'
Try 'qkv help'."

usage help "unknown command 'frob'" help frob
usage look "TEXT is missing" look
usage look "unexpected argument 'was' (put a text in quotes)" look I was
usage look "unknown option '--haed'; did you mean '--head'?" look x --haed 1.1
usage look "unknown option '--zzzzzz' ('--' goes before a text that begins with '-')" look --zzzzzz
usage look "--top: N is missing" look x --top
usage look "--top: '0' is not a whole number from 1 to 1000" look x --top 0
usage look "--top: '5x' is not a whole number from 1 to 1000" look x --top=5x
usage look "--top: ' 5' is not a whole number from 1 to 1000" look x --top ' 5'
usage look "--top: '99999999999999999999' is not a whole number from 1 to 1000" look x --top 99999999999999999999
usage look "--top: '\u{1b}[31m' is not a whole number from 1 to 1000" look x --top "$(printf '\033[31m')"
usage look "--json takes no value" look x --json=yes
usage look "--theme: 'blue' is not one of light|dark" look x --theme blue
usage attend "--dtype: 'f64' is not one of f32|bf16|f16" attend --q q --k k --v v -o o.npy --dtype f64
usage attend "--class: 'x' is not one of auto|f32|dp|amx" attend --q q --k k --v v -o o.npy --class x
usage look "--pair: an empty value" look x --pair ''
usage look "-o: 'a.gif' ends in none of .html .png .svg .pdf .json .csv .npy" look x -o a.gif
usage look "-o: 'png' ends in none of .html .png .svg .pdf .json .csv .npy" look x -o png
usage look "-o together with --json" look x -o a.png --json
usage look "--threads: '0' is not a whole number from 1 to 1024" look x --threads 0
usage look "--head: 'a.b' is not L.H or H" look x --model "$model" --head a.b
usage look "--head: '-1.0' is not L.H or H" look x --model "$model" --head -1.0
usage look "--head 1 names no layer: --head L.1, or --layer L --head 1" look x --model "$model" --head 1
usage look "--head 1.1 and --layer 0 are different layers" look x --model "$model" --head 1.1 --layer 0
usage look "--layer without --head" look x --model "$model" --layer 1
usage look "--head: there is no 7.0: the model has layers 0 to 1, heads 0 to 1" look x --model "$model" --head 7.0
usage next "B is missing" next "a"
usage fill "there is no [MASK] in the text" fill "a man" --model "$model"
usage fill "--jsonl reads texts from standard input, not 'x'" fill x --jsonl --model "$model"

usage attend "--q F is missing" attend --k k --v v -o o.npy
usage attend "--lse needs -o: --explain alone computes nothing" attend --q q --k k --v v --explain --lse l.npy
usage attend "--dq needs -o: --explain alone computes nothing" \
    attend --q q --k k --v v --explain --grad-out g --dq l.npy
usage attend "unexpected argument 'x'" attend --q q --k k --v v -o o.npy x
usage attend "-o: 'o' is neither F.npy nor F.npz:NAME" attend --q q --k k --v v -o o
usage attend "-o and --lse name the same file" attend --q q --k k --v v -o o.npy --lse o.npy
usage attend "--causal names the offset already: not together with --q-offset" attend --q q --k k --v v -o o.npy --causal top-left --q-offset 3
usage attend "--causal: 'middle' is not top-left, bottom-right or a list of offsets" attend --q q --k k --v v -o o.npy --causal middle
usage attend "--window: '3' is not LEFT,RIGHT (-1: unbounded)" attend --q q --k k --v v -o o.npy --window 3
usage attend "--window: '-2,0' is not LEFT,RIGHT (-1: unbounded)" attend --q q --k k --v v -o o.npy --window -2,0
usage attend "--kv-len: '-1' is not a list of whole numbers from 0" attend --q q --k k --v v -o o.npy --kv-len -1
usage attend "--q-len: '1,,2' is not a list of whole numbers from 0" attend --q q --k k --v v -o o.npy --q-len 1,,2
usage attend "--scale: 'nan' is not a finite number" attend --q q --k k --v v -o o.npy --scale nan
usage attend "--softcap: 0 is not above 0" attend --q q --k k --v v -o o.npy --softcap 0
usage attend "--dq, --dk, --dv, --dsink and --dmask need --grad-out" attend --q q --k k --v v -o o.npy --dq d.npy
usage attend "--grad-out needs one of --dq, --dk, --dv, --dsink, --dmask" attend --q q --k k --v v -o o.npy --grad-out g
usage attend "--grad-lse needs --grad-out" attend --q q --k k --v v -o o.npy --grad-lse g
usage attend "--dsink needs --sink" attend --q q --k k --v v -o o.npy --grad-out g --dsink d.npy
usage attend "--dmask needs --mask" attend --q q --k k --v v -o o.npy --grad-out g --dmask d.npy
for text in 0.5 0.5, ,1 1.5,1 -0.1,1 nan,1 0.5,-1 0.5,x 0.5,1,2; do
    usage attend "--dropout: '$text' is not P,SEED, P from 0 to 1 and SEED a whole number from 0" \
        attend --q q --k k --v v -o o.npy "--dropout=$text"
done
usage attend "--segments-q needs --segments" attend --q q --k k --v v -o o.npy --segments-q s
usage attend "--cu-seqlens-k needs --cu-seqlens" attend --q q --k k --v v -o o.npy --cu-seqlens-k s
usage attend "--block-len needs --block-mask" attend --q q --k k --v v -o o.npy --block-len 32
usage attend "--mask and --mask-bits are the same mask: give one" \
    attend --q q --k k --v v -o o.npy --mask m --mask-bits m
usage attend "--prefix needs --causal: without it every key is seen anyway" \
    attend --q q --k k --v v -o o.npy --prefix 3
usage train "--out DIR is missing" train --text t
usage train "--text or --grammar is missing" train --out d
usage train "--text and --grammar together: give one of them" train --out d --text t --grammar g
usage eval "--text or --grammar is missing" eval --model "$model"
usage eval "--check needs --grammar: which language is it?" eval --text t --check j
usage eval "--check reads a text: no --model takes part" eval --grammar g --check j --model "$model"
usage eval "--check reads a text: no --weights takes part" eval --grammar g --check j --weights int8
usage eval "--check reads a text: no --seed takes part" eval --grammar g --check j --seed 2
usage eval "--seed goes with --grammar" eval --text t --seed 2
usage eval "--stride is of models that predict the next token" eval --text t --stride 2

# Instruction sets and threads by option and by variable.
run info --isa vax
code 2
err_like "^qkv info: --isa: 'vax' is not one of those usable here: scalar"
QKV_ISA=vax
export QKV_ISA
run info
code 2
err_like "^qkv info: QKV_ISA: 'vax' is not one of those usable here: scalar"
unset QKV_ISA
QKV_NUM_THREADS=many
export QKV_NUM_THREADS
run info
code 2
err "qkv info: QKV_NUM_THREADS: 'many' is not a whole number from 1 to 1024
Try 'qkv help info'."
unset QKV_NUM_THREADS
run info --isa scalar --threads 3
code 0
out_like '^threads       3$'
out_like '(used: scalar)$'

# A full disk is told, a reader that has gone is not.
said="qkv help > /dev/full"
"$qkv" help >/dev/full 2>"$folder/err"
got=$?
code 1
err "qkv: standard output: No space left on device"
said="qkv help, unread"
unread "$qkv" help 2>"$folder/err"
code 1
no_err
finish
