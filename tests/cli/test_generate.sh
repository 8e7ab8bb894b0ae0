# qkv generate, translate, and eval of models that predict the next token: texts, lines, JSON, what is refused.
. ./lib.sh
models=$here/../golden/decoder
gpt2="--model $models/gpt2_1"
marian="--model $models/marian_1"
d=$folder/d
mkdir "$d"

# ---- generate -----------------------------------------------------------------------------------

run generate "the man" $gpt2 --max-new 8
code 0
no_err
out_is generate
cp "$folder/out" "$d/text"
feed "the man" generate - $gpt2 --max-new 8
check "standard input" cmp -s "$d/text" "$folder/out"
run generate "the man" $gpt2 --max-new 8 --threads 1 --isa scalar
check "the scalar code writes the same" cmp -s "$d/text" "$folder/out"
run generate "the man" $gpt2 --max-new 8 --beams 1 --length-penalty 3
check "one beam is none" cmp -s "$d/text" "$folder/out"
run generate $gpt2 --max-new 3
code 0
out_like .
usage generate "--show-prompt together with --json" generate "the man" $gpt2 --show-prompt --json
usage generate "--show-prompt together with --jsonl" generate $gpt2 --show-prompt --jsonl
run generate "the man" $gpt2 --max-new 3 --show-prompt
code 0
out_like "^the man"

# What is drawn: the same by the same seed, otherwise not.
run generate "the man" $gpt2 --max-new 20 --seed 4 --sequences 3
code 0
out_like '^3  score -[0-9.]*  [0-9]* tokens  '
cp "$folder/out" "$d/drawn"
run generate "the man" $gpt2 --max-new 20 --seed 4 --sequences 3 --temperature 1
check "another text by the same seed" cmp -s "$d/drawn" "$folder/out"
run generate "the man" $gpt2 --max-new 20 --seed 5 --sequences 3
check "the same text by another seed" test "$(cat "$d/drawn")" != "$(cat "$folder/out")"
run generate "the man" $gpt2 --max-new 8 --top-k 1
check "the likeliest of one is not the likeliest" cmp -s "$d/text" "$folder/out"

# Strings that end a text are not in it.
last=$(sed 's/.* //' "$d/text")
run generate "the man" $gpt2 --max-new 8 --stop "$last" --json
code 0
out_like '"end":"stop"'
run generate "the man" $gpt2 --max-new 8 --stop "$last"
check "the text has what ends it" test "$(grep -c -F -e "$last" "$folder/out")" -eq 0

run generate "the man" $gpt2 --max-new 4 --beams 3 --sequences 2 --json
code 0
no_err
out_like '^{"prompt_tokens":[0-9]*,"sequences":\[{"text":"[^"]*","ids":\[[0-9,]*\],"score":-[0-9.]*,"end":"[a-z_]*"},{'
out_like '"steps":3,"seconds":[0-9.e-]*}$'
feed '"the man"
"the woman"
3' generate --jsonl $gpt2 --max-new 4
code 1
check "a line for each" test "$(wc -l <"$folder/out")" -eq 3
out_like '^{"error":"line 3: '
run generate "the man" $gpt2 --max-new 4 -v
err_like '^qkv: [0-9]* tokens in '

# Turns: two lines of the vocabulary become the tokens of ChatML.
run generate "the man" $gpt2 --chat-template chatml
code 1
err_like 'chat-template: chatml: the vocabulary has no token <|im_end|>$'
run generate "the man" $gpt2 --chat
code 1
err_like 'chat: the files of the model have no chat template; known are chatml, gemma, '
cp -r "$models/gpt2_1" "$d/turns"
head -n 51 "$models/gpt2_1/vocab.txt" >"$d/turns/vocab.txt"
printf '<|im_start|>\n<|im_end|>\n' >>"$d/turns/vocab.txt"
printf '{"tokenizer_class":"BertTokenizer","extra_special_tokens":["<|im_start|>","<|im_end|>"]}' \
    >"$d/turns/tokenizer_config.json"
