# Manual pages: there is one for each command; each has a place for what the tool writes; examples work and print what the page
# shows; variables and references are complete. UPDATE=1 writes anew what the examples print.
. ./lib.sh
here=$(pwd) # examples run in a folder of their own
model=$here/../golden/bert_old
man=$here/../../cli/man
folder=$(cd "$folder" && pwd)
PATH=$(cd "$(dirname "$qkv")" && pwd):$PATH

# section FILE NAME: the lines of a section of a page
section() { awk -v want="# $2" '/^# /{ on = $0 == want } on' "$1"; }
# merged PAGE: it can be made whole: what the tool writes has its place there, and nothing else stands in it
merged() {
    sh "$man/merge.sh" "$1" "$qkv" >"$folder/made" 2>"$folder/err"
    check "$1 is not whole" test $? -eq 0
}
merged "$man/qkv.1.scd"
merged "$man/qkv.3.scd"
commands=$("$qkv" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for command in $commands; do
    said="the page of $command"
    check "there is no page" test -f "$man/qkv-$command.1.scd" && merged "$man/qkv-$command.1.scd"
done
for page in "$man"/qkv-*.1.scd; do
    command=${page##*/qkv-}
    said=$page
    check "a page of no command" "$qkv" help "${command%.1.scd}" >/dev/null 2>&1
done

# Every page that is named is there, or a page of another project.
said="references"
for name in $(cat "$man"/*.scd | grep -oE '\*?qkv(-[a-z]+)?\*?\([13]\)' | tr -d '*' | sort -u); do
    check "there is no page $name" test -f "$man/$(echo "$name" | tr '(' . | tr -d ')').scd"
done
# Every variable that is read is in qkv(1).
said="variables"
for name in $(grep -rhoE '(getenv|env)\("[A-Z_]+"\)|variable\[\] = "[A-Z_]+"' "$here"/../../cli "$here"/../../src | sed 's/.*"\(.*\)".*/\1/' | sort -u); do
    check "qkv(1) does not tell about $name" grep -q "^\*.*$name\*" "$man/qkv.1.scd"
done

# The twelve lines of qkv(3) are those of the example, the program of README shows those of qkv.h; the functions named are in the headers.
said="qkv(3)"
code=$(section "$man/qkv.3.scd" EXAMPLES | sed -n '/^```/,/^```/{/^```/d;s/\\\\/\\/g;p;}')
check "not twelve lines" test "$(printf '%s\n' "$code" | wc -l)" -eq 12
contains() { case "$(cat "$1")" in *"$2"*) ;; *) return 1 ;; esac; }
check "the function is not in forward_12_lines.c" contains "$here/../../examples/forward_12_lines.c" "$(printf '%s\n' "$code" | sed 1d)"
lines=$(awk '/^ \*     /{ print substr($0, 4); found = 1; next } found { exit }' "$here/../../include/qkv/qkv.h")
check "README.md does not show the first lines of qkv.h" contains "$here/../../README.md" "$lines"
check "README.md does not show examples/first.c" contains "$here/../../README.md" "$(sed '1,/\*\//d' "$here/../../examples/first.c")"
for name in $(tr -d '\\' <"$man/qkv.3.scd" | grep -o 'qkv_[a-z_]*' | sort -u); do
    check "$name is in no header" grep -rqw "$name" "$here/../../include/qkv"
done
# Its lists are those of the headers: each header, and the functions that a program calls. Others fill or make a struct by its size.
functions() {
    tr '\n' ' ' <"$1" | sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' | grep -o '\(QKV_API\|static inline\)[^;{]*[;{]' |
        sed -n 's/^[^(]*[ *]\(qkv[a-z]*_[a-z0-9_]*\)(.*/\1/p' | grep -v '_\(fill\|init\)$'
}
for header in "$here"/../../include/qkv/*.h; do
    name=qkv/$(basename "$header")
    check "qkv(3) does not include $name" grep -q "^#include <$name> " "$man/qkv.3.scd"
    functions "$header" >"$folder/declared"
    awk -v name="_${name}_" '$0 == name { on = 1; next } on && !/^\t/ { exit } on' "$man/qkv.3.scd" | tr -d '\\' | grep -o 'qkv[a-z]*_[a-z0-9_]*' >"$folder/listed"
    check "no functions of $name" test -s "$folder/declared" -o "$name" = qkv/ranks.h # which is a struct
    check "qkv(3) has other functions of $name" cmp -s "$folder/declared" "$folder/listed"
done
check "qkv(3) has a header that is not there" test "$(grep -c '^#include <qkv/.*>  */\*' "$man/qkv.3.scd")" -eq "$(ls "$here"/../../include/qkv/*.h | wc -l)"

# Examples: a line "$ COMMAND" in a block is run; the lines below it, if any, are its output, but for spaces at the end.
prepare() {
    rm -rf "$folder/examples"
    mkdir -p "$folder/examples/home"
    cd "$folder/examples" || exit 1
    for name in q k v; do cp "$here/data/$name.npy" .; done
    cp "$here/data/grad.npy" g.npy
    for half in q:129 k:769; do # the two batches of q.npy
        {
            printf '\223NUMPY\001\000\166\000'
            printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 5, 8), }"
            tail -c +"${half#*:}" q.npy | head -c 640
        } >"layer3_${half%:*}.npy"
    done
    cp "$here/../../models/default/grammar.txt" .
    cp "$here"/../../examples/tables/*.csv .
    cp -r "$model" model
    cp -r "$model" tuned
    cp -r "$here/../golden/decoder/gpt2_1" gpt2
    cp -r "$here/../golden/decoder/marian_1" opus-mt-en-de
    cp -r "$here/../golden/sentence/bert" retriever
    for who in man woman dog cat girl boy; do
        for what in door box key house; do
            printf 'the %s saw the %s .\tit opened when the %s left .\n' $who $what $who
        done
    done >sentences.txt
    cp sentences.txt pairs.tsv
    HOME=$folder/examples/home
    export HOME
}
show() { [ -z "${UPDATE:-}" ] || printf '%s\n' "$1" >>"$folder/shown"; }
end_command() {
    [ -n "$command" ] || return 0
    sed 's/ *$//' "$folder/out" >"$folder/plain"
    if [ -s "$folder/expected" ]; then
        [ -z "${UPDATE:-}" ] || cat "$folder/plain" >>"$folder/shown"
        [ -n "${UPDATE:-}" ] || check "it prints something else" cmp -s "$folder/expected" "$folder/plain"
    fi
    command=
}
try_page() {
    : >"$folder/shown"
    command='' block='' part=''
    while IFS= read -r line; do
        case $part$block$line in
        *'```') end_command ;;
        'EXAMPLESon$ '*)
            end_command
            command=${line#??}
            said="${1##*/}: $command"
            : >"$folder/expected"
            # a backslash stands before one that is meant
            printf '%s\n' "$command" | sed 's/\\\\/\\/g' >"$folder/command"
            bash "$folder/command" </dev/null >"$folder/out" 2>"$folder/err"
            got=$?
            code 0
            tried=$((tried + 1))
            ;;
        EXAMPLESon*)
            if [ -n "$command" ]; then
                printf '%s\n' "$line" >>"$folder/expected"
                continue
            fi
            ;;
        esac
        show "$line"
        case $line in
        '```') [ "$block" = on ] && block='' || block=on ;;
        '# '*) part=${line#??} ;;
        esac
    done <"$1"
    [ -z "${UPDATE:-}" ] || cp "$folder/shown" "$1"
}
tried=0
prepare
for page in "$man"/*.1.scd; do
    before=$tried
    try_page "$page"
    said=$page
    check "the page has no example" test "$tried" -gt "$before"
done
finish
