# What the steps release-… share (sourced after lib.sh): a root of Debian that has nothing else, in $root. Needs root, debootstrap and
# a mirror of Debian. Mounts are of a process and end with it.
sentence="I was watching the [MASK] when it opened."
dist=$PWD/build/dist

# timed NAME COMMAND…
timed() {
    name=$1 began=$(date +%s)
    shift
    "$@"
    case_ok "$name, $(($(date +%s) - began)) s"
}
# alone COMMAND…: without a network
alone() { unshare --net -- "$@"; }

this_suite() { (. /etc/os-release && echo "$VERSION_CODENAME"); }
# make_root SUITE FOLDER
make_root() {
    root=$2
    mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)*\(http[^ ]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
    debootstrap --variant=minbase "$1" "$root" "$mirror" >"$root.log" || { tail -n 5 "$root.log" && return 1; }
    # packages as they come: nothing of this root has to survive a crash
    printf 'force-unsafe-io\n' >"$root/etc/dpkg/dpkg.cfg.d/fast"
}
# in_root SCRIPT: sh -e runs it there, as root, with /proc and /dev, and without what this environment sets
in_root() {
    unshare --mount -- sh -euc 'mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec env -i HOME=/root PATH="$3" DEBIAN_FRONTEND=noninteractive chroot "$1" sh -euc "$2"' sh "$root" "$1" \
        /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
}
