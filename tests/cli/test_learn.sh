# qkv learn: twelve steps, those of docs/tutorial.md and in its order; each command's output stands below it as the command prints it; a question,
# an answer on demand, a picture that is drawn; and every command of docs/lessons.md works.
. ./lib.sh
root=$(cd "$here/../.." && pwd)
tutorial=$root/docs/tutorial.md
d=$(cd "$folder" && pwd)/d
mkdir "$d"
qkv=$(cd "$(dirname "$qkv")" && pwd)/$(basename "$qkv")
folder=$(cd "$folder" && pwd)
cd "$root" || exit 1
contains() { case "$(cat "$1")" in *"$(cat "$2")"*) ;; *) return 1 ;; esac; }

run learn
code 0
no_err
check "not twelve steps" test "$(grep -c '^ *[0-9]*  [A-Z]' "$folder/out")" -eq 12
sed -n 's/^## \([0-9]*\)\. \(.*\)/\1  \2/p' "$tutorial" >"$d/titles"
sed -n 's/^ *\([0-9][0-9]*  [A-Z].*\)/\1/p' "$folder/out" >"$d/listed"
check "other titles than in the tutorial" cmp -s "$d/titles" "$d/listed"

said="qkv learn all | head -1"
"$qkv" learn all 2>"$folder/err" | head -n 1 >"$folder/out"
check "a reader that has enough is no error" test ! -s "$folder/err"
run learn all --answer --pictures "$d" --quiet
code 0
no_err
sed -n 's/^\$ //p' "$folder/out" >"$d/shown"
awk '/^## [0-9]/ { on = 1 } /^## [^0-9]/ { on = 0 } on && /^    qkv / { print substr($0, 5) }' "$tutorial" >"$d/commands"
check "other commands than in the tutorial" cmp -s "$d/commands" "$d/shown"
check "hardly any commands" test "$(wc -l <"$d/commands")" -ge 30
cp "$folder/out" "$d/all"
n_pictures=0
while IFS= read -r line; do
    said=$line
    case $line in
    *' -o '*)
        n_pictures=$((n_pictures + 1))
        check "no picture" test -s "$d/${line##* -o }"
        ;;
    *)
        eval "\"\$qkv\" ${line#qkv } --quiet" </dev/null >"$d/out" 2>/dev/null
        printf '$ %s\n' "$line" >"$d/expected"
        sed 's/ *$//' "$d/out" >>"$d/expected"
        sed 's/ *$//' "$d/all" >"$d/plain"
        check "its output is not below it" contains "$d/plain" "$d/expected"
        ;;
    esac
done <"$d/commands"
check "$n_pictures pictures" test "$n_pictures" -eq 12

for step in $(seq 12); do
    run learn "$step"
    code 0
    check "no question" grep -q '^Question$' "$folder/out"
    check "an answer" sh -c '! grep -q "^Answer$" "$1"' - "$folder/out"
    out_says "(qkv learn $step --answer has the answer.)"
    [ "$step" = 12 ] || out_like "^Next: qkv learn $((step + 1))$"
    check "marks of Markdown" sh -c '! grep -q "\*\*\|](" "$1"' - "$folder/out"
    run learn "$step" --answer
    check "no answer" grep -q '^Answer$' "$folder/out"
done
run learn 2 --ascii
check "ASCII" test "$(LC_ALL=C grep -c '[^ -~]' "$folder/out")" -eq 0

