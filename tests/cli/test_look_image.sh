# `qkv look --image`: words, maps and files of an image, and what is refused.
. ./lib.sh
vit=$here/../golden/vision/vit_1
clip=$here/../golden/vision/clip_1
image=$here/../golden/image/files/turned_6.jpg
boats=$here/../../examples/images/two-boats.png

run look --image "$image" --model "$vit"
code 0
out_like '^19 by 26 pixels; the model sees 16 by 16 of them, resized, as 4 by 4 patches\.$'
out_like '^  dog  *0\.828'
out_says 'In head 1.0 [CLS] looks most at the left: patch 2,0 has 0.342'
out_says 'No head of the last layer looks at a patch more.'
out_says 'Through all layers (rollout) [CLS] is made most of the bottom left: patch 3,0'
out_like '^\*1\.0  *1\.1'
out_like '^Layer 1, head 0: what \[CLS\] looks at$'
run look --image "$image" --model "$vit" --ascii
code 0
check "--ascii has other characters" sh -c '! LC_ALL=C grep -q "[^ -~]" "$1"' sh "$folder/out"
run look --image "$image" --model "$vit" --color always
check "no half blocks in colour" grep -q '▀' "$folder/out"
run look --image "$image" --model "$vit" --rollout
out_like '^Rollout: what \[CLS\] is made of after all layers$'
run look --image "$image" --model "$vit" --head 0.1 --query 3,2
out_like '^Layer 0, head 1: what patch 3,2 looks at$'
check "other heads are shown" sh -c '! grep -q "All heads" "$1"' sh "$folder/out"
run look --image "$image" --model "$vit" --query all
out_says 'all patches looks most'

# JSON: the map of the shown head is the query's row of its weights without [CLS].
row() { # ARRAY of the last output, "[[1,2],[3,4]]", one number a line
    tr -d '\n ' <"$folder/out" | grep -o "\"$1\":\[\[[^a-z]*\]\]" | tr -d '[]' | cut -d: -f2 | tr ',' '\n' | grep .
}
run look --image "$image" --model "$vit" --head 1.0 --json
code 0
row map >"$folder/map"
row weights | sed -n 2,17p >"$folder/weights"
check "a map has 16 patches" test "$(wc -l <"$folder/map")" -eq 16
check "the map is not the row of [CLS]" cmp -s "$folder/map" "$folder/weights"
check "tokens" grep -q '"tokens":\["\[CLS\]","0,0","0,1","0,2","0,3","1,0"' "$folder/out"
check "classes" grep -q '"classes":\[{"label":"cat","probability":0.0122' "$folder/out"
run look --image "$image" --model "$vit" --head 1.0 -o "$folder/w.csv"
code 0
check "columns of a CSV" grep -q '^query,\[CLS\],"0,0","0,1"' "$folder/w.csv"
sed -n 2p "$folder/w.csv" | tr ',' '\n' | sed -n 3,18p >"$folder/row"
check "CSV and JSON differ" cmp -s "$folder/map" "$folder/row"

# Files
for ending in png svg pdf html json npy csv; do
    run look --image "$image" --model "$vit" -o "$folder/all.$ending"
    code 0
    check "no .$ending" test -s "$folder/all.$ending"
done
check "a caption says the opacity" grep -aq 'Over the image with an opacity of 0.5' "$folder/all.svg"
run look --image "$image" --model "$vit" --rollout --smooth --opacity 0.4 --theme dark -o "$folder/r.svg"
code 0
check "opacity" grep -aq 'an opacity of 0.4; between the middles of patches' "$folder/r.svg"
check "the page has the image" grep -q '"image":{"width":16,"height":16,"rows":4' "$folder/all.html"

# What if: labels before and after, and a patch without weight
run look --image "$image" --model "$vit" --what-if drop=2,0
code 0
out_like '^Before$'
out_says '[modified: not what the model computed: without 2,0]'
check "the dropped patch is looked at" sh -c '! grep -q "patch 2,0 has" "$1"' sh "$folder/out"
run look --image "$image" --model "$vit" --what-if drop=2,0 --head 1.0 --json
check "a dropped patch has weight" test "$(row map | sed -n 9p)" = 0.0
check "labels before" grep -q '"classes_before":\[{"label":"cat","probability":0.0122' "$folder/out"
run look --image "$image" --model "$vit" --what-if drop=9,9
code 1
err_like "'9,9' is none of the 17 tokens"
run look --image "$image" --model "$vit" --what-if temperature=2 -o "$folder/t.html"
code 0
check "a page has the badge" grep -q 'not what the model computed (temperature 2)' "$folder/t.html"

