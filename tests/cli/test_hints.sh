# Hints about texts that a model reads otherwise than their writer may think: standard error only, and none with --quiet.
. ./lib.sh
lacks="It knows the few words of its grammar; --model names another"

run look "I was watching the [MASK] when it opened." --head 1.0
code 0
no_err
run look "The xylophone is a Zither, a dog." --head 1.0
code 0
err "qkv: the embedded model was never shown 'xylophone', 'Zither': it reads them in pieces. $lacks"
run look "The dog." --pair "It quacks." --head 1.0
code 0
err "qkv: the embedded model was never shown 'quacks': it reads it in pieces. $lacks"
run look "a1 b2 c3 d4 e5 f6" --head 1.0
code 0
err_like " 'a1', 'b2', 'c3', 'd4' and more: "
# A word is named once, in whatever case it stands.
run look "A fruit, fruit and Fruit near FRUIT." --pair "The fruit quacks." --head 1.0
code 0
err "qkv: the embedded model was never shown 'fruit', 'near', 'quacks': it reads them in pieces. $lacks"
run look "Fruit fruit fruit fruit" --head 1.0
code 0
err "qkv: the embedded model was never shown 'Fruit': it reads it in pieces. $lacks"
run look "The xylophone." --head 1.0 --quiet
code 0
no_err
feed '"The xylophone."' look --jsonl
code 0
no_err
run look "The xylophone." --head 1.0 --model "$model"
code 0
no_err
run tokenize "The xylophone."
no_err
run look "" --head 1.0
code 0
err "qkv: the text is empty: the model reads only the tokens around it"
run next "The dog." " "
code 0
err "qkv: the second text is empty: the model reads only the tokens around it"
run fill "I saw the [mask]."
code 2
err "qkv: '[mask]' is no mask of this model, which is [MASK]
qkv fill: there is no [MASK] in the text
Try 'qkv help fill'."
run look "I saw the <mask>." --head 1.0
code 0
err "qkv: '<mask>' is no mask of this model, which is [MASK]"
# A page says the same, with --quiet, too, and nothing where there is nothing to say.
run look "I saw the [mask] zebra." -o "$folder/hint.html" --quiet
check "a page has the hint" grep -q '"hint":".\[mask\]. is no mask of this model, which is \[MASK\]"' "$folder/hint.html"
run look "I saw the [MASK]." -o "$folder/hint.html" --quiet
check "a page without a hint" test "$(grep -c '"hint":' "$folder/hint.html")" -eq 0
usage look "unexpected argument 'It ran.' (a second text is --pair TEXT)" look "I saw the dog." "It ran."
usage look "unexpected argument 'saw' (put a text in quotes)" look I saw the dog
usage tokenize "unexpected argument 'c' (put a text in quotes)" tokenize "a b" c d
# A text that is the name of a file is a text, and whoever wrote it may have meant the file.
cd "$folder"
echo "The dog ran." >notes.txt
mkdir -p notes
: >empty.txt
not_read="qkv: the text is 'notes.txt', not what the file of that name holds"
embedded="qkv: the embedded model was never shown 'notes', 'txt': it reads them in pieces. $lacks"
run look notes.txt --head 1.0
code 0
err "$not_read (--file F reads a file)
$embedded"
run explain notes.txt
code 0
err "$not_read (- reads standard input)
$embedded"
run embed notes.txt
code 0
err "$not_read (--file F reads a file)"
run embed notes.txt "The dog."
code 0
no_err
for text in notes empty.txt; do
    run tokenize "$text"
    code 0
    no_err
done
run look notes.txt --head 1.0 --quiet
no_err
finish
