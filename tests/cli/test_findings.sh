# What `qkv look` opens with: sentences whose numbers are those of `heads --effect`, `fill` and the weights; what has none; and that --json has
# what it had before, with findings behind.
. ./lib.sh
d=$folder/d
mkdir "$d"
text="I was watching the door when [MASK] opened."
# field NAME FILE: the first number of that name behind "findings"
field() { sed 's/.*"findings"://' "$2" | grep -o "\"$1\":[-0-9.e]*" | head -n 1 | cut -d: -f2; }
near() { check "$1 is not $2" awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d < 2e-6 && d > -2e-6) }'; }
opens() { check "it does not open with '$1'" test "$(tr '\n' ' ' <"$folder/out" | cut -c1-${#1})" = "$1"; }
effects() { run heads "$@" --effect --quiet -o "$d/e.csv"; }
# without HEAD BEFORE: P without the head, by the change of its table
without() { awk -F, -v h="$1" -v p="$2" '$1 == h { print p + $3 }' "$d/e.csv"; }

# ---- A blank -------------------------------------------------------------------------------------------

run look "$text"
code 0
no_err
opens "To fill [MASK], head 3.0 reads door (0.97); without it P(it) falls from 1.00 to 0.42, more than without any other head."
run look "$text" --json
code 0
cp "$folder/out" "$d/a.json"
effects "$text"
check "the head of layer and head" test "$(field layer "$d/a.json").$(field head "$d/a.json")" = 3.0
run fill "$text" --json
near "$(field probability "$d/a.json")" "$(grep -o '"probability":[0-9.e-]*' "$folder/out" | head -n 1 | cut -d: -f2)"
near "$(field without "$d/a.json")" "$(without 3.0 "$(field probability "$d/a.json")")"
check "the head that is worth most" test "$(sed 1d "$d/e.csv" | sort -t, -g -k3 | head -n 1 | cut -d, -f1)" = 3.0
run look "$text" --head 3.0 --json
weight=$(sed 's/.*"weights":\[\[//; s/\]\].*//; s/\],\[/;/g' "$folder/out" | tr ';' '\n' | sed -n 8p | cut -d, -f6)
near "$(field weight "$d/a.json")" "$weight"
near "$(field weight "$folder/out")" "$weight"

# A named head is told of, and no other one.
run look "$text" --head 1.2 --json
check "one finding" test "$(sed 's/.*"findings"://' "$folder/out" | grep -o '"text"' | wc -l)" -eq 1
near "$(field without "$folder/out")" "$(without 1.2 "$(field probability "$folder/out")")"
run look "$text" --head 1.2
opens "To fill [MASK], head 1.2 reads door (0.57); without it P(it) stays at 1.00."

# Where another head is worth most, it has a sentence; where none is, that is said.
run look "She saw the cup because [MASK] was old."
opens "To fill [MASK], head 0.3 reads old (0.93); without it P(it) stays at 1.00. Of all 16 heads 1.0 is worth most for it: without it P(it)"
sentence="the [MASK] opened a man."
run look "$sentence" --model $model --json
code 0
cp "$folder/out" "$d/b.json"
effects "$sentence" --model $model
worst=$(sed 1d "$d/e.csv" | sort -t, -g -k3 | head -n 1)
near "$(field without "$d/b.json")" "$(without "$(field layer "$d/b.json").$(field head "$d/b.json")" "$(field probability "$d/b.json")")"
if awk -F, -v shown="$(field layer "$d/b.json").$(field head "$d/b.json")" '{ exit !($3 <= -0.005 && $1 != shown) }' <<W
$worst
W
then
    check "no sentence about $worst" grep -q "Of all 4 heads $(echo "$worst" | cut -d, -f1) is worth most" "$d/b.json"
fi

# ---- A language model, an encoder-decoder, no words --------------------------------------------------------

