# qkv info of GPT-2, BART and Marian, and what is refused of them.
. ./lib.sh
golden=$here/../golden/decoder

for model in gpt2_1 gpt2_3 bart_2 marian_3; do
    run info "$golden/$model"
    code 0
    no_err
    out_is "info_$model"
done
run info --json "$golden/marian_3"
code 0
out_is info_marian_3_json

# A config.json that lies, beside the files of a model.
cp -r "$golden/bart_2" "$folder/lies"
sed 's/"decoder_start_token_id": 2/"decoder_start_token_id": 41/' "$golden/bart_2/config.json" >"$folder/lies/config.json"
run info "$folder/lies"
code 1
err "qkv: $folder/lies/config.json: decoder_start_token_id = 41 is not less than the 41 tokens of the decoder"
cp "$golden/bart_2/config.json" "$folder/lies/config.json"
echo '{"num_beams": 0}' >"$folder/lies/generation_config.json"
run info "$folder/lies"
code 1
err "qkv: $folder/lies/generation_config.json: num_beams = 0 is less than 1"
rm "$folder/lies/generation_config.json"
run info "$folder/lies"
code 0
before=$(sed 1d "$folder/out")
run info "$golden/bart_2"
check "config.json alone says the same tokens" test "$(sed 1d "$folder/out")" = "$before"
finish
