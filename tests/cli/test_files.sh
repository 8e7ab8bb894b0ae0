# Arrays in .npz files, from one command to the next; models whose weights are in several files.
. ./lib.sh
data=$here/data
stored=$here/../unit/store_data
z=$folder/o.npz

# The same numbers from a zip as from files, into one new zip.
run attend --q $data/q.npy --k $data/k.npy --v $data/v.npy -o "$z:o" --lse "$z:lse"
code 0
no_err
run attend --q $data/q.npy --k $data/k.npy --v $data/v.npy -o "$folder/o.npy" --lse "$folder/lse.npy"
code 0
run info "$z"
code 0
no_err
out "F32   lse  [2,4,5]
F32   o  [2,4,5,6]
2 tensors"
run info "$z:lse"
code 0
out_says "shape     [2,4,5]"
run attend --q "$z:o" --k "$z:o.npy" --v "$z:o" -o "$folder/twice_z.npy"
code 0
run attend --q "$folder/o.npy" --k "$folder/o.npy" --v "$folder/o.npy" -o "$folder/twice.npy"
code 0
check "other bits from a zip" cmp -s "$folder/twice.npy" "$folder/twice_z.npy"
run look --q "$z:o" --k "$z:o"
code 1
err_like "^qkv: --q $z:o: shape \[2,4,5,6\] is none of"

# What is refused
run info "$z" --strict
code 2
run info "$z:x"
code 1
no_out
err "qkv: $z: there is no array 'x'"
run attend --q "$z" --k "$z:o" --v "$z:o" -o "$z:o"
code 1
err "qkv: a .npz file holds many arrays: name one as FILE:NAME"
run attend --q "$z:o" --k "$z:o" --v "$z:o" -o "$z"
code 2
run attend --q "$z:o" --k "$z:o" --v "$z:o" -o "$folder/p.npz:a" --lse "$folder/p.npz:a.npy"
code 1
err "qkv: $folder/p.npz:a.npy is named twice"
check "a file was made" test ! -e "$folder/p.npz"
run attend --q "$z:o" --k "$z:o" --v "$z:o" -o "$folder/none/p.npz:a"
code 1
err_like "^qkv: $folder/none/p.npz: cannot create a file beside it"

# A model in three files
sharded=$here/../golden/stored/sharded
run info $sharded
code 0
no_err
out_says "files         model-00001-of-00003.safetensors"
run info $sharded --json
code 0
out_says '"files":["model-00001-of-00003.safetensors","model-00002-of-00003.safetensors","model-00003-of-00003.safetensors"]'
run info $sharded/model.safetensors.index.json
code 0
out_says "46 tensors"
run fill "the [MASK]" --model $sharded/model-00001-of-00003.safetensors
code 1
no_out
err "qkv: $sharded/model-00001-of-00003.safetensors is one of several files of a model; name their folder, $sharded, which needs a model.safetensors.index.json"
finish
