# Shared by the tests of the tool under mpirun, which source it with $folder set: an empty folder, and how it is checked.
rm -rf "$folder"
mkdir -p "$folder"
export QKV_NUM_THREADS=1
failed=0
check() { # check WHAT COMMAND...
    what=$1
    shift
    "$@" || { echo "FAILED: $what" && cat "$folder/err" "$folder/out" && failed=1; }
}
is() { test "$1" "$2" "$3"; }
# table SEED ROWS COLUMNS: t.csv, of numbers from -1 to 1
table() {
    awk -v seed="$1" -v n="$2" -v m="$3" 'BEGIN {
        x = seed
        for (i = 0; i < n; i++) for (c = 0; c < m; c++) {
            x = (x * 1103515245 + 12345) % 2147483648
            printf "%.4f%s", x / 1073741824 - 1, c + 1 < m ? "," : "\n"
        } }' >"$folder/t.csv"
}
