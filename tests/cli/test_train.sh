# train and eval: what a run writes, the same bits for any threads and instruction set, stopping and going on.
. ./lib.sh
text=$folder/text.txt
for who in man woman dog cat girl boy; do
    for what in door box key house; do
        printf 'the %s saw the %s .\tit opened when the %s left .\n' $who $what $who
    done
done >"$text"
small="--layers 1 --heads 2 --hidden 16 --vocab 200 --len 24 --batch 8 --steps 30 --report-every 10"

run train --text "$text" --out "$folder/a" $small --threads 1
code 0
no_out
err_like '^step 10/30  loss [0-9.]* (mlm [0-9.]*, nsp [0-9.]*)  held out [0-9.]*  [0-9]* tokens/s  .* left$'
err_like '^qkv: trained 30 steps in '
for file in config.json vocab.txt tokenizer.json tokenizer_config.json model.safetensors train_log.tsv loss.png; do
    check "no $file" test -s "$folder/a/$file"
done
run train --text "$text" --out "$folder/b" $small --threads 3 --isa scalar --json --quiet
code 0
no_err
check "three reports" test "$(wc -l <"$folder/out")" -eq 3
out_like '^{"step":30,"n_steps":30,"loss":[0-9.]*,"mlm_loss":'
check "other weights with other threads and instructions" cmp -s "$folder/a/model.safetensors" "$folder/b/model.safetensors"
check "another curve" cmp -s "$folder/a/loss.png" "$folder/b/loss.png"

# Slices: one is the batch; more give bytes of their own, the same for any threads.
run train --text "$text" --out "$folder/s1" $small --slices 1 --quiet
code 0
check "one slice is not the batch" cmp -s "$folder/a/model.safetensors" "$folder/s1/model.safetensors"
for n in 2 8; do
    for threads in 1 2; do
        run train --text "$text" --out "$folder/s$n-$threads" $small --slices $n --threads $threads --quiet
        code 0
    done
    check "$n slices: other weights with other threads" cmp -s "$folder/s$n-1/model.safetensors" "$folder/s$n-2/model.safetensors"
    check "$n slices are one" sh -c "! cmp -s '$folder/a/model.safetensors' '$folder/s$n-1/model.safetensors'"
done
run train --text "$text" --out "$folder/s9" $small --slices 9
code 1
err 'qkv: n_slices = 9 is more than batch = 8 sequences'
check "a folder was made" test ! -e "$folder/s9"

# Stopped by Ctrl-C: no model, a checkpoint; --resume ends with the same bits. One that comes before the first step leaves
# nothing, so it is sent again, after four times as much CPU.
for ticks in 50 200 800 3200; do
    interrupt INT train --text "$text" --out "$folder/c" $small --steps 30000 --report-every 1 --quiet
    [ -e "$folder/c/checkpoint.safetensors" ] && break
done
unset ticks
code 130
err_like '^qkv: training was stopped after step [0-9]*: the same command with --resume goes on$'
err_like '^qkv: interrupted$'
check "a model was written" test ! -e "$folder/c/model.safetensors"

run eval --model "$folder/a" --text "$text"
code 0
no_err
out_like '^slot  *blanks'
out_like '^MLM loss [0-9.]*$'
out_like '^next sentence right  *[0-9.]* %  ([0-9]* of [0-9]*)$'
run eval --model "$folder/a" --text "$text" --json
code 0
out_like '^{"total":{"slot":"all","n_blanks":[0-9]*,.*"mlm_loss":[0-9.]*,"n_pairs":'

# The other architectures, and from a model.
run train --arch gpt2 --text "$text" --out "$folder/gpt2" $small --vocab 300 --accumulate 2 --dropout 0.1
code 0
err_like '^step 10/30  loss [0-9.]*  held out [0-9.]*  [0-9]* tokens/s  .* left$'
for file in config.json generation_config.json vocab.json merges.txt tokenizer.json model.safetensors loss.png; do
    check "no $file" test -s "$folder/gpt2/$file"
done
check "another header" sh -c "head -1 '$folder/gpt2/train_log.tsv' | grep -q '^step	loss	held_out_loss	learning_rate	tokens$'"
run train --arch encdec --text "$text" --out "$folder/pair" $small --vocab 300 --decoder-layers 2 --label-smoothing 0.1 --json --quiet
code 0
out_like '^{"step":30,"n_steps":30,"loss":[0-9.]*,"held_out_loss":[0-9.]*,"learning_rate":'

# Finished and resumed, the picture says what it said: this loss is not that of a BERT.
mv "$folder/gpt2/loss.png" "$folder/gpt2.png"
mv "$folder/pair/loss.png" "$folder/pair.png"
run train --arch gpt2 --text "$text" --out "$folder/gpt2" $small --vocab 300 --accumulate 2 --dropout 0.1 --resume
code 0
run train --arch encdec --text "$text" --out "$folder/pair" $small --vocab 300 --decoder-layers 2 --label-smoothing 0.1 --resume
code 0
for arch in gpt2 pair; do
    check "$arch: another picture" cmp -s "$folder/$arch.png" "$folder/$arch/loss.png"
