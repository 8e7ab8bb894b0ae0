# AArch64: everything cross-compiled by gcc, warnings are errors; run under qemu-user: NEON has the bits of scalar code, and the
# tool writes the bytes that it writes here. The kernels by clang, too. No spills; binaries with BTI, PAC and what else hardens
# them. (Left out are tests that take minutes, and those that fork while threads run: qemu aborts.)
. tools/deep/lib.sh
tools/arm64_root.sh build/arm64
./dev build release
fast='^(golden_(attention|bert|tokenizer)|prop_(attention|store_mutations)'
fast="$fast|unit_(attention_(check|unseen)|attn_desc|core_(cpu|memory|rng|status)|ctx|gemm|inspect|layer_(kernels|rows)|run|store_.*|train_parts|vocab))\$"
preset_tests aarch64 -R "$fast"
build=build/aarch64
emulated="qemu-aarch64 -L build/arm64/root"
folder=build/deep/arm64
rm -rf "$folder"
mkdir -p "$folder"
. tools/deep/outputs.sh

$emulated "$build/qkv" info | grep "used: neon"
case_ok "neon is what AArch64 takes"
outputs native build/release/qkv
for isa in scalar neon; do
    (export QKV_ISA=$isa && outputs "$isa" $emulated "$build/qkv")
    same_as_native "$isa"
done
# as_here N BUILD: N cases of each kind; all results have the digest that they have here
as_here() {
    build/release/qkv-check --isa scalar --cases "$1" --pairs 0 | tail -n 1 >"$folder/native.digest"
    check_kernels $emulated "$2/qkv-check" --cases "$1" --pairs 0
    tail -n 1 "$check_log" | cmp - "$folder/native.digest"
    case_ok "$2: $(cat "$folder/native.digest"), here, too"
}
as_here 40 "$build"
cmake --preset aarch64 -B build/aarch64-clang -DCMAKE_C_COMPILER=clang -DQKV_TESTS=ON
cmake --build build/aarch64-clang --target qkv-check
as_here 10 build/aarch64-clang

sh tools/check_hardening.sh "$build"
case_ok "the binaries are hardened"
for compiled in "$build" build/aarch64-clang; do
    sh tools/check_spills.sh "$compiled"
    case_ok "$compiled: no spills"
done
echo "$n_cases cases"
