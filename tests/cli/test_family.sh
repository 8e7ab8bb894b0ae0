# BERT's family in the tool: RoBERTa from text to words as transformers has them, ELECTRA's judgement, what DistilBERT lacks. GPT-NeoX, OPT.
. ./lib.sh
family=$here/../golden/family

# ---- RoBERTa: byte-level BPE, <mask>, positions after padding ---------------------------------------

run fill --model "$family/roberta_text" "She was watching the <mask> when he fell." --json
code 0
no_err
tr '{' '\n' <"$folder/out" | grep '"id":' | sed 's/.*"id":\([0-9]*\),"probability":\([0-9.]*\).*/\1 \2/' >"$folder/words"
paste -d ' ' "$folder/words" "$family/roberta_text/fill.txt" | awk '
    { e = $2 - $4; if ($1 != $3 || e > 1e-7 || e < -1e-7) bad++ } END { exit bad > 0 || NR != 5 }'
check "the words of transformers" test $? -eq 0
run fill --model "$family/roberta_text" "She <mask> the <mask>."
code 0
out_like '^<mask>, token 2$'
usage fill "there is no <mask> in the text" fill --model "$family/roberta_text" "She was watching."
run look --model "$family/roberta_text" "She was watching the <mask>."
code 0
out_like '^<mask>$'
run info "$family/roberta_text"
out_like '^model .*(roberta)$'
out_like '^longest text  40 tokens, 1 segment, learned positions$'

# ---- XLM-RoBERTa: Unigram --------------------------------------------------------------------------------

run fill --model "$family/xlm_roberta_text" "She was watching the <mask> when he fell." --json
code 0
tr '{' '\n' <"$folder/out" | grep '"id":' | sed 's/.*"id":\([0-9]*\),"probability":\([0-9.]*\).*/\1 \2/' >"$folder/words"
paste -d ' ' "$folder/words" "$family/xlm_roberta_text/fill.txt" | awk '
    { e = $2 - $4; if ($1 != $3 || e > 1e-7 || e < -1e-7) bad++ } END { exit bad > 0 || NR != 5 }'
check "the words of transformers, of XLM-RoBERTa" test $? -eq 0
run look --model "$family/xlm_roberta_text" "She was watching the <mask>."
code 0
out_like '^<mask>$'
run heads --model "$family/xlm_roberta_text" "The man left."
code 0
run look --model "$family/xlm_roberta_text" "The man left." -o "$folder/xlm.html"
code 0
check "a page" grep -q '␣man' "$folder/xlm.html"
run embed --model "$family/xlm_roberta_text" "The man left."
code 0
run info "$family/xlm_roberta_text"
out_like '^model .*(xlm-roberta)$'

# ---- ELECTRA ------------------------------------------------------------------------------------------

run look --model "$family/electra_1" "the man left the dog." --json
code 0
replaced=$(sed 's/.*"replaced":\[\([^]]*\)\].*/\1/' "$folder/out" | tr ',' '\n')
check "a number for each of 8 tokens" test "$(echo "$replaced" | awk '$1 > 0 && $1 < 1' | wc -l)" -eq 8
largest=$(echo "$replaced" | sed '1d;$d' | sort -g | tail -n 1)
run look --model "$family/electra_1" "the man left the dog." --top 2
code 0
out_like '^In place of another token?$'
shown=$(sed -n '/^In place/{n;s/^  [^ ]* *\([0-9.]*\).*/\1/p}' "$folder/out")
check "the likeliest comes first" test "$shown" = "$(printf '%.4f' "$largest")"
run info "$family/electra_1"
out_like '^heads for     MLM no, NSP no, pooler no, replaced tokens yes$'
out_like '^word vectors  12$'
run explain --model "$family/electra_1" "the man left the dog."
code 1
err_like 'embeddings (12 channels) are not as wide as their blocks (20)'

