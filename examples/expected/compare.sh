# compare.sh EXPECTED COMMAND...: the command ends with 0, says nothing on standard error, and prints what is in EXPECTED.
# UPDATE=1 writes EXPECTED.
set -u
expected=$1
shift
out=$(mktemp) err=$(mktemp) suppressions=$(mktemp)
trap 'rm -f "$out" "$err" "$suppressions"' EXIT
# Under the sanitizers: what fontconfig keeps for the life of a process is no leak of ours.
echo 'leak:libfontconfig' >"$suppressions"
export LSAN_OPTIONS="suppressions=$suppressions:print_suppressions=0"
"$@" >"$out" 2>"$err" || { echo "exit code $?"; cat "$out" "$err"; exit 1; }
[ ! -s "$err" ] || { cat "$err"; exit 1; }
[ -z "${UPDATE:-}" ] || cp "$out" "$expected"
diff "$expected" "$out"
