#!/bin/sh
# What `./dev fuzz [PARSER [SECONDS]]` runs, after the build: the fuzzer of one parser, or of each, from the committed corpus.
# What it learns is kept in build/fuzz/corpus/PARSER, what breaks it in build/fuzz/found/PARSER; an input that takes longer
# than 5 s, or more than 512 MB, breaks it too. tools/fuzz.sh --minimise [PARSER] puts the smallest inputs that reach what all of
# them reach into fuzz/corpus, and leaves those there that have a telling name.
set -eu
cd "$(dirname "$0")/.."
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1:quarantine_size_mb=16}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"

parsers() { find fuzz -name 'fuzz_*.c' | sed 's|fuzz/fuzz_\(.*\)\.c|\1|' | sort; }

# longest PARSER: the longest input that is tried, in bytes
longest() {
    case $1 in
    attention) echo 160 ;;
    attend) echo 1024 ;;
    gguf | spm) echo 8192 ;;
    *) echo 4096 ;;
    esac
}

# dictionary PARSER: the option that names it, if there is one
dictionary() { [ ! -f "fuzz/$1.dict" ] || echo "-dict=fuzz/$1.dict"; }

# fuzz PARSER SECONDS: one line that says what was done
fuzz() {
    corpus=build/fuzz/corpus/$1 found=build/fuzz/found/$1 log=build/fuzz/fuzz_$1.log
    mkdir -p "$corpus" "$found"
    status=0
    # shellcheck disable=SC2046 # no option, or one
    "build/fuzz/fuzz_$1" "$corpus" "fuzz/corpus/$1" $(dictionary "$1") "-max_total_time=$2" "-max_len=$(longest "$1")" \
        -timeout=5 -rss_limit_mb=512 -malloc_limit_mb=128 -print_final_stats=1 "-artifact_prefix=$found/" \
        >"$log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
    echo "$1: ${runs:-0} executions, ${edges:-0} edges, $(find "$corpus" -type f | wc -l) inputs"
    [ "$status" -eq 0 ] && return 0
    grep -E 'does not hold|ERROR|SUMMARY|Test unit' "$log" >&2
    return 1
}

# counters PARSER: whether an edge that is met more often counts as reached anew; where inputs are long, that would keep too many
counters() {
    case $1 in
    bpe | grammar | model | recipe | tokenizer | vocab) echo -use_counters=0 ;;
    *) echo -use_counters=1 ;;
    esac
}

# minimise PARSER: inputs with telling names stay; those that are named by their hash are chosen anew, for what is left to reach
minimise() {
    kept=build/fuzz/minimal/$1
    rm -rf "$kept"
    mkdir -p "$kept" "build/fuzz/corpus/$1"
    find "fuzz/corpus/$1" -type f | grep -vE '/[0-9a-f]{12}$' | xargs -r -d '\n' cp -t "$kept"
    "build/fuzz/fuzz_$1" -set_cover_merge=1 "$(counters "$1")" "$kept" "fuzz/corpus/$1" "build/fuzz/corpus/$1" \
        >"build/fuzz/merge_$1.log" 2>&1
    find "fuzz/corpus/$1" -type f | grep -E '/[0-9a-f]{12}$' | xargs -r -d '\n' rm
    find "$kept" -type f | grep -E '/[0-9a-f]{40}$' | while IFS= read -r input; do
        cp "$input" "fuzz/corpus/$1/$(basename "$input" | cut -c1-12)"
    done
    echo "$1: $(find "fuzz/corpus/$1" -type f | wc -l) inputs, $(du -sb "fuzz/corpus/$1" | cut -f1) bytes"
}

if [ "${1:-}" = --minimise ]; then
    shift
    for parser in ${1:-$(parsers)}; do minimise "$parser"; done
    exit
fi
failed=0
for parser in ${1:-$(parsers)}; do
    fuzz "$parser" "${2:-60}" || failed=1
done
exit "$failed"
