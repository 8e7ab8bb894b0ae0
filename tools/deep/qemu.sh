# Other processors, by emulation: one without AVX, which gets scalar code, and one with AVX2. The same bytes as natively. (What ends
# its arrays at guard pages runs on the first only: the emulated vmaskmovps touches lanes that are masked off.)
. tools/deep/lib.sh
./dev build release
build=build/release
data=tests/cli/data
folder=build/deep/qemu
rm -rf "$folder"
mkdir -p "$folder"
text="I was watching the [MASK] when it opened."
gradients="--grad-out $data/grad.npy --causal bottom-right"
arrays() { echo "--q $data/q.npy --k $data/k.npy --v $data/v.npy -o $1.o.npy --lse $1.lse.npy --dq $1.dq.npy --dk $1.dk.npy --dv $1.dv.npy"; }
case_ok() {
    echo "ok: $*"
    n_cases=$((n_cases + 1))
}

# outputs PREFIX RUNNER…: the files to compare
outputs() {
    to=$folder/$1
    shift
    "$@" "$build/qkv" look "$text" >"$to.look"
    "$@" "$build/qkv" look --json "$text" >"$to.json"
    "$@" "$build/qkv" attend $(arrays "$to") $gradients
    "$@" "$build/qkv" attend --threads 2 --softcap 3 $(arrays "$to.capped") --grad-out $data/grad.npy
}
same_as_native() {
    for file in "$folder"/native.*; do
        cmp "$file" "$folder/$1${file#"$folder/native"}"
        case_ok "$1: ${file##*/} is the native one"
    done
}

(export QKV_ISA=scalar && outputs native)
for pair in Nehalem:scalar "Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm:avx2"; do
    cpu=${pair%:*} isa=${pair#*:}
    emulated="qemu-x86_64 -cpu $cpu"
    $emulated "$build/qkv" info | grep "used: $isa"
    case_ok "$cpu takes $isa"
    outputs "$isa" $emulated
    same_as_native "$isa"
    for test in golden_attention golden_bert prop_attention; do
        (cd $build && $emulated "./$test")
        case_ok "$cpu: $test"
    done
done
qemu-x86_64 -cpu Nehalem $build/qkv-check --cases 40
n_cases=$((n_cases + 80))
for test in unit_gemm unit_layer_kernels; do
    (cd $build && qemu-x86_64 -cpu Nehalem "./$test")
    case_ok "Nehalem: $test"
done
echo "$n_cases cases"
