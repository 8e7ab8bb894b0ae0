# A file is written whole or not at all: full disks, closed pipes and descriptors, signals, and paths of every kind.
# Of each failure: the exit code, a message that names the path, the old file as it was, and nothing left beside it.
. ./lib.sh
data=$here/data
d=$folder/d
mkdir "$d"
arrays="--q $data/q.npy --k $data/k.npy --v $data/v.npy"
# attend_gradients FILES...: the arrays, and their gradients but for dv
attend_gradients() { $with attend $arrays --grad-out $data/grad.npy --dq "$d/dq.npy" --dk "$d/dk.npy" "$@"; }

# write KIND FILE: the command that writes FILE, for each kind of file that there is
with=run
kinds="png svg pdf json csv npy tsv o lse dv map.png map.svg map.pdf map.json map.csv"
write() {
    case $1 in
    o) $with attend $arrays -o "$2" ;;
    lse) $with attend $arrays -o "$d/o.npy" --lse "$2" ;;
    dv) attend_gradients -o "$d/o.npy" --dv "$2" ;;
    tsv) $with heads "the [MASK]" --model "$model" -o "$2" --quiet ;;
    map.*) $with map "the [MASK]" --model "$model" --head 1.0 --restarts 2 --iters 50 -o "$2" --quiet ;;
    *) $with look "the [MASK]" --model "$model" --head 1.0 -o "$2" --quiet ;;
    esac
}
# run where no file may have a byte; what it says comes through a pipe
limited() {
    said="qkv $*  (ulimit -f 0)"
    lines=$( (
        ulimit -f 0
        "$qkv" "$@" </dev/null 2>&1
        echo $?
    ) | cat)
    echo "$lines" | sed '$d' >"$folder/err"
    : >"$folder/out"
    got=$(echo "$lines" | tail -n 1)
}
ending() { case $1 in o | lse | dv) echo npy ;; *) echo "${1#map.}" ;; esac; }

# only NAMES...: the folder holds nothing else
only() {
    left=$(echo $(ls -A "$d"))
    check "the folder holds '$left', not '$*'" test "$left" = "$(echo $(printf '%s\n' "$@" | sort))"
}
clean() { rm -rf "$d" && mkdir "$d"; }
old() { echo "what was there" >"$1"; }
is_old() { check "the old file has changed" test "$(cat "$1")" = "what was there"; }
# said_of PATH REASON: one line, which names the path
said_of() { err_like "^qkv: .*$(basename "$1").*: $2"; }

for kind in $kinds; do
    file=x.$(ending $kind)

    # What it writes twice is the same; in place of an old file, which leaves its permissions.
    clean
    write $kind "$d/$file"
    code 0
    no_out
    no_err
    mv "$d/$file" "$folder/good"
    old "$d/$file"
    chmod 640 "$d/$file"
    ln "$d/$file" "$folder/held"
    write $kind "$d/$file"
    code 0
    check "another file in place of an old one" cmp -s "$folder/good" "$d/$file"
    check "other permissions" test "$(stat -c %a "$d/$file")" = 640
    is_old "$folder/held"
    rm -f "$folder/held"

    # Links are followed and stay.
    clean
    mkdir "$d/far"
    old "$d/far/target"
    ln -s far/target "$d/$file"
    write $kind "$d/$file"
    code 0
    check "the link is gone" test -L "$d/$file"
    check "the target is not the file" cmp -s "$folder/good" "$d/far/target"
    rm "$d/far/target"
    write $kind "$d/$file"
    code 0
    check "a link to nothing" cmp -s "$folder/good" "$d/far/target"

    # Devices and pipes are written to as they are.
    clean
    ln -s /dev/null "$d/$file"
    write $kind "$d/$file"
    code 0
    check "/dev/null is no device any more" test -c /dev/null
    rm "$d/$file"
    mkfifo "$d/$file"
    cat "$d/$file" >"$folder/copy" &
    write $kind "$d/$file"
    code 0
    exec 3<>"$d/$file" 3>&- # cat has no writer to wait for, whatever has happened
    wait
    check "through a pipe" cmp -s "$folder/good" "$folder/copy"

    # Paths where no file can be.
    clean
    write $kind "$d/none/$file"
    code 1
    no_out
    said_of "$file" 'No such file or directory'
    only
    old "$d/below"
    write $kind "$d/below/$file"
    code 1
    said_of "$file" 'Not a directory'
    only below
    clean
    mkdir "$d/$file"
    write $kind "$d/$file"
    code 1
    said_of "$file" 'Is a directory'
    only "$file"
    clean
    ln -s "$file" "$d/$file"
    write $kind "$d/$file"
    code 1
    said_of "$file" 'Too many levels of symbolic links'
    only "$file"
    write $kind "/proc/$file" # a folder that no user may write to
    code 1
    said_of "$file" '.'

    if [ "$(id -u)" -ne 0 ]; then # root may write everywhere
        clean
        old "$d/$file"
        chmod 555 "$d"
        write $kind "$d/$file"
        code 1
        err_like '^qkv: .*/\(x\|o\)\.[a-z]*: .*: Permission denied$'
        is_old "$d/$file"
        only "$file"
        chmod 755 "$d"
    fi

    # A full disk: a device that is full, and a limit of size.
    clean
    ln -s /dev/full "$d/$file"
    write $kind "$d/$file"
    code 1
    no_out
    said_of "$file" 'No space left on device'
    only "$file"
    clean
    old "$d/$file"
    with=limited
    write $kind "$d/$file"
    with=run
    code 1
    err_like '^qkv: .*npy: cannot write: File too large$\|^qkv: .*x\.[a-z]*: cannot write: File too large$'
    is_old "$d/$file"
    only "$file"
