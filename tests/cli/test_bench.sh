# qkv bench: the table, JSON, comparisons, and files that are none.
. ./lib.sh
data=$here/data
file=$folder/x.json
one="small f32 H12 L11 D64" # a case by its whole name

# ---- Cases ------------------------------------------------------------------------------------

run bench --list
code 0
no_err
check "two cases have the same name" test -z "$(sort "$folder/out" | uniq -d)"
check "--list and the suites of the help differ" test \
    "$(cut -d' ' -f1 "$folder/out" | sort -u | tr '\n' ' ')" = \
    "$("$qkv" help bench | tr '\n' ' ' | sed 's/.*SUITE: \(.*\); or any.*/\1/; s/  */ /g; s/, /\n/g' | sort | tr '\n' ' ')"
check "--list and the suggestions differ" test \
    "$(cut -d' ' -f1 "$folder/out" | sort -u | tr '\n' ' ')" = \
    "$("$qkv" help --format bash | grep -o "'forward|[a-z|]*'\|forward|[a-z|]*" | head -1 | tr -d "'" | tr '|' '\n' | sort | tr '\n' ' ')"
run bench --list small
code 0
check "other suites" test "$(grep -cv '^small ' "$folder/out")" -eq 0
run bench --list L11 causal
code 0
out_like '^small f32 H12 L11 D64$'
out_like '^causal f32 '

run bench "$one" --rounds 1
code 0
no_err
out_like '^isa [a-z0-9]*, 1 thread; medians of 1 rounds; peaks: '
out_like '^case  *ms  *+- %  *GFLOP/s  *GB/s  *peak  *share %  *MiB$'
out_like '^small f32 H12 L11 D64  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.-]*  *[0-9.-]*  *[0-9.-]*\( \*\)\{0,1\}$'
check "a mark without its meaning, or the other way round" test \
    "$(grep -c ' \*$' "$folder/out")" -eq "$(grep -c '^\* The machine was busy' "$folder/out")"
check "one case" test "$(grep -c D64 "$folder/out")" -eq 1

# ---- JSON -------------------------------------------------------------------------------------

number='[0-9][0-9.e+-]*'
maybe="\($number\|null\)"
object="^{\"qkv\":\"[0-9.]*\(-dev\)\{0,1\}\",\"isa\":\"[a-z0-9]*\",\"threads\":1,\"rounds\":2,\"cases\":\[{\"case\":\"small f32 H12 L11 D64\",\"kernel\":\"attend_small\",\"arithmetic\":\"f32\",\"seconds\":$number,\"spread\":$number,\"gflops\":$number,\"gb_per_second\":$number,\"peak_of\":[A-Za-z0-9 \"]*,\"peak\":$maybe,\"share\":$maybe,\"busy\":\(true\|false\),\"workspace_bytes\":$number,\"memory_bytes\":$maybe}\]}\$"
run bench "$one" --rounds 2 --json -
code 0
no_err
out_like "$object"
check "more than one line" test "$(wc -l <"$folder/out")" -eq 1
run bench "$one" --rounds 2 --json "$file"
code 0
out_like '^small f32 H12 L11 D64 '
check "the file is not the object" grep -q "$object" "$file"
run bench "$one" --rounds 1 --compare "$file"
code 0
out_like '^small f32 H12 L11 D64  *[0-9.]*  *[0-9.]* '
run bench "$one" --rounds 1 --json "$folder/none/x.json"
code 1
no_out
err_like '^qkv: .*none/x.json'

# ---- Comparisons ------------------------------------------------------------------------------

run bench --compare "$data/bench_old.json" --from "$data/bench_new.json"
code 0
no_err
out_is bench_compare
run bench --compare "$data/bench_old.json" --from "$data/bench_new.json" --fail-above 10.1
code 0
run bench --compare "$data/bench_old.json" --from "$data/bench_new.json" --fail-above 9.9
code 1
err 'qkv: slower by 10.0 %, more than 9.9 %'
run bench --compare "$data/bench_old.json" --from "$data/bench_old.json" --fail-above 0
code 0
out_like '^geometric mean  *1.000$'

# ---- Files that are none ----------------------------------------------------------------------