run generate "the man" --model "$d/turns" --chat-template chatml --max-new 4 --json
code 0
out_like '^{"prompt_tokens":7,'
cp "$folder/out" "$d/turn"
run tokenize "<|im_start|>user
the man<|im_end|>
<|im_start|>assistant
" --model "$d/turns" --json
check "nine tokens" test "$(tr -cd , <"$folder/out" | wc -c)" -eq 17 # with [CLS] and [SEP], which stand around no turn
feed '["the man", "b"]' generate --jsonl --model "$d/turns" --chat-template chatml
code 1
out_like 'one text is a turn, not two'
cat >"$d/turns/chat_template.jinja" <<'END'
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
END
run generate "the man" --model "$d/turns" --chat --max-new 4 --json
check "the template of the files" test "$(sed 's/"seconds.*//' "$d/turn")" = "$(sed 's/"seconds.*//' "$folder/out")"
run info "$d/turns"
out_like '^turns         chatml$'
run info "$d/turns" --json
out_like '"chat_template":"chatml"'
printf '{%% for message in messages %%}{{ message.content }}{%% endfor %%}' >"$d/turns/chat_template.jinja"
run info "$d/turns"
out_like '^turns         a chat template that is not known$'
run generate "the man" --model "$d/turns" --chat
code 1
err_like 'chat: the chat template of the model, "{% for message in messages %}{{ message.content }}{% endfor " and so on, is not known; '

run generate "the man"
code 1
err_like 'the embedded model is a bert, which writes no text.*name one with --model$'
run generate "the man" --model "$model"
code 1
err_like 'is a bert, which writes no text: `qkv fill`'
run generate "the man" $gpt2 --temperature 0
code 1
err_like '^qkv: temperature = 0 is not between'
run generate "the man" $gpt2 --sequences 2
code 1
err_like 'n_return = 2: without beams and sampling'
run generate "$(printf 'the man %.0s' $(seq 40))" $gpt2
code 1
err_like 'a prompt of [0-9]* tokens leaves no room: the model.s length is 45$'
usage generate "--beams: '0' is not a whole number from 1 to 256" generate "the man" $gpt2 --beams 0
usage generate "--min-new 3 is more than --max-new 2" generate "the man" $gpt2 --min-new 3 --max-new 2
usage generate "--early-stopping: 'x' is not one of likely|always|never" generate "the man" $gpt2 --early-stopping x

# A prompt a line.
printf 'the man\nthe dog saw\n\n' >"$d/prompts"
run generate --file "$d/prompts" $gpt2 --max-new 8
code 0
no_err
cp "$folder/out" "$d/several"
{ cat "$d/text"; "$qkv" generate "the dog saw" $gpt2 --max-new 8; "$qkv" generate "" $gpt2 --max-new 8; } >"$d/each"
check "a line is not as a prompt alone" cmp -s "$d/each" "$d/several"
feed "$(cat "$d/prompts")" generate --file - $gpt2 --max-new 8
check "standard input, a line less" test "$(head -n 2 "$d/each")" = "$(cat "$folder/out")"
run generate --file "$d/prompts" $gpt2 --max-new 8 --json
check "an object for each line" test "$(grep -c '^{"prompt_tokens":' "$folder/out")" -eq 3
run generate --file "$d/prompts" $gpt2 --max-new 3 --beams 3 --sequences 2
check "two sequences of each" test "$(grep -c ' score ' "$folder/out")" -eq 6
run generate --file "$d/prompts" --model "$d/turns" --chat-template chatml --max-new 4
code 0
check "a turn a line" test "$(wc -l <"$folder/out")" -ge 3
{ cat "$d/prompts" && printf 'the man %.0s' $(seq 40); } >"$d/one_long"
run generate --file "$d/one_long" $gpt2 --max-new 8
code 1
check "not what stands before it" cmp -s "$d/several" "$folder/out"
err_like '/one_long:4: a prompt of [0-9]* tokens leaves no room: '
run generate --file "$d/none" $gpt2
code 1
err_like '/none: No such file'
usage generate "--file together with a text" generate --file "$d/prompts" "the man" $gpt2
usage generate "--file together with --jsonl" generate --file "$d/prompts" --jsonl $gpt2

