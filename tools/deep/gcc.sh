# Everything compiled by gcc at -O2, warnings are errors, assertions on.
. tools/deep/lib.sh
preset_tests dev
echo "$n_cases cases"
