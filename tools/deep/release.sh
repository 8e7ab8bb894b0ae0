# cost: 15
# What `./dev release` makes for every Linux and for a browser runs in places that have nothing else: the two commands of README with
# the source archive in a root of Debian, the static tool in an empty one, the live page in a folder that cannot be written. Needs
# root, a mirror of Debian, and debootstrap.
. tools/deep/lib.sh
. tools/deep/bare_root.sh
folder=$PWD/build/deep/release
rm -rf "$folder"
mkdir -p "$folder"
rm -rf "$dist"
./dev release source static live bill sums
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
case_ok "sums"

static_tool() {
    mkdir "$folder/empty"
    cp "$dist"/qkv-*-linux-"$(uname -m)" "$folder/empty/qkv"
    alone chroot "$folder/empty" /qkv look "$sentence"
}
timed "static tool on an empty root" static_tool

# In Chromium, whose own network service goes without a network, too; what it saves is what the tool writes.
page() {
    mkdir "$folder/page"
    cp "$dist"/qkv-*-live.html "$folder/page/qkv.html"
    chmod -R a-w "$folder/page"
    alone "$python" tests/live/live.py build/release/qkv "$folder/page/qkv.html" "$folder/saved" 3 "$(date +%s)" same_bytes
}
python=$(browser_python)
timed "live page" page

# As a newcomer has it: ./dev installs what is missing. Then nothing needs a network.
archive() {
    tar -xzf "$dist"/qkv-[0-9]*.tar.gz -C "$root"
    in_root "cd /qkv-* && ./dev run look '$sentence'"
    in_root "cd /qkv-* && ./dev test"
    alone chroot "$root" sh -euc "/qkv-*/build/release/qkv look '$sentence'"
}
timed "a bare root" make_root "$(this_suite)" "$folder/root"
timed "source archive" archive
rm -rf "$root"
echo "$n_cases cases"