# refused MESSAGE [TEXT]: a file that holds TEXT (printf's format), or is as it is
refused() {
    [ $# -lt 2 ] || printf "$2" >"$file"
    run bench --compare "$file" --from "$data/bench_new.json"
    code 1
    no_out
    err "qkv: $file: $1"
    run bench --compare "$data/bench_old.json" --from "$file"
    code 1
    no_out
    err "qkv: $file: $1"
}
# cases TEXT: an object with these cases
cases() { printf '{"isa":"avx512","threads":1,"cases":[%s]}' "$1"; }
good='{"case":"a","seconds":1,"gflops":2,"share":0.5}'
refused 'no JSON: line 1, column 0' ''
refused 'no JSON: line 1, column 8' '{"isa":1'
refused 'no JSON: line 1, column 6' '{"a":\0001}'
refused 'no JSON: line 1, column 8' '{"a":1}{"a":2}'
refused 'no JSON: line 1, column 10' '{"a":1,"a":2}'
refused 'no JSON: line 1, column 8' "{\"isa\":\"\\377\"}"
refused 'no JSON: line 1, column 2049' "$(printf '%05000d' 0 | tr 0 '[')"
refused 'is no result of qkv bench --json: it has no array "cases"' '[]'
refused 'is no result of qkv bench --json: it has no array "cases"' '{"cases":{}}'
refused '"isa" is no name' '{"cases":[]}'
refused '"isa" is no name' '{"isa":"\\u001b[31m","cases":[]}'
refused '"threads" is no number from 1' '{"isa":"x","threads":0,"cases":[]}'
refused '"threads" is no number from 1' '{"isa":"x","threads":1.5,"cases":[]}'
refused 'case 0: is no object' "$(cases 7)"
refused 'case 0: "case" is no name: 1 to 200 characters of ASCII' "$(cases '{}')"
refused 'case 0: "case" is no name: 1 to 200 characters of ASCII' "$(cases '{"case":"\\u202ea"}')"
refused 'case 0: "case" is no name: 1 to 200 characters of ASCII' "$(cases "{\"case\":\"$(printf '%0201d' 0)\"}")"
refused 'case 0: "seconds" is no number above 0' "$(cases '{"case":"a"}')"
refused 'case 0: "seconds" is no number above 0' "$(cases '{"case":"a","seconds":0}')"
refused 'case 0: "seconds" is no number above 0' "$(cases '{"case":"a","seconds":"1"}')"
refused 'case 0: "gflops" is no number from 0' "$(cases '{"case":"a","seconds":1,"gflops":-1}')"
refused 'case 0: "share" is neither null nor a number from 0' "$(cases '{"case":"a","seconds":1,"gflops":2,"share":true}')"
refused 'case 0: "busy" is neither true nor false' "$(cases '{"case":"a","seconds":1,"gflops":2,"busy":0}')"
refused 'case 1: has the name of another' "$(cases "$good,$good")"
refused 'more than 1000 cases' "$(cases "$(yes 1, | head -1000 | tr -d '\n')1")"
head -c 5000000 /dev/zero | tr '\0' ' ' >"$file"
refused 'more than 4194304 bytes'
rm "$file"
refused 'No such file or directory'
mkdir "$file"
refused 'Is a directory'
rmdir "$file"
# a number that no double holds, and one that vanishes
refused 'no JSON: line 1, column 64' "$(cases '{"case":"a","seconds":1e999}')"
refused 'case 0: "seconds" is no number above 0' "$(cases '{"case":"a","seconds":1e-999}')"

printf '{"isa":"x","threads":1,"cases":[]}' >"$file"
run bench --compare "$data/bench_old.json" --from "$file"
code 1
err 'qkv: no case is in both: nothing to compare'

# ---- Usage ------------------------------------------------------------------------------------

usage bench "no suite or case has the word 'sideways': --list shows them" bench L11 sideways
usage bench "--fail-above needs --compare" bench L11 --fail-above 3
usage bench "--fail-above: -1 is below 0" bench L11 --compare x --fail-above -1
usage bench "--from needs --compare: it takes the place of measuring" bench --from x
usage bench "--from measures nothing: no cases, no --json" bench --from x --compare y L11
usage bench "--mpi together with --list" bench --mpi --list
usage bench "--mpi together with --compare" bench --mpi --compare x
usage bench "--len goes with --mpi" bench --len 100
usage bench "--list measures nothing: no --json" bench --list --json x
usage bench "--list measures nothing: no --compare" bench --list --compare x
usage bench "--compare and --json - both print: name a file for --json" bench --compare x --json -
finish
