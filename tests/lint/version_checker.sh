#!/bin/sh
# version_checker.sh CHECKER: a small tree of version 1.2.3, changed in one file each, which the checker must refuse or accept.
set -eu
checker=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
n_wrong=0

write_tree() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/include/qkv" "$tree/debian"
    printf 'cmake_minimum_required(VERSION 3.25)\nproject(qkv VERSION 1.2.3 LANGUAGES C)\n' >"$tree/CMakeLists.txt"
    printf '#define QKV_VERSION_MAJOR 1\n#define QKV_VERSION_MINOR 2\n#define QKV_VERSION_PATCH 3\n#define QKV_VERSION_SUFFIX "-dev"\n' >"$tree/include/qkv/status.h"
    printf 'cff-version: 1.2.0\nversion: 1.2.3\n' >"$tree/CITATION.cff"
    printf '# Changelog\n\n## Unreleased (1.2.3)\n\n## 1.2.2 (2026-01-01)\n' >"$tree/CHANGELOG.md"
    printf 'qkv (1.2.3-1) unstable; urgency=medium\n\nqkv (1.2.2-1) unstable; urgency=medium\n' >"$tree/debian/changelog"
    printf 'Package: libqkv1.2\nPackage: libqkvmodel1.2\nPackage: libqkv-dev\n' >"$tree/debian/control"
    : >"$tree/debian/libqkv1.2.install"
    : >"$tree/debian/libqkv1.2.symbols"
    : >"$tree/debian/libqkv-dev.install"
}
# expect VERDICT WHAT COMMAND…: the verdict (refused or accepted) on the tree after the command
expect() {
    wanted=$1 what=$2
    shift 2
    write_tree
    (cd "$tree" && "$@")
    verdict=refused
    [ "$(sh "$checker" "$tree" 2>/dev/null)" != 1.2.3 ] || verdict=accepted
    [ "$verdict" = "$wanted" ] || {
        echo "$what was $verdict" >&2
        n_wrong=$((n_wrong + 1))
    }
}

expect accepted "a tree of one version" true
expect accepted "a source archive, which has no debian/" rm -r debian
expect accepted "a release" sed -i 's/Unreleased (1.2.3)/1.2.3 (2026-02-01)/; s/"-dev"/""/' CHANGELOG.md include/qkv/status.h
expect refused "a release that says it is none" sed -i 's/Unreleased (1.2.3)/1.2.3 (2026-02-01)/' CHANGELOG.md
expect refused "what is not released and says it is" sed -i 's/"-dev"/""/' include/qkv/status.h
expect refused "a newer CMakeLists.txt" sed -i 's/1.2.3/1.2.4/' CMakeLists.txt
expect refused "another header" sed -i 's/PATCH 3/PATCH 2/' include/qkv/status.h
expect refused "another citation" sed -i 's/1.2.3/1.2.2/' CITATION.cff
expect refused "a changelog that begins with another version" sed -i 's/(1.2.3)/(1.3.0)/' CHANGELOG.md
expect refused "a heading without a date" sed -i 's/Unreleased (1.2.3)/1.2.3/' CHANGELOG.md
expect refused "another entry of Debian" sed -i '1s/1.2.3/1.2.2/' debian/changelog
expect refused "a package of another series" sed -i 's/libqkvmodel1.2/libqkvmodel1.1/' debian/control
expect refused "a file of another series" mv debian/libqkv1.2.symbols debian/libqkv1.1.symbols
exit "$((n_wrong != 0))"
