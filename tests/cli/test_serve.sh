# qkv look --serve: the start page, pages of texts, and what is refused; hostile, slow and many clients; how it ends.
# The folder is this run's own: another run beside it must not give its answers to this one.
set -- "$1" "$2/$$"
. ./lib.sh
process=
trap '[ -z "$process" ] || kill $process; rm -rf "$folder"' EXIT
: "${SERVE_CLIENT:?the program that sends a request}"
d=$folder/d
mkdir "$d"
export TMPDIR="$d/tmp"
mkdir "$TMPDIR"
text="the [MASK] opened a man."

# serve ARGS...: in the background, until its address is there
serve() {
    said="qkv look --serve $*"
    mkfifo "$folder/address"
    "$qkv" look --serve --model "$model" "$@" </dev/null >"$folder/address" 2>"$d/server" &
    process=$!
    read -r url <"$folder/address"
    rm "$folder/address"
    port=$(echo "$url" | sed -n 's|^http://127\.0\.0\.1:\([0-9]*\)/[0-9a-f]\{32\}/$|\1|p')
    token=$(echo "$url" | cut -d/ -f4)
    own="Origin: http://127.0.0.1:$port\n$form"
    check "no address in '$url'" test -n "$port"
}
# ends SIGNAL: it ends by itself, well, and leaves nothing
ends() {
    kill -"$1" $process
    wait $process
    got=$?
    process=
    said="qkv look --serve, SIG$1"
    code 0
    check "something is left: $(ls -A "$TMPDIR")" test -z "$(ls -A "$TMPDIR")"
}
# client [leaves]: standard input is the request
client() { "$SERVE_CLIENT" "$port" "$@" >"$folder/out" 2>"$folder/err"; }
# beside NAME REQUEST [MILLISECONDS]: one in the background, with a file for its request; the answer is $d/NAME
beside() {
    "$SERVE_CLIENT" "$port" ${3:-} <"$2" >"$d/$1" 2>>"$d/connected" &
    besides="$besides $!"
}
besides=
# connected N: waits until so many of them are connected
connected() { until [ "$(cat "$d/connected" 2>/dev/null | wc -l)" -ge "$1" ]; do sleep 0.05; done; }
# answered: waits until all of them have ended
answered() {
    for i in $besides; do wait $i; done
    besides=
    rm "$d/connected"
}
crlf() { printf %b "$1" | sed 's/$/\r/'; }
# get PATH [FIELDS]; post PATH BODY [FIELDS]: lines of fields end with \n
get() {
    said="GET $1"
    crlf "GET $1 HTTP/1.1\nHost: 127.0.0.1:$port\n${2:-}\n" | client
}
form="Content-Type: application/x-www-form-urlencoded\n"
post() {
    said="POST $1 $(echo "$2" | head -c 60) $3"
    {
        crlf "POST $1 HTTP/1.1\nHost: 127.0.0.1:$port\n$3Content-Length: ${#2}\n\n"
        printf %s "$2"
    } | client
}
# status N: and nothing but that in words; page: a page came
status() {
    check "not $1: $(head -n 1 "$folder/out")" grep -qa "^HTTP/1.1 $1 " "$folder/out"
    [ "$1" = 422 ] || [ "$1" = 200 ] || check "more than words" test "$(tail -n +2 "$folder/out" | sed '1,/^\r$/d' | wc -l)" -eq 1
}
body() { sed '1,/^\r$/d' "$folder/out"; }

serve "$text" --top 3
# ---- What is there -----------------------------------------------------------------------------
get "/$token/"
status 200
out_like "^<title>qkv look</title>"
out_like "^the \[MASK\] opened a man.</textarea>"
out_like "Model <bdi>.*bert_old</bdi>"
out_like "^Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; .*frame-ancestors 'none'"
for name in X-Content-Type-Options:.nosniff Referrer-Policy:.same-origin Cache-Control:.no-store Connection:.close; do
    out_like "^$name"
done
check "something from elsewhere" test "$(body | grep -c 'https\?://')" -eq 0
for file in start.js:text/javascript start.css:text/css; do
    get "/$token/${file%:*}"
    status 200
    out_like "^Content-Type: ${file#*:}"
    body >"$d/file"
    check "not the file" cmp -s "$d/file" "$here/../../cli/serve/${file%:*}"
done
post "/$token/page" "text=the+%5BMASK%5D+opened+a+man." "$own"
status 200
body >"$d/served.html"
run look "$text" --model "$model" --top 3 -o "$d/page.html" --quiet
check "not the page of look -o" cmp -s "$d/served.html" "$d/page.html"
said="localhost"
crlf "GET /$token/ HTTP/1.1\nhost: localhost:$port\n\n" | client
status 200

