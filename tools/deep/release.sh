# cost: 30
# What `./dev release` makes is installed in places that have nothing else, and runs there without a network. Needs root, a mirror of
# Debian, debhelper, dh-python and debootstrap. QKV_SUITES: the suites that packages are installed in; those of
# another suite than this system's are built there first.
. tools/deep/lib.sh
export DEBIAN_FRONTEND=noninteractive
folder=$PWD/build/deep/release
mkdir -p "$folder"
umount -q "$folder"/*/proc || true
rm -rf "$folder"/*
sentence="I was watching the [MASK] when it opened."
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)*\(http[^ ]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
# timed NAME COMMAND…
timed() {
    name=$1 began=$(date +%s)
    shift
    "$@"
    case_ok "$name, $(($(date +%s) - began)) s"
}
alone() { unshare -n -- "$@"; }

./dev release source static live wheels debian bill sums
dist=$PWD/build/dist
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
case_ok "sums"

# packages_of SUITE ROOT: into ROOT
packages_of() {
    if [ "$(. /etc/os-release && echo "$VERSION_CODENAME")" = "$1" ]; then
        cp "$dist"/*.deb "$2/"
    else
        mkdir "$2/build"
        cp "$dist"/qkv_*.dsc "$dist"/qkv_*.debian.tar.xz "$2/build/"
        cp "$dist"/qkv-[0-9]*.tar.gz "$2/build/$(sed -n 's/.* \(qkv_[^ ]*\.orig\.tar\.gz\)$/\1/p' "$dist"/qkv_*.dsc | head -n 1)"
        chroot "$2" sh -euc 'cd /build
            apt-get install -qq -y --no-install-recommends build-essential fakeroot
            dpkg-source -x qkv_*.dsc source
            cd source
            apt-get build-dep -qq -y --no-install-recommends ./
            dpkg-buildpackage -us -uc -b
            mv ../*.deb /'
    fi
    rm -f "$2"/*-dbgsym_*.deb
}
# In each suite: the command, what autopkgtest would run, an upgrade to itself, purge.
packages() {
    root=$folder/$1
    debootstrap --variant=minbase "$1" "$root" "$mirror" >"$folder/$1.log"
    mount -t proc proc "$root/proc"
    packages_of "$1" "$root" >>"$folder/$1.log" 2>&1
    in_root() { chroot "$root" "$@"; }
    in_root sh -c 'apt-get install -qq -y --no-install-recommends ./qkv_*.deb ./qkv-data_*.deb ./libqkv*.deb' >>"$folder/$1.log" 2>&1
    alone chroot "$root" qkv look "$sentence"
    in_root sh -c 'apt-get install -qq -y --no-install-recommends ./*.deb gcc libc6-dev pkg-config' >>"$folder/$1.log" 2>&1
    mkdir -p "$root/source"
    cp -R examples debian "$root/source/"
    for test in examples tool python; do
        mkdir -p "$root/tmp/$test"
        alone chroot "$root" sh -c "cd /source && AUTOPKGTEST_TMP=/tmp/$test sh debian/tests/$test" >>"$folder/$1.log"
    done
    in_root sh -c 'apt-get install -qq -y --reinstall ./*.deb' >>"$folder/$1.log" 2>&1
    in_root sh -c 'apt-get purge -qq -y "*qkv*"' >>"$folder/$1.log" 2>&1
    left=$(find "$root/usr" "$root/etc" "$root/var/lib" -name '*qkv*' ! -path '*/apt/*')
    umount "$root/proc"
    [ -z "$left" ] || { echo "left behind: $left" && return 1; }
    rm -rf "$root"
}
for suite in ${QKV_SUITES:-bookworm}; do timed "packages in $suite" packages "$suite"; done

wheel() {
    python3 -m venv "$folder/python"
    "$folder/python/bin/pip" install -q --disable-pip-version-check "$dist"/qkv-*"$(uname -m)".whl numpy
    cp debian/tests/python "$folder/test_python"
    PATH=$folder/python/bin:$PATH AUTOPKGTEST_TMP=$folder alone sh "$folder/test_python"
}
timed "wheel" wheel

# The archive has no history; the two commands of README.
archive() {
    tar -xzf "$dist"/qkv-[0-9]*.tar.gz -C "$folder"
    (cd "$folder"/qkv-[0-9]* && alone ./dev run look "$sentence" && alone ./dev test)
}
timed "archive" archive

static_tool() {
    mkdir "$folder/empty"
    cp "$dist"/qkv-*-linux-* "$folder/empty/qkv"
    alone chroot "$folder/empty" /qkv look "$sentence"
}
timed "static tool on an empty root" static_tool

# Chromium's own network service goes without a network, too.
page() {
    mkdir "$folder/page"
    cp "$dist"/qkv-*-live.html "$folder/page/qkv.html"
    chmod -R a-w "$folder/page"
    alone chromium --headless=new --no-sandbox --user-data-dir="$folder/profile" --virtual-time-budget=60000 --dump-dom \
        "file://$folder/page/qkv.html" >"$folder/page.dom" 2>/dev/null
    grep -q 'door' "$folder/page.dom"
}
timed "live page" page
echo "$n_cases cases"
