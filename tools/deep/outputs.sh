# What the tool computes here, file by file, to be compared with what it computes on other processors (sourced).
data=tests/cli/data
arm64="qemu-aarch64 -L build/arm64/root"
folder=$(mktemp -d build/deep/outputs.XXXXXX)
trap 'rm -rf "$folder" "$check_log"' EXIT
text="I was watching the [MASK] when it opened."
gradients="--grad-out $data/grad.npy --causal bottom-right"
arrays() { echo "--q $data/q.npy --k $data/k.npy --v $data/v.npy -o $1.o.npy --lse $1.lse.npy --dq $1.dq.npy --dk $1.dk.npy --dv $1.dv.npy"; }

# outputs PREFIX COMMAND…: the files of PREFIX, made by the tool that the command runs
outputs() {
    to=$folder/$1
    shift
    "$@" look "$text" >"$to.look"
    "$@" look --json "$text" >"$to.json"
    "$@" attend $(arrays "$to") $gradients
    "$@" attend --threads 2 --softcap 3 $(arrays "$to.capped") --grad-out $data/grad.npy
}
same_as_native() {
    for file in "$folder"/native.*; do
        cmp "$file" "$folder/$1${file#"$folder/native"}"
        case_ok "$1: ${file##*/} is the native one"
    done
}

# digest_as_here N BUILD: N cases of each kind of the kernels of a build for AArch64; all results have the digest that they have here
digest_as_here() {
    build/release/qkv-check --isa scalar --cases "$1" --pairs 0 | tail -n 1 >"$folder/native.digest"
    check_kernels $arm64 "$2/qkv-check" --cases "$1" --pairs 0
    tail -n 1 "$check_log" | cmp - "$folder/native.digest"
    case_ok "$2: $(cat "$folder/native.digest"), here, too"
}
