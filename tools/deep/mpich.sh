# cost: 3.5
# The other MPI: libqkvmpi, the tool and qkv-mpi built with MPICH, and the tests that start ranks. Its ranks
# wait without giving way, so there are few of them. (Those of Open MPI run with all other tests.)
. tools/deep/lib.sh
build=build/mpich
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DQKV_TESTS=ON -DMPI_C_COMPILER=mpicc.mpich \
    -DMPIEXEC_EXECUTABLE="$(command -v mpiexec.mpich)"
cmake --build $build --target pace bounded mpi_ranks qkv-tool qkv-mpi
ldd $build/mpi_ranks | grep -q libmpich
ctest --test-dir $build --no-tests=error --output-on-failure -R '^mpi_(ranks_[123]|train)$' >build/deep/mpich.cases ||
    { cat build/deep/mpich.cases && exit 1; }
n_cases=$(grep -c ' Passed ' build/deep/mpich.cases)
echo "$n_cases cases"
