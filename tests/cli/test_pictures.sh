# Pictures for papers: what --min, --max, --palette, --values, --size and --title do, in the words of an SVG; the text in captions; the
# alignment of two texts; what is refused, by the name of the option.
. ./lib.sh
d=$folder/d
mkdir "$d"
text="I was watching the door when [MASK] opened."
has() { check "no '$2' in $1" grep -q -F -e "$2" "$d/$1"; }
lacks() { check "'$2' in $1" sh -c '! grep -q -F -e "$1" "$2"' - "$2" "$d/$1"; }
count() { grep -c -F -e "$2" "$d/$1"; }
# look OPTIONS... to a.svg
look() {
    run look "$text" --quiet "$@" -o "$d/a.svg"
    code 0
    no_err
}

# ---- One head ----------------------------------------------------------------------------------------

look --head 3.0
has a.svg "Text: “I was watching the door when [MASK] opened.”"
has a.svg "Colours run from 0 to 1; the largest weight is 0.972."
has a.svg ">0.97</text>"
lacks a.svg ">0.01</text>"
look --head 3.0 --min 0.1 --max 0.5 --title "My <figure>" --values off
has a.svg "<title>My &lt;figure&gt;</title>"
has a.svg "Colours run from 0.1 to 0.5, and what is beyond has the colour of the end; the largest weight is 0.972."
for number in 0.1 0.2 0.3 0.4 0.5; do has a.svg ">$number</text>"; done
lacks a.svg ">0.97</text>"
look --head 3.0 --values on --size 400
check "$(count a.svg '>0.97</text>') cells have 0.97" test "$(count a.svg '>0.97</text>')" -eq 1
check "few figures" test "$(grep -c '>0\.[0-9][0-9]</text>' "$d/a.svg")" -eq 121

# A palette is what makes two pictures differ, and the tool's own is the default.
look --head 3.0
cp "$d/a.svg" "$d/own.svg"
look --head 3.0 --palette qkv
check "the default palette" cmp -s "$d/a.svg" "$d/own.svg"
for palette in viridis cividis greys; do
    look --head 3.0 --palette $palette
    check "$palette is the default" sh -c '! cmp -s "$1" "$2"' - "$d/a.svg" "$d/own.svg"
    for theme in light dark; do
        run look "$text" --quiet --palette $palette --theme $theme --size 200 -o "$d/a.png"
        code 0
    done
done

# ---- All heads, charts, effects, maps ----------------------------------------------------------------

look
has a.svg "Text: “I was watching the door when [MASK] opened.”"
look --max 0.5 --values on
has a.svg "Colours run from 0 to 0.5, and what is beyond"
check "16 heads with 121 figures" test "$(grep -c '>[01]\.[0-9][0-9]</text>' "$d/a.svg")" -eq $((16 * 121))
run look "$text" --pair "It was old." --quiet -o "$d/a.svg"
code 0
has a.svg "Text: “I was watching the door when [MASK] opened.”, then “It was old.”"
look --plot received --title Received
has a.svg "<title>Received</title>"
run heads "$text" --effect --max 2 --values on --title Worth -o "$d/a.svg" --quiet
code 0
has a.svg "<title>Worth</title>"
has a.svg "Colours run from -2 to 2, and what is beyond"
has a.svg ">-0.87</text>"
run map "$text" --size 640 --title Map -o "$d/a.svg" --quiet
code 0
has a.svg "<title>Map</title>"
has a.svg "Text: “I was watching the door when [MASK] opened.”"

# An ending alone: the name of the file is made from the head and the text.
for ending in png svg html json; do
    run look "I saw, the DOG!" --head 3.0 -o "$d/.$ending"
    code 0
    err_like "^qkv: wrote $d/look-3\.0-i-saw-the-dog\.$ending"
    check "the file" test -s "$d/look-3.0-i-saw-the-dog.$ending"
done
tool=$(cd "$(dirname "$qkv")" && pwd)/$(basename "$qkv")
(cd "$d" && "$tool" look "$text" -o .png --quiet)
check "all heads" test -s "$d/look-i-was-watching-the-door-when-mask-opened.png"
run look "I saw the dog." --plot received -o "$d/.csv" --quiet
code 0
check "a chart" sh -c 'ls "$1"/received-*-i-saw-the-dog.csv >/dev/null' - "$d"
run map "I saw the dog." --head 1.2 -o "$d/.svg" --quiet
code 0
check "a map" test -s "$d/map-1.2-i-saw-the-dog.svg"
run heads "$text" --effect -o "$d/.csv" --quiet
code 0
check "effects" test -s "$d/effect-i-was-watching-the-door-when-mask-opened.csv"
check "a hidden file" test ! -e "$d/.png"

# A long text is cut between characters.
long=$(awk 'BEGIN { for (i = 0; i < 60; i++) printf "ö é " }')
run look "$long" --quiet --truncate -o "$d/a.svg"
code 0
has a.svg "…”"
check "broken UTF-8" sh -c 'iconv -f UTF-8 -t UTF-8 <"$1" >/dev/null' - "$d/a.svg"

# ---- Alignment ---------------------------------------------------------------------------------------

translator=$here/../../models/translator
run look "a red fox followed two cats" --model $translator --align --quiet -o "$d/a.svg"
code 0
has a.svg "<title>Alignment, layer 1</title>"
for word in fox cats siho nim; do has a.svg ">$word</text>"; done
has a.svg "Text: “a red fox followed two cats”"
run look "a red fox followed two cats" --model $translator --align --json
code 0
grep -o '"weight":[0-9.]*' "$folder/out" | cut -d: -f2 | awk '$1 > 0.2 { printf "%.2f\n", $1 }' >"$d/weights"
check "few words" test "$(wc -l <"$d/weights")" -ge 5
while read -r weight; do has a.svg ">$weight</text>"; done <"$d/weights" # cells are the weights of the table

# ---- What is refused ---------------------------------------------------------------------------------

usage look "--palette is of a picture: -o FILE.png, .svg or .pdf" look "$text" --palette greys
usage look "--title is of a picture: -o FILE.png, .svg or .pdf" look "$text" --title A -o "$d/a.json"
usage look "--palette: 'red' is not one of qkv|viridis|cividis|greys" look "$text" --palette red -o "$d/a.png"
usage look "--min 0.5: must be below --max 0.5" look "$text" --min 0.5 --max 0.5 -o "$d/a.png"
usage look "--max 0: must be above 0" look "$text" --max 0 -o "$d/a.png"
usage look "--min -1: must not be below 0" look "$text" --min -1 -o "$d/a.png"
usage look "--size: '63' is not a whole number from 64 to 8192" look "$text" --size 63 -o "$d/a.png"
usage look "--values together with --plot: a chart has no cells" look "$text" --plot received --values on -o "$d/a.png"
usage heads "--palette together with --effect, whose values are on both sides of 0: only qkv has colours for both" \
    heads "$text" --effect --palette greys -o "$d/a.png"
usage heads "--min together with --effect, whose colours run from -max: --max X" heads "$text" --effect --min 1 -o "$d/a.png"
usage map "--size is of a picture: -o FILE.png, .svg or .pdf" map "$text" --size 640 -o "$d/a.csv"
run look "$text" --head 3.0 --values on --size 100 -o "$d/none.png"
code 1
err "qkv: --values on: 11 cells a side need a size of at least 308 pixels for them (--size)"
run look "$text" --head 3.0 --min 1 -o "$d/none.png"
code 1
err "qkv: min = 1: must be below the end of the scale, which is 1"
check "a file of a picture that was refused" test ! -e "$d/none.png"
finish
