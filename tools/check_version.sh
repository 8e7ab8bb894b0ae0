#!/bin/sh
# check_version.sh [TREE]: prints the version that project() of CMakeLists.txt has. Every other file that names it must say the same.
# (The source archive has no debian/.)
set -eu
cd "${1:-$(dirname "$0")/..}"
version=$(sed -n 's/^project(qkv VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
series=${version%.*} # as in the SONAME
n_wrong=0

# says FILE WHAT FOUND WANTED
says() {
    [ "$3" != "$4" ] || return 0
    echo "$1: $2 is \"$3\", and by CMakeLists.txt and CHANGELOG.md it is \"$4\"" >&2
    n_wrong=$((n_wrong + 1))
}
first() { sed -n "$2" "$1" | head -n 1; }

says include/qkv/status.h "the version" "$(sed -n 's/^#define QKV_VERSION_[A-Z]* *\([0-9][0-9]*\).*/\1/p' include/qkv/status.h | paste -sd .)" "$version"
says CITATION.cff "version" "$(first CITATION.cff 's/^version: //p')" "$version"
# "## Unreleased (VERSION)", then programs say VERSION-dev; when it is released "## VERSION (DATE)"
heading=$(first CHANGELOG.md 's/^## //p')
says CHANGELOG.md "the first heading's version" \
    "$(echo "$heading" | sed -n 's/^Unreleased (\([0-9.]*\))$/\1/p; s/^\([0-9.]*\) ([0-9]*-[0-9]*-[0-9]*)$/\1/p')" "$version"
suffix=
case $heading in Unreleased*) suffix=-dev ;; esac
says include/qkv/status.h "the suffix" "$(sed -n 's/^#define QKV_VERSION_SUFFIX *"\([^"]*\)".*/\1/p' include/qkv/status.h)" "$suffix"
if [ -e debian ]; then
    says debian/changelog "the first entry's version" "$(first debian/changelog 's/^qkv (\([^-]*\)-.*/\1/p')" "$version"
    says debian/control "the series of libraries" "$(sed -n 's/^Package: libqkv[a-z]*\([0-9].*\)/\1/p' debian/control | sort -u | paste -sd ' ')" "$series"
    for file in debian/libqkv*.install debian/libqkv*.symbols; do
        case $file in *-dev.install) continue ;; esac
        says "$file" "the series of its name" "$(echo "${file%.*}" | sed 's/.*libqkv[a-z]*//')" "$series"
    done
fi
[ "$n_wrong" -eq 0 ] || exit 1
echo "$version"
