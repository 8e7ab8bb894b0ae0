# GGUF files: what is in one, one as a model by its own name, by another, and by Ollama's.
. ./lib.sh
tiny=$here/../golden/gguf/tiny.gguf

run info $tiny
code 0
no_err
out_says "general.architecture = 'llama'"
out_says "llama.attention.layer_norm_rms_epsilon = 1e-05"
out_says "tokenizer.ggml.token_type = 1, 1, 1, 1, 1, 1, …  (array of i32, 259)"
out_says "Q5_0  blk.0.attn_qkv.weight  [64,32]"
out_says "9 tensors of 17600 numbers; opened they take 0.0 MB, as f32 0.1 MB"
run info $tiny --json
code 0
out_says '{"name":"tokenizer.ggml.tokens","type":"array of string","n":259,"value":'
out_says '{"name":"blk.0.ffn_gate.weight","type":"Q4_0","shape":[64,32]}'
out_says '"opened_f32_bytes":70400'
opened=$(sed 's/.*"opened_bytes":\([0-9]*\),.*/\1/' "$folder/out")
cp $tiny "$folder/tiny" # by another name: a model
run info "$folder/tiny" --json
code 0
kept=$(sed 's/.*"weights_bytes":\([0-9]*\),.*/\1/' "$folder/out")
check "info knows what opening takes, but for alignment" [ $((kept - opened)) -ge 0 -a $((kept - opened)) -lt $((9 * 64)) ]
run info $tiny --check-finite
code 2
err_like "--check-finite looks at models, not at GGUF files"

run tokenize "he said" --model $tiny --json
code 0
no_err
out '{"ids":[256,32,115,97,105,100],"tokens":["he","Ġ","s","a","i","d"]}'
run generate "he" --model $tiny --max-new 4 --json
code 0
no_err
cp "$folder/out" "$folder/by_path"
run look "he said" --model $tiny --weights int8
code 0

# By a name that does not tell what the file is.
cp $tiny "$folder/model"
run info "$folder/model"
code 0
no_err
out_says "(llama)"
run generate "he" --model "$folder/model" --max-new 4 --json
code 0
same_text() { sed 's/"seconds":[^}]*//' "$1" >"$folder/a" && sed 's/"seconds":[^}]*//' "$2" >"$folder/b" && cmp -s "$folder/a" "$folder/b"; }
check "another text by another name" same_text "$folder/out" "$folder/by_path"

# SentencePiece with a token before a text, WordPiece with one on either side, and byte-level BPE.
ids() {
    run tokenize "$1" --model ../../fuzz/corpus/gguf/$2 --json
    code 0
    out_says "{\"ids\":$3,"
}
ids "h h" gemma3 "[1,4,4]"
ids "He hes" bert "[2,4,4,5,3]"
ids "hehe<end>" gpt2 "[2,2,3]"
run embed "he" --model ../../fuzz/corpus/gguf/bert
code 0
out_says "the last hidden state of the first token"
err_like "the file does not say whether texts are put in lower case; they are"

# Ollama's folder
export OLLAMA_MODELS="$folder/ollama"
digest=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
library=$OLLAMA_MODELS/manifests/registry.ollama.ai/library
mkdir -p "$library/tiny" "$OLLAMA_MODELS/manifests/registry.ollama.ai/me/mine" "$OLLAMA_MODELS/blobs"
cp $tiny "$OLLAMA_MODELS/blobs/sha256-$digest"
layer() { printf '{"mediaType":"application/vnd.ollama.image.%s","digest":"sha256:%s","size":1}' "$1" "$2"; }
manifest() { printf '{"schemaVersion":2,"layers":[%s]}' "$1"; }
manifest "$(layer model $digest),$(layer template ab)" >"$library/tiny/latest"
cp "$library/tiny/latest" "$library/tiny/135m-q8_0"
cp "$library/tiny/latest" "$OLLAMA_MODELS/manifests/registry.ollama.ai/me/mine/v1"
for name in tiny tiny:latest tiny:135m-q8_0 me/mine:v1; do
    run generate "he" --model "ollama:$name" --max-new 4 --json
    code 0
    no_err
    check "another text from Ollama's folder" same_text "$folder/out" "$folder/by_path"
done
run info ollama:tiny
code 0
out_says "9 tensors of 17600 numbers"
run tokenize "he" --model ollama:none
code 1
err "qkv: Ollama has no model 'none' in $OLLAMA_MODELS; to download it: ollama pull none"
for name in "" ../x tiny: a/b/c tiny:a:b .hidden; do
    run tokenize "he" --model "ollama:$name"
    code 1
    err_like "is not ollama:NAME, ollama:NAME:TAG or ollama:USER/NAME:TAG"
done
manifest "$(layer model $digest),$(layer projector $digest)" >"$library/tiny/latest"
run tokenize "he" --model ollama:tiny
code 1
err_like "tiny/latest: has a layer of type 'application/vnd.ollama.image.projector', without which"
manifest "$(layer model ../../x)" >"$library/tiny/latest"
run tokenize "he" --model ollama:tiny
code 1
err_like "digest 'sha256:../../x' is not sha256: and 64 hexadecimal digits"
manifest "$(layer template ab)" >"$library/tiny/latest"
run tokenize "he" --model ollama:tiny
code 1
err_like "tiny/latest: has no layer of a model"
echo "[" >"$library/tiny/latest"
run tokenize "he" --model ollama:tiny
code 1
err_like "^qkv: $library/tiny/latest: "
unset OLLAMA_MODELS
export HOME="$folder/home"
mkdir -p "$HOME/.ollama"
run tokenize "he" --model ollama:tiny
code 1
err_like "in $HOME/.ollama/models, nor in /usr/share/ollama/.ollama/models"

# What is refused
head -c 3000 $tiny >"$folder/cut.gguf"
run info "$folder/cut.gguf"
code 1
no_out
err_like "^qkv: $folder/cut.gguf: .* the file ends after"
run tokenize "he" --model "$folder/none.gguf"
code 1
err "qkv: $folder/none.gguf: cannot open: No such file or directory"
mkdir "$folder/only"
cp $tiny "$folder/only/tiny.gguf"
run tokenize "he" --model "$folder/only"
code 1
run info "$folder/only"
code 1
err "qkv: $folder/only holds only tiny.gguf, a GGUF file, which may be a model: then name the file itself"
run train --text ../../README.md --from $tiny --out "$folder/new" --steps 1
code 0
run tokenize "he said" --model "$folder/new" --json
cp "$folder/out" "$folder/ids"
run tokenize "he said" --model $tiny --json
check "the folder has the file's vocabulary" cmp -s "$folder/ids" "$folder/out"

finish
