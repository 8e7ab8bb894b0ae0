#compdef qkv
# Completion of qkv for zsh, made by `qkv help --format zsh`.

# The heads L.H of the model in use, as `qkv info` counts them.
_qkv_heads() {
    local i line model=${opt_args[--model]:-${QKV_MODEL-}}
    local -a fields heads
    local counted="$(_call_program heads qkv info -- ${model:+${(q)${(Q)model}}} 2>/dev/null)"
    for line in ${(f)counted}; do
        fields=(${=line})
        [[ $fields[1] == layers && $fields[2]$fields[4] == <-> ]] || continue
        for ((i = 0; i < fields[2] * fields[4]; i++)); do
            heads+=($((i / fields[4])).$((i % fields[4])))
        done
    done
    compadd -a heads
}

_qkv_commands() {
    local -a commands=(
@{summaries}
    )
    _describe -t commands command commands
}

_qkv() {
    local curcontext=$curcontext state line i ret=1
    typeset -A opt_args
    _arguments -C '(- *)--help[the list of commands]' '(- *)--version[the version]' \
        '1: :_qkv_commands' '*:: :->arguments' && ret=0
    [[ $state == arguments ]] || return ret
    case $words[1] in
@{commands}
    esac
    return ret
}

if [[ $funcstack[1] == _qkv ]]; then
    _qkv "$@"
else
    compdef _qkv qkv
fi
