# cost: 4
# AArch64, cross-compiled by gcc and run under qemu-user: the kernels of NEON have the bits of scalar code, and the tool writes the
# bytes that it writes here.
. tools/deep/lib.sh
. tools/deep/outputs.sh
tools/arm64_root.sh build/arm64
./dev build release
built aarch64 qkv-tool qkv-check
$arm64 build/aarch64/qkv info | grep "used: neon"
case_ok "neon is what AArch64 takes"
outputs native build/release/qkv
for isa in scalar neon; do
    (export QKV_ISA=$isa && outputs "$isa" $arm64 build/aarch64/qkv)
    same_as_native "$isa"
done
digest_as_here 40 build/aarch64
echo "$n_cases cases"
