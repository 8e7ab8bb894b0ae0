# What the documentation shows is accepted: the grammar of docs/grammar.md, every command that stands there as it is typed, what the tutorial
# shows of its output, and every option that is named with a command.
. ./lib.sh
root=$here/../..
pages="$root/README.md $root/CHANGELOG.md $root/HACKING.md $root/SECURITY.md $root/docs/*.md $root/docs/decisions/*.md $root/models/*/README.md $root/examples/README.md"

# The grammar: said, judged, trained on
awk '/^    person /{ shown = 1 } shown && /^[^ ]/ { exit } shown { sub(/^    /, ""); print }' "$root/docs/grammar.md" >"$folder/grammar"
check "there is no grammar in docs/grammar.md" grep -q '^family' "$folder/grammar"
printf 'Anna was opening the door when it opened.\nThe door was opening.\n' >"$folder/said"
run eval --grammar "$folder/grammar" --check "$folder/said"
code 0
no_err
out_says "1 of 2"
run train --grammar "$folder/grammar" --out "$folder/model" --layers 1 --heads 1 --hidden 8 --vocab 400 --steps 1 --batch 2 --quiet
code 0
no_err

# Commands as they are typed, a line each; those that end in \ go on in the next
sed -e ':a' -e '/\\$/{N;s/ *\\\n */ /;ba' -e '}' $pages | sed -n 's/^ \{4\}\(qkv\|\.\/dev run\) \([a-z].*\)/\2/p' >"$folder/commands"
grep -ho '`qkv [a-z]*[^`]*"[^`]*`' $pages | sed 's/`qkv \(.*\)`/\1/' | grep -v '…\|F\b' >>"$folder/commands"
check "there are hardly any commands" test "$(wc -l <"$folder/commands")" -ge 10
mkdir -p "$folder/d"
lines=$(wc -l <"$folder/commands")
for i in $(seq "$lines"); do
    # training is as short as can be, pictures and models go elsewhere, and so does what another line has made
    command=$(sed -n "${i}p" "$folder/commands" | sed "s|models/|$root/models/|g; s|examples/|$root/examples/|g; s|--out $root/models/[a-z]*|--out $folder/d/$i|; s|--out my-[a-z]*|--out $folder/d/$i|; s|-o |-o $folder/d/|
        s|--steps [0-9]*|--steps 1|; s|--batch [0-9]*|--batch 2|; s|build/toy/train.tsv|$folder/pairs|; s|written.txt|$folder/said|; s|--text sentences.txt|--text $folder/said|; s|--file sentences.txt|--file $folder/said|; s|--restarts [0-9]*|--restarts 1|")
    case $command in
    train*--steps*) ;;
    train*) command="$command --steps 1 --batch 2" ;;
    esac
    printf 'tetu pimiv\tthe king\nko vude\ta teacher\n' >"$folder/pairs"
    said="qkv $command"
    case $command in
    *--serve*) serve_until_address "$command" ;;
    *)
        eval "\"\$qkv\" $command" </dev/null >"$folder/out" 2>"$folder/err"
        got=$?
        ;;
    esac
    code 0
done

# docs/tutorial.md: what stands below a command are lines of its output, in their order; … is a gap
awk -v folder="$folder" '/^    qkv [a-z]/ { n++; print substr($0, 5) >(folder "/told"); next }
    /^[^ ]/ { ended = n } n == ended || /^ *$/ || /^    …$/ { next }
    /^    / { print substr($0, 5) >(folder "/told." n) }' "$root/docs/tutorial.md"
in_order() { awk 'NR == FNR { want[++n] = $0; next } { sub(/ +$/, "") } $0 == want[i + 1] { i++ } END { exit i < n }' "$1" "$2"; }
check "the tutorial has hardly any commands" test "$(wc -l <"$folder/told")" -ge 10
for i in $(seq "$(wc -l <"$folder/told")"); do
    [ -s "$folder/told.$i" ] || continue
    said=$(sed -n "${i}p" "$folder/told")
    eval "$(echo "$said" | sed "s|^qkv|\"\$qkv\"|; s|models/|$root/models/|g; s|examples/|$root/examples/|g")" </dev/null >"$folder/out" 2>"$folder/err"
    check "the output in docs/tutorial.md is another one" in_order "$folder/told.$i" "$folder/out"
done

# Options: `qkv COMMAND … --option …`
grep -ho '`qkv [a-z][^`]*--[^`]*`' $pages | sort -u >"$folder/named"
while IFS= read -r line; do
    name=$(echo "$line" | sed 's/`qkv \([a-z]*\).*/\1/')
    said="$line"
    "$qkv" help "$name" >"$folder/out" 2>"$folder/err"
    for option in $(echo "$line" | grep -o -- '--[a-z][a-z-]*'); do
        check "$name has no $option" grep -q -e "$option\b" "$folder/out"
    done
done <"$folder/named"
finish
