# qkv attend --mpi by mpirun: the files of one process for any number of ranks, more than there are rows, too; what is
# refused is the same error on all ranks. Usage: attend.sh QKV FOLDER MPIEXEC FLAGS...
set -u
qkv=$1 folder=$2
shift 2
. "${0%/*}/lib.sh"
# numbers SEED ROWS COLUMNS: a table, of which attention on itself makes an .npy
numbers() {
    table "$1" "$2" "$3"
    "$qkv" attend --q "$folder/t.csv" --k "$folder/t.csv" --v "$folder/t.csv" -o "$folder/$4.npy" --quiet || failed=1
}
numbers 1 700 32 long
numbers 2 300 32 keys
numbers 3 3 32 three
one() { "$qkv" attend "$@" -o "$folder/one.npy" --lse "$folder/one_lse.npy" --quiet 2>"$folder/err"; }
# same QUERIES KEYS OPTION...: for several numbers of ranks
mpirun=$*
same() {
    q=$folder/$1.npy k=$folder/$2.npy
    shift 2
    one --q "$q" --k "$k" --v "$k" "$@" || failed=1
    for ranks in 1 2 3 5; do
        rm -f "$folder/o.npy" "$folder/lse.npy"
        $mpirun $ranks "$qkv" attend --mpi --q "$q" --k "$k" --v "$k" "$@" -o "$folder/o.npy" --lse "$folder/lse.npy" \
            --quiet >"$folder/out" 2>"$folder/err"
        check "$ranks ranks, $*: exit $?" is $? -eq 0
        check "$ranks ranks, $*: another output" cmp -s "$folder/one.npy" "$folder/o.npy"
        check "$ranks ranks, $*: another lse" cmp -s "$folder/one_lse.npy" "$folder/lse.npy"
    done
}
same long long --causal top-left
same long keys --causal bottom-right --window 200,-1
same keys long
same three three --causal 0 # N < P
same three long --dtype bf16 --scale 0.3

refused() { # refused MESSAGE RANKS ARGUMENT...
    message=$1 ranks=$2
    shift 2
    rm -f "$folder/none.npy"
    $mpirun $ranks "$qkv" attend --mpi "$@" -o "$folder/none.npy" >"$folder/out" 2>"$folder/err"
    check "$message: exit 0" is $? -ne 0
    check "$message: not said once" is "$(grep -c "$message" "$folder/err")" -eq 1
    check "$message: a file" test ! -e "$folder/none.npy"
}
numbers 4 700 16 narrow
refused '^qkv: --q has shape \[700,16\], --k has \[700,32\]: the head sizes differ$' 3 --q "$folder/narrow.npy" --k "$folder/long.npy" \
    --v "$folder/long.npy"
refused '^qkv: .*/t.csv: is not a .npy file' 2 --q "$folder/t.csv" --k "$folder/long.npy" --v "$folder/long.npy"
refused '^qkv attend: --mpi together with --stats$' 1 --q x.npy --k x.npy --v x.npy --stats "$folder/s.json"

# What each scheme would cost, without results and with them.
$mpirun 3 "$qkv" attend --mpi --explain --q "$folder/long.npy" --k "$folder/long.npy" --v "$folder/long.npy" --causal 0 \
    >"$folder/out" 2>"$folder/err"
check "--explain: exit $?" is $? -eq 0
check "--explain: rates" is "$(grep -c '^3 ranks, measured: [0-9.e+]* operations/s, [0-9.e+]* bytes/s, [0-9.e-]* s a message$' "$folder/out")" -eq 1
check "--explain: schemes that can be" is \
    "$(grep -Ec '^  (ordered|ring)  +[0-9.e-]+ s: computing takes [0-9.e-]+ s, [0-9.]+ times the mean' "$folder/out")" -eq 2
check "--explain: schemes that cannot" is "$(grep -Ec '^  (zigzag|ulysses)  +not possible: ' "$folder/out")" -eq 2
check "--explain: the choice" is "$(grep -c '^  auto      ordered: ' "$folder/out")" -eq 1
check "--explain: more is printed" is "$(wc -l <"$folder/out")" -eq 6

