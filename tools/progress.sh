#!/bin/sh
# What `./dev` shows of a step while it runs: reads the output of apt-get, cmake or ninja, writes what is done of what there is to do.
#
#     progress.sh WIDTH VERB NAME
#
# On a terminal of WIDTH columns that is one line that moves, is cut to fit, and is erased at the end, by spaces: every terminal knows those. In a file,
# WIDTH 0, it is a line a step. A build says nothing before its first file, since there may be none.
set -euf
trap '' INT # this one ends after what it shows, and leaves a clean line
width=$1 name=$3
room=$((width - 1)) # a character in the last column would wrap
shown="" building="" packages=some unpacked=0 set_up=0

# moves TEXT: the line becomes TEXT; to a file nothing
moves() {
    [ "$width" -ne 0 ] || return 0
    shown=yes
    printf '\r%-*.*s' "$room" "$room" "dev: $1"
}
# begins TEXT: a step
begins() { if [ "$width" -eq 0 ]; then printf 'dev: %s\n' "$1"; else moves "$1"; fi; }

# "[143/557] Building C object tests/CMakeFiles/unit_map.dir/unit/test_map.c.o" of ninja
file_built() {
    n=${1#\[} what=${1#*\] }
    total=${n#*/} n=${n%%/*}
    total=${total%%\]*}
    case $what in
    "Re-running CMake"*)
        begins "configuring $name"
        return
        ;;
    "Building "*.dir/*)
        what=${what##* }
        what=${what%%CMakeFiles/*}${what#*.dir/}
        what=${what##*__/} # ../
        what=${what%.o}
        ;;
    esac
    if [ -z "$building" ]; then
        case $total in 1) building=file ;; *) building=files ;; esac
        begins "building $name: $total $building"
    fi
    moves "building $name: $n of $total  $what"
}

[ "$2" = building ] || begins "$2 $name"
while IFS= read -r line; do
    case $line in
    \[0/*) ;; # before the first: ninja looks for new files
    \[[1-9]*/[1-9]*\]\ *) file_built "$line" ;;
    [0-9]*" newly installed, "*) # "2 upgraded, 57 newly installed, 0 to remove and 3 not upgraded."
        packages=${line%% newly *}
        packages=$((${line%% *} + ${packages##* }))
        ;;
    Get:[1-9]*\ *\ *\ *\ *) # "Get:12 http://mirror.example/debian bookworm/main amd64 libcairo2-dev amd64 1.16.0-7 [90 kB]"
        n=${line%% *} what=${line#* * * * }
        moves "fetching packages: ${n#Get:} of $packages  ${what%% *}"
        ;;
    "Unpacking "*)
        unpacked=$((unpacked + 1)) what=${line#Unpacking }
        moves "unpacking packages: $unpacked of $packages  ${what%% *}"
        ;;
    "Setting up "*)
        set_up=$((set_up + 1)) what=${line#Setting up }
        moves "setting up packages: $set_up of $packages  ${what%% *}"
        ;;
    esac
done
[ -z "$shown" ] || printf '\r%*s\r' "$room" ""
