# Everything compiled by gcc at -O2, warnings are errors, assertions on; the tests of what computes.
. tools/deep/lib.sh
preset_tests dev -R "$computing"
echo "$n_cases cases"
