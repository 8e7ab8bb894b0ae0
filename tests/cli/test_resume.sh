# train: Ctrl-C stops after the current step; --resume ends with the same bits; what is not this run is refused.
. ./lib.sh
text=$folder/text.txt
for who in man woman dog cat girl boy; do
    for what in door box key house; do
        printf 'the %s saw the %s .\tit opened when the %s left .\n' $who $what $who
    done
done >"$text"
small="--layers 1 --heads 2 --hidden 16 --vocab 200 --len 24 --batch 8 --report-every 7 --quiet"
checkpoint=checkpoint.safetensors

# The instruction sets of this machine, one after the other.
isas=$("$qkv" info 2>/dev/null | sed -n 's/^instructions *\(.*\) (used.*/\1/p' | tr -d ,)
isas=${isas:-scalar}

# stop SIGNAL SECONDS ARGS...   trains in the background and sends a signal; the exit code is in $got
stop() {
    signal=$1
    delay=$2
    shift 2
    said="qkv train $*, $signal after $delay s"
    : >"$folder/out"
    "$qkv" train "$@" 2>"$folder/err" &
    process=$!
    sleep "$delay"
    kill -s "$signal" $process 2>/dev/null
    wait $process
    got=$?
}

began=$(date +%s%N)
run train --text "$text" --out "$folder/whole" $small --steps 40 --threads 1
code 0
# a fraction of what all steps take here
part=$(awk -v ns=$(($(date +%s%N) - began)) 'BEGIN { print ns * 1e-9 / 3 }')
no_err
check "a checkpoint is left" test ! -e "$folder/whole/$checkpoint"

# No report comes: the step is enough. Ctrl-C and SIGTERM end as signals do. One that comes before the first step leaves
# nothing, so it is sent again, after four times as much CPU.
for signal in INT TERM; do
    for ticks in 50 200 800 3200 12800; do
        interrupt $signal train --text "$text" --out "$folder/$signal" $small --steps 1000000 --report-every 1000000
        [ -e "$folder/$signal/$checkpoint" ] && break
    done
    unset ticks
    [ $signal = INT ] && code 130 || code 143
    err_like '^qkv: training was stopped after step [0-9]*: the same command with --resume goes on$'
    err_like '^qkv: interrupted$'
    check "no checkpoint" test -s "$folder/$signal/$checkpoint"
    check "a model was written" test ! -e "$folder/$signal/model.safetensors"
    check "something half written is left" sh -c "! ls '$folder/$signal' | grep -q tmp"
done
run train --text "$text" --out "$folder/INT" $small --steps 1000000
code 1
err_like '^qkv: .*checkpoint.safetensors: this run was stopped after step [0-9]*: resume it, or remove the file to begin anew$'
run train --text "$text" --out "$folder/INT" $small --steps 40 --seed 3 --lr 0.25 --resume
code 1
err_like '^qkv: .*checkpoint.safetensors: is of another run: steps 1000000, not 40; warmup 200, not 4; lr 0.0015, not 0.25; seed 1, not 3$'

# Stopped again and again, by Ctrl-C and by SIGKILL, with other threads and instructions each time.
# A signal may come before the first step, or after the last: then there is nothing to go on from.
resume=
turn=0
while :; do
    turn=$((turn + 1))
    set -- $isas
    shift $((turn % $#))
    [ $((turn % 3)) -eq 0 ] && signal=KILL || signal=INT
    stop $signal "$part" --text "$text" --out "$folder/parts" $small --steps 40 --checkpoint-every 1 \
        --threads $((1 + turn % 3)) --isa "$1" $resume
    [ $got -eq 0 ] && break
    [ -e "$folder/parts/$checkpoint" ] && resume=--resume
    if [ $got -ne 130 ] && [ $got -ne 137 ]; then break; fi
    if [ $turn -eq 40 ]; then
        run train --text "$text" --out "$folder/parts" $small --steps 40 $resume
        break
    fi
    [ -e "$folder/parts/train_run.txt" ] && resume=--resume
done
code 0
for file in model.safetensors train_log.tsv; do
    check "$file is another after $turn turns" cmp -s "$folder/whole/$file" "$folder/parts/$file"
done
check "a checkpoint is left" test ! -e "$folder/parts/$checkpoint"

# Finished: there is nothing to do but the picture, and another run is another.
cp "$folder/whole/loss.png" "$folder/loss.png"
rm "$folder/whole/loss.png"
run train --text "$text" --out "$folder/whole" $(echo $small | sed 's/--quiet//') --steps 40 --resume
code 0
err "qkv: all 40 steps were made before: $folder/whole"
check "another picture" cmp -s "$folder/loss.png" "$folder/whole/loss.png"
run train --text "$text" --out "$folder/whole" $small --steps 80 --resume
code 1
err_like '^qkv: .*train_run.txt: is of another run: steps 40, not 80; warmup 4, not 8$'
run train --text "$text" --out "$folder/none" $small --steps 80 --resume
code 1
err_like '^qkv: .*checkpoint.safetensors: is not there'
check "a folder was made" test ! -e "$folder/none"

# A damaged checkpoint is refused, and stays.
head -c 3000 "$folder/INT/$checkpoint" >"$folder/cut"
cp "$folder/cut" "$folder/INT/$checkpoint"
run train --text "$text" --out "$folder/INT" $small --steps 1000000 --resume
code 1
err_like '^qkv: .*checkpoint.safetensors: '
check "the damaged file was changed" cmp -s "$folder/cut" "$folder/INT/$checkpoint"
echo "the run was made in $turn parts"
finish
