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
