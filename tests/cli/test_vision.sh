# Models that read images in the tool: info, embed --image, training on pictures, and what commands about texts say of them.
. ./lib.sh
vision=$here/../golden/vision
boats=$here/../../examples/images/two-boats.png

run info "$vision/vit_1"
code 0
out_like '^model .*(vit)$'
out_like '^images        16 by 16 pixels, patches of 4 by 4, 4 by 4 of them$'
out_like '^before them   1 token$'
out_like '^classifier    3 labels: cat | dog | a <b>&$'
run info "$vision/registers_1"
out_like '^before them   4 tokens, of which 3 registers$'
run info "$vision/clip_1"
out_like '^their tower   2 layers of 3 heads of 8, hidden 24, feed-forward 29$'
out_like '^joint space   10 channels; match 12.1825 cos + 0$'
run info "$vision/clip_1" --json
out_says '"images":{"image_size":[12,12],"patch_size":[4,4],"n_prefix":1,"n_registers":0,"joint_dim":10'

# ---- embed --image: cosines and shares are those of the vectors --------------------------------------
run embed --image "$boats" "the dog" "a door opened" "when" --model "$vision/clip_1" --json
code 0
no_err
python3 - "$folder/out" <<'END'
import json, math, sys
rows = json.load(open(sys.argv[1]))["matches"]
assert [row["text"] for row in rows] == ["the dog", "a door opened", "when"]
sum_of = sum(math.exp(row["logit"]) for row in rows)
for row in rows:
    assert abs(row["logit"] / 12.182494 - row["cosine"]) < 1e-6 and -1 <= row["cosine"] <= 1, row
    assert abs(math.exp(row["logit"]) / sum_of - row["share"]) < 1e-6, row
END
check "shares are the softmax of logits" test $? -eq 0
run embed --image "$boats" "the dog" --model "$vision/clip_1"
out_like '^100.0 %  .*  the dog$'
run embed --image "$boats" --model "$vision/vit_1" -o "$folder/v.npy"
code 0
check "a vector of 24 numbers" test "$(wc -c <"$folder/v.npy")" -eq $((128 + 24 * 4))
run embed --image "$boats" --model "$vision/vit_1"
code 0
out_like 'The image is a vector of 24 numbers, which -o and --json have'
usage embed "--image together with --file" embed --image "$boats" --file x
usage embed "-o writes vectors: --image without a text has one" embed --image "$boats" "a dog" -o "$folder/v.npy"
run embed --image "$boats" "a dog" --model "$vision/vit_1"
code 1
err_like 'a vit matches no texts and images'
run embed --image "$boats"
code 1
err_like 'a bert reads texts, not images'
run embed --image "$folder/none.png" --model "$vision/vit_1"
code 1
err_like 'none.png: cannot open'
run embed --image "$boats" --model "$vision/deit_1"
code 1
err_like 'preprocessor_config.json'
run embed "a dog" --model "$vision/vit_1"
code 1
err_like 'a vit reads images, not texts: --image F'

# ---- SigLIP: ids of texts, and the probability of each, are those of transformers --------------------
siglip=$vision/siglip_2
python3 - "$siglip/texts.json" "$folder" <<'END'
import json, struct, sys, zlib
told = json.load(open(sys.argv[1]))
open(sys.argv[2] + "/texts.jsonl", "w").writelines(json.dumps(text) + "\n" for text, _ in told["texts"])
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\0" + b"\xff" * 36 for _ in range(12))
header = struct.pack(">IIBBBBB", 12, 12, 8, 2, 0, 0, 0)
with open(sys.argv[2] + "/white.png", "wb") as png:
    png.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
END
"$qkv" tokenize --jsonl --model "$siglip" <"$folder/texts.jsonl" >"$folder/ids.jsonl" 2>"$folder/err"
python3 - "$siglip/texts.json" "$folder" "$qkv" <<'END'
import json, subprocess, sys
told = json.load(open(sys.argv[1]))
found = [json.loads(line)["ids"] for line in open(sys.argv[2] + "/ids.jsonl")]
assert found == [ids for _, ids in told["texts"]], found
said = subprocess.run([sys.argv[3], "embed", "--image", sys.argv[2] + "/white.png", "--model", sys.argv[1][:-len("/texts.json")], "--json", "--",
                       *[text for text, _ in told["matches"]]], capture_output=True, check=True)
shares = [row["share"] for row in json.loads(said.stdout)["matches"]]
wanted = [chance for _, chance in told["matches"]]
assert all(abs(x - y) < 1e-5 for x, y in zip(shares, wanted)) and len(shares) == len(wanted), list(zip(shares, wanted))
END
check "ids and matches are those of transformers" test $? -eq 0
run embed --image "$folder/white.png" "two red boats" --model "$siglip"
code 0
out_like '^ *[0-9.]* %  .*  two red boats$'
run info "$siglip"
out_like '^joint space   24 channels; match 12.1825 cos - 3$'

# ---- Commands about texts ----------------------------------------------------------------------------
for command in fill tokenize generate; do
    run $command --model "$vision/vit_1" "the dog"
    code 1
    err_like "a vit reads images, and $command texts"
done
for command in heads map explain; do
    run $command --model "$vision/vit_1" "the dog"
    code 1
    err_like 'a vit reads images: give one with --image F'
    run $command --image "$boats"
    code 1
    err_like 'a bert reads texts, and --image is for models of images'
    usage $command "--image together with a text" $command --image "$boats" "the dog" --model "$vision/vit_1"
done

