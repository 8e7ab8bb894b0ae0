# The demonstrations in models/: what their README files show.
. ./lib.sh
translator=$here/../../models/translator
writer=$here/../../models/writer
sentence="a big red fox followed two cats near the river yesterday"

run translate "$sentence" --model "$translator"
code 0
no_err
out "yalu siho pokup verem dasa teb surili nim ko tipe"
run translate "Paul will carry three cats" --model "$translator" --beams 4
code 0
out "perulu surili sol ko kobo"

# Without --target it is what the model writes that is looked at.
run look "$sentence" --model "$translator" --cross --align --heads 1.0 --json
code 0
check "each word is aligned with the one that it translates" test \
    "$(grep -o '"source":"[a-z]*"' "$folder/out" | cut -d'"' -f4 | tr '\n' ' ')" = \
    "yesterday fox red big river near cats two followed followed "
run look "$sentence" --model "$translator" --align --json
code 0
out_like '"alignment":{"layer":1,"n_heads":4,'
run look "$sentence" --model "$translator" --align
out_says "weights of layer 1 (of all layers the one whose words look most sharply, by their mean)"

# Spaces of tokens are signs that people know, a user may leave them away, and a title has none; tables keep tokens.
run look "I saw a dog." --model "$writer" --head 0.0
code 0
out_like '^ *I  ␣saw  ␣a '
check "no sign of the vocabulary" test "$(grep -c 'Ġ' "$folder/out")" -eq 0
for token in saw ' saw' ␣saw; do
    run look "I saw a dog." --model "$writer" --head 0.0 --what-if "drop=$token" --json
    code 0
    out_like '"what_if":"without ␣saw"'
done
run map "I saw a dog." --model "$writer" --head 0.0 --query saw --iters 20 --json
out_like '"lines":{"query":1,'
run look "I saw a dog." --model "$writer" --head 0.0 -o "$folder/w.csv" --quiet
check "exact tokens in tables" test "$(head -n 1 "$folder/w.csv")" = query,I,Ġsaw,Ġa,Ġdo,g,.
run look "I saw a dog." --model "$writer" --head 0.0 -o "$folder/w.html" --quiet
check "the text as title" grep -q '"title":"I saw a dog\."' "$folder/w.html"
check "tokens of a page" grep -q '"tokens":\["I","␣saw","␣a","␣do","g","\."\]' "$folder/w.html"
run look "I saw the [MASK]." -o "$folder/b.html" --quiet
check "BERT's text, too" grep -q '"title":"i saw the \[MASK\]\."' "$folder/b.html"
run translate "$sentence" --model "$translator" --align --json
out_like '"token":"Ġ[a-z]*","source":"Ġ[a-z]*"'

run generate --model "$writer" --sample --seed 2 --max-new 30
code 0
out_says 'The lawyer was driving the ship. What did Eva pick? She picked the cherries.'
cp "$folder/out" "$folder/first"
run generate --model "$writer" --sample --seed 2 --max-new 30 --isa scalar --threads 1
check "the same text on any instruction set" cmp -s "$folder/out" "$folder/first"
finish
