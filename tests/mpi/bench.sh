# qkv bench --mpi by mpirun: every case, with numbers that belong together; bytes by the formulas of docs/scale.md.
# Usage: bench.sh QKV FOLDER MPIEXEC FLAGS...
set -u
qkv=$1 folder=$2
shift 2
. "${0%/*}/lib.sh"
"$@" 2 "$qkv" bench --mpi --rounds 1 --len 1024 --json "$folder/x.json" >"$folder/out" 2>"$folder/err"
check "exit $?" is $? -eq 0
check "not 14 cases" is "$(grep -c ' f32 H.* L1024 ' "$folder/out")" -eq 14
check "no head" grep -q '^2 ranks of 1 thread; medians of 1 rounds$' "$folder/out"
# a rank sends 512 keys and values of 64 floats; backward also 512 times q, d_o, lse and delta
sent() { check "$1: not $2 bytes" grep -q "{\"case\":\"$1\"[^}]*\"bytes_sent\":$2," "$folder/x.json"; }
for scheme in ordered ring zigzag; do sent "forward $scheme f32 H1 L1024 D64" $((512 * 128 * 4)); done
sent 'backward ordered f32 H1 L1024 D64' $((512 * 128 * 4 + 512 * (128 * 4 + 8)))
# columns: queries and their lse
sent 'columns ordered f32 H1 L1024 D64' $((512 * (64 * 4 + 4)))
# of two heads a rank sends one, q, k and v, and o and lse of the other rank's queries
sent 'forward ulysses f32 H2 L1024 D64' $((512 * 3 * 64 * 4 + 512 * (64 * 4 + 4)))
sent 'backward ordered f32 H1 L1024 D64 causal' $((512 * 128 * 4 + 512 * (128 * 4 + 8)))
for field in seconds transfer_seconds waiting_seconds; do
    check "no $field" is "$(grep -o "\"$field\":[0-9.e+-]*[,}]" "$folder/x.json" | wc -l)" -eq 14
done
"$@" 3 "$qkv" bench --mpi --rounds 1 --len 999 zigzag >"$folder/out" 2>"$folder/err"
check "zigzag of 3: exit $?" is $? -eq 0
check "zigzag of 3: not 2 cases" is "$(grep -c 'zigzag f32 H1 L996 ' "$folder/out")" -eq 2
"$@" 2 "$qkv" bench --mpi sideways >"$folder/out" 2>"$folder/err"
check "sideways: exit 0" is $? -ne 0
check "sideways: not said once" is "$(grep -c "^qkv bench: no case of --mpi has the word 'sideways'$" "$folder/err")" -eq 1
cp "$qkv" "$folder/qkv" # alone, as where there is no MPI
"$folder/qkv" bench --mpi >"$folder/out" 2>"$folder/err"
check "without MPI: exit 0" is $? -ne 0
check "without MPI: not said" grep -q '^qkv: --mpi: this qkv was built without MPI: qkv-mpi is not beside it$' "$folder/err"
exit $failed