# ---- heads, map, explain ------------------------------------------------------------------------------
run heads --image "$boats" --model "$vision/vit_1"
code 0
out_says 'on an image of 17 tokens, means over 16 of them'
out_says 'What stands before a patch is the one to its left'
check "labels of texts" sh -c '! grep -q "Labels, the first rule" "$1"' sh "$folder/out"
run heads --image "$boats" --model "$vision/vit_1" --json
out_says '"tokens":["[CLS]","0,0","0,1"'
check "a label of texts" sh -c '! grep -o "\"label\":\"[a-z][^,]*" "$1"' sh "$folder/out"
run heads --image "$boats" --model "$vision/vit_1" --what-if drop=0,0 --sort entropy
code 0
out_says 'without 0,0'
run heads --image "$boats" --model "$vision/vit_1" -o "$folder/heads.csv"
check "a line for each head" test "$(wc -l <"$folder/heads.csv")" -eq 7

# Effects are those of the classes that look shows.
run look --image "$boats" --model "$vision/vit_1" --json
grep -o '"classes":\[[^]]*\]' "$folder/out" >"$folder/classes"
run heads --image "$boats" --model "$vision/vit_1" --effect --group '0.*' --json
code 0
out_says '"looked_at":[{"label":'
python3 - "$folder/out" "$folder/classes" <<'END'
import json, math, sys
made, classes = json.load(open(sys.argv[1])), json.loads("{" + open(sys.argv[2]).read() + "}")["classes"]
best = max(classes, key=lambda c: c["probability"])
assert made["looked_at"][0]["label"] == best["label"], (made["looked_at"], best)
assert abs(made["looked_at"][0]["probability"] - best["probability"]) < 1e-6
assert len(made["heads"]) == 6 and len(made["groups"]) == 1
assert all(math.isclose(h["probability"], math.exp(made["log_p"] + h["nats"]) - math.exp(made["log_p"]), abs_tol=1e-9) for h in made["heads"])
END
check "effects on the likeliest label" test $? -eq 0
run heads --image "$boats" --model "$vision/vit_1" --effect --word cat
out_like '^Label cat of the image'
run heads --image "$boats" --model "$vision/vit_1" --effect --word cow
code 2
err_like "'cow' is none of the 3 labels"
run heads --image "$boats" --model "$vision/vit_1" --effect --patch "$boats"
check "patching with itself changes something" sh -c '! grep "^[01]\.[012]" "$1" | grep -qv "+0.0000 *+0.0000"' sh "$folder/out"
run heads --image "$boats" --model "$vision/clip_1" --effect
code 1
err_like 'without a classifier tells no labels'
usage heads "--image together with --loss" heads --image "$boats" --effect --loss

run map --image "$boats" --model "$vision/vit_1" --query 2,1 --pca --json
code 0
out_says '{"token":"2,1"'
run map --image "$boats" --model "$vision/vit_1" --pca -o "$folder/map.csv"
code 0
check "patches in a CSV" grep -q '^key,1,"0,0",' "$folder/map.csv"
run map --image "$boats" --model "$vision/vit_1" --query 7,7
code 1
err_like "'7,7' is none of the 17 tokens"

for model in vit_1 clip_1; do
    run explain --image "$boats" --model "$vision/$model" --query 2,1
    code 0
    out_says 'W_E p + b'
    check "$model: steps differ from the library" sh -c '! sed -n "/Check/,\$p" "$1" | grep -E "e[-+]0[0-4]|e-05|inf|nan"' sh "$folder/out"
done
run explain --image "$boats" --model "$vision/vit_1" --json
out_says '"tokens":["[CLS]","0,0"'
run explain --image "$boats" --model "$vision/vit_1" --query 17
code 2
err_like 'the image has tokens 0 to 16'
usage explain "--image together with --shuffle" explain --image "$boats" --shuffle
run eval --model "$vision/vit_1" --text "$here/../../examples/text/sentences.txt"
code 1
err_like 'a vit reads images, and eval texts'
run train --from "$vision/vit_1" --text "$here/../../examples/text/sentences.txt" --out "$folder/t" --steps 1 --quiet
code 1
err_like 'a vit reads images, not texts'

# ---- Training ----------------------------------------------------------------------------------------
seer="train --shapes --image-size 16 --patch-size 8 --layers 1 --heads 2 --hidden 8 --steps 4 --batch 8 --report-every 2"
run $seer --out "$folder/seer" --threads 2
code 0
err_like '^step 4/4  loss [0-9.]*  held out [0-9.]* ([0-9.]* % right)  [0-9]* tokens/s'
check "a picture of the loss" test -s "$folder/seer/loss.png"
run $seer --out "$folder/other" --threads 1 --quiet
code 0
check "the same bytes" cmp "$folder/seer/model.safetensors" "$folder/other/model.safetensors"
run $seer --out "$folder/seer" --resume
err_like 'all 4 steps were made before'
run info "$folder/seer"
out_like 'one red ball | one red box | one red boat'
run $seer --out "$folder/json" --json
out_like '"step":2,.*"label_loss":'
usage train "--shapes and --text together: the one is of images" train --shapes --text x --out y
usage train "--shapes and --vocab together: the one is of images" train --shapes --vocab 500 --steps 1 --out "$folder/y"
usage train "--images and --len together: the one is of images" train --images x --len 64 --steps 1 --out "$folder/y"
usage train "--image-size goes with --shapes or --images" train --text x --image-size 16 --steps 1 --out "$folder/y"
usage train "--patch-size goes with --shapes or --images" train --grammar x --patch-size 4 --steps 1 --out "$folder/y"
usage train "--shapes and --images together: give one of them" train --shapes --images x --out y
usage train "--images and --arch together: the one is of images" train --images x --arch gpt2 --out y

finish