# A file of another shape that only one rank sees: the same error on all, said once, and no file.
mkdir "$folder/a" "$folder/b"
cp "$folder/long.npy" "$folder/a/q.npy"
cp "$folder/narrow.npy" "$folder/b/q.npy"
where='cd "$0/$(test "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" -eq 1 && echo b || echo a)" && exec "$@"'
$mpirun 3 sh -c "$where" "$folder" "$qkv" attend --mpi --q q.npy --k "$folder/long.npy" --v "$folder/long.npy" \
    -o "$folder/none.npy" >"$folder/out" 2>"$folder/err"
check "one rank: exit 0" is $? -ne 0
check "one rank: not said once" is "$(grep -c 'the head sizes differ (rank 1)$' "$folder/err")" -eq 1
check "one rank: a file" test ! -e "$folder/none.npy"

# Numbers of another type that only one rank has, of the same shape: integers, and halves.
one --q "$folder/long.npy" --k "$folder/long.npy" --v "$folder/long.npy" --dtype f16 || failed=1
cp "$folder/one.npy" "$folder/halves.npy"
sed 's/<f4/<i4/' "$folder/long.npy" >"$folder/whole.npy"
for array in q k v; do
    for type in I32 F16; do
        cp "$folder/long.npy" "$folder/a/$array.npy"
        case $type in I32) cp "$folder/whole.npy" "$folder/b/$array.npy" ;; *) cp "$folder/halves.npy" "$folder/b/$array.npy" ;; esac
        q=$folder/long.npy k=$folder/long.npy v=$folder/long.npy
        eval "$array=$array.npy"
        $mpirun 3 sh -c "$where" "$folder" "$qkv" attend --mpi --q "$q" --k "$k" --v "$v" -o "$folder/none.npy" \
            >"$folder/out" 2>"$folder/err"
        check "--$array of $type: exit 0" is $? -ne 0
        check "--$array of $type: not said once" is \
            "$(grep -c "^qkv: rank 1 has another type of numbers than rank 0: .*--$array $type.*, not .*--$array F32" "$folder/err")" -eq 1
        check "--$array of $type: a file" test ! -e "$folder/none.npy"
    done
done

# Segments of queries: each rank reads those of all, and computes with those of its rows.
for n in 350 349; do
    case $n in 350) to=$folder/a/s.csv ;; *) to=$folder/b/s.csv ;; esac
    awk -v n=$n 'BEGIN { for (i = 0; i < 700; i++) printf "%s%d", i ? "," : "", (i >= n); print "" }' >"$to"
done
$mpirun 3 sh -c "$where" "$folder" "$qkv" attend --mpi --q "$folder/long.npy" --k "$folder/long.npy" --v "$folder/long.npy" \
    --segments "$folder/a/s.csv" --segments-q s.csv -o "$folder/none.npy" >"$folder/out" 2>"$folder/err"
check "--segments-q: exit 0" is $? -ne 0
check "--segments-q: not said once" is \
    "$(grep -c '^qkv: rank 1 has another file of --segments-q than rank 0: s.csv' "$folder/err")" -eq 1
check "--segments-q: a file" test ! -e "$folder/none.npy"

# Files of another length that only one rank sees, of queries or of keys: rows would be missing, or come twice.
for array in q k; do
    for length in 3 300; do
        cp "$folder/long.npy" "$folder/a/$array.npy"
        case $length in 3) cp "$folder/three.npy" "$folder/b/$array.npy" ;; *) cp "$folder/keys.npy" "$folder/b/$array.npy" ;; esac
        case $array in q) other="--k $folder/long.npy" ;; *) other="--q $folder/long.npy" ;; esac
        value=$folder/long.npy
        [ $array = q ] || { cp "$folder/a/k.npy" "$folder/a/v.npy" && cp "$folder/b/k.npy" "$folder/b/v.npy" && value=v.npy; }
        $mpirun 3 sh -c "$where" "$folder" "$qkv" attend --mpi --$array $array.npy $other --v $value -o "$folder/none.npy" \
            >"$folder/out" 2>"$folder/err"
        check "--$array of $length rows: exit 0" is $? -ne 0
        check "--$array of $length rows: not said once" is \
            "$(grep -c "^qkv: rank 1 has another shape than rank 0: .*--$array \[$length,32\].*, not .*--$array \[700,32\]" "$folder/err")" -eq 1
        check "--$array of $length rows: a file" test ! -e "$folder/none.npy"
    done
done
exit $failed
