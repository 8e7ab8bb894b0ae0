# Completion of qkv for bash, made by `qkv help --format bash`. It needs nothing but bash.

# The heads L.H of the model in use, as `qkv info` counts them.
_qkv_heads() {
    local i model=${QKV_MODEL-} name layers heads
    for ((i = 2; i < COMP_CWORD - 1; i++)); do
        [[ ${COMP_WORDS[i]} == --model ]] || continue
        model=${COMP_WORDS[i + 1]}
        [[ $model != '=' ]] || model=${COMP_WORDS[i + 2]}
    done
    "${COMP_WORDS[0]}" info -- ${model:+"$model"} 2>/dev/null |
        while read -r name layers _ heads _; do
            [[ $name == layers && $layers$heads =~ ^[0-9]+$ ]] || continue
            for ((i = 0; i < layers * heads; i++)); do
                echo "$((i / heads)).$((i % heads))"
            done
        done
}

# _qkv_suggest WHAT WORD: what may stand for a word. WHAT: a|b|c, words; /, folders; .npy, files
# that end so; *, files; @heads; @commands.
_qkv_suggest() {
    local part parts
    read -ra parts <<<"$1"
    for part in "${parts[@]}"; do
        case $part in
        '*') compgen -f -- "$2" ;;
        /) compgen -d -- "$2" ;;
        .*) compgen -d -- "$2"; compgen -f -X "!*$part" -- "$2" ;;
        @heads) compgen -W "$(_qkv_heads)" -- "$2" ;;
        @commands) compgen -W "$_qkv_commands" -- "$2" ;;
        *) compgen -W "${part//|/ }" -- "$2" ;;
        esac
    done | sort -u
}

_qkv_commands='@{names}'

# _qkv_options COMMAND
_qkv_options() {
    case $1 in
@{options}
    esac
}

# _qkv_value COMMAND OPTION: what the option takes; fails if it takes no value
_qkv_value() {
    case "$1 $2" in
@{values}
    *) return 1 ;;
    esac
}

_qkv() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i what
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$_qkv_commands --help --version" -- "$word")
        return
    fi
    # --option=value comes in three words
    if [[ $word == '=' ]]; then
        word=
    elif [[ $before == '=' ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} != -- ]] || return
    done
    if what=$(_qkv_value "${COMP_WORDS[1]}" "$before"); then
        :
    elif [[ $word == -* ]] || ! what=$(_qkv_value "${COMP_WORDS[1]}" ''); then
        mapfile -t COMPREPLY < <(compgen -W "$(_qkv_options "${COMP_WORDS[1]}")" -- "$word")
        return
    fi
    case $what in */* | *.* | '*') compopt -o filenames 2>/dev/null ;; esac
    mapfile -t COMPREPLY < <(_qkv_suggest "$what" "$word")
}
complete -F _qkv qkv
