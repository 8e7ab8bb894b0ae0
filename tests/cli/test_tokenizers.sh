# Folders that hold a tokenizer and no model: byte-level BPE. What it makes of texts is in tests/golden.
. ./lib.sh
bpe=$folder/bpe
mkdir "$bpe"
cp ../golden/bpe/roberta/vocab.json ../golden/bpe/roberta/merges.txt "$bpe"
run tokenize "the" --model "$bpe"
code 1
no_out
err "qkv: $bpe/vocab.json: what stands around a text is unknown: neither tokenizer_config.json has a tokenizer_class nor config.json a model_type"
echo '{"model_type": "bart"}' >"$bpe/config.json"
run tokenize "the query" --pair "門 x" --model "$bpe"
code 0
no_err
out '0	<s>
261	th
73	e
418	␣query
2	</s>
2	</s>
170	\xe9
249	\x96
227	\x80
225	␣
92	x
2	</s>'
run tokenize "the query" --model "$bpe" --json
code 0
out '{"ids":[0,261,73,418,2],"tokens":["<s>","th","e","Ġquery","</s>"]}'
marian=$here/../golden/marian
run tokenize "the dog" --model "$marian" # SentencePiece: the same signs
code 0
out '257	␣the
219	␣
62	d
82	o
69	g
0	</s>'
run tokenize "the dog" --model "$marian" --json
out_like '"tokens":\["▁the","▁","d","o","g","</s>"\]'
run fill "the [MASK]" --model "$bpe"
code 1
no_out
run tokenize "the" --model "$bpe" --check-finite -v
code 0
rm "$bpe/merges.txt"
run tokenize "the" --model "$bpe"
code 1
err "qkv: $bpe: vocab.json is there, but not merges.txt"
rm "$bpe/vocab.json"
run tokenize "the" --model "$bpe"
code 1
err "qkv: $bpe: neither tokenizer.json nor vocab.txt nor vocab.json with merges.txt is there"
run tokenize "the" --model "$bpe/none"
code 1
err_like "^qkv: '.*/none': no such file or folder$"
finish
