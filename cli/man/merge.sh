#!/bin/sh
# merge.sh PAGE TOOL...: a manual page on standard output. PAGE is written by hand; its title, and the sections of which it has only
# the heading, are what `TOOL... help --format scdoc` says.
set -eu
page=$1
shift
name=$(basename "$page" .scd)
case $name in
*.3)
    printf '%s(3) "%s" "Manual of qkv"\n\n' "${name%.3}" "$("$@" --version)"
    cat "$page"
    exit
    ;;
qkv.1) made=$("$@" help --format scdoc) ;;
*)
    command=${name#qkv-}
    made=$("$@" help --format scdoc "${command%.1}")
    ;;
esac
printf '%s\n' "$made" | awk '
    function fail(what) { print FILENAME ": " what >"/dev/stderr"; failed = 1 }
    NR == 1 { print $0 "\n"; next }
    NR == FNR { if (/^# /) name = $0; if (name) made[name] = made[name] $0 "\n"; next }
    /^# / { own = !($0 in made); if (!own) { sub(/\n+$/, "", made[$0]); print made[$0] "\n"; delete made[$0]; next } }
    own { print; next }
    NF { fail("a section that the tool writes has text: " $0) }
    END { for (name in made) fail("without the heading " name); exit failed }' - "$page"
