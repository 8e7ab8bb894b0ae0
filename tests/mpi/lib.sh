# Shared by the tests of the tool under mpirun, which source it with $folder set: an empty folder, and how it is checked.
rm -rf "$folder"
mkdir -p "$folder"
export QKV_NUM_THREADS=1
# Where ranks of Open MPI share memory: what a killed one leaves there goes with the test (tests/limits/temporary.h).
export OMPI_MCA_btl_vader_backing_directory="${QKV_TEST_SHM:-/dev/shm}"
failed=0
check() { # check WHAT COMMAND...
    what=$1
    shift
    "$@" || { echo "FAILED: $what" && cat "$folder/err" "$folder/out" && failed=1; }
}
is() { test "$1" "$2" "$3"; }
# until_of JOB COMMAND...: until the command is true, or the job in the background has ended
until_of() {
    job=$1
    shift
    until "$@" || ! kill -0 "$job" 2>/dev/null; do sleep 0.05; done
}
# has_computed FILE N TICKS: FILE has N lines, process ids, the last of a process that has computed for so many ticks of CPU
has_computed() {
    test "$(cat "$1" 2>/dev/null | wc -l)" -ge "$2" || return 1
    read -r stat 2>/dev/null <"/proc/$(tail -n 1 "$1")/stat" || return 1
    set -- "$3" ${stat##*) }
    test $((${13} + ${14})) -ge "$1"
}
# has_bytes FILE N
has_bytes() { test "$(cat "$1" 2>/dev/null | wc -c)" -ge "$2"; }
# table SEED ROWS COLUMNS: t.csv, of numbers from -1 to 1
table() {
    awk -v seed="$1" -v n="$2" -v m="$3" 'BEGIN {
        x = seed
        for (i = 0; i < n; i++) for (c = 0; c < m; c++) {
            x = (x * 1103515245 + 12345) % 2147483648
            printf "%.4f%s", x / 1073741824 - 1, c + 1 < m ? "," : "\n"
        } }' >"$folder/t.csv"
}
