#!/bin/bash
# What bash suggests: complete.bash QKV SCRIPT FOLDER. Calls the completion function as readline would.
set -u
qkv=$1 script=$2 folder=$3
unset QKV_MODEL QKV_ISA QKV_NUM_THREADS
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$folder"
mkdir -p "$folder/models/small"
cd "$folder" || exit 1
: >'q of mine.npy'
: >weights.safetensors
: >notes.txt
cp "$here"/../golden/bert_old/{config.json,vocab.txt,model.safetensors} models/small
PATH=$(dirname "$qkv"):$PATH
. "$script"
failures=0 checks=0

# suggests EXPECTED WORD...: the suggestions for the last word, sorted and joined by commas. The words are as
# COMP_WORDBREAKS cuts them.
suggests() {
    local expected=$1 got
    shift
    COMP_WORDS=(qkv "$@")
    COMP_CWORD=$#
    COMPREPLY=(unset)
    _qkv
    got=$(printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | sort | paste -sd,)
    checks=$((checks + 1))
    [[ $got == "$expected" ]] && return
    failures=$((failures + 1))
    echo "FAILED: qkv $*: suggested '$got', not '$expected'"
}

complete -p qkv | grep -q -- '-F _qkv qkv' || { echo "FAILED: complete -p"; exit 1; }
suggests look,lookup lo
suggests tokenize,train,translate t
suggests --help --h
suggests --version --v
suggests eval help ev
suggests --target,--theme,--threads,--title,--tokens,--top,--truncate look text --t
suggests dark,light look text --theme ''
suggests light look text --theme l
suggests light look text --theme = l
suggests dark,light look text --theme =
suggests avx2,avx512,avx512bf16 look text --isa a
suggests received_early,received_gini,received_key,received_largest heads text --sort rec
suggests bottom-right,top-left attend --causal ''
suggests 'models,q of mine.npy,weights.safetensors' attend --q ''
suggests 'q of mine.npy' attend --q q
suggests 'q of mine.npy' attend --q = q
suggests 'models,q of mine.npy' attend -o ''
suggests 'models,notes.txt,q of mine.npy' look text -o ''
suggests models,weights.safetensors look --model ''
suggests models/small look --model models/
suggests 'models,notes.txt,q of mine.npy,weights.safetensors' train --text ''
suggests 'models,notes.txt' train --grammar ''
suggests models train --out ''
suggests '' train --steps ''
suggests 'models,q of mine.npy,weights.safetensors' info ''
suggests causal bench c
suggests '' look ''
suggests --check,--check-finite,--grammar,--help,--isa,--journal,--json,--model,--quiet,--seed,--stride,--text,--threads,--weights,-v eval ''
suggests '' look -- --t
suggests '' frobnicate --
suggests 3.0,3.1,3.2,3.3 look text --head 3
suggests 0.0,0.1,1.0,1.1 look text --model models/small --head ''
suggests 0.0,0.1,1.0,1.1 look text --model = models/small --head ''
suggests '' look text --model nowhere --head ''
export QKV_MODEL=models/small
suggests 1.0,1.1 look text --head 1
echo "$checks checks, $failures failures"
((failures == 0))
