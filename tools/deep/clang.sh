# cost: 5
# Everything compiled by clang, warnings are errors: the quick tests of what computes, so the same bits; no spills, no instructions of
# later processors outside their objects, no new symbols, binaries as hard as gcc's.
. tools/deep/lib.sh
preset_tests clang -R "$computing" -LE long
for check in spills baseline symbols hardening; do
    sh "tools/check_$check.sh" build/clang
    n_cases=$((n_cases + 1))
done
echo "$n_cases cases"
