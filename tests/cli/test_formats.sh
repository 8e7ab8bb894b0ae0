# What the tool writes for shells: complete.bash, complete.fish and complete.zsh ask the shells themselves.
. ./lib.sh

for shell in bash fish zsh; do
    run help --format $shell
    code 0
    no_err
    for command in $("$qkv" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
        check "it has no '$command'" grep -qw -e "$command" "$folder/out"
    done
done
check "an option that takes a file or a name suggests none" sh -c "! grep -E ':(F|FILE|NAME|DIR[^:]*): ' '$folder/out'"

usage help "a completion is for all commands, not for 'look'" help look --format bash
usage help "--format: 'pdf' is not one of text|scdoc|bash|zsh|fish" help --format pdf
run help look --format text
code 0
out_is help_look
finish
