# qkv look --q --k --mpi by mpirun: the bytes of one process for any number of ranks, of pages, pictures, tables, charts
# and what is printed; a file that only one rank has so is the same error on all. Usage: look.sh QKV FOLDER MPIEXEC FLAGS...
set -u
qkv=$1 folder=$2
shift 2
. "${0%/*}/lib.sh"
mpirun=$*
# numbers SEED ROWS COLUMNS NAME [HEADS]: an .npy, whose rows are those of HEADS heads
numbers() {
    table "$1" "$2" "$3"
    "$qkv" attend --q "$folder/t.csv" --k "$folder/t.csv" --v "$folder/t.csv" --scale 20 -o "$folder/$4.npy" --quiet || failed=1
    test "${5:-1}" -gt 1 || return 0
    { # the same bytes in another shape
        printf '\223NUMPY\001\000\166\000'
        printf "%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': ($5, $(($2 / $5)), $3), }"
        tail -c $(($2 * $3 * 4)) "$folder/$4.npy"
    } >"$folder/heads.npy" && mv "$folder/heads.npy" "$folder/$4.npy"
}
numbers 1 1400 16 q 2
numbers 2 700 16 k
numbers 3 2201 8 long
numbers 4 3 8 three

# same RANKS ENDING ARGUMENT...: a file; ENDING -: what is printed
same() {
    ranks=$1 ending=$2
    shift 2
    case $ending in
    -) "$qkv" look "$@" >"$folder/one" 2>"$folder/err" || failed=1 ;;
    *) "$qkv" look "$@" -o "$folder/one.$ending" --quiet 2>"$folder/err" || failed=1 ;;
    esac
    for n in $ranks; do
        rm -f "$folder/of.$ending"
        case $ending in
        -) $mpirun "$n" "$qkv" look --mpi "$@" >"$folder/of" 2>"$folder/err" </dev/null ;;
        *) $mpirun "$n" "$qkv" look --mpi "$@" -o "$folder/of.$ending" --quiet >"$folder/out" 2>"$folder/err" </dev/null ;;
        esac
        check "$n ranks, $ending, $*: exit $?" is $? -eq 0
        case $ending in
        -) check "$n ranks, $*: prints other bytes" cmp "$folder/one" "$folder/of" ;;
        *) check "$n ranks, $*: another .$ending" cmp "$folder/one.$ending" "$folder/of.$ending" ;;
        esac
    done
}
two="--q $folder/q.npy --k $folder/k.npy"
long="--q $folder/long.npy --k $folder/long.npy"
same '1 2 3 5' json $two --causal top-left
same '2 3' json $two --causal bottom-right --window 100,20
same 2 html $two --causal 0
same 3 png $two --causal 0
same 2 csv $two --head 1
same 3 - $two --head 1 --causal 0
same 2 - $two --json
for kind in queries received offsets; do same 3 csv $two --head 1 --causal 0 --plot $kind; done
same '2 3' html $long --causal 0 # pooled, and what keys receive
same '2 5' npy $long --pool mass --causal 0
same 3 npy $long --pool peak --window 900,900
same 2 png $long
same 3 - $long --causal 0
same 3 json $long
same 5 json --q "$folder/three.npy" --k "$folder/long.npy" # fewer queries than ranks
same 5 json --q "$folder/long.npy" --k "$folder/three.npy"

refused() { # refused MESSAGE RANKS ARGUMENT...
    message=$1 ranks=$2
    shift 2
    rm -f "$folder/none.json"
    $mpirun "$ranks" "$qkv" look --mpi "$@" -o "$folder/none.json" >"$folder/out" 2>"$folder/err"
    check "$message: exit 0" is $? -ne 0
    check "$message: not said once" is "$(grep -c "$message" "$folder/err")" -eq 1
    check "$message: a file" test ! -e "$folder/none.json"
}
refused 'the head sizes differ$' 3 --q "$folder/q.npy" --k "$folder/long.npy"
refused '^qkv: --q .*/t.csv: is not a .npy file' 2 --q "$folder/t.csv" --k "$folder/k.npy"
refused '^qkv look: --mpi goes with --q and --k$' 1 "a text"
$mpirun 2 "$qkv" look --mpi $two -o "$folder/none/x.json" >"$folder/out" 2>"$folder/err"
check "no folder: exit 0" is $? -ne 0
check "no folder: not said once" is "$(grep -c '^qkv: .*none/x.json: ' "$folder/err")" -eq 1

# Files that only rank 1 has so.
mkdir "$folder/a" "$folder/b"
cp "$folder/k.npy" "$folder/a/k.npy"
cp "$folder/long.npy" "$folder/b/k.npy"
where='cd "$0/$(test "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" -eq 1 && echo b || echo a)" && exec "$@"'
one_rank() { # one_rank MESSAGE ARGUMENT...
    message=$1
    shift
    $mpirun 3 sh -c "$where" "$folder" "$qkv" look --mpi "$@" -o "$folder/none.json" >"$folder/out" 2>"$folder/err"
    check "$message: exit 0" is $? -ne 0
    check "$message: not said once" is "$(grep -c "$message" "$folder/err")" -eq 1
    check "$message: a file" test ! -e "$folder/none.json"
}
one_rank ': rank 1 reads another shape than rank 0' --q "$folder/q.npy" --k k.npy
sed 's/<f4/<i4/' "$folder/k.npy" >"$folder/b/k.npy"
one_rank ': rank 1 reads numbers of type I32, and rank 0 of F32' --q "$folder/q.npy" --k k.npy
printf 'a\nb\n' >"$folder/b/names"
seq 700 >"$folder/a/names"
one_rank 'names.*(rank 1)$' --q "$folder/q.npy" --k "$folder/k.npy" --tokens names
{ echo 0; seq 2 700; } >"$folder/b/names"
one_rank '^qkv: rank 1 has another list of tokens than rank 0: names' --q "$folder/q.npy" --k "$folder/k.npy" --tokens names
exit $failed
