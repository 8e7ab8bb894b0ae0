# cost: 2.5
# AArch64, the kernels by clang: the bits that this processor computes; no spills.
. tools/deep/lib.sh
. tools/deep/outputs.sh
tools/arm64_root.sh build/arm64
./dev build release
cmake --preset aarch64 -B build/aarch64-clang -DCMAKE_C_COMPILER=clang -DQKV_TESTS=ON
cmake --build build/aarch64-clang --target qkv-check
digest_as_here 10 build/aarch64-clang
sh tools/check_spills.sh build/aarch64-clang
case_ok "no spills"
echo "$n_cases cases"
