# cost: 6
# Open MPI on more ranks than --all starts, and the recipe of models/default over ranks: tests labelled step_mpi.
. tools/deep/lib.sh
./dev build release
run_tests release -L "^step_mpi\$"
echo "$n_cases cases"