# ---- What the model refuses --------------------------------------------------------------------
long=$(head -c 4000 /dev/zero | tr '\0' a | sed 's/./a+/g')
post "/$token/page" "text=$long" "$own"
status 422
out_like '<p class="error" role="alert">the text has [0-9]* tokens, the model takes [0-9]*'
post "/$token/page" "text=%ff%3Cscript%3E" "$own"
check "an answer" grep -qa '^HTTP/1.1 \(200\|422\) ' "$folder/out"
check "a script" test "$(body | grep -c '<script>')" -eq 0

# ---- What is refused ---------------------------------------------------------------------------
wrong=$(echo "$token" | tr 0-9a-f 1-9a-f0)
for path in / /favicon.ico "/$wrong/" "/$wrong/page" "/$token" "/${token%?}/" "/${token}0/" "//$token/" \
    "/$(echo "$token" | tr a-f A-F)X/"; do
    get "$path"
    status 403
done
for path in "/$token/index.html" "/$token/../" "/$token//" "/$token/?a" "/$token/start.js/" "/$token/%70age"; do
    get "$path"
    status 404
done
get "/$token/page"
status 405
post "/$token/" "text=a" "$own"
status 405
out_like '^Allow: GET, POST'
for host in "evil.example" "evil.example:$port" "127.0.0.1" "127.0.0.1:1" "127.0.0.1:$port.evil.example" "localhost:${port}0" "[::1]:$port" ""; do
    said="Host: $host"
    crlf "GET /$token/ HTTP/1.1\nHost: $host\n\n" | client
    status 403
done
for origin in "" "Origin: null\n" "Origin: http://evil.example\n" "Origin: https://127.0.0.1:$port\n" \
    "Origin: http://localhost:$port\n" "Origin: http://127.0.0.1:1\n" "Origin: http://127.0.0.1:$port/\n"; do
    post "/$token/page" "text=a" "$origin$form"
    status 403
done
post "/$wrong/page" "text=a" "$own"
status 403
post "/$token/page" "text=a" "Origin: http://127.0.0.1:$port\n"
status 415
for content in "" "a=b" "text=%" "text=a&text=b"; do
    post "/$token/page" "$content" "$own"
    status 400
done

# ---- Bytes that are no request -----------------------------------------------------------------
# raw STATUS: standard input
raw() {
    said="raw $1"
    client
    status "$1"
}
letters() { head -c "$1" /dev/zero | tr '\0' a; }
{ printf 'GET /'; letters 100000; } | raw 414
{ crlf "GET /$token/ HTTP/1.1\n"; printf 'X: '; letters 100000; } | raw 431
{ crlf "GET /$token/ HTTP/1.1\n"; yes X: | head -n 5000 | sed 's/$/\r/'; } | raw 431
crlf "POST /$token/page HTTP/1.1\nHost: 127.0.0.1:$port\n${own}Content-Length: 1048577\n\n" | raw 413
crlf "POST /$token/page HTTP/1.1\nHost: 127.0.0.1:$port\n${own}Transfer-Encoding: chunked\n\n" | raw 501
crlf "POST /$token/page HTTP/1.1\nHost: 127.0.0.1:$port\n${own}\n" | raw 411
crlf "DELETE /$token/ HTTP/1.1\nHost: 127.0.0.1:$port\n\n" | raw 405
printf 'GET / HTTP/1.1\nHost: a\n\n' | raw 400
head -c 100000 /dev/zero | raw 414
printf '\026\003\001\002\000\001\000\001\374\003\003\n' | raw 400
# A body of a stranger is not waited for.
crlf "POST /$wrong/page HTTP/1.1\nHost: 127.0.0.1:$port\n${own}Content-Length: 1000000\n\n" | raw 403
# The largest body, and one request behind another.
{
    crlf "POST /$token/page HTTP/1.1\nHost: 127.0.0.1:$port\n${own}Content-Length: 1048576\n\n"
    printf 'text='
    letters 1048571
} | client
said="a body of 1 MiB"
check "an answer" grep -qa '^HTTP/1.1 \(200\|422\) ' "$folder/out"
crlf "GET /$token/ HTTP/1.1\nHost: 127.0.0.1:$port\n\nGET / HTTP/1.1\n\n" | raw 200
check "two answers" test "$(grep -ca '^HTTP/1.1' "$folder/out")" -eq 1

