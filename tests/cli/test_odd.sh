# Models that are odd but load: what is said of them, and that it goes to standard error.
. ./lib.sh
odd=$folder/odd
mkdir "$odd"
cp "$model/config.json" "$model/model.safetensors" "$odd"

# VO01b: the last line says what line 6 says
sed '$d' "$model/vocab.txt" >"$odd/vocab.txt"
echo the >>"$odd/vocab.txt"
run tokenize "the man" --model "$odd" --json
code 0
out '{"ids":[2,52,10,3],"tokens":["[CLS]","the","man","[SEP]"]}'
err "qkv: warning: 1 of 53 tokens are in the vocabulary again with a later id, which is used; the first is 'the', ids 5 and 52"
run fill "the [MASK]" --model "$odd" --json --quiet
code 0
no_err

# CF05: three rows of the embedding that no token has
sed '51,$d' "$model/vocab.txt" >"$odd/vocab.txt"
run info "$odd"
code 0
err "qkv: warning: 3 rows of the embedding have no token: config.json says vocab_size = 53, the tokenizer has 50"
run info "$odd" --json
code 0
out_like '"warnings":\["3 rows of the embedding have no token: config.json says vocab_size = 53, the tokenizer has 50"\],'
run fill "the [MASK]" --top 53 --model "$odd" --quiet # rows without a token are candidates, too
code 0
no_err
cp "$model/vocab.txt" "$odd"
echo more >>"$odd/vocab.txt"
run info "$odd" # a token that the model has no row for
code 0
err "qkv: warning: the tokenizer has 54 tokens, config.json says vocab_size = 53: no text may use those from 53 on"
run fill "the [MASK]" --model "$odd" --quiet
code 0
no_err
run fill "the more [MASK]" --model "$odd" --quiet
code 1
err "qkv: token 2 has the id 53; the model has ids 0 to 52"

# CF03: what transformers writes for a length without a limit
cp "$model/vocab.txt" "$odd"
printf '{"model_max_length": 1000000000000000019884624838656, "do_lower_case": true}\n' >"$odd/tokenizer_config.json"
run tokenize "The man" --model "$odd" --json
code 0
no_err
out '{"ids":[2,5,10,3],"tokens":["[CLS]","the","man","[SEP]"]}'
rm "$odd/tokenizer_config.json"

# CF09: heads that config.json unties
cp "$model/vocab.txt" "$odd"
sed 's/"hidden_act"/"tie_word_embeddings": false, "hidden_act"/' "$model/config.json" >"$odd/config.json"
reason="no MLM head: config.json says tie_word_embeddings: false, and 'cls.predictions.decoder.weight' is not stored"
run look "the man" --model "$odd"
code 0
err "qkv: warning: $reason"
run fill "the [MASK]" --model "$odd" --quiet
code 1
err "qkv: $odd: $reason"
run train --from "$odd" --text "$model/vocab.txt" --out "$folder/new" --quiet
code 1
err "qkv: $odd: $reason"
run next "the man" "the dog" --model "$odd" --quiet
code 0
cp "$model/config.json" "$odd"

# An adapter beside the model, which transformers adds if its library is there
echo '{}' >"$odd/adapter_config.json"
run info "$odd"
code 0
err "qkv: warning: the adapter of adapter_config.json is not added to the model"
rm "$odd/adapter_config.json"

# Switches that transformers 5 does not heed beside a tokenizer.json, where their token is then not there
ends=$folder/ends
printf 'the cat sat\nthe dog ran\n' >"$folder/cats"
run train --arch gpt2 --text "$folder/cats" --out "$ends" --steps 1 --batch 2 --layers 1 --heads 1 --hidden 8 --vocab 300 --len 24 --quiet
code 0
cp "$ends/tokenizer_config.json" "$folder/tokenizer_config.json"
run tokenize "the" --model "$ends" --json
no_err
cp "$folder/out" "$folder/plain"
for end in bos:before eos:behind; do
    sed "s/{/{\"add_${end%:*}_token\": true,/" "$folder/tokenizer_config.json" >"$ends/tokenizer_config.json"
    run tokenize "the" --model "$ends" --json
    code 0
    err "qkv: warning: tokenizer_config.json says add_${end%:*}_token: true, but there is no ${end%:*}_token ${end#*:} a text, as in transformers 5"
    check "the same tokens" cmp "$folder/plain" "$folder/out"
    sed -i 's/": true/": false/' "$ends/tokenizer_config.json"
    run tokenize "the" --model "$ends" --json
    no_err
    sed "s/{/{\"add_${end%:*}_token\": true,/" "$folder/tokenizer_config.json" >"$ends/tokenizer_config.json"
    mv "$ends/tokenizer.json" "$folder/tokenizer.json" # then they are heeded
    run tokenize "the" --model "$ends" --json
    no_err
    check "a token more" test "$(grep -o 'endoftext' "$folder/out" | wc -l)" -eq 1
    mv "$folder/tokenizer.json" "$ends/tokenizer.json"
