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

_qkv_commands='look fill next heads map explain lookup embed generate translate attend train eval info bench check tokenize help'

# _qkv_options COMMAND
_qkv_options() {
    case $1 in
    look) echo "--pair --target --cross --decoder --align --top --file --slide --what-if --heads --q --k --tokens --q-tokens --causal --window --scale --pool --plot --map -o --model --check-finite --weights --head --layer --theme --color --ascii --truncate --json --jsonl --threads --isa --quiet -v --help" ;;
    fill) echo "--pair --top --model --check-finite --weights --theme --color --ascii --truncate --json --jsonl --threads --isa --quiet -v --help" ;;
    next) echo "--model --check-finite --weights --theme --color --ascii --truncate --json --jsonl --threads --isa --quiet -v --help" ;;
    heads) echo "--pair --target --cross --decoder --file --sort --reverse --top --label --like --columns --probes --grammar --seed --what-if -o --model --check-finite --weights --theme --color --ascii --truncate --json --jsonl --threads --isa --quiet -v --help" ;;
    map) echo "--pair --target --cross --decoder --q --k --query --top --metric --perplexity --method --theta --iters --restarts --init --seed --no-early-stop --center-keys --balance --pca -o --model --check-finite --weights --head --layer --theme --color --ascii --truncate --json --jsonl --threads --isa --quiet -v --help" ;;
    explain) echo "--query --pair --q --k --v --causal --shapes --no-scale --positions --length --dim --shuffle --seed -o --model --check-finite --weights --head --layer --theme --color --ascii --truncate --json --jsonl --threads --isa --quiet -v --help" ;;
    lookup) echo "--metric --temperature --hard --top --sentence --model --check-finite --weights --theme --color --ascii --json --threads --isa --quiet -v --help" ;;
    embed) echo "--file --similar --top --pooling --normalize -o --model --check-finite --weights --theme --color --ascii --truncate --json --threads --isa --quiet -v --help" ;;
    generate) echo "--max-new --min-new --beams --length-penalty --early-stopping --sequences --sample --temperature --top-k --top-p --seed --repetition-penalty --no-repeat --stop --plain --show-prompt --model --check-finite --weights --theme --color --ascii --json --jsonl --threads --isa --quiet -v --help" ;;
    translate) echo "--file --align --max-new --min-new --beams --length-penalty --early-stopping --sequences --sample --temperature --top-k --top-p --seed --repetition-penalty --no-repeat --stop --plain --model --check-finite --weights --theme --color --ascii --truncate --json --jsonl --threads --isa --quiet -v --help" ;;
    attend) echo "--q --k --v -o --lse --stats --mask --mask-bits --block-mask --block-len --cu-seqlens --cu-seqlens-k --causal --prefix --window --chunk --segments --segments-q --kv-len --q-len --q-offset --scale --softcap --alibi --sink --dropout --grad-out --grad-lse --dq --dk --dv --dsink --dmask --dtype --class --explain --json --threads --isa --quiet -v --help" ;;
    train) echo "--text --grammar --out --resume --arch --from --compute --layers --decoder-layers --heads --hidden --intermediate --vocab --len --steps --batch --lr --accumulate --dropout --label-smoothing --warmup --seed --report-every --checkpoint-every --sinusoidal --eval --json --threads --isa --quiet --help" ;;
    eval) echo "--text --grammar --judge --seed --stride --model --check-finite --weights --json --threads --isa --quiet -v --help" ;;
    info) echo "--strict --check-finite --weights --json --threads --isa -v --help" ;;
    bench) echo "--rounds --list --json --compare --from --fail-above --threads --isa --help" ;;
    check) echo "--cases --pairs --table --seed --isa --json --quiet --help" ;;
    tokenize) echo "--pair --target --model --check-finite --json --jsonl -v --help" ;;
    help) echo "--format --help" ;;
    esac
}