usage learn "STEP: '13' is neither a number from 1 to 12 nor 'all'" learn 13
usage learn "STEP: 'x' is neither a number from 1 to 12 nor 'all'" learn x
usage learn "--answer goes with a STEP" learn --answer
usage learn "--pictures: '$d/none' is no folder" learn 1 --pictures "$d/none"
# A tool that is neither installed nor in its source has no files of examples: steps go on, and say what they lack.
# The folder of this test may lie in a source, so these lie elsewhere.
apart=$(mktemp -d)
trap 'rm -rf "$apart"' EXIT
cd "$d" || exit 1
mkdir -p "$apart/bin" "$apart/source/build/release" "$apart/source/include/qkv"
cp "$qkv" "$apart/bin"
cp "$qkv" "$apart/source/build/release"
tool=$qkv
qkv=$apart/bin/qkv
run learn all --quiet
code 0
no_err
lacks() { out_says "(Not run: there is no $1 here. It comes with an installed qkv, and is in the source; docs/tutorial.md shows what the command prints.)"; }
lacks examples/tables/prices.csv
lacks examples/tables/people.csv
lacks models/writer
lacks models/translator
out_like '^\$ qkv explain --positions$'
# One that was built in its source finds them there, wherever it is run.
qkv=$apart/source/build/release/qkv
run learn 1
code 0
lacks examples/tables/prices.csv
: >"$apart/source/include/qkv/qkv.h"
ln -s "$root/examples" "$root/models" "$apart/source"
run learn 1
code 0
no_err
out_like '^    apple '
check "not run" sh -c '! grep -q "Not run" "$1"' - "$folder/out"
run learn 10
code 0
check "not run" sh -c '! grep -q "Not run" "$1"' - "$folder/out"
run attend --x examples/tables/x.csv --wq examples/tables/wq.csv --wk examples/tables/wk.csv --wv examples/tables/wv.csv
code 0
run lookup tables/prices.csv apricot
code 1
# The embedded model by the name of its folder; other names are of the folder that is there.
qkv=$apart/bin/qkv
run fill "a [MASK]" --json
cp "$folder/out" default.json
for name in models/default models/default/; do
    run fill "a [MASK]" --json --model $name
    code 0
    no_err
    check "another model" cmp -s "$folder/out" default.json
done
run info models/default
code 0
out_like '^model  *embedded'
run fill "a [MASK]" --model models/defaults
code 1
err_like "^qkv: 'models/defaults': no such file or folder, and not in the Hugging Face cache .*; to download it: hf download models/defaults$"
mkdir models
run fill "a [MASK]" --model models/defaults
code 1
err_like "^qkv: 'models/defaults': no such file or folder, and no model of that name in the Hugging Face cache [^;]*$"
run fill "a [MASK]" --model ./models/other
code 1
err "qkv: './models/other': no such file or folder"
run fill "a [MASK]" --model bert
code 1
err_like "^qkv: 'bert': no such file or folder, and no model of that name in the Hugging Face cache [^;]*$"
qkv=$tool

# ---- docs/lessons.md: each command in its table ------------------------------------------------------------

cd "$root" || exit 1
sed -n 's/^|.*| *`\(qkv [^`]*\)` *|.*/\1/p' docs/lessons.md >"$d/lessons"
rows=$(grep -c '^| [^-]' docs/lessons.md)
headings=$(grep -c '^|---' docs/lessons.md)
check "$(wc -l <"$d/lessons") commands for $((rows - headings)) rows" test "$(wc -l <"$d/lessons")" -eq $((rows - headings))
check "hardly any rows" test "$(wc -l <"$d/lessons")" -ge 30
while IFS= read -r line; do
    said=$line
    line=$(printf '%s\n' "$line" | sed "s|-o |-o $d/|; s|--out |--out $d/|")
    eval "\"\$qkv\" ${line#qkv }" </dev/null >"$folder/out" 2>"$folder/err"
    got=$?
    code 0
done <"$d/lessons"

# What some of them say.
w='I was watching the door when [MASK] opened.'
nearest_key() { grep -o '"nearest_key":[0-9]*' "$1" | sed -n "$(($2 + 1))s/.*://p"; } # of a query, by the output of qkv map --json
run explain "I was watching the [MASK] when it opened." --shapes
out_like 'e = word\[id\] + segment + position\[i\]'
out_like '^ *0\.881·opened .* 5\.741$'
run explain "The lawyer was driving the ship." --model models/writer --shapes
out_like 'a norm comes before each part of a block'
out_like 'become −∞'
run map "$w" --head 3.0 --perplexity 5 --iters 20000 --no-early-stop --json
check "[MASK] is not nearest to door" test "$(nearest_key "$folder/out" 7)" = 5
check "watching is nearest to door" test "$(nearest_key "$folder/out" 3)" != 5
run embed "I saw the dog." --json
sed 's/.*"vector":\[\([^]]*\)\].*/\1/' "$folder/out" >"$d/alone"
run embed "I was watching the door when it opened." "I saw the dog." --json
check "another vector beside a longer text" sh -c 'grep -qFe "$(cat "$1")" "$2"' - "$d/alone" "$folder/out"
run look "$w" --head 3.0 -o "$d/mixing.svg" --quiet
check "no line on what weights are" grep -q 'Weights show mixing, not reasons' "$d/mixing.svg"
finish
