#!/bin/sh
# test_progress.sh ROOT: what tools/progress.sh writes for lines that apt-get and ninja wrote once, and what `./dev build` does with a cmake that
# builds nothing: the log, the exit status, the targets, one build at a time.
set -eu
root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
n_wrong=0

# same NAME: what stands in `got` is what stands on standard input
same() {
    cat >want
    cmp -s want got || {
        echo "$1:" >&2
        diff want got >&2 || true
        n_wrong=$((n_wrong + 1))
    }
}
# shown WIDTH VERB NAME: the moves of the line, each on a line of its own between bars
shown() { sh "$root/tools/progress.sh" "$@" | tr '\r' '\n' | sed 's/.*/|&|/' >got; }

cat >ninja.txt <<'LINES'
[0/2] Re-checking globbed directories...
[1/3] Building C object CMakeFiles/qkvmodel.dir/src/model/arch/stack.c.o
src/model/arch/stack.c:7:5: warning: unused variable 'n' [-Wunused-variable]
[2/3] Building C object tests/CMakeFiles/prop_kv.dir/__/fuzz/tools.c.o
[3/3] Linking C executable qkv
LINES
shown 80 building release <ninja.txt
same "a build on 80 columns" <<'TEXT'
||
|dev: building release: 3 files                                                 |
|dev: building release: 1 of 3  src/model/arch/stack.c                          |
|dev: building release: 2 of 3  fuzz/tools.c                                    |
|dev: building release: 3 of 3  Linking C executable qkv                        |
|                                                                               |
TEXT
shown 40 building release <ninja.txt
same "a build on 40 columns" <<'TEXT'
||
|dev: building release: 3 files         |
|dev: building release: 1 of 3  src/mode|
|dev: building release: 2 of 3  fuzz/too|
|dev: building release: 3 of 3  Linking |
|                                       |
TEXT
shown 0 building release <ninja.txt
same "a build to a file" <<'TEXT'
|dev: building release: 3 files|
TEXT
for width in 0 80; do
    printf '[0/2] Re-checking globbed directories...\nninja: no work to do.\n' | sh "$root/tools/progress.sh" $width building release >got
    same "nothing to build, width $width" </dev/null
done
printf '[0/1] Re-checking globbed directories...\n[1/2] Re-running CMake...\n[1/1] Generating man/qkv.1\n' >ninja.txt
shown 0 building release <ninja.txt
same "configured again" <<'TEXT'
|dev: configuring release|
|dev: building release: 1 file|
TEXT
printf '[1/2] Re-running CMake...\nninja: no work to do.\n' | shown 40 building release
same "configured again, and nothing to build" <<'TEXT'
||
|dev: configuring release               |
|                                       |
TEXT

cat >apt.txt <<'LINES'
Reading package lists...
The following NEW packages will be installed:
  libcairo2-dev scdoc
1 upgraded, 2 newly installed, 0 to remove and 3 not upgraded.
Need to get 90.1 kB of archives.
Get:1 http://mirror.example/debian bookworm/main amd64 libcairo2-dev amd64 1.16.0-7 [90.1 kB]
Fetched 90.1 kB in 0s (1,234 kB/s)
Preparing to unpack .../libcairo2-dev_1.16.0-7_amd64.deb ...
Unpacking libcairo2-dev:amd64 (1.16.0-7) ...
Unpacking scdoc (1.11.2-1) ...
Setting up scdoc (1.11.2-1) ...
LINES
shown 60 installing packages <apt.txt
same "packages" <<'TEXT'
||
|dev: installing packages                                   |
|dev: fetching packages: 1 of 3  libcairo2-dev              |
|dev: unpacking packages: 1 of 3  libcairo2-dev:amd64       |
|dev: unpacking packages: 2 of 3  scdoc                     |
|dev: setting up packages: 1 of 3  scdoc                    |
|                                                           |
TEXT
shown 0 installing "libcairo2-dev scdoc" <apt.txt
same "packages to a file" <<'TEXT'
|dev: installing libcairo2-dev scdoc|
TEXT

# ---- dev ---------------------------------------------------------------------------------------

mkdir -p stubs tree/tools
cp "$root/dev" tree/dev
cp "$root/tools/progress.sh" tree/tools
cat >stubs/cmake <<'STUB'
#!/bin/sh
if [ "$1" = --preset ]; then
    mkdir -p "build/$2"
    echo "$3" | sed 's/^-D//; s/=/:BOOL=/' >"build/$2/CMakeCache.txt"
    echo "-- Configuring done"
    exit 0
fi
printf "[%s] " "$@" >../arguments; echo >>../arguments
[ ! -e /proc/$$/fd/9 ] || echo "holds the lock" >>../arguments
echo "[1/2] Building C object CMakeFiles/a.dir/a.c.o"
[ "${FAILS:-0}" -eq 0 ] || echo "a.c:1:1: error: what is wrong" >&2
exit "${FAILS:-0}"
STUB
printf '#!/bin/sh\necho 0\n' >stubs/id # where a package is missing, nothing is installed either
printf '#!/bin/sh\nexit 0\n' >stubs/apt-get
chmod +x stubs/*
# dev STATUS ARGUMENTS…: its output goes to `out`, what it said to `got`
dev() {
    status=0 wanted=$1
    shift
    PATH="$folder/stubs:$PATH" tree/dev "$@" >out 2>said || status=$?
    grep -v '^dev: installing ' said >got || true
    [ "$status" -eq "$wanted" ] || {
        echo "dev $*: exit status $status, not $wanted" >&2
        n_wrong=$((n_wrong + 1))
    }
}

dev 0 build
same "dev build" <<'TEXT'
dev: configuring release
dev: building release: 2 files
TEXT
cat out arguments >got
same "its arguments" <<'TEXT'
[--build] [--preset] [release] 
TEXT
dev 0 build asan one two
cat arguments >got
same "targets" <<'TEXT'
[--build] [--preset] [asan] [--target] [one] [two] 
TEXT

mkfifo end
flock tree/build/release.lock cat end >/dev/null &
until ! flock -n tree/build/release.lock true; do sleep 0.1; done
PATH="$folder/stubs:$PATH" tree/dev build 2>said &
until grep -q waiting said; do sleep 0.1; done
: >end
wait
grep -v '^dev: installing ' said >got
same "two builds" <<'TEXT'
dev: waiting for another build of release
dev: building release: 2 files
TEXT

FAILS=3
export FAILS
dev 1 build
same "a build that fails" <<'TEXT'
dev: building release: 2 files
[1/2] Building C object CMakeFiles/a.dir/a.c.o
a.c:1:1: error: what is wrong
dev: the release build failed (log: build/release.log)
TEXT
[ "$n_wrong" -eq 0 ]