# _qkv_value COMMAND OPTION: what the option takes; fails if it takes no value
_qkv_value() {
    case "$1 $2" in
    'look --pair') echo '' ;;
    'look --target') echo '' ;;
    'look --top') echo '' ;;
    'look --file') echo '*' ;;
    'look --slide') echo '' ;;
    'look --what-if') echo 'causal|no-scale|temperature=|drop=' ;;
    'look --heads') echo '' ;;
    'look --q') echo '.npy .npz .safetensors' ;;
    'look --k') echo '.npy .npz .safetensors' ;;
    'look --tokens') echo '*' ;;
    'look --q-tokens') echo '*' ;;
    'look --causal') echo 'top-left|bottom-right' ;;
    'look --window') echo '' ;;
    'look --scale') echo '' ;;
    'look --pool') echo 'peak|mass' ;;
    'look --plot') echo 'queries|received|offsets' ;;
    'look --map') echo 'cosine|inner' ;;
    'look -o') echo '.html .png .svg .pdf .npy .csv .json' ;;
    'look --model') echo '/ .safetensors' ;;
    'look --weights') echo 'f32|bf16' ;;
    'look --head') echo '@heads' ;;
    'look --layer') echo '' ;;
    'look --theme') echo 'light|dark' ;;
    'look --color') echo 'auto|always|never' ;;
    'look --threads') echo '' ;;
    'look --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'look ') echo '' ;;
    'fill --pair') echo '' ;;
    'fill --top') echo '' ;;
    'fill --model') echo '/ .safetensors' ;;
    'fill --weights') echo 'f32|bf16' ;;
    'fill --theme') echo 'light|dark' ;;
    'fill --color') echo 'auto|always|never' ;;
    'fill --threads') echo '' ;;
    'fill --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'fill ') echo '' ;;
    'next --model') echo '/ .safetensors' ;;
    'next --weights') echo 'f32|bf16' ;;
    'next --theme') echo 'light|dark' ;;
    'next --color') echo 'auto|always|never' ;;
    'next --threads') echo '' ;;
    'next --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'next ') echo '' ;;
    'heads --pair') echo '' ;;
    'heads --target') echo '' ;;
    'heads --file') echo '*' ;;
    'heads --sort') echo 'head|label|entropy|entropy_normalized|confidence|mean_distance|mass_cls|mass_sep|mass_punctuation|mass_self|mass_previous|mass_next|effective_keys|mass_window|mass_same_token|mass_duplicate|mass_induction|received_largest|received_early|received_gini|received_key|duplicate|induction|antecedent' ;;
    'heads --top') echo '' ;;
    'heads --label') echo 'next|prev|[CLS]|[SEP]|punctuation|broad|sink|duplicate|induction|same-token|coreference-like|none' ;;
    'heads --like') echo '@heads' ;;
    'heads --columns') echo '' ;;
    'heads --grammar') echo '.txt' ;;
    'heads --seed') echo '' ;;
    'heads --what-if') echo 'causal|no-scale|temperature=|drop=' ;;
    'heads -o') echo '.csv .tsv .json' ;;
    'heads --model') echo '/ .safetensors' ;;
    'heads --weights') echo 'f32|bf16' ;;
    'heads --theme') echo 'light|dark' ;;
    'heads --color') echo 'auto|always|never' ;;
    'heads --threads') echo '' ;;
    'heads --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'heads ') echo '' ;;
    'map --pair') echo '' ;;
    'map --target') echo '' ;;
    'map --q') echo '.npy .npz .safetensors' ;;
    'map --k') echo '.npy .npz .safetensors' ;;
    'map --query') echo '' ;;
    'map --top') echo '' ;;
    'map --metric') echo 'cosine|cosine-plain|euclidean|inner' ;;
    'map --perplexity') echo '' ;;
    'map --method') echo 'exact|barnes-hut' ;;
    'map --theta') echo '' ;;
    'map --iters') echo '' ;;
    'map --restarts') echo '' ;;
    'map --init') echo 'pca|random' ;;
    'map --seed') echo '' ;;
    'map --balance') echo 'auto' ;;
    'map -o') echo '.png .svg .pdf .csv .json' ;;
    'map --model') echo '/ .safetensors' ;;
    'map --weights') echo 'f32|bf16' ;;
    'map --head') echo '@heads' ;;
    'map --layer') echo '' ;;
    'map --theme') echo 'light|dark' ;;
    'map --color') echo 'auto|always|never' ;;
    'map --threads') echo '' ;;
    'map --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'map ') echo '' ;;
    'explain --query') echo '' ;;
    'explain --pair') echo '' ;;
    'explain --q') echo '.npy .npz .safetensors' ;;
    'explain --k') echo '.npy .npz .safetensors' ;;
    'explain --v') echo '.npy .npz .safetensors' ;;
    'explain --length') echo '' ;;
    'explain --dim') echo '' ;;
    'explain --seed') echo '' ;;
    'explain -o') echo '.html .png .svg .pdf' ;;
    'explain --model') echo '/ .safetensors' ;;
    'explain --weights') echo 'f32|bf16' ;;
    'explain --head') echo '@heads' ;;
    'explain --layer') echo '' ;;
    'explain --theme') echo 'light|dark' ;;
    'explain --color') echo 'auto|always|never' ;;
    'explain --threads') echo '' ;;
    'explain --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'explain ') echo '' ;;
    'lookup --metric') echo 'cosine|dot' ;;
    'lookup --temperature') echo '' ;;
    'lookup --top') echo '' ;;
    'lookup --model') echo '/ .safetensors' ;;
    'lookup --weights') echo 'f32|bf16' ;;
    'lookup --theme') echo 'light|dark' ;;
    'lookup --color') echo 'auto|always|never' ;;
    'lookup --threads') echo '' ;;
    'lookup --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'lookup ') echo '.csv .tsv' ;;
    'embed --file') echo '.txt' ;;
    'embed --similar') echo '' ;;
    'embed --top') echo '' ;;
    'embed --pooling') echo 'mean|cls|max|sqrt|weighted|last' ;;
    'embed -o') echo '.npy .json' ;;
    'embed --model') echo '/ .safetensors' ;;
    'embed --weights') echo 'f32|bf16' ;;
    'embed --theme') echo 'light|dark' ;;
    'embed --color') echo 'auto|always|never' ;;
    'embed --threads') echo '' ;;
    'embed --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'embed ') echo '' ;;
    'generate --max-new') echo '' ;;
    'generate --min-new') echo '' ;;
    'generate --beams') echo '' ;;
    'generate --length-penalty') echo '' ;;
    'generate --early-stopping') echo 'likely|always|never' ;;
    'generate --sequences') echo '' ;;
    'generate --temperature') echo '' ;;
    'generate --top-k') echo '' ;;
    'generate --top-p') echo '' ;;
    'generate --seed') echo '' ;;
    'generate --repetition-penalty') echo '' ;;
    'generate --no-repeat') echo '' ;;
    'generate --stop') echo '' ;;
    'generate --model') echo '/ .safetensors' ;;
    'generate --weights') echo 'f32|bf16' ;;
    'generate --theme') echo 'light|dark' ;;
    'generate --color') echo 'auto|always|never' ;;
    'generate --threads') echo '' ;;
    'generate --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'generate ') echo '' ;;
    'translate --file') echo '*' ;;
    'translate --max-new') echo '' ;;
    'translate --min-new') echo '' ;;
    'translate --beams') echo '' ;;
    'translate --length-penalty') echo '' ;;
    'translate --early-stopping') echo 'likely|always|never' ;;
    'translate --sequences') echo '' ;;
    'translate --temperature') echo '' ;;
    'translate --top-k') echo '' ;;
    'translate --top-p') echo '' ;;
    'translate --seed') echo '' ;;
    'translate --repetition-penalty') echo '' ;;
    'translate --no-repeat') echo '' ;;
    'translate --stop') echo '' ;;
    'translate --model') echo '/ .safetensors' ;;
    'translate --weights') echo 'f32|bf16' ;;
    'translate --theme') echo 'light|dark' ;;
    'translate --color') echo 'auto|always|never' ;;
    'translate --threads') echo '' ;;
    'translate --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'translate ') echo '' ;;
    'attend --q') echo '.npy .npz .safetensors' ;;
    'attend --k') echo '.npy .npz .safetensors' ;;
    'attend --v') echo '.npy .npz .safetensors' ;;
    'attend -o') echo '.npy .npz' ;;
    'attend --lse') echo '.npy .npz' ;;
    'attend --stats') echo '.json' ;;
    'attend --mask') echo '.npy .npz .safetensors' ;;
    'attend --mask-bits') echo '.npy .npz .safetensors' ;;
    'attend --block-mask') echo '.npy .npz .safetensors' ;;
    'attend --block-len') echo '' ;;
    'attend --cu-seqlens') echo '.npy .npz .safetensors' ;;
    'attend --cu-seqlens-k') echo '.npy .npz .safetensors' ;;
    'attend --causal') echo 'top-left|bottom-right' ;;
    'attend --prefix') echo '' ;;
    'attend --window') echo '' ;;
    'attend --chunk') echo '' ;;
    'attend --segments') echo '.npy .npz .safetensors' ;;
    'attend --segments-q') echo '.npy .npz .safetensors' ;;
    'attend --kv-len') echo '' ;;
    'attend --q-len') echo '' ;;
    'attend --q-offset') echo '' ;;
    'attend --scale') echo '' ;;
    'attend --softcap') echo '' ;;
    'attend --alibi') echo '.npy .npz .safetensors' ;;
    'attend --sink') echo '.npy .npz .safetensors' ;;
    'attend --dropout') echo '' ;;
    'attend --grad-out') echo '.npy .npz .safetensors' ;;
    'attend --grad-lse') echo '.npy .npz .safetensors' ;;
    'attend --dq') echo '.npy .npz' ;;
    'attend --dk') echo '.npy .npz' ;;
    'attend --dv') echo '.npy .npz' ;;
    'attend --dsink') echo '.npy .npz' ;;
    'attend --dmask') echo '.npy .npz' ;;
    'attend --dtype') echo 'f32|bf16|f16' ;;
    'attend --class') echo 'auto|f32|dp|amx' ;;
    'attend --threads') echo '' ;;
    'attend --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'train --text') echo '*' ;;
    'train --grammar') echo '.txt' ;;
    'train --out') echo '/' ;;
    'train --arch') echo 'bert|gpt2|encdec' ;;
    'train --from') echo '/' ;;
    'train --compute') echo 'f32|bf16|bf16-dp|bf16-amx' ;;
    'train --layers') echo '' ;;
    'train --decoder-layers') echo '' ;;
    'train --heads') echo '' ;;
    'train --hidden') echo '' ;;
    'train --intermediate') echo '' ;;
    'train --vocab') echo '' ;;
    'train --len') echo '' ;;
    'train --steps') echo '' ;;
    'train --batch') echo '' ;;
    'train --lr') echo '' ;;
    'train --accumulate') echo '' ;;
    'train --dropout') echo '' ;;
    'train --label-smoothing') echo '' ;;
    'train --warmup') echo '' ;;
    'train --seed') echo '' ;;
    'train --report-every') echo '' ;;
    'train --checkpoint-every') echo '' ;;
    'train --eval') echo '*' ;;
    'train --threads') echo '' ;;
    'train --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'eval --text') echo '*' ;;
    'eval --grammar') echo '.txt' ;;
    'eval --judge') echo '.txt' ;;
    'eval --seed') echo '' ;;
    'eval --stride') echo '' ;;
    'eval --model') echo '/ .safetensors' ;;
    'eval --weights') echo 'f32|bf16' ;;
    'eval --threads') echo '' ;;
    'eval --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'info --weights') echo 'f32|bf16' ;;
    'info --threads') echo '' ;;
    'info --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'info ') echo '/ .safetensors .npy .npz' ;;
    'bench --rounds') echo '' ;;
    'bench --json') echo '.json' ;;
    'bench --compare') echo '.json' ;;
    'bench --from') echo '.json' ;;
    'bench --fail-above') echo '' ;;
    'bench --threads') echo '' ;;
    'bench --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'bench ') echo 'forward|causal|masks|gqa|decode|varlen|stats|backward|small' ;;
    'check --cases') echo '' ;;
    'check --pairs') echo '' ;;
    'check --seed') echo '' ;;
    'check --isa') echo 'scalar|avx2|avx512|avx512bf16|neon' ;;
    'tokenize --pair') echo '' ;;
    'tokenize --model') echo '/ .safetensors' ;;
    'tokenize ') echo '' ;;
    'help --format') echo 'text|scdoc|bash|zsh|fish' ;;
    'help ') echo '@commands' ;;
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