# ---- Classifiers ----------------------------------------------------------------------------------------

classify=$here/../golden/classify
run look --model "$classify/modernbert_mean" "the door opened." --json
code 0
sum=$(sed 's/.*"labels":\[\([^]]*\)\].*/\1/' "$folder/out" | tr '{' '\n' | sed -n 's/.*"probability":\([0-9.e-]*\).*/\1/p' |
    awk '{ sum += $1 } END { printf "%d %.6f", NR, sum }')
check "three probabilities that sum to 1" test "$sum" = "3 1.000000"
run look --model "$classify/bert" "the door opened." --top 2
code 0
out_like '^Label$'
check "two labels" test "$(sed -n '/^Label$/,/^$/p' "$folder/out" | grep -c '^  ')" -eq 2
run look --model "$classify/modernbert_cls" "the door opened." --json
out_like '"labels":\[{"label":"LABEL_0","probability":0'
run info "$classify/modernbert_mean"
out_like '^classifier    3 labels: NEGATIVE | neutral, or none | POSITIVE$'
run info "$classify/modernbert_mean" --json
out_like '"labels":\["NEGATIVE","neutral, or none","POSITIVE"\]'

# Labels of tokens, and answers: probabilities of each sum to 1.

run look --model "$classify/bert_tokens" "the door opened." --json
code 0
sum=$(sed 's/.*"token_labels":\[\[\([^]]*\)\].*/\1/' "$folder/out" | tr '{' '\n' |
    sed -n 's/.*"probability":\([0-9.e-]*\).*/\1/p' | awk '{ sum += $1 } END { printf "%d %.6f", NR, sum }')
check "three probabilities of the first token" test "$sum" = "3 1.000000"
run look --model "$classify/bert_tokens" "the door opened."
out_like '^Labels of tokens$'
check "a line for each token, special ones left out" \
    test "$(sed -n '/^Labels of tokens$/,/^$/p' "$folder/out" | grep -c '^  ')" -eq 4
out_like '^  the  *0\.[0-9]* \(NEGATIVE\|neutral, or none\|POSITIVE\)$'
run info "$classify/bert_tokens"
out_like '^classifier    3 labels of tokens: NEGATIVE | neutral, or none | POSITIVE$'
run look --model "$classify/roberta_answers" "the door" --pair "a key ." --json --top 100
code 0
sum=$(sed 's/.*"begins":\[\([^]]*\)\].*/\1/' "$folder/out" | tr ',' '\n' |
    awk '{ sum += $1; n += $1 > 0 } END { printf "%d %.6f", n, sum }')
check "an answer begins in the second text, or nowhere" test "$sum" = "4 1.000000"
check "answers are its 6 spans, and none" test "$(grep -o '"begin":' "$folder/out" | wc -l)" -eq 7
out_like '"answers":\[{"begin":[0-9n]'
out_like '{"begin":null,"end":null,"text":null,"probability":'
out_like '{"begin":4,"end":6,"text":"a key.","probability":'
run look --model "$classify/roberta_answers" "the door" --pair "a key ." --top 2
out_like '^Answer$'
check "two answers" test "$(sed -n '/^Answer$/,/^$/p' "$folder/out" | grep -c '^  ')" -eq 2
run info "$classify/roberta_answers"
out_like '^classifier    2 labels, where an answer begins and ends: LABEL_0 | LABEL_1$'

# ---- DistilBERT -----------------------------------------------------------------------------------------

run fill --model "$family/distilbert_1" "the man left the [MASK]." --pair "it fell."
code 0
run next --model "$family/distilbert_1" "the man left." "it fell."
code 1
err_like 'no NSP head'
run explain --model "$family/distilbert_1" "the man left the dog."
code 0
run info "$family/distilbert_1"
out_like '^longest text  23 tokens, 0 segments, learned positions$'

# ---- GPT-NeoX: both parts of a block read its input, positions turn a part of a head -----------------

