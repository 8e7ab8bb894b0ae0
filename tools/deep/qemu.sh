# cost: 4
# Other processors, by emulation: one without AVX, which gets scalar code, and one with AVX2. The same bytes as natively. (What ends
# its arrays at guard pages runs on the first only: the emulated vmaskmovps touches lanes that are masked off.)
. tools/deep/lib.sh
./dev build release
build=build/release
. tools/deep/outputs.sh

(export QKV_ISA=scalar && outputs native "$build/qkv")
for pair in Nehalem:scalar "Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm:avx2"; do
    cpu=${pair%:*} isa=${pair#*:}
    emulated="qemu-x86_64 -cpu $cpu"
    $emulated "$build/qkv" info | grep "used: $isa"
    case_ok "$cpu takes $isa"
    outputs "$isa" $emulated "$build/qkv"
    same_as_native "$isa"
    for test in golden_attention golden_bert; do
        (cd $build && $emulated "./$test")
        case_ok "$cpu: $test"
    done
done
check_kernels qemu-x86_64 -cpu Nehalem $build/qkv-check --cases 40 --pairs 0
for test in prop_attention unit_gemm unit_layer_kernels; do
    (cd $build && qemu-x86_64 -cpu Nehalem "./$test")
    case_ok "Nehalem: $test"
done
echo "$n_cases cases"
