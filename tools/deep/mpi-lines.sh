# cost: 2.5
# Open MPI on five ranks, and commands that share lines over ranks: tests labelled step_mpi-lines.
. tools/deep/lib.sh
./dev build release
run_tests release -L "^step_mpi-lines\$"
echo "$n_cases cases"
