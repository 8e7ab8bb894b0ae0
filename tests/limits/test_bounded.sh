# What runs the tests: test_bounded.sh BOUNDED FOLDER. It passes on what the command returns, and ends what computes or waits for
# ever, with all that it started. At this pace a hang is known after 1.2 s.
set -u
bounded=$1 folder=$2
checks=0
failures=0
mkdir -p "$folder"
echo 0.01 >"$folder/pace"

# bounded_is CODE TEXT SECONDS COMMAND…: it ends with CODE, and says TEXT
bounded_is() {
    checks=$((checks + 1))
    code=$1 text=$2 seconds=$3
    shift 3
    "$bounded" "$folder/pace" "$seconds" "$@" >"$folder/out" 2>&1
    got=$?
    if [ $got -ne "$code" ] || ! grep -q "$text" "$folder/out"; then
        failures=$((failures + 1))
        echo "FAILED: $*: $got, expected $code and '$text'"
        cat "$folder/out"
    fi
}
bounded_is 0 'of CPU, at most 20$' 2000 true
bounded_is 3 'of CPU, at most 20$' 2000 sh -c 'exit 3'
bounded_is 0 '^0.0100$' 2000 sh -c 'echo $QKV_TEST_PACE'
bounded_is 137 'ended by signal 9' 2000 sh -c 'kill -KILL $$'
bounded_is 126 'no such program' 2000 "$folder/no such program"
bounded_is 124 'it hangs' 2000 sleep 1000
bounded_is 124 'killed .*(sleep)' 2000 sh -c '(sleep 1000 & sleep 1000) & wait' # and what it left behind
bounded_is 124 'more than 1 s' 100 sh -c 'while :; do :; done'
bounded_is 124 'more than 1 s' 100 sh -c '(while :; do :; done) & wait'

# Temporary files: in a folder of the command alone, which is gone however it ended; what links lead to stays.
say_where='mkdir "$TMPDIR/a" && echo x >"$TMPDIR/a/b" && ln -s "$0" "$TMPDIR/link" && echo "$TMPDIR" $QKV_TEST_SHM >"$0/where"; '
is_gone() { # is_gone WHAT
    checks=$((checks + 1))
    for path in $(cat "$folder/where"); do
        test ! -e "$path" && continue
        failures=$((failures + 1))
        echo "FAILED: $1: $path is left"
    done
    case $(cat "$folder/where") in "$folder"/qkv-test-*) ;; *) failures=$((failures + 1)) && echo "FAILED: $1: not in TMPDIR" ;; esac
    rm "$folder/where"
}
export TMPDIR="$folder"
for how in '0 true' '3 exit 3' '137 kill -KILL $$' '124 sleep 1000'; do
    bounded_is "${how%% *}" 'of CPU, at most 20$' 2000 sh -c "$say_where${how#* }" "$folder"
    is_gone "$how"
done
"$bounded" "$folder/pace" 200000 sh -c "$say_where:; while :; do :; done" "$folder" >"$folder/out" 2>&1 &
until test -s "$folder/where"; do sleep 0.05; done
kill $!
wait $!
code=$?
checks=$((checks + 1))
[ $code -eq 143 ] || { failures=$((failures + 1)) && echo "FAILED: ended by a signal: $code, expected 143"; }
is_gone 'ended by a signal'

echo nothing >"$folder/pace"
bounded_is 126 '^usage' 2000 true
echo "$checks checks, $failures failures"
[ $failures -eq 0 ]
