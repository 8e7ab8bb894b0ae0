#!/bin/sh
# arm64_root.sh FOLDER [PACKAGE…]: Debian's arm64 packages with what they depend on, unpacked into FOLDER/root, for a cross compiler
# and for qemu-aarch64 -L; without names those that qkv is built and tested with. Nothing is installed: apt-get gets lists and a
# cache of its own in FOLDER, and keeps the system's sources.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
packages="$*"
[ $# -gt 0 ] || packages="libc6-dev libjansson-dev libutf8proc-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libcairo2-dev libpango1.0-dev libcmocka-dev fontconfig-config fonts-dejavu-core"
stamp="$folder/unpacked"
[ "$(cat "$stamp" 2>/dev/null)" = "$packages" ] && exit 0
rm -rf "$folder/root" "$stamp"
mkdir -p "$folder/root" "$folder/lists/partial" "$folder/cache/archives/partial"
: >"$folder/status" # nothing is installed there: every dependency is fetched

own_apt_get() {
    apt-get -qq -o Dir::State="$folder" -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" \
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}
own_apt_get update
own_apt_get install --download-only -y --no-install-recommends $packages
for package in "$folder"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$folder/root"
done
rm -rf "$folder/cache"
# A linker follows an absolute link out of the folder, and takes a static library instead.
find "$folder/root" -type l -lname '/*' | while IFS= read -r link; do
    ln -sfnr "$folder/root$(readlink "$link")" "$link"
done
printf '%s\n' "$packages" >"$stamp"
