# cost: 4
# The tests of the release build that take longest: all types of attention, schemes over ranks within one process, kills at any
# moment, the kernels by the tool. Tests labelled step_long.
. tools/deep/lib.sh
./dev build release
run_tests release -L "^step_long\$"
echo "$n_cases cases"