# Rollout by other heads than the mean: each is a distribution over tokens.
for fuse in mean max min; do
    run look --image "$image" --model "$vit" --rollout --fuse $fuse --json
    code 0
    check "$fuse is not said" grep -q "\"fuse\":\"$fuse\"" "$folder/out"
    row rollout >"$folder/$fuse"
    check "$fuse: shares" awk '{ sum += $1; bad += $1 < 0 } END { exit !(sum > 0.1 && sum < 1 && !bad) }' "$folder/$fuse"
done
check "max is mean" sh -c '! cmp -s "$1" "$2"' sh "$folder/mean" "$folder/max"
check "min is mean" sh -c '! cmp -s "$1" "$2"' sh "$folder/mean" "$folder/min"
run look --image "$image" --model "$vit" --fuse max
code 2
err_like '\-\-fuse goes with --rollout'

# Against: another image, or another model
run look --image "$image" --against "$boats" --model "$vit" --top 2
code 0
out_like '^6 heads on two images$'
out_like '^B: .*two-boats.png$'
check "two heads" test "$(grep -c '^[01]\.[012]  *0\.[0-9]' "$folder/out")" -eq 2
run look --image "$image" --against "$image" --model "$vit" --json
check "an image differs from itself" test "$(grep -o '"js":[^,]*' "$folder/out" | sort -u)" = '"js":0.0'
run look --image "$image" --against "$vit" --model "$vit" --json
check "a model differs from itself" test "$(grep -o '"js":[^,]*' "$folder/out" | sort -u)" = '"js":0.0'
for ending in png html json; do
    run look --image "$image" --against "$boats" --model "$vit" -o "$folder/against.$ending"
    code 0
done
check "the page has both images" test "$(grep -o '"image":{"width":16' "$folder/against.html" | wc -l)" -eq 2
run look --image "$image" --against "$boats" --model "$vit" --head 1.0 -o "$folder/both.svg"
code 0
check "both are named" grep -aq 'B: ' "$folder/both.svg"
for head in "" "--head 1.0"; do
    run look --image "$image" --against "$boats" --model "$vit" --what-if no-scale $head
    out_says "MODIFIED: not what the model computed (without the scale). A is "
    run look --image "$image" --against "$boats" --model "$vit" --what-if no-scale $head -o "$folder/both.svg"
    check "the caption" grep -aq 'MODIFIED: not what the model computed (without the scale)\. A' "$folder/both.svg"
done
run look --image "$image" --against "$boats" --model "$vit" --what-if no-scale --json
out_like '"modified":"modified: not what the model computed","what_if":"without the scale","heads":'
run look --image "$image" --against "$clip" --model "$vit"
code 1
err_like 'weights are compared token by token'
run look --image "$image" --against "$boats" --model "$vit" -o "$folder/a.npy"
code 2

# What each head is worth for a label, in a page
run look --image "$image" --model "$vit" --effect -o "$folder/effect.html"
code 0
check "a page has effects" grep -q 'ln P(dog)' "$folder/effect.html"
run look --image "$image" --model "$clip" --effect -o "$folder/effect.html"
code 1
err_like 'without a classifier tells no labels'

# The tower of CLIP
run look --image "$image" --model "$clip"
code 0
out_like '^Layer 1, head'

# Refused
run look --image "$image"
code 1
err_like 'a bert reads texts, and --image is for models of images'
run look "a text" --model "$vit"
code 1
err_like 'a vit reads images: give one with --image F'
run look --image "$here/lib.sh" --model "$vit"
code 1
err_like 'lib.sh: it is neither a PNG nor a JPEG'
run look --image "$image" --model "$here/../golden/vision/vit_2"
code 1
err_like 'preprocessor_config.json'
run look --image "$image" --model "$vit" --query 4,0
code 1
err_like "'4,0' is no token of the image: patches are 0,0 to 3,3, others"
run look --image "$image" --model "$vit" --head 9.9
code 2
run look --image "$image" --model "$vit" --rollout -o "$folder/r.csv"
code 2
err_like 'which --rollout writes'
run look --image "$image" --model "$vit" --opacity 1.5 -o "$folder/r.png"
code 2
err_like 'opacity 1.5: must be above 0 and at most 1'
run look --image "$image" --model "$vit" --opacity 0.4
code 2
err_like 'opacity is of a picture: -o FILE'
run look --image "$image" --model "$vit" "a text"
code 2
run look "a text" --query 1,1
code 2
err_like '\-\-query goes with --image'
finish