# ---- translate ----------------------------------------------------------------------------------

run translate "the man saw" $marian --max-new 6
code 0
no_err
out_is translate
cp "$folder/out" "$d/one"
printf 'the man saw\nthe dog\n\n' >"$d/lines"
run translate --file "$d/lines" $marian --max-new 6
code 0
no_err
check "a line for each line" test "$(wc -l <"$folder/out")" -eq 3
check "a line is as a text alone" test "$(head -n 1 "$folder/out")" = "$(cat "$d/one")"
run translate --file "$d/lines" $marian --max-new 6 --json
check "an object for each line" test "$(grep -c '^{"prompt_tokens":1,' "$folder/out")" -eq 3
run translate "the man saw" $marian --max-new 6 --align
code 0
out_is translate_align
run translate "the man saw" $marian --max-new 6 --align --json
out_like '"align":\[{"token":"[^"]*","source":"[^"]*","weight":0[.][0-9]*}'
run translate "the man saw" $marian --plain --max-new 6 --json
code 0
out_like '"steps":5'
run translate "the man" $gpt2
code 1
err_like 'is a gpt2, which goes on with a text and translates none: `qkv generate`'
run translate --file "$d/none" $marian
code 1
err_like '/none: No such file'
printf 'good\n\377\n' >"$d/bad"
run translate --file "$d/bad" $marian --max-new 2
code 1
err_like '/bad:2: '
usage translate "TEXT or --file is missing" translate $marian
usage translate "--file together with a text" translate --file "$d/lines" "the man" $marian

# A field of the model's own options that is not honoured.
cp -r "$models/gpt2_1" "$d/odd"
printf '{"eos_token_id": 3, "typical_p": 0.5}\n' >"$d/odd/generation_config.json"
run generate "the man" --model "$d/odd" --max-new 2 --sample
code 1
err_like 'generation_config.json: typical_p is not supported (--plain does without that file)$'
run generate "the man" --model "$d/odd" --max-new 2 --sample --plain
code 0
run generate "the man" --model "$d/odd" --max-new 2 # nothing is drawn, so nothing is left out
code 0
no_err

# Numbers that make no sense, where they are used.
printf '{"eos_token_id": 3, "temperature": 0.0, "top_k": -1}\n' >"$d/odd/generation_config.json"
run look "the man" --model "$d/odd"
code 0
no_err
run generate "the man" --model "$d/odd" --max-new 2
code 0
no_err
run generate "the man" --model "$d/odd" --max-new 2 --seed 1
code 1
err "qkv: $d/odd: generation_config.json: temperature = 0 is not between 1e-06 and 1e+06 (--plain does without that file)"

# A file that cannot be read stops nothing but what is to be generated by it.
printf '{"eos_token_id": 3, "early_stopping": "maybe"}\n' >"$d/odd/generation_config.json"
for command in look tokenize embed; do
    run $command "the man" --model "$d/odd"
    code 0
    err "qkv: warning: $d/odd/generation_config.json: early_stopping is a string other than \"never\": nothing can be generated by this file"
done
run generate "the man" --model "$d/odd" --max-new 2 --quiet
code 1
err "qkv: $d/odd/generation_config.json: early_stopping is a string other than \"never\" (--plain does without that file)"
run generate "the man" --model "$d/odd" --max-new 2 --plain --quiet
code 0
no_err

# One of several tokens at the end; no limit of length; nothing about the end.
printf '{"forced_eos_token_id": [9, 7], "max_length": 1000000000000000019884624838656}\n' >"$d/odd/generation_config.json"
run generate "the man" --model "$d/odd" --max-new 2 --json
code 0
no_err
out_like '"ids":\[[0-9]*,7\],'
run generate "the man" --model "$d/odd" --json
out_like '"ids":.*,7\],.*"end":"model_length"'
# Where the model's length comes before the one that is asked for, the text is not at its end.
cp "$folder/out" "$d/to_its_length"
run generate "the man" --model "$d/odd" --max-new 100000 --json
code 0
out_says '"end":"model_length"'
check "a token is forced where the model ends" sh -c "! grep -q ',7\],' '$folder/out'"