# ---- Slow clients, and several -----------------------------------------------------------------
# Connections that say nothing or stop in the middle; others are answered meanwhile, and they are ended after 5 s.
for i in 1 2 3 4; do beside silent$i /dev/null; done
printf 'GET /' >"$d/half.sent"
crlf "POST /$token/page HTTP/1.1\nHost: 127.0.0.1:$port\n${own}Content-Length: 9\n\ntext" >"$d/part.sent"
letters 100 >"$d/slow.sent"
beside half "$d/half.sent"
beside part "$d/part.sent"
beside slow "$d/slow.sent" 100
connected 7
get "/$token/"
status 200
post "/$token/page" "text=the+man" "$own"
status 200
answered
for name in half part slow; do
    said=$name
    check "not 408" grep -qa '^HTTP/1.1 408 Request Timeout' "$d/$name"
done
check "an answer to nothing" test "$(cat "$d"/silent? | wc -c)" -eq 0
# More connections than there is room for: those that wait have their turn.
for i in $(seq 40); do beside none /dev/null; done
connected 40
get "/$token/"
status 200
for i in $besides; do kill $i; done 2>/dev/null
answered
# Two at once, whose pages are their own; and one that goes away.
for who in man woman; do
    crlf "POST /$token/page HTTP/1.1\nHost: 127.0.0.1:$port\n${own}Content-Length: $((9 + ${#who}))\n\ntext=the+$who" >"$d/$who.sent"
    beside $who "$d/$who.sent"
done
answered
for who in man woman; do
    run look "the $who" --model "$model" --top 3 -o "$d/$who.html" --quiet
    sed '1,/^\r$/d' "$d/$who" >"$d/$who.body"
    check "another page of the $who" cmp -s "$d/$who.body" "$d/$who.html"
done
crlf "POST /$token/page HTTP/1.1\nHost: 127.0.0.1:$port\n${own}Content-Length: 8\n\ntext=the" | client leaves
get "/$token/"
status 200
# ---- While a text is computed ------------------------------------------------------------------
# of FILE TEXT: its request
of() { { crlf "POST /$token/page HTTP/1.1\nHost: 127.0.0.1:$port\n${own}Content-Length: $((5 + ${#2}))\n\n"; printf 'text=%s' "$2"; } >"$1"; }
cpu_of_server() { cut -d ' ' -f 14,15 "/proc/$process/stat" | tr ' ' '\n' | awk '{ sum += $1 } END { print sum }'; }
ends INT
serve --quiet --slide 6 --head 1.0
of "$d/long.sent" "$(letters 24000 | sed 's/./a+/g')"
before=$(cpu_of_server)
client <"$d/long.sent"
status 200
cost=$(($(cpu_of_server) - before))
before=$(cpu_of_server)
beside long "$d/long.sent"
connected 1
# The start page does not wait for a text that takes a hundred times as long; texts whose clients leave are not computed;
# one that stays is, in its turn.
get "/$token/"
status 200
check "the start page came after the text" test ! -s "$d/long"
for i in $(seq 20); do client leaves <"$d/long.sent"; done
post "/$token/page" "text=the+man" "$own"
status 200
answered
check "no page" grep -qa '^HTTP/1.1 200 ' "$d/long"
now=$(($(cpu_of_server) - before))
check "$now ticks, where one text costs $cost" test "$now" -lt $((4 * cost + 100))
# It ends while one is computed.
beside long "$d/long.sent"
connected 1
ends TERM
answered
serve "$text" --top 3
# Another on the same port.
run look --serve --port "$port" --model "$model"
code 1
no_out
err "qkv: --port: 127.0.0.1:$port: Address already in use"
ends INT
check "more on standard error" same "qkv: open this address in a browser; Ctrl-C ends it" "$d/server"

# ---- Options -----------------------------------------------------------------------------------
other=$token
serve --quiet --slide 6 --head 1.0
check "the same word" test "$token" != "$other"
check "standard error" empty "$d/server"
post "/$token/page" "text=$(letters 20 | sed 's/./a+/g')" "$own"
status 200
check "windows" grep -qa '"runs":\[' "$folder/out"
ends TERM
# A terminal that is closed.
serve --quiet
ends HUP
# Ctrl-C while a client holds a connection.
serve --truncate '<b>"</textarea>'
get "/$token/"
out_like '^&lt;b&gt;&quot;&lt;/textarea&gt;</textarea>'
post "/$token/page" "text=$long" "$own"
status 200
beside none /dev/null
connected 1
ends INT
answered
: >"$folder/out"
for with in "-o x.html" --json --jsonl "--file x" "--q x --k x" --lens "--against x" --align "--plot queries" "--pool peak"; do
    run look --serve $with
    code 2
    no_out
done
usage look "--port goes with --serve" look a --port 8080
usage look "--port: '0' is not a whole number from 1 to 65535" look --serve --port 0
# It needs no folder for files.
export TMPDIR="$d/none.such"
serve --quiet
post "/$token/page" "text=the" "$own"
status 200
kill -INT $process
wait $process
process=
finish
