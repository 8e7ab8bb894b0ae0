# cost: 0.5
# Completions in every shell, and the manual pages as man and mandoc read them; `dev test` asks only those that are there.
. tools/deep/lib.sh
./dev build release
for shell in "bash qkv.bash" "zsh -f _qkv" "fish --no-config qkv.fish"; do
    set -- $shell
    name=$1 script=$(echo "$shell" | sed 's/.* //')
    [ $# -eq 2 ] && flag='' || flag=$2
    "$name" $flag "tests/cli/complete.$name" "$PWD/build/release/qkv" "$PWD/build/release/completions/$script" \
        "$PWD/build/deep/complete_$name" | tee build/deep/shells.cases
    n_cases=$((n_cases + $(sed -n 's/ checks, 0 failures$//p' build/deep/shells.cases)))
done
command -v man
command -v mandoc
sh tests/cli/manual_pages.sh scdoc build/release/man build/deep/manual_pages | tee build/deep/shells.cases
n_cases=$((n_cases + $(sed -n 's/ pages, 0 failures$//p' build/deep/shells.cases)))
echo "$n_cases cases"
