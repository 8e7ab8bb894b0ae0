#!/usr/bin/fish
# What fish suggests: complete.fish QKV SCRIPT FOLDER.
set -l qkv $argv[1]
set -l script $argv[2]
set -l folder $argv[3]
set -e QKV_MODEL
set -e QKV_ISA
set -e QKV_NUM_THREADS
set -l here (realpath (status dirname))
rm -rf $folder
mkdir -p $folder/models/small
cd $folder; or exit 1
touch 'q of mine.npy' weights.safetensors notes.txt
cp $here/../golden/bert_old/{config.json,vocab.txt,model.safetensors} models/small
set PATH (dirname $qkv) $PATH
source $script
set -g failures 0
set -g checks 0

# suggests EXPECTED LINE: the suggestions at the end of the line, sorted and joined by commas
function suggests
    set -l got (complete -C $argv[2] | string replace -r '\t.*' '' | sort | string join ,)
    set checks (math $checks + 1)
    test "$got" = $argv[1]; and return
    set failures (math $failures + 1)
    echo "FAILED: $argv[2]: suggested '$got', not '$argv[1]'"
end

suggests look,lookup 'qkv lo'
suggests tokenize,train,translate 'qkv t'
suggests --help,--version 'qkv --'
suggests eval 'qkv help ev'
suggests --target,--theme,--threads,--title,--tokens,--top,--truncate 'qkv look text --t'
suggests dark,light 'qkv look text --theme '
suggests --theme=light 'qkv look text --theme=l'
suggests avx2,avx512,avx512bf16 'qkv look text --isa a'
suggests received_early,received_gini,received_key,received_largest 'qkv heads text --sort rec'
suggests bottom-right,top-left 'qkv attend --causal '
suggests 'models/,q of mine.npy,weights.safetensors' 'qkv attend --q '
suggests '--q=q of mine.npy' 'qkv attend --q=q'
suggests 'models/,q of mine.npy' 'qkv attend -o '
suggests 'models/,notes.txt,q of mine.npy' 'qkv look text -o '
suggests models/,weights.safetensors 'qkv look --model '
suggests 'models/,notes.txt,q of mine.npy,weights.safetensors' 'qkv train --text '
suggests models/ 'qkv train --out '
suggests '' 'qkv look '
suggests '' 'qkv look --pair look --steps'
suggests causal 'qkv bench c'
suggests 3.0,3.1,3.2,3.3 'qkv look text --head 3'
suggests 0.0,0.1,1.0,1.1 'qkv look text --model models/small --head '
suggests 0.0,0.1,1.0,1.1 'qkv look text --model=models/small --head '
echo "$checks checks, $failures failures"
test $failures -eq 0