neox=$here/../golden/llama/gpt_neox_1
run info "$neox"
code 0
out_like '^model .*(gpt_neox)$'
out_like '^positions     theta 500, in the first 2 channels of a head$'
out_like "^blocks        both parts read the block's input\$"
out_like '^layer norm    eps 1e-05$'
run explain "she was when . , ? w0" --model "$neox" --layer 1 --head 2
code 0
out_like '^14  Add, and norm of the input   x₁ = x + a   y₁ = norm(x)$'
out_like '^    R(p) turns channels c and c + r/2 of the first r = 2 as one vector by the$'
out_like '^    output of layer  *[0-9.]*e-07$'
run look "she was when . , ? w0" --model "$neox" -o "$folder/neox.html" --quiet
code 0
run info "$here/../golden/llama/gpt_neox_2"
out_like '^positions     theta 100$'
# ---- OPT: words that are narrower than the blocks, norms after parts ---------------------------------

opt=$here/../golden/llama/opt_2
run info "$opt"
code 0
out_like '^model .*(opt)$'
out_like '^word vectors  10$'
out_like '^longest text  64 tokens, 0 segments, learned positions$'
out_like '^blocks        norms are of sums, and none ends the stack$'
run explain "she was when . , ? w0" --model "$opt" --layer 0 --head 2
code 0
out_like 'e = W_in word\[id\] + position\[i\]$'
out_like '^    output of layer  *[0-9.]*e-0[678]$'
run embed "she was when" --model "$opt" --json
code 0
check "vectors as wide as words" test "$(tr ',' '\n' <"$folder/out" | grep -c '[0-9]')" -lt 16
run look "she was when . , ? w0" --model "$opt" -o "$folder/opt.html" --quiet
code 0
run info "$here/../golden/llama/opt_4"
out_like '^blocks        no norm ends the stack$'

# ---- GPT-J: neighbours turn, one norm for both parts -------------------------------------------------

gptj=$here/../golden/llama/gptj_3
run info "$gptj"
code 0
out_like '^model .*(gptj)$'
out_like '^positions     theta 10000, in the first 2 channels of a head, by neighbours$'
run explain "she was when . , ? w0" --model "$gptj" --layer 1 --head 2
code 0
out_like '^    R(p) turns channels 2c and 2c + 1 of the first r = 2 as one vector by the$'
out_like '^    output of layer  *[0-9.]*e-0[678]$'
run look "she was when . , ? w0" --model "$gptj" -o "$folder/gptj.html" --quiet
code 0

# ---- BLOOM: a slope for each head, parts that are added to norms -------------------------------------

bloom=$here/../golden/llama/bloom_2
run info "$bloom"
code 0
out_like '^model .*(bloom)$'
out_like '^distances     ALiBi: a slope for each head$'
out_like '^blocks        parts are added to the norms that they read$'
run explain "she was when . , ? w0" --model "$bloom" --layer 1 --head 4
code 0
out_like '^  *9  ALiBi   sⱼ = sⱼ + m (j − i)$'
out_like '^    The slope m = 0.500 of the head is not learned'
out_like '^    output of layer  *[0-9.]*e-0[678]$'
run look "she was when . , ? w0" --model "$bloom" -o "$folder/bloom.html" --quiet
code 0
check "the page has the slopes" grep -q '"alibi":0.5' "$folder/bloom.html"
run look "she was when" --model "$bloom" --what-if temperature=2
code 1
err_like 'scores of bloom have a bias by distance, which no temperature divides$'

# ---- T5: a bias by distance of each head, and no positions -------------------------------------------

run explain "she was when . , ?" --model "$here/../golden/decoder/t5_1/mild" --layer 1 --head 1
code 0
check "nothing turns" test "$(grep -c 'Turn by the position' "$folder/out")" -eq 0
out_like '^    output of layer  *[0-9.]*e-0[678]$'
finish