done
cp "$folder/tokenizer_config.json" "$ends"
cp "$ends/tokenizer.json" "$folder/tokenizer.json" # rules of the file that its class does not take
tr -d '\n' <"$folder/tokenizer.json" |
    sed 's/"pre_tokenizer": *{\([^}]*\)}/"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true}, {\1}]}/' >"$ends/tokenizer.json"
run tokenize "the" --model "$ends" --json
code 0
err "qkv: warning: tokenizer.json cuts texts by more rules than the class that goes with it: the class counts, as in transformers 5. All rules of the file count with the class PreTrainedTokenizerFast"
cp "$folder/tokenizer.json" "$ends"

# One file beside the index of several: a folder has one model
sharded=$folder/sharded
cp -r ../golden/stored/sharded "$sharded"
run info "$sharded"
no_err
cp "$model/model.safetensors" "$model/config.json" "$model/vocab.txt" "$sharded"
run info "$sharded" --json
code 0
err "qkv: warning: model.safetensors is read, as in transformers, and not the files of model.safetensors.index.json beside it; name either file to choose"
out_like '"files":\["model.safetensors"\]'
run fill "the [MASK]" --model "$sharded/model.safetensors" --json
code 0
no_err

# Tokens of generation_config.json that are not those of config.json: texts begin with the former, padding is that of the latter
pairs=$folder/pairs
cp -r ../../models/translator "$pairs"
sed -i 's/"decoder_start_token_id": 2/"decoder_start_token_id": 5/; s/"pad_token_id": 1/"pad_token_id": 6/' "$pairs/generation_config.json"
run info "$pairs" --json
code 0
err "qkv: warning: decoder_start_token_id is 2 in config.json and 5 in generation_config.json, which is used; transformers trains with the former"
out_like '"pad_id":1,"start_id":5'

sed -i '/decoder_start_token_id/d; s/"bos_token_id": 0/"bos_token_id": 9/' "$pairs/generation_config.json" # without one: bos_token_id
run info "$pairs" --json
code 0
err_like "decoder_start_token_id is 2 in config.json and 9 in generation_config.json, which is used"

# ST35: weights that are no numbers
cp "$model/vocab.txt" "$odd"
run fill "the [MASK]" --model "$odd" --check-finite --json
code 0
no_err
size=$(wc -c <"$odd/model.safetensors")
printf '\000\000\300\177' | dd of="$odd/model.safetensors" bs=1 seek=$((size - 4)) conv=notrunc 2>/dev/null
run info "$odd"
code 0
no_err
run info "$odd" --check-finite
code 0
err_like "^qkv: warning: weights '[a-zA-Z._0-9]*' hold 1 NaN, 0 infinite$"
run tokenize "the" --model "$odd" --check-finite --json
code 0
out '{"ids":[2,5,3],"tokens":["[CLS]","the","[SEP]"]}'
err_like "^qkv: warning: weights "
usage info "--check-finite looks at models, not at arrays" info "$odd/model.safetensors" --check-finite
usage info "--check-finite looks at models, not at arrays" info data/q.npy --check-finite

# ST31: more tensors than the limit, and a limit that is none
QKV_MAX_TENSORS=many
export QKV_MAX_TENSORS
run info "$model"
code 1
err "qkv: QKV_MAX_TENSORS: 'many' is not a whole number from 1 to 10000000"
unset QKV_MAX_TENSORS
finish