done

# A disk that is full in the middle.
disk=$folder/disk
mkdir "$disk"
trap 'umount "$disk" 2>/dev/null' EXIT
if mount -t tmpfs -o size=16k none "$disk" 2>/dev/null; then
    old "$disk/x.png"
    for what in look map; do
        run $what "the [MASK] opened a man." --model "$model" -o "$disk/x.png"
        code 1
        err_like '^qkv: .*/x.png: cannot write: No space left on device$'
        is_old "$disk/x.png"
        check "something is left" test "$(ls -A "$disk")" = x.png
    done
    umount "$disk"
else
    echo "skipped: a full disk (no file system can be mounted here); /dev/full and limits stand for it"
fi

# Several files: the last one fails, so none is new.
clean
for name in o lse dq dk; do old "$d/$name.npy"; done
ln -s /dev/full "$d/dv.npy"
attend_gradients -o "$d/o.npy" --lse "$d/lse.npy" --dv "$d/dv.npy"
code 1
said_of dv.npy 'No space left on device'
for name in o lse dq dk; do is_old "$d/$name.npy"; done
only o.npy lse.npy dq.npy dk.npy dv.npy
# Two names of one file.
clean
mkdir "$d/sub"
run attend $arrays -o "$d/o.npy" --lse "$d/sub/../o.npy"
code 1
err_like "^qkv: .*/o.npy and .*/sub/../o.npy are the same file$"
only sub
# The output is an input: read before it is replaced.
clean
cp "$data/q.npy" "$d/q.npy"
run attend $arrays -o "$folder/good"
run attend $arrays -o "$folder/good.npy"
run attend --q "$d/q.npy" --k "$data/k.npy" --v "$data/v.npy" -o "$d/q.npy"
code 0
check "an output over its input" cmp -s "$folder/good.npy" "$d/q.npy"
only q.npy

# ---- A model -----------------------------------------------------------------------------------

# A folder with a model: training anew either replaces all of it or leaves all of it, whichever of its files cannot be written.
clean
for who in man woman dog; do
    for what in door box key; do printf 'the %s saw the %s .\tit opened when the %s left .\n' $who $what $who; done
done >"$folder/text"
small="--layers 1 --heads 2 --len 24 --batch 4 --steps 2 --report-every 1 --quiet"
run train --text "$folder/text" $small --hidden 16 --vocab 150 --out "$d/model"
code 0
cp -r "$d/model" "$folder/before"
files="config.json vocab.txt tokenizer.json tokenizer_config.json model.safetensors"
for full in $files; do
    rm -f "$d/model/$full"
    ln -s /dev/full "$d/model/$full"
    run train --text "$folder/text" $small --hidden 32 --vocab 160 --out "$d/model"
    code 1
    no_out
    err_like "^qkv: .*/model/$full: cannot write: No space left on device$"
    rm "$d/model/$full"
    cp "$folder/before/$full" "$d/model/$full"
    for name in $files; do check "another $name, with $full full" cmp -s "$folder/before/$name" "$d/model/$name"; done
    check "a temporary file is left" sh -c "! ls -A '$d/model' | grep -q tmp"
    rm -f "$d/model/checkpoint.safetensors"
done
old "$d/file"
run train --text "$folder/text" $small --hidden 16 --vocab 150 --out "$d/file"
code 1
err_like '^qkv: .*: Not a directory$'
is_old "$d/file"
run train --text "$folder/text" $small --hidden 16 --vocab 150 --out "$d/no/model"
code 1
err_like '^qkv: .*: No such file or directory$'

# ---- Signals ----------------------------------------------------------------------------------

