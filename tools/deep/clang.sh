# Everything compiled by clang, warnings are errors: the tests of what computes, so the same bits; no spills, no instructions of
# later processors outside their objects, no new symbols.
. tools/deep/lib.sh
preset_tests clang -R "$computing"
for check in spills baseline symbols; do
    sh "tools/check_$check.sh" build/clang
    n_cases=$((n_cases + 1))
done
echo "$n_cases cases"