run generate "the man" --model "$d/odd" --min-p 1 --max-new 4 --json # the likeliest alone
code 0
cp "$folder/out" "$d/min_p"
run generate "the man" --model "$d/odd" --max-new 4 --json
check "--min-p 1 is not greedy" test "$(sed 's/,"seconds.*//' "$d/min_p")" = "$(sed 's/,"seconds.*//' "$folder/out")"
run generate "the man" --model "$d/odd" --min-p 1.5 --max-new 4
code 1
err "qkv: min_p = 1.5 is not between 0 and 1"

# ---- eval ---------------------------------------------------------------------------------------

run eval --text "$d/lines" $gpt2
code 0
no_err
out_is eval_perplexity
run eval --text "$d/lines" $gpt2 --json
out_like '^{"lines":3,"tokens":[0-9]*,"loss":[0-9.]*,"perplexity":[0-9.]*}$'

# Windows of a line that is longer than the model: as they are, and each with the token that begins the line. What both are is
# in golden_generate_models.
printf 'the cat sat\nthe dog ran\n' >"$d/cats"
run train --arch llama --text "$d/cats" --out "$d/begins" --steps 1 --batch 2 --layers 1 --heads 1 --hidden 8 --vocab 300 --len 8 --quiet
code 0
sed 's/{/{"add_bos_token": true,/' "$d/begins/tokenizer_config.json" >"$d/tokenizer_config.json"
run eval --text "$d/cats" --model "$d/begins"
check "no other windows" test "$(wc -l <"$folder/out")" -eq 4
cp "$d/tokenizer_config.json" "$d/begins"
rm "$d/begins/tokenizer.json" # which would have no bos_token before a text, whatever the switch says
printf 'the cat\n' >"$d/cat"
run eval --text "$d/cat" --model "$d/begins"
code 0
no_err
check "one window" test "$(wc -l <"$folder/out")" -eq 4
for stride in 1 7; do
    run eval --text "$d/cats" --model "$d/begins" --stride $stride
    code 0
    no_err
    out_like '^begun        loss [0-9.]*, perplexity [0-9.]*: each window begins as its text does$'
    run eval --text "$d/cats" --model "$d/begins" --stride $stride --json
    out_like '^{"lines":2,"tokens":16,"loss":[0-9.]*,"perplexity":[0-9.]*,"begun_loss":[0-9.]*,"begun_perplexity":[0-9.]*}$'
done
sed -i 's/"max_position_embeddings": 8/"max_position_embeddings": 1/' "$d/begins/config.json"
run eval --text "$d/cats" --model "$d/begins"
code 1
no_out
err "qkv: $d/cats:1: $d/begins: the model takes 1 token, and predicts none from one before it"

run eval --grammar "$here/../../models/default/grammar.txt" $gpt2
code 1
err_like 'is a gpt2, which fills no blanks: --text'
: >"$d/empty"
run eval --text "$d/empty" $gpt2
code 1
err_like '/empty: no line has two tokens$'
printf 'the man saw\tthe man saw the dog .\na dog\tthe dog\n' >"$d/pairs"
run eval --text "$d/pairs" $marian --json
code 0
out_like '^{"lines":2,"tokens":[0-9]*,"loss":[0-9.]*,"perplexity":[0-9.]*}$'
run eval --text "$d/pairs" $marian --stride 2
code 2
err_like '^qkv eval: --stride is of texts: pairs have no windows'
printf 'a dog\tthe dog\nthe man\n' >"$d/half"
run eval --text "$d/half" $marian
code 1
err_like '/half:2: the line is not source TAB target$'
printf 'a dog\t\n' >"$d/half"
run eval --text "$d/half" $marian
code 1
err_like '/half:1: the line is not source TAB target$'
run eval --text "$d/empty" $marian
code 1
err_like '/empty: no line$'
run eval --grammar "$here/../../models/default/grammar.txt" $marian
code 1
err_like 'is a marian, which fills no blanks: --text measures how well it predicts$'
finish
