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
echo nothing >"$folder/pace"
bounded_is 126 '^usage' 2000 true
echo "$checks checks, $failures failures"
[ $failures -eq 0 ]
