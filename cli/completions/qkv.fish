# Completion of qkv for fish, made by `qkv help --format fish`.

# True while no command is there yet; __qkv_command NAME: while that command is there.
function __qkv_no_command
    test (count (commandline -opc)) -eq 1
end

function __qkv_command
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end

# The heads L.H of the model in use, as `qkv info` counts them.
function __qkv_heads
    set -l words (commandline -opc)
    set -l model $QKV_MODEL
    for i in (seq 2 (count $words))
        switch $words[$i]
            case --model
                set model $words[(math $i + 1)]
            case '--model=*'
                set model (string replace -- --model= '' $words[$i])
        end
    end
    set -l sizes (qkv info -- $model 2>/dev/null | string match -r '^layers +(\d+) of (\d+)')
    test (count $sizes) -eq 3; or return
    for layer in (seq 0 (math $sizes[2] - 1))
        for head in (seq 0 (math $sizes[3] - 1))
            echo $layer.$head
        end
    end
end

# __qkv_files ENDING...: folders, and files that end so.
function __qkv_files
    set -l word (commandline -ct | string replace -r -- '^--[^=]*=' '')
    set -l endings (string escape --style=regex -- $argv)
    complete -C "__qkv_any_file $word" | string match -r -- "^.*(?:/|"(string join '|' $endings)")(?:\t.*)?\$"
end

complete -c qkv -f
complete -c qkv -n __qkv_no_command -l help -d 'the list of commands'
complete -c qkv -n __qkv_no_command -l version -d 'the version'
complete -c qkv -n __qkv_no_command -a look -d 'where each token looks'
complete -c qkv -n __qkv_no_command -a fill -d 'words for each [MASK], with probabilities'
complete -c qkv -n __qkv_no_command -a next -d 'does sentence B follow sentence A?'
complete -c qkv -n __qkv_no_command -a heads -d 'a table of all heads'
complete -c qkv -n __qkv_no_command -a map -d 'queries and keys of one head on one map'
complete -c qkv -n __qkv_no_command -a explain -d 'the computation step by step, with the real numbers'
complete -c qkv -n __qkv_no_command -a lookup -d 'look a value up by meaning'
complete -c qkv -n __qkv_no_command -a attend -d 'exact attention on arrays in files, and its gradients'
complete -c qkv -n __qkv_no_command -a train -d 'train a small BERT on your text'
complete -c qkv -n __qkv_no_command -a eval -d 'measure a model on text or on a grammar'
complete -c qkv -n __qkv_no_command -a info -d 'about a model, an array, or this binary and machine'
complete -c qkv -n __qkv_no_command -a bench -d 'speed of attention here, beside this machine\'s peak'
complete -c qkv -n __qkv_no_command -a check -d 'does attention compute on this machine what it promises?'
complete -c qkv -n __qkv_no_command -a tokenize -d 'the tokens that the model sees'
complete -c qkv -n __qkv_no_command -a help -d 'this list, or a command in full'

function __qkv_commands
    echo look
    echo fill
    echo next
    echo heads
    echo map
    echo explain
    echo lookup
    echo attend
    echo train
    echo eval
    echo info
    echo bench
    echo check
    echo tokenize
    echo help
end