done
sed -i '1s/.*/step\tloss\tmlm_loss\tnsp_loss\theld_out_loss\tlearning_rate\ttokens/' "$folder/gpt2/train_log.tsv" # the label follows the log
run train --arch gpt2 --text "$text" --out "$folder/gpt2" $small --vocab 300 --accumulate 2 --dropout 0.1 --resume
code 0
check "the label of no BERT is that of a BERT" sh -c "! cmp -s '$folder/gpt2.png' '$folder/gpt2/loss.png'"

# A text to measure on that is not there is told before anything is trained.
for path in none ''; do
    run train --text "$text" --eval "$folder/$path" --out "$folder/early" $small --quiet
    code 1
    err_like "^qkv: $folder/$path: cannot \(open: No such file or directory\|read: Is a directory\)$"
    check "a model was trained first" test ! -e "$folder/early"
done

run train --from "$folder/pair" --text "$text" --out "$folder/more" --len 24 --steps 3 --batch 4 --quiet
code 0
check "another configuration" cmp -s "$folder/pair/config.json" "$folder/more/config.json"
check "the same weights" sh -c "! cmp -s '$folder/pair/model.safetensors' '$folder/more/model.safetensors'"
run train --from "$folder/pair" --text "$text" --out "$folder/d" --layers 3
code 2
err_like 'from and --layers together: the model has its own$'
run train --from "$folder/pair" --text "$text" --out "$folder/d" --len 25
code 1
err_like '^qkv: max_len = 25 is more than 24, that of .*pair$'
printf 'one two\n' >"$folder/untranslated"
run train --arch encdec --text "$folder/untranslated" --out "$folder/d"
code 1
err_like '^qkv: .*untranslated: line 1 is not source TAB target$'
# AdamW's numbers: the defaults are what they are called, others are another run, and what cannot be is refused.
run train --text "$text" --out "$folder/named" $small --beta1 0.9 --beta2 0.98 --eps 1e-8 --weight-decay 0.01 --clip 1 --quiet
code 0
for file in model.safetensors train_run.txt; do
    check "the defaults are others: $file" cmp -s "$folder/a/$file" "$folder/named/$file"
done
for option in "--beta1 0.8" "--beta2 0.9" "--eps 1e-3" "--weight-decay 0.5" "--clip 0.1"; do
    run train --text "$text" --out "$folder/other" $small $option --quiet
    code 0
    check "$option changes nothing" sh -c "! cmp -s '$folder/a/model.safetensors' '$folder/other/model.safetensors'"
    run train --text "$text" --out "$folder/other" $small --resume --quiet
    code 1
    err_like "train_run.txt: is of another run: [a-z0-9_]* ${option#* }, not \|train_run.txt: is of another run: eps 0.001, not 1e-08$"
    run train --text "$text" --out "$folder/other" $small $option --resume --quiet
    code 0
done
refused() {
    run train --text "$text" --out "$folder/d" $small "$1" "$2"
    code 1
    err_like "^qkv: $3 = $2 is not in $4$"
}
refused --beta1 1 beta1 '\[0, 1)'
refused --beta2 -0.1 beta2 '\[0, 1)'
refused --eps -1 eps '(0, inf)'
refused --weight-decay -1 weight_decay '\[0, inf)'
refused --clip -1 clip '\[0, inf)'
refused --lr 0 learning_rate '(0, 100)'
run train --text "$text" --out "$folder/d" $small --steps 1 --weight-decay 1e300 --quiet
code 1
err_like '^qkv: step 1: a weight is not finite; a smaller learning_rate than 0.0015 may help$'
check "a model was written" test ! -e "$folder/d/model.safetensors"
rm -rf "$folder/d"
run train --text "$text" --out "$folder/d" $small --eps 0
code 2
err_like '^qkv train: --eps must be above 0$'
run train --arch gpt3 --text "$text" --out "$folder/d"
code 2
check "a folder was made" test ! -e "$folder/d"

run train --text "$folder/none" --out "$folder/d" $small
code 1
err_like '^qkv: .*none'
check "a folder was made" test ! -e "$folder/d"
run train --text "$text" --out "$folder/d" --hidden 30 --heads 4
code 1
err_like '^qkv: .*hidden'
run eval --model "$folder/a" --grammar "$folder/none"
code 1
err_like '^qkv: .*none'

# Text judged by a grammar: no model, and controls of the text are shown, not sent.
grammar=$here/../../models/default/grammar.txt
printf 'Anna saw the cat in the garden. It was there alone. Tom was opening the door when she opened.\nThe\033[31m cat. Tom saw\n' >"$folder/written"
run eval --grammar "$grammar" --check "$folder/written"
code 0
no_err
out 'sentences that the grammar says           50.0 %  (2 of 4)
of these, held out from training           0.0 %  (0 of 2)
lines that end within a sentence: 1
not said: Tom was opening the door when she opened.
not said: The\u{1b}[31m cat.'
run eval --grammar "$grammar" --check "$folder/written" --json
code 0
out '{"n_sentences":4,"n_said":2,"n_held_out":0,"n_unfinished":1,"not_said":["Tom was opening the door when she opened.","The\u001B[31m cat."]}'
run eval --grammar "$grammar" --check "$folder/none"
code 1
err_like '^qkv: .*none'
finish
