#!/bin/sh
# release.sh [PART…]: what a release consists of, in build/dist, of the last commit: source, static, live, wheel, wheels, debian,
# bill, sums. No PART: all. RELEASING.md says when. The same commit gives the same bytes, wherever it is built with the same programs.
set -eu
cd "$(dirname "$0")/.."
version=$(tools/check_version.sh)
dist=$PWD/build/dist
name=qkv-$version
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
[ -z "$(git status --porcelain)" ] || {
    echo "release: there are changes that are not committed:" >&2
    git status --short >&2
    exit 1
}

source_archive() { git archive --format=tar --prefix="$name/" HEAD -- . ':!debian' | gzip -n -9 >"$dist/$name.tar.gz"; }

static_tool() {
    ./dev build musl qkv-tool
    cp build/musl/qkv "$dist/$name-linux-$(uname -m)"
}

# The package for Node is what `npm pack` makes of its folder.
live_page() {
    rm -rf build/live
    ./dev live
    cp build/live/qkv.html "$dist/$name-live.html"
    tar -c --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --mtime="@$SOURCE_DATE_EPOCH" \
        --transform='s|^qkv-wasm|package|' -C build/live qkv-wasm | gzip -n -9 >"$dist/qkv-wasm-$version.tgz"
}

# The package for systems as new as this one, with pictures.
wheel() {
    ./dev wheel
    cp build/wheel/*"$(uname -m)".whl "$dist/"
}
wheels() {
    wheel
    ./dev wheel aarch64
    cp build/wheel/*aarch64.whl "$dist/"
    ./dev wheel --all
    cp build/wheels/*.whl "$dist/"
}

# From the source archive, which is made too, beside nothing of this folder but debian/.
debian() {
    source_archive
    rm -rf "$dist/debian"
    mkdir "$dist/debian"
    tar -xzf "$dist/$name.tar.gz" -C "$dist/debian"
    git archive HEAD debian | tar -x -C "$dist/debian/$name"
    cp "$dist/$name.tar.gz" "$dist/debian/qkv_$version.orig.tar.gz"
    (cd "$dist/debian/$name" && dpkg-buildpackage -us -uc)
    rm -f "$dist"/*.deb "$dist"/*.dsc "$dist"/*.debian.tar.xz
    cp "$dist/debian"/*.deb "$dist/debian"/*.dsc "$dist/debian"/*.debian.tar.xz "$dist/"
    rm -r "$dist/debian"
}

bill() { python3 tools/bill_of_materials.py "$version" "$SOURCE_DATE_EPOCH" "$dist" >"$dist/$name.spdx.json"; }

sums() { (cd "$dist" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS); }

if [ $# -eq 0 ]; then
    rm -rf "$dist" # files of other commits
    set -- source static live wheels debian bill sums
fi
mkdir -p "$dist"
for part in "$@"; do
    case $part in
    source) source_archive ;;
    static) static_tool ;;
    live) live_page ;;
    wheel | wheels | debian | bill | sums) "$part" ;;
    *)
        echo "release: there is no part '$part', of source static live wheel wheels debian bill sums" >&2
        exit 2
        ;;
    esac
done
ls -l "$dist"
