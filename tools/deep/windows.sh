# cost: 14
# The tool for Windows, by zig, under wine: the bits of this build on every instruction set, the same answers; every lesson but those
# that draw; tests of the tool; what is Windows' own: names, files that are open elsewhere, interrupts, the server, closed pipes, a full
# disk. Wine is no Windows: docs/platforms.md says what it cannot show.
. tools/deep/lib.sh
. tools/deep/targets.sh
./dev build release qkv-tool
./dev build windows qkv-tool qkv-check
own=$PWD/build/deep/windows
rm -rf "$own"
mkdir -p "$own"
use_wine
tool="$own/qkv"
printf '#!/bin/sh\nexec wine "%s" "$@"\n' "$PWD/build/windows/qkv.exe" >"$tool"
chmod +x "$tool"

objdump -p build/windows/qkv.exe | sed -n 's/.*DLL Name: //p' | tr 'A-Z' 'a-z' | sort >"$own/needs"
[ -s "$own/needs" ]
if grep -v -x -e 'api-ms-win-crt-.*' -e kernel32.dll -e bcrypt.dll -e shell32.dll -e ws2_32.dll "$own/needs"; then exit 1; fi
case_ok "needs what every Windows 10 has: $(grep -v '^api' "$own/needs" | tr '\n' ' ')and its C library"

check_kernels wine build/windows/qkv-check.exe --cases 5 --pairs 0
same_check "$tool"
same_answers "$tool"
lessons "$tool"

# Tests of the tool that ask for nothing of POSIX
for test in journal strict; do
    (cd tests/cli && sh ./test_$test.sh "$tool" "$own/test_$test") >"$own/$test.log" || {
        cat "$own/$test.log"
        exit 1
    }
    case_ok "test_$test.sh: $(tail -n 1 "$own/$test.log")"
done

$release look "$text" --quiet -o "$own/here.html"
"$tool" look "$text" --quiet -o "$own/Zoë 文.html"
cmp "$own/here.html" "$own/Zoë 文.html"
"$tool" look "$text" --quiet -o "$own/Zoë 文.html"
cmp "$own/here.html" "$own/Zoë 文.html"
[ "$(ls "$own" | grep -c html)" -eq 2 ]
case_ok "a file whose name has other letters, twice"
printf '%s\n' "$text" | "$tool" look - --quiet --json >"$own/there.json"
$release look "$text" --quiet --json | cmp - "$own/there.json"
case_ok "a text from a pipe"

# refused CODE MESSAGE WORDS…
refused() {
    wanted=$1 message=$2 code=0
    shift 2
    "$tool" "$@" >"$own/out" 2>"$own/err" </dev/null || code=$?
    [ "$code" -eq "$wanted" ] && grep -q "$message" "$own/err" || { cat "$own/err" && return 1; }
    case_ok "refused: qkv $*: $message"
}
refused 1 QKV_PICTURES=OFF look "$text" -o "$own/picture.png"
refused 1 'built without MPI' attend --q tests/cli/data/q.npy --k tests/cli/data/k.npy --v tests/cli/data/v.npy -o "$own/o.npy" --mpi
refused 1 'No such file or directory' look "$text" -o "$own/none/page.html"

# Ctrl-C: wine makes one of SIGINT. The exit code is 0xC000013A.
awk 'BEGIN { for (i = 0; i < 60; i++) print "I was", i }' >"$own/lines"
work="generate --file $own/lines --model models/writer --max-new 40"
"$tool" $work --journal "$own/lines.journal" >"$own/out" 2>"$own/err" </dev/null &
process=$!
until [ -e "$own/lines.journal" ] && [ "$(wc -c <"$own/lines.journal")" -gt 900 ] || ! kill -0 $process; do sleep 0.1; done
kill -INT $process
code=0
wait $process || code=$?
[ "$code" -eq 58 ]
grep -q '^qkv: interrupted' "$own/err"
"$tool" $work --journal "$own/lines.journal" >"$own/out"
$release $work | cmp - "$own/out"
[ ! -e "$own/lines.journal" ]
case_ok "Ctrl-C, and the journal goes on"

code=0
{ "$tool" info 2>"$own/err" || echo $? >"$own/code"; } | true
[ "$(cat "$own/code")" -eq 1 ] && [ ! -s "$own/err" ]
case_ok "a pipe that nobody reads"
code=0
"$tool" info >/dev/full 2>"$own/err" || code=$?
[ "$code" -eq 1 ] && grep -q 'standard output: No space left' "$own/err"
case_ok "standard output is full"
mkdir "$own/disk"
if mount -t tmpfs -o size=16k none "$own/disk" 2>/dev/null; then
    echo old >"$own/disk/page.html"
    code=0
    "$tool" look "$text" --quiet -o "$own/disk/page.html" 2>"$own/err" || code=$?
    left=$(ls "$own/disk")
    kept=$(cat "$own/disk/page.html")
    umount "$own/disk"
    # Wine's C library gives no reason for a part that was not written.
    [ "$code" -eq 1 ] && [ "$left" = page.html ] && [ "$kept" = old ] && grep -q 'page.html: cannot write: ' "$own/err"
    case_ok "a full disk: the old file stays"
fi

# The server: its page is that of look -o.
cc -O1 -D_GNU_SOURCE -o "$own/client" tests/cli/serve_client.c
"$tool" look "$text" --serve </dev/null >"$own/address" 2>"$own/err" &
process=$!
until grep -q '^http:' "$own/address" || ! kill -0 $process; do sleep 0.1; done
origin=$(cut -d / -f 1-3 "$own/address") token=$(cut -d / -f 4 "$own/address")
port=${origin##*:} body="text=I+saw+the+%5BMASK%5D."
printf 'POST /%s/page HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nOrigin: %s\r\nContent-Type: %s\r\nContent-Length: %s\r\n\r\n%s' \
    "$token" "$port" "$origin" application/x-www-form-urlencoded ${#body} "$body" | "$own/client" "$port" >"$own/answer"
kill -INT $process
wait $process
$release look "I saw the [MASK]." --quiet -o "$own/page.html"
sed '1,/^\r$/d' "$own/answer" | cmp - "$own/page.html"
case_ok "--serve on 127.0.0.1, until Ctrl-C"
echo "$n_cases cases"