complete -c qkv -n '__qkv_command look' -l pair -x -d 'a second text, which the model sees as the next sentence'
complete -c qkv -n '__qkv_command look' -l top -x -d 'how many words for each [MASK]'
complete -c qkv -n '__qkv_command look' -l file -x -a '(__fish_complete_path)' -d 'the text is what the file holds'
complete -c qkv -n '__qkv_command look' -l slide -x -d 'look at windows of N tokens, each STRIDE after the one before'
complete -c qkv -n '__qkv_command look' -l what-if -x -a 'causal no-scale temperature= drop=' -d 'run the model so, in all layers and heads'
complete -c qkv -n '__qkv_command look' -l heads -x -d 'the heads of a page, the one that it shows first at the front'
complete -c qkv -n '__qkv_command look' -l q -x -k -a '(__qkv_files .npy .safetensors)' -d 'queries, [L,D], [H,L,D] or [1,H,L,D]'
complete -c qkv -n '__qkv_command look' -l k -x -k -a '(__qkv_files .npy .safetensors)' -d 'keys, with --q'
complete -c qkv -n '__qkv_command look' -l tokens -x -a '(__fish_complete_path)' -d 'names of the keys of --k, one a line'
complete -c qkv -n '__qkv_command look' -l causal -x -a 'top-left bottom-right' -d 'with --q'
complete -c qkv -n '__qkv_command look' -l window -x -d 'with --q'
complete -c qkv -n '__qkv_command look' -l scale -x -d 'with --q'
complete -c qkv -n '__qkv_command look' -l pool -x -a 'peak mass' -d 'with --q'
complete -c qkv -n '__qkv_command look' -l plot -x -a 'queries received offsets' -d 'write a chart of one head, that of --head or the chosen one'
complete -c qkv -n '__qkv_command look' -s o -x -k -a '(__qkv_files .html .png .svg .pdf .npy .csv .json)' -d 'write a file instead, of all heads or of the one of --head'
complete -c qkv -n '__qkv_command look' -l model -x -k -a '(__qkv_files .safetensors)' -d 'a folder with config.json, a .safetensors file in one, or a name in the local Hugging Face cache'
complete -c qkv -n '__qkv_command look' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command look' -l head -x -a '(__qkv_heads)' -d 'one head'
complete -c qkv -n '__qkv_command look' -l layer -x -d 'the layer of --head'
complete -c qkv -n '__qkv_command look' -l theme -x -a 'light dark' -d 'for what background'
complete -c qkv -n '__qkv_command look' -l color -x -a 'auto always never' -d 'colour'
complete -c qkv -n '__qkv_command look' -l ascii -d 'nothing but ASCII in drawings'
complete -c qkv -n '__qkv_command look' -l truncate -d 'cut a text that is longer than the model takes'
complete -c qkv -n '__qkv_command look' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command look' -l jsonl -d 'read a JSON string, or a pair of them, from each line of standard input and write a JSON object for each'
complete -c qkv -n '__qkv_command look' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command look' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command look' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command look' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command look' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command fill' -l pair -x -d 'a second text, which the model sees as the next sentence'
complete -c qkv -n '__qkv_command fill' -l top -x -d 'how many words for each blank'
complete -c qkv -n '__qkv_command fill' -l model -x -k -a '(__qkv_files .safetensors)' -d 'a folder with config.json, a .safetensors file in one, or a name in the local Hugging Face cache'
complete -c qkv -n '__qkv_command fill' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command fill' -l theme -x -a 'light dark' -d 'for what background'
complete -c qkv -n '__qkv_command fill' -l color -x -a 'auto always never' -d 'colour'
complete -c qkv -n '__qkv_command fill' -l ascii -d 'nothing but ASCII in drawings'
complete -c qkv -n '__qkv_command fill' -l truncate -d 'cut a text that is longer than the model takes'
complete -c qkv -n '__qkv_command fill' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command fill' -l jsonl -d 'read a JSON string, or a pair of them, from each line of standard input and write a JSON object for each'
complete -c qkv -n '__qkv_command fill' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command fill' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command fill' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command fill' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command fill' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command next' -l model -x -k -a '(__qkv_files .safetensors)' -d 'a folder with config.json, a .safetensors file in one, or a name in the local Hugging Face cache'
complete -c qkv -n '__qkv_command next' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command next' -l theme -x -a 'light dark' -d 'for what background'
complete -c qkv -n '__qkv_command next' -l color -x -a 'auto always never' -d 'colour'
complete -c qkv -n '__qkv_command next' -l ascii -d 'nothing but ASCII in drawings'
complete -c qkv -n '__qkv_command next' -l truncate -d 'cut a text that is longer than the model takes'
complete -c qkv -n '__qkv_command next' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command next' -l jsonl -d 'read a JSON string, or a pair of them, from each line of standard input and write a JSON object for each'
complete -c qkv -n '__qkv_command next' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command next' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command next' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command next' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command next' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command heads' -l pair -x -d 'a second text, which the model sees as the next sentence'
complete -c qkv -n '__qkv_command heads' -l file -x -a '(__fish_complete_path)' -d 'many texts, one a line, or two separated by a tab'
complete -c qkv -n '__qkv_command heads' -l sort -x -a 'head label entropy entropy_normalized confidence mean_distance mass_cls mass_sep mass_punctuation mass_self mass_previous mass_next effective_keys mass_window mass_same_token mass_duplicate mass_induction received_largest received_early received_gini received_key duplicate induction antecedent' -d 'by a column, large numbers first'
complete -c qkv -n '__qkv_command heads' -l reverse -d 'the other way round'
complete -c qkv -n '__qkv_command heads' -l top -x -d 'only the first N heads'
complete -c qkv -n '__qkv_command heads' -l label -x -a 'next prev [CLS] [SEP] punctuation broad sink duplicate induction same-token coreference-like none' -d 'only heads with this label'
complete -c qkv -n '__qkv_command heads' -l like -x -a '(__qkv_heads)' -d 'by distance of the signature from that of this head, the nearest first'
complete -c qkv -n '__qkv_command heads' -l columns -x -d 'which columns to print, by name, separated by commas'
complete -c qkv -n '__qkv_command heads' -l probes -d 'run random tokens said twice, and pronoun probes of the model\'s grammar, for the labels duplicate, induction and coreference-like'
complete -c qkv -n '__qkv_command heads' -l grammar -x -k -a '(__qkv_files .txt)' -d 'the grammar whose pronoun probes are run'
complete -c qkv -n '__qkv_command heads' -l seed -x -d 'seed of the probes'
complete -c qkv -n '__qkv_command heads' -l what-if -x -a 'causal no-scale temperature= drop=' -d 'run the model so, in all layers and heads, as `qkv look` does'
complete -c qkv -n '__qkv_command heads' -s o -x -k -a '(__qkv_files .csv .tsv .json)' -d 'write a file instead, with all columns'
complete -c qkv -n '__qkv_command heads' -l model -x -k -a '(__qkv_files .safetensors)' -d 'a folder with config.json, a .safetensors file in one, or a name in the local Hugging Face cache'
complete -c qkv -n '__qkv_command heads' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command heads' -l theme -x -a 'light dark' -d 'for what background'
complete -c qkv -n '__qkv_command heads' -l color -x -a 'auto always never' -d 'colour'
complete -c qkv -n '__qkv_command heads' -l ascii -d 'nothing but ASCII in drawings'
complete -c qkv -n '__qkv_command heads' -l truncate -d 'cut a text that is longer than the model takes'
complete -c qkv -n '__qkv_command heads' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command heads' -l jsonl -d 'read a JSON string, or a pair of them, from each line of standard input and write a JSON object for each'
complete -c qkv -n '__qkv_command heads' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command heads' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command heads' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command heads' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command heads' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command map' -l pair -x -d 'a second text, which the model sees as the next sentence'
complete -c qkv -n '__qkv_command map' -l q -x -k -a '(__qkv_files .npy .safetensors)' -d 'queries, [n, head_dim]'
complete -c qkv -n '__qkv_command map' -l k -x -k -a '(__qkv_files .npy .safetensors)' -d 'keys, [m, head_dim], with --q'
complete -c qkv -n '__qkv_command map' -l query -x -d 'the query that lines come from'
complete -c qkv -n '__qkv_command map' -l top -x -d 'how many lines, to the keys with the largest weights'
complete -c qkv -n '__qkv_command map' -l metric -x -a 'cosine cosine-plain euclidean inner' -d 'distance'
complete -c qkv -n '__qkv_command map' -l perplexity -x -d 'how many neighbours a point has, about'
complete -c qkv -n '__qkv_command map' -l method -x -a 'exact barnes-hut' -d 'gradient over all pairs'
complete -c qkv -n '__qkv_command map' -l theta -x -d 'of Barnes and Hut\'s method, above 0 to 1'
complete -c qkv -n '__qkv_command map' -l iters -x -d 'iterations of a run'
complete -c qkv -n '__qkv_command map' -l restarts -x -d 'runs from different starts, of which the one with the least KL is shown'
complete -c qkv -n '__qkv_command map' -l init -x -a 'pca random' -d 'where the first run begins'
complete -c qkv -n '__qkv_command map' -l seed -x -d 'of random starts'
complete -c qkv -n '__qkv_command map' -l no-early-stop -d 'make all iterations, though the KL has stopped falling'
complete -c qkv -n '__qkv_command map' -l center-keys -d 'move the keys to the mean of the queries, which changes no weight'
complete -c qkv -n '__qkv_command map' -l balance -x -a 'auto' -d 'queries times X, keys divided by it, which changes no weight'
complete -c qkv -n '__qkv_command map' -l pca -d 'no t-SNE'
complete -c qkv -n '__qkv_command map' -s o -x -k -a '(__qkv_files .png .svg .pdf .csv .json)' -d 'write a file instead'
complete -c qkv -n '__qkv_command map' -l model -x -k -a '(__qkv_files .safetensors)' -d 'a folder with config.json, a .safetensors file in one, or a name in the local Hugging Face cache'
complete -c qkv -n '__qkv_command map' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command map' -l head -x -a '(__qkv_heads)' -d 'one head'
complete -c qkv -n '__qkv_command map' -l layer -x -d 'the layer of --head'
complete -c qkv -n '__qkv_command map' -l theme -x -a 'light dark' -d 'for what background'
complete -c qkv -n '__qkv_command map' -l color -x -a 'auto always never' -d 'colour'
complete -c qkv -n '__qkv_command map' -l ascii -d 'nothing but ASCII in drawings'
complete -c qkv -n '__qkv_command map' -l truncate -d 'cut a text that is longer than the model takes'
complete -c qkv -n '__qkv_command map' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command map' -l jsonl -d 'read a JSON string, or a pair of them, from each line of standard input and write a JSON object for each'
complete -c qkv -n '__qkv_command map' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command map' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command map' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command map' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command map' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command explain' -l query -x -d 'the query'
complete -c qkv -n '__qkv_command explain' -l pair -x -d 'a second text, which the model sees as the next sentence'
complete -c qkv -n '__qkv_command explain' -l q -x -k -a '(__qkv_files .npy .safetensors)' -d 'queries, [n, head_dim]'
complete -c qkv -n '__qkv_command explain' -l k -x -k -a '(__qkv_files .npy .safetensors)' -d 'keys, [m, head_dim], with --q'
complete -c qkv -n '__qkv_command explain' -l v -x -k -a '(__qkv_files .npy .safetensors)' -d 'values, [m, head_dim_v], with --q'
complete -c qkv -n '__qkv_command explain' -l causal -d 'without a text'
complete -c qkv -n '__qkv_command explain' -l shapes -d 'also the shape of what each step makes'
complete -c qkv -n '__qkv_command explain' -l no-scale -d 'why scores are divided by sqrt(d)'
complete -c qkv -n '__qkv_command explain' -l positions -d 'draw sinusoidal positions'
complete -c qkv -n '__qkv_command explain' -l length -x -d 'with --positions'
complete -c qkv -n '__qkv_command explain' -l dim -x -d 'with --positions'
complete -c qkv -n '__qkv_command explain' -l shuffle -d 'shuffle the words'
complete -c qkv -n '__qkv_command explain' -l seed -x -d 'of --no-scale and --shuffle'
complete -c qkv -n '__qkv_command explain' -s o -x -k -a '(__qkv_files .html .png .svg .pdf)' -d 'write a page for a browser'
complete -c qkv -n '__qkv_command explain' -l model -x -k -a '(__qkv_files .safetensors)' -d 'a folder with config.json, a .safetensors file in one, or a name in the local Hugging Face cache'
complete -c qkv -n '__qkv_command explain' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command explain' -l head -x -a '(__qkv_heads)' -d 'one head'
complete -c qkv -n '__qkv_command explain' -l layer -x -d 'the layer of --head'
complete -c qkv -n '__qkv_command explain' -l theme -x -a 'light dark' -d 'for what background'
complete -c qkv -n '__qkv_command explain' -l color -x -a 'auto always never' -d 'colour'
complete -c qkv -n '__qkv_command explain' -l ascii -d 'nothing but ASCII in drawings'
complete -c qkv -n '__qkv_command explain' -l truncate -d 'cut a text that is longer than the model takes'
complete -c qkv -n '__qkv_command explain' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command explain' -l jsonl -d 'read a JSON string, or a pair of them, from each line of standard input and write a JSON object for each'
complete -c qkv -n '__qkv_command explain' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command explain' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command explain' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command explain' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command explain' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command lookup' -l metric -x -a 'cosine dot' -d 'similarity'
complete -c qkv -n '__qkv_command lookup' -l temperature -x -d 'weight = softmax(similarity / X)'
complete -c qkv -n '__qkv_command lookup' -l hard -d 'a plain dictionary'
complete -c qkv -n '__qkv_command lookup' -l top -x -d 'how many keys to show for each query'
complete -c qkv -n '__qkv_command lookup' -l sentence -d 'keys and queries are sentences'
complete -c qkv -n '__qkv_command lookup' -l model -x -k -a '(__qkv_files .safetensors)' -d 'a folder with config.json, a .safetensors file in one, or a name in the local Hugging Face cache'
complete -c qkv -n '__qkv_command lookup' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command lookup' -l theme -x -a 'light dark' -d 'for what background'
complete -c qkv -n '__qkv_command lookup' -l color -x -a 'auto always never' -d 'colour'
complete -c qkv -n '__qkv_command lookup' -l ascii -d 'nothing but ASCII in drawings'
complete -c qkv -n '__qkv_command lookup' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command lookup' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command lookup' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command lookup' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command lookup' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command lookup' -k -a '(__qkv_files .csv .tsv)'
complete -c qkv -n '__qkv_command lookup' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command attend' -l q -x -k -a '(__qkv_files .npy .safetensors)' -d 'queries [B,H,Lq,D], [H,Lq,D] or [Lq,D]'
complete -c qkv -n '__qkv_command attend' -l k -x -k -a '(__qkv_files .npy .safetensors)' -d 'keys'
complete -c qkv -n '__qkv_command attend' -l v -x -k -a '(__qkv_files .npy .safetensors)' -d 'values'
complete -c qkv -n '__qkv_command attend' -s o -x -k -a '(__qkv_files .npy)' -d 'where the output goes'
complete -c qkv -n '__qkv_command attend' -l lse -x -k -a '(__qkv_files .npy)' -d 'where log-sum-exp of each row\'s scores goes'
complete -c qkv -n '__qkv_command attend' -l stats -x -k -a '(__qkv_files .json)' -d 'where statistics of the weights go, as JSON'
complete -c qkv -n '__qkv_command attend' -l mask -x -k -a '(__qkv_files .npy .safetensors)' -d 'a mask, aligned on the right as in numpy'
complete -c qkv -n '__qkv_command attend' -l mask-bits -x -k -a '(__qkv_files .npy .safetensors)' -d 'a boolean mask as bytes of 8 keys, the least significant bit first'
complete -c qkv -n '__qkv_command attend' -l block-mask -x -k -a '(__qkv_files .npy .safetensors)' -d 'booleans, one for each block of queries and of keys, aligned on the right'
complete -c qkv -n '__qkv_command attend' -l block-len -x -d 'queries and keys of a block of --block-mask'
complete -c qkv -n '__qkv_command attend' -l cu-seqlens -x -k -a '(__qkv_files .npy .safetensors)' -d 'integers [N+1]'
complete -c qkv -n '__qkv_command attend' -l cu-seqlens-k -x -k -a '(__qkv_files .npy .safetensors)' -d 'the same for k and v, where it is not that of q'
complete -c qkv -n '__qkv_command attend' -l causal -x -a 'top-left bottom-right' -d 'query i sees keys up to i + offset'
complete -c qkv -n '__qkv_command attend' -l prefix -x -d 'with --causal'
complete -c qkv -n '__qkv_command attend' -l window -x -d 'query i sees keys from i + offset - LEFT to i + offset + RIGHT'
complete -c qkv -n '__qkv_command attend' -l chunk -x -d 'query i sees the keys of its own chunk of N, that of i + offset'
complete -c qkv -n '__qkv_command attend' -l segments -x -k -a '(__qkv_files .npy .safetensors)' -d 'integers [B,Lk] or [Lk]'
complete -c qkv -n '__qkv_command attend' -l segments-q -x -k -a '(__qkv_files .npy .safetensors)' -d 'the queries\' segments, [B,Lq] or [Lq], where they are not those of the keys'
complete -c qkv -n '__qkv_command attend' -l kv-len -x -d 'keys that exist, in all batches or in each'
complete -c qkv -n '__qkv_command attend' -l q-len -x -d 'queries that exist'
complete -c qkv -n '__qkv_command attend' -l q-offset -x -d 'position of query 0 among the keys, for --window, --chunk and --alibi without --causal'
complete -c qkv -n '__qkv_command attend' -l scale -x -d 'factor of the scores'
complete -c qkv -n '__qkv_command attend' -l softcap -x -d 'scores s become X tanh(s / X)'
complete -c qkv -n '__qkv_command attend' -l alibi -x -k -a '(__qkv_files .npy .safetensors)' -d 'slopes [H]'
complete -c qkv -n '__qkv_command attend' -l sink -x -k -a '(__qkv_files .npy .safetensors)' -d 'scores [H] of no key'
complete -c qkv -n '__qkv_command attend' -l dropout -x -d 'each weight becomes 0 with probability P, the others are divided by 1 - P'
complete -c qkv -n '__qkv_command attend' -l grad-out -x -k -a '(__qkv_files .npy .safetensors)' -d 'gradient of the output'
complete -c qkv -n '__qkv_command attend' -l grad-lse -x -k -a '(__qkv_files .npy .safetensors)' -d 'gradient of lse, if it has one'
complete -c qkv -n '__qkv_command attend' -l dq -x -k -a '(__qkv_files .npy)' -d 'where the gradient of q goes'
complete -c qkv -n '__qkv_command attend' -l dk -x -k -a '(__qkv_files .npy)' -d 'where the gradient of k goes'
complete -c qkv -n '__qkv_command attend' -l dv -x -k -a '(__qkv_files .npy)' -d 'where the gradient of v goes'
complete -c qkv -n '__qkv_command attend' -l dsink -x -k -a '(__qkv_files .npy)' -d 'where the gradient of the sinks goes'
complete -c qkv -n '__qkv_command attend' -l dmask -x -k -a '(__qkv_files .npy)' -d 'where the gradient of a mask of numbers goes'
complete -c qkv -n '__qkv_command attend' -l dtype -x -a 'f32 bf16 f16' -d 'the type to which q, k, v and --grad-out are rounded and in which the output and gradients are written'
complete -c qkv -n '__qkv_command attend' -l class -x -a 'auto f32 dp' -d 'with what 16-bit inputs are computed'
complete -c qkv -n '__qkv_command attend' -l explain -d 'say which path the computation takes, and why'
complete -c qkv -n '__qkv_command attend' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command attend' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command attend' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command attend' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command attend' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command attend' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command train' -l text -x -a '(__fish_complete_path)' -d 'a text'
complete -c qkv -n '__qkv_command train' -l grammar -x -k -a '(__qkv_files .txt)' -d 'or a grammar that makes sentences'
complete -c qkv -n '__qkv_command train' -l out -x -a '(__fish_complete_directories)' -d 'the folder for the model'
complete -c qkv -n '__qkv_command train' -l resume -d 'go on where a stopped run left the folder'
complete -c qkv -n '__qkv_command train' -l layers -x -d 'layers'
complete -c qkv -n '__qkv_command train' -l heads -x -d 'heads in each'
complete -c qkv -n '__qkv_command train' -l hidden -x -d 'hidden size'
complete -c qkv -n '__qkv_command train' -l intermediate -x -d 'size of the feed-forward layer'
complete -c qkv -n '__qkv_command train' -l vocab -x -d 'pieces in the vocabulary'
complete -c qkv -n '__qkv_command train' -l len -x -d 'tokens in a sequence, at most'
complete -c qkv -n '__qkv_command train' -l steps -x -d 'steps'
complete -c qkv -n '__qkv_command train' -l batch -x -d 'sequences in a step'
complete -c qkv -n '__qkv_command train' -l lr -x -d 'highest learning rate'
complete -c qkv -n '__qkv_command train' -l warmup -x -d 'steps of warm-up'
complete -c qkv -n '__qkv_command train' -l seed -x -d 'seed of everything random'
complete -c qkv -n '__qkv_command train' -l report-every -x -d 'steps between reports'
complete -c qkv -n '__qkv_command train' -l checkpoint-every -x -d 'steps between checkpoints'
complete -c qkv -n '__qkv_command train' -l sinusoidal -d 'fixed positions from sines, instead of learned ones'
complete -c qkv -n '__qkv_command train' -l eval -x -a '(__fish_complete_path)' -d 'a text to measure the trained model on'
complete -c qkv -n '__qkv_command train' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command train' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command train' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command train' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command train' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command eval' -l text -x -a '(__fish_complete_path)' -d 'a text'
complete -c qkv -n '__qkv_command eval' -l grammar -x -k -a '(__qkv_files .txt)' -d 'or a grammar'
complete -c qkv -n '__qkv_command eval' -l seed -x -d 'seed of what is random'
complete -c qkv -n '__qkv_command eval' -l model -x -k -a '(__qkv_files .safetensors)' -d 'a folder with config.json, a .safetensors file in one, or a name in the local Hugging Face cache'
complete -c qkv -n '__qkv_command eval' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command eval' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command eval' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command eval' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command eval' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command eval' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command eval' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command info' -l strict -d 'audit a .safetensors file'
complete -c qkv -n '__qkv_command info' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command info' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command info' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command info' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command info' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command info' -k -a '(__qkv_files .safetensors .npy)'
complete -c qkv -n '__qkv_command info' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command bench' -l rounds -x -d 'rounds of each case'
complete -c qkv -n '__qkv_command bench' -l list -d 'names of the cases, without measuring'
complete -c qkv -n '__qkv_command bench' -l json -x -k -a '(__qkv_files .json)' -d 'where the results go as one JSON object'
complete -c qkv -n '__qkv_command bench' -l compare -x -k -a '(__qkv_files .json)' -d 'results of --json from before'
complete -c qkv -n '__qkv_command bench' -l from -x -k -a '(__qkv_files .json)' -d 'with --compare'
complete -c qkv -n '__qkv_command bench' -l fail-above -x -d 'with --compare'
complete -c qkv -n '__qkv_command bench' -l threads -x -d 'threads'
complete -c qkv -n '__qkv_command bench' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'instruction set'
complete -c qkv -n '__qkv_command bench' -a 'forward causal masks gqa decode varlen backward small'
complete -c qkv -n '__qkv_command bench' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command check' -l cases -x -d 'cases of parts, whole calls and decode'
complete -c qkv -n '__qkv_command check' -l pairs -x -d 'sizes of each pair of features, in each column'
complete -c qkv -n '__qkv_command check' -l table -d 'also every pair on a line'
complete -c qkv -n '__qkv_command check' -l seed -x -d 'seed of the first case'
complete -c qkv -n '__qkv_command check' -l isa -x -a 'scalar avx2 avx512 avx512bf16 neon' -d 'only this instruction set, beside scalar code'
complete -c qkv -n '__qkv_command check' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command check' -l quiet -d 'no remarks and no progress on standard error'
complete -c qkv -n '__qkv_command check' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command tokenize' -l pair -x -d 'a second text'
complete -c qkv -n '__qkv_command tokenize' -l model -x -k -a '(__qkv_files .safetensors)' -d 'a folder with config.json, a .safetensors file in one, or a name in the local Hugging Face cache'
complete -c qkv -n '__qkv_command tokenize' -l check-finite -d 'warn of NaN and infinity among the weights'
complete -c qkv -n '__qkv_command tokenize' -l json -d 'one JSON object on standard output'
complete -c qkv -n '__qkv_command tokenize' -l jsonl -d 'read a JSON string, or a pair of them, from each line of standard input and write a JSON object for each'
complete -c qkv -n '__qkv_command tokenize' -s v -d 'more detail on standard error'
complete -c qkv -n '__qkv_command tokenize' -l help -d 'options and what they mean'

complete -c qkv -n '__qkv_command help' -l format -x -a 'text scdoc bash zsh fish' -d 'how it is written'
complete -c qkv -n '__qkv_command help' -a '(__qkv_commands)'
complete -c qkv -n '__qkv_command help' -l help -d 'options and what they mean'
