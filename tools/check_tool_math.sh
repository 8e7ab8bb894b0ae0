#!/bin/sh
# The tool has no softmax, no rule of visibility and no statistic of weights of its own: those are calls of the libraries
# (qkv/heads.h, qkv/patterns.h). Prints every line that looks like one and is not listed below. check_tool_math.sh [TREE]
set -eu
cd "${1:-$(dirname "$0")/..}"

# allowed FILE PATTERN: what is no arithmetic of attention, and why.
allowed() {
    case $1 in
    cli/bench/*) return 0 ;;                                   # times: geometric means, medians
    cli/attend/* | cli/lookup/compute.c) return 0 ;;           # ask libqkv for weights and statistics, and print them
    cli/common/lens.c | cli/common/predict.c | cli/model/cmd_next.c) return 0 ;;   # a probability from a logit
    cli/heads/effect*.c) return 0 ;;                           # probabilities from logarithms, their means and changes
    cli/look/text_words.c | cli/look/findings.c | cli/look/lens.c | cli/look/effects.c) return 0 ;; # probabilities and perplexity from logarithms
    cli/train/eval_*.c) return 0 ;;                            # perplexity from a loss
    cli/explain/scale.c) return 0 ;;                           # ln n, the largest entropy that a row can have
    cli/explain/scores.c) return 0 ;;                          # lse and entropy, of sums and weights of qkv_inspect_vectors
    cli/explain/example.c) return 0 ;;                         # shows that exp(1000) overflows a float
    cli/lookup/text.c) return 0 ;;                             # e^entropy: how many rows are alike
    cli/model/translate_align.c) return 0 ;;                   # a mean over heads of qkv_run_weights
    esac
    return 1
}

# Code without comments and strings, as "file:line:code".
code() {
    find cli -name '*.[ch]' | sort | while IFS= read -r file; do
        sed -e 's/\\"//g' -e 's/"[^"]*"//g' -e 's|/\*.*\*/||g' -e 's|^ *\*.*||' -e 's|/\*.*||' "$file" |
            awk -v file="$file" '{ print file ":" NR ":" $0 }'
    done
}

exponents='(^|[^a-z_0-9])(exp|expf|exp2|exp2f|log|logf|log2|log2f|softmax) *\('
weights='qkv_run_weights|qkv_attention_weights|qkv_attention_columns_pass|qkv_attention_stats_contiguous|QKV_SET_STATS'
sights='(^|[^a-z_])(j|key|col|column) *(<=|>=|<|>) *(i|query|row)([^a-z_]|$)|(^|[^a-z_])(i|query|row) *(<=|>=|<|>) *(j|key|col|column)([^a-z_]|$)|(window_left|window_right|q_offset) *[-+] *(i|j|query|key|row)([^a-z_]|$)|(^|[^a-z_])(i|j|query|key|row) *[-+] *[a-z.>-]*(window_left|window_right|q_offset)'

broken=$(code | grep -E "$exponents|$weights|$sights" | while IFS= read -r line; do
    allowed "${line%%:*}" || echo "$line"
done)
[ -z "$broken" ] && exit 0
echo "$broken" >&2
echo "the tool computes something of attention itself: qkv/heads.h has it, or tools/check_tool_math.sh says why not" >&2
exit 1
