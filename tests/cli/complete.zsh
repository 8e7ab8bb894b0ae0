#!/bin/zsh -f
# What zsh suggests: complete.zsh QKV SCRIPT FOLDER. An interactive zsh in a pseudo-terminal gets a line and a tab; its
# compadd says what it is given before it does what it is for.
qkv=$1 script=$2 folder=$3
unset QKV_MODEL QKV_ISA QKV_NUM_THREADS
here=${0:A:h}
rm -rf $folder
mkdir -p $folder/models/small $folder/.home
cd $folder || exit 1
: >'q of mine.npy'
: >weights.safetensors
: >notes.txt
cp $here/../golden/bert_old/{config.json,vocab.txt,model.safetensors} models/small
PATH=${qkv:h}:$PATH
zmodload zsh/zpty
cat >.home/start <<'START'
PS1= PS2= RPS1=
unsetopt prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null
fpath=($COMPLETIONS $fpath)
autoload -U compinit
compinit -u -d $HOME/dump
compadd() {
    if [[ " ${@[1,(i)(-|--)]} " == *" -"[a-zA-Z]#[OAD]" "* ]]; then
        builtin compadd "$@"
        return
    fi
    local -a __hits
    builtin compadd -O __hits "$@"
    print -rl -- "<"${^__hits}">" >>$HOME/hits
    builtin compadd "$@"
}
finish_line() { print >>$HOME/done; zle kill-whole-line }
zle -N finish_line
bindkey '^I' complete-word
bindkey '^X' finish_line
setopt extended_glob no_beep no_list_beep no_auto_list
START
export HOME=$folder/.home ZDOTDIR=$folder/.home COMPLETIONS=${script:h} TERM=dumb LANG=C.UTF-8
zpty -b shell zsh -f -i
zpty -w shell ". $HOME/start"
failures=0 checks=0

# suggests EXPECTED LINE: what a tab at the end of the line brings, sorted and joined by commas
suggests() {
    rm -f $HOME/hits $HOME/done
    zpty -w -n shell "$2"$'\t\x18'
    for ((i = 0; i < 200 && ! $#done; i++)); do
        done=($HOME/done(N))
        sleep 0.05
    done
    done=()
    local -a hits=(${(f)"$(sed -n 's/^<\(.*\)>$/\1/p' $HOME/hits 2>/dev/null)"})
    local got=${(j:,:)${(ou)hits}}
    checks=$((checks + 1))
    [[ $got == $1 ]] && return
    failures=$((failures + 1))
    print -r -- "FAILED: $2: suggested '$got', not '$1'"
}

suggests look,lookup 'qkv lo'
suggests tokenize,train,translate 'qkv t'
suggests eval 'qkv help ev'
suggests --target,--theme,--threads,--title,--tokens,--top,--truncate 'qkv look text --t'
suggests dark,light 'qkv look text --theme '
suggests light 'qkv look text --theme=l'
suggests avx2,avx512,avx512bf16 'qkv look text --isa a'
suggests received_early,received_gini,received_key,received_largest 'qkv heads text --sort rec'
suggests bottom-right,top-left 'qkv attend --causal '
suggests 'models,q\ of\ mine.npy,weights.safetensors' 'qkv attend --q '
suggests 'models,q\ of\ mine.npy' 'qkv attend -o '
suggests models 'qkv train --out '
suggests causal 'qkv bench c'
suggests 3.0,3.1,3.2,3.3 'qkv look text --head 3'
suggests 0.0,0.1,1.0,1.1 'qkv look text --model models/small --head '
zpty -d shell
print "$checks checks, $failures failures"
((failures == 0))