# Standard input that never ends: a pipe that we hold open.
mkfifo "$folder/input"
input=$folder/input
exec 3<>"$folder/input"
for kind in png svg pdf json csv npy; do
    for signal in INT TERM; do
        clean
        old "$d/x.$kind"
        interrupt $signal look - --model "$model" -o "$d/x.$kind"
        code $([ $signal = INT ] && echo 130 || echo 143)
        no_out
        err_like '^qkv: interrupted$'
        is_old "$d/x.$kind"
        only x.$kind
    done
done
# A map that has not begun; one that has is test_map.sh's.
for kind in png svg pdf json csv; do
    clean
    old "$d/x.$kind"
    interrupt INT map - --model "$model" -o "$d/x.$kind"
    code 130
    no_out
    err_like '^qkv: interrupted$'
    is_old "$d/x.$kind"
    only x.$kind
done

# long.npy: [16384,64] zeros, for a computation of many seconds on one thread of scalar code.
header="{'descr': '<f4', 'fortran_order': False, 'shape': (16384, 64), }"
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "$header"
    head -c $((16384 * 64 * 4)) /dev/zero
} >"$folder/long.npy"
clean
old "$d/o.npy"
long() { interrupt $signal attend --q "$folder/long.npy" --k "$folder/long.npy" --v "$folder/long.npy" --isa scalar --threads 1 "$@"; }
for signal in INT TERM; do
    long -o "$d/o.npy" --lse "$d/lse.npy"
    code $([ $signal = INT ] && echo 130 || echo 143)
    no_out
    err "qkv: interrupted"
    is_old "$d/o.npy"
    only o.npy
done

# While a file is being written: the first is whole but has no place yet, the second waits for a reader.
for signal in INT KILL; do
    clean
    old "$d/o.npy"
    mkfifo "$d/lse.npy"
    interrupt $signal attend $arrays -o "$d/o.npy" --lse "$d/lse.npy"
    code $([ $signal = INT ] && echo 130 || echo 137)
    is_old "$d/o.npy"
    if [ $signal = KILL ] && ls "$d" | grep -q 'tmp$'; then
        echo "skipped: this file system knows no files without a name, so SIGKILL leaves one"
    else
        only o.npy lse.npy
    fi
done

exec 3>&-

# ---- Standard output --------------------------------------------------------------------------

# Every command that prints
printing="tokenize the|fill [MASK]|fill [MASK] --json|next a b|look [MASK]|look [MASK] --json|look --jsonl|map [MASK]|map [MASK] --json|map --jsonl|info|info --json|help|help look|--version|bench L11 --rounds 1|eval --text $here/lib.sh"
QKV_MODEL=$model
export QKV_MODEL
echo '"the man"' >"$folder/lines"
# unheard ARGS...: no process reads what it prints
unheard() {
    said="qkv $* >/dev/full"
    : >"$folder/out"
    "$qkv" "$@" <"$folder/lines" >/dev/full 2>"$folder/err"
    got=$?
    code 1
    err_like '^qkv: standard output: No space left on device$'
    said="qkv $* >&-"
    "$qkv" "$@" <"$folder/lines" >&- 2>"$folder/err"
    got=$?
    code 1
    err_like '^qkv: standard output: Bad file descriptor$'
    said="qkv $*, unread"
    unread "$qkv" "$@" <"$folder/lines" 2>"$folder/err"
    code 1
    no_err
}
rest=$printing
while [ -n "$rest" ]; do
    words=${rest%%|*}
    [ "$rest" = "$words" ] && rest= || rest=${rest#*|}
    unheard $words
done
unheard attend $arrays -o "$folder/o.npy" --json
check "the first line of a pipe" test "$("$qkv" look "[MASK]" 2>"$folder/err" | head -n 1 | cut -c1-20)" = "To fill [MASK], head"
no_err

# Closed descriptors: what is opened next must not take their place.
clean
"$qkv" look "[MASK]" -o "$folder/good.json" --quiet
for closed in "<&-" ">&-" "2>&-" "<&- >&- 2>&-"; do
    said="qkv look -o $closed"
    eval "\"\$qkv\" look '[MASK]' --quiet -o \"\$d/x.json\" $closed"
    got=$?
    code 0
    check "a closed descriptor changed the file" cmp -s "$folder/good.json" "$d/x.json"
    only x.json
done
# A log that stays open must not become standard output.
said="qkv train --json >&-"
"$qkv" train --text "$folder/text" $small --hidden 16 --vocab 150 --out "$d/model" --json >&- 2>"$folder/err"
got=$?
code 1
err_like '^qkv: standard output: Bad file descriptor$'
check "reports in the log" sh -c "! grep -q '{' '$d/model/train_log.tsv'"
finish
