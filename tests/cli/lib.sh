# Shared by the transcripts. Usage of each: sh test_X.sh QKV FOLDER   (UPDATE=1 rewrites expected/*.txt)
#
#   run ARGS...          runs the tool with no standard input; output, errors and exit code are kept
#   feed TEXT ARGS...    the same with TEXT on standard input
#   code N               the exit code was N
#   out TEXT, err TEXT   standard output (error) was exactly TEXT
#   out_like RE, err_like RE   some line of it matches the basic regular expression RE
#   out_says TEXT   standard output holds TEXT, wherever its lines were broken
#   out_is FILE          standard output was that of expected/FILE.txt
#   broken TEXT ARGS...  attend fails with this message, and writes no $o
#   narrow N ARGS...     runs the tool with N columns: its tables have every number that they have in 200, and no line is wider
set -u
qkv=$1
folder=$2
here=. # without spaces, wherever the checkout is
model=$here/../golden/bert_old
rm -rf "$folder"
mkdir -p "$folder"
unset QKV_MODEL QKV_ISA QKV_NUM_THREADS NO_COLOR COLORTERM COLORFGBG LC_ALL LC_CTYPE
export LANG=C.UTF-8 TERM=dumb COLUMNS=80
# Under the sanitizers: what is no leak of ours (tests/lost_by_others.h).
printf 'leak:libfontconfig\nleak:libglib-2.0\n' >"$folder/suppressions"
export LSAN_OPTIONS="suppressions=$folder/suppressions:print_suppressions=0"
checks=0
failures=0
said=

fail() {
    failures=$((failures + 1))
    echo "FAILED: $said"
    echo "  $1"
    sed 's/^/  out: /' "$folder/out" | head -20
    sed 's/^/  err: /' "$folder/err" | head -20
}
check() {
    checks=$((checks + 1))
    what=$1
    shift
    "$@" || fail "$what"
}
run() {
    said="qkv $*"
    "$qkv" "$@" </dev/null >"$folder/out" 2>"$folder/err"
    got=$?
}
# cpu_seconds N: N reference seconds (tests/limits/limits.h), as whole seconds of CPU here
cpu_seconds() { awk -v n="$1" -v pace="${QKV_TEST_PACE:-4}" 'BEGIN { print int(n * pace) + 1 }'; }
# until_under_way PID TICKS: until the process has ended, or catches signals and either has computed for so many ticks of
# CPU, or waits: it sleeps, and computes nothing for 0.1 s
until_under_way() {
    before=
    while read -r stat 2>/dev/null <"/proc/$1/stat"; do
        set -- "$1" "$2" ${stat##*) } # the state is $3, ticks of user and of system are ${14} and ${15}
        now=$((${14} + ${15}))
        case $3 in Z) break ;; esac
        if grep -q '^SigCgt:.*[4567cdef]...$' "/proc/$1/status" 2>/dev/null; then
            [ $now -lt "$2" ] || break
            [ "$3-$now" != "S-$before" ] || break
            before=$now
        fi
        sleep 0.1
    done
}
# interrupt SIGNAL ARGS...: the tool in the background, and the signal once it waits, or has computed for $ticks of CPU.
# A shell's background commands ignore SIGINT until they catch it. $input: its standard input.
interrupt() {
    signal=$1
    shift
    said="qkv $*, SIG$signal"
    "$qkv" "$@" <"${input:-/dev/null}" >"$folder/out" 2>"$folder/err" &
    process=$!
    until_under_way $process ${ticks:-10}
    kill -"$signal" $process
    wait $process
    got=$?
}
# serve_until_address COMMAND: a shell's words behind qkv; Ctrl-C once its address is there
serve_until_address() {
    eval "exec \"\$qkv\" $1" </dev/null >"$folder/out" 2>"$folder/err" &
    process=$!
    until grep -q '^http://' "$folder/out" || ! kill -0 $process 2>/dev/null; do sleep 0.05; done
    kill -INT $process
    wait $process
    got=$?
}
# unread COMMAND...: standard output is a pipe that nobody reads any more
unread() {
    rm -f "$folder/unread"
    mkfifo "$folder/unread"
    exec 8<>"$folder/unread" 9>"$folder/unread" 8>&-
    "$@" >&9
    got=$?
    exec 9>&-
}
feed() {
    text=$1
    shift
    said="qkv $*  <<< $text"
    printf '%s\n' "$text" | "$qkv" "$@" >"$folder/out" 2>"$folder/err"
    got=$?
}
# record: for tools/compare_outputs.py, which sets RECORD: what the last command answered, and sums of the files that are new or changed
# since the one before
record() {
    find "$folder" -type f ! -path "$folder/out" ! -path "$folder/err" -exec cksum {} + | sort >"$RECORD.now"
    touch "$RECORD.before"
    {
        echo "=== $said"
        echo "exit code $got"
        sed 's/^/out: /' "$folder/out"
        sed 's/^/err: /' "$folder/err"
        comm -13 "$RECORD.before" "$RECORD.now"
    } >>"$RECORD"
    mv "$RECORD.now" "$RECORD.before"
}
code() {
    [ -z "${RECORD:-}" ] || record
    check "exit code $got, not $1" test "$got" -eq "$1"
}
same() { printf '%s\n' "$1" | cmp -s - "$2"; }
empty() { test ! -s "$1"; }
out() { check "standard output is not '$1'" same "$1" "$folder/out"; }
err() { check "standard error is not '$1'" same "$1" "$folder/err"; }
no_out() { check "standard output is not empty" empty "$folder/out"; }
no_err() { check "standard error is not empty" empty "$folder/err"; }
out_like() { check "no line of output like '$1'" grep -q -e "$1" "$folder/out"; }
out_says() {
    tr '\n' ' ' <"$folder/out" >"$folder/joined"
    check "no '$1' in the output" grep -q -F -e "$1" "$folder/joined"
}
err_like() { check "no line of errors like '$1'" grep -q -e "$1" "$folder/err"; }
out_is() {
    [ -z "${UPDATE:-}" ] || cp "$folder/out" "expected/$1.txt"
    check "standard output is not expected/$1.txt" cmp -s "expected/$1.txt" "$folder/out"
}
all_numbers() { grep -o '[0-9][0-9]*\.[0-9][0-9]*' "$1" | sort -u; }
narrow() {
    columns=$1
    shift
    said="COLUMNS=$columns qkv $*"
    COLUMNS=200 "$qkv" "$@" </dev/null 2>/dev/null >"$folder/out"
    all_numbers "$folder/out" >"$folder/wide"
    COLUMNS=$columns "$qkv" "$@" </dev/null >"$folder/out" 2>"$folder/err"
    got=$?
    code 0
    check "no numbers" test -s "$folder/wide"
    all_numbers "$folder/out" | comm -23 "$folder/wide" - >"$folder/lost"
    check "not shown: $(tr '\n' ' ' <"$folder/lost")" empty "$folder/lost"
    check "a wider line" test "$(grep -c "^    .\{$((columns - 3)),\}$" "$folder/out")" -eq 0
}
# A failure of attend: exact message, exit code 1, nothing on standard output, and no file.
broken() {
    message=$1
    shift
    rm -f "$o"
    run attend "$@" -o "$o"
    code 1
    no_out
    err "qkv: $message"
    check "an output was written" test ! -e "$o"
}
# A usage error: exact message, exit code 2, nothing on standard output.
usage() {
    command=$1
    message=$2
    shift 2
    run "$@"
    code 2
    no_out
    err "qkv $command: $message
Try 'qkv help $command'."
}
finish() {
    echo "$checks checks, $failures failures"
    test "$failures" -eq 0
    exit
}
