# What is committed is what the table of commands says: completions whole, of manual pages the parts that it decides.
# UPDATE=1 writes them anew.
. ./lib.sh
cli=$here/../../cli

# is_committed FILE: standard output was that of the file
is_committed() {
    [ -z "${UPDATE:-}" ] || cp "$folder/out" "$1"
    check "$1 is not what '$said' says (UPDATE=1 sh test_formats.sh QKV FOLDER writes it anew)" cmp -s "$1" "$folder/out"
}
for pair in bash:qkv.bash zsh:_qkv fish:qkv.fish; do
    run help --format "${pair%%:*}"
    code 0
    no_err
    is_committed "$cli/completions/${pair#*:}"
done
check "an option that takes a file or a name suggests none" sh -c "! grep -E ':(F|FILE|NAME|DIR[^:]*): ' '$cli/completions/_qkv'"

usage help "a completion is for all commands, not for 'look'" help look --format bash
usage help "--format: 'pdf' is not one of text|scdoc|bash|zsh|fish" help --format pdf
run help look --format text
code 0
out_is help_look
finish
