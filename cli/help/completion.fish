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
@{summaries}

function __qkv_commands
@{names}
end
@{commands}
