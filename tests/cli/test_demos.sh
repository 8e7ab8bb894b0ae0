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

run generate --model "$writer" --sample --seed 2 --max-new 30
code 0
out_says 'The lawyer was driving the ship. What did Eva pick? She picked the cherries.'
cp "$folder/out" "$folder/first"
run generate --model "$writer" --sample --seed 2 --max-new 30 --isa scalar --threads 1
check "the same text on any instruction set" cmp -s "$folder/out" "$folder/first"
finish
