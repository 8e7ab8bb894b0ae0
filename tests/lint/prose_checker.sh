#!/bin/sh
# prose_checker.sh CHECKER: pages of a few lines each, which the checker must refuse or accept.
set -eu
checker=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
n_wrong=0
long=$(printf 'word %.0s' $(seq 30))

# expect VERDICT PAGE: the verdict (refused or accepted) on a page of these lines, beside a page other.md with a heading "Its name"
expect() {
    printf '# Other\n\n## Its name\n' >"$folder/other.md"
    printf '%b\n' "$2" >"$folder/page.md"
    verdict=accepted
    python3 "$checker" "$folder/page.md" >/dev/null 2>&1 || verdict=refused
    [ "$verdict" = "$1" ] || {
        echo "this page was $verdict:" >&2
        cat "$folder/page.md" >&2
        n_wrong=$((n_wrong + 1))
    }
}

expect accepted 'A line.'
expect refused "$long"
expect accepted "    $long"
expect accepted "| $long |"
expect accepted "\`\`\`\n$long\n\`\`\`"
expect refused '```\ncode that does not end'
expect accepted 'A sentence of one two three four five six seven eight nine ten eleven twelve words\nthirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty more and nobody counts.'
expect accepted '[other](other.md), [its name](other.md#its-name), [a site](https://example.org/x#y)'
expect refused '[none](none.md)'
expect refused '[none](other.md#none)'
expect accepted '# This page\n[here](#this-page)'
expect refused '# This page\n[here](#that-page)'
expect accepted '`tools/check_prose.py`, `tools/check_*.py`, `tests/`, `build/release/qkv`'
expect refused '`tools/check_nothing.py`'
expect accepted '`test_pipes.sh`, `files/test_audit_hostile.c`, `test_SUBJECT.c`'
expect refused '`test_nothing.sh`'
[ "$n_wrong" -eq 0 ]