writer=$here/../../models/writer
translator=$here/../../models/translator
run look "the cat sat on the mat. the cat" --model $writer --json --quiet
code 0
cp "$folder/out" "$d/c.json"
effects "the cat sat on the mat. the cat" --model $writer
near "$(field without "$d/c.json")" "$(without "$(field layer "$d/c.json").$(field head "$d/c.json")" "$(field probability "$d/c.json")")"
check "what comes next" grep -q '"text":"Without head [0-9]\.[0-9] P(next is ' "$d/c.json" # the head reads a piece of its query's own word
# The shown head reads a piece of its query's own word, and is worth nothing: the head that is worth most has the sentence.
lawyer="The lawyer was driving the ship because it was old."
run look "$lawyer" --model $writer --quiet
opens "At ␣ship, head 1.2 reads ␣the (0.58); without it P(next is ␣The) falls from 0.39 to 0.38, more than without any other head."
check "one sentence" sh -c '! grep -q "stays at\|worth most" "$1"' - "$folder/out"
run look "$lawyer" --model $writer --json --quiet
cp "$folder/out" "$d/d.json"
effects "$lawyer" --model $writer
check "the head that is worth most" test "$(field layer "$d/d.json").$(field head "$d/d.json")" = "$(sed 1d "$d/e.csv" | sort -t, -g -k3 | head -n 1 | cut -d, -f1)"
near "$(field without "$d/d.json")" "$(without 1.2 "$(field probability "$d/d.json")")"
run look "$lawyer" --model $writer --quiet --head 0.3 # that was asked for
opens "Without head 0.3 P(next is ␣The) stays at 0.39."
run look "a red fox followed two cats" --model $translator --cross --json
code 0
check "To write" grep -q '"text":"To write ' "$folder/out"
check "P of the target" test "$(sed 's/.*"expected":\[//; s/\].*//' "$folder/out" | tr , '\n' | sed -n "$(($(field query "$folder/out") + 1))p" | cut -c1-7)" = \
    "$(field probability "$folder/out" | cut -c1-7)"
run look "I saw the dog."
opens "At saw, head 0.2 reads dog (0.93)."

# ---- Words of several tokens, small numbers ----------------------------------------------------------------

run look "The attention of dogs" --quiet
opens "At attention, head 0.3 reads dogs (0.96)."
run look "unbelievable wonderful story [MASK]" --quiet
opens "To fill [MASK], head 3.2 reads unbelievable (0.77); without it P(the) falls from 0.20 to 0.033. Of all 16 heads 2.2 is worth most for it: without it P(the) falls to 0.013. It reads wonderful (0.087)."
run look "Attention is all you need" --quiet # its sharpest look is from a piece of a word to another one
opens "All heads "
run look "Attention is all you need" --quiet --json
check "no findings" sh -c '! grep -q "\"findings\"" "$1"' - "$folder/out"
run look "I was watching the [MASK] when it opened."
opens "To fill [MASK], head 3.0 reads opened (0.88); without it P(wallet) falls from 0.040 to 0.0044, more than without any other head."
many="I was watching the door and the dog saw the cat and the mouse was near the box when she found the old cup and the small bird saw the fish so [MASK] opened."
run look "$many" --head 3.1 # no key has a twentieth
opens "Without head 3.1 P(they) falls from 0.074 to 0.015."

# ---- Where there is nothing to say -------------------------------------------------------------------------

for options in "--what-if causal" "--file $d/long --slide 20" "--q $d/q.csv --k $d/q.csv"; do
    seq 40 | sed 's/.*/I saw the dog./' >"$d/long"
    printf '1,0\n0,1\n' >"$d/q.csv"
    case $options in --what-if*) run look "$text" --json $options ;; *) run look --json $options ;; esac
    code 0
    check "$options has findings" sh -c '! grep -q "\"findings\"" "$1"' - "$folder/out"
done

# Findings stand behind all that --json had but for the weights of --head, whose bytes they leave as they were: those of -o FILE.npy are as before, and so is the order.
sed 's/,"findings":\[.*\]}$/}/' "$d/a.json" >"$d/old.json"
check "findings are not last" grep -q '"sharpest":{[^}]*}}$' "$d/old.json"
run look "$text" --head 3.0 --json
check "findings are not before the weights" grep -q '}\],"layer":3,"head":0,"weights":\[\[[^{]*\]\]}$' "$folder/out"
run look "$text" --json --threads 3
check "any threads" cmp -s "$folder/out" "$d/a.json"
run look "$text" --json --isa scalar
check "any instruction set" cmp -s "$folder/out" "$d/a.json"
finish
