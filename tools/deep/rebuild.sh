# cost: 30
# What `./dev release` makes of one commit at two places, with paths of different lengths, other rights of new files and another time
# zone, is the same bytes. The commit is this one with scalar kernels alone: those of vectors are compiled the same way, and the step
# reproducible has them. Needs debhelper and dh-python.
. tools/deep/lib.sh
export CCACHE_DISABLE=1 SKBUILD_CMAKE_DEFINE=QKV_ISAS=scalar DEB_BUILD_OPTIONS=nocheck
folder=$PWD/build/deep/rebuild
one=$folder/one other=$folder/another_place_with_a_longer_path
rm -rf "$folder"
git clone -q . "$one"
(
    cd "$one"
    sed -i 's/"CMAKE_BUILD_TYPE": "\(Release\|MinSizeRel\)",/& "QKV_ISAS": "scalar",/' CMakePresets.json
    sed -i 's/-DQKV_TESTS=OFF/& -DQKV_ISAS=scalar/' debian/rules
    git -c user.name=qkv -c user.email=qkv@qkv.invalid commit -q -a -m "scalar kernels alone"
)
git clone -q "$one" "$other"
for place in "$one" "$other"; do
    # zig, and archives, whose hashes are checked again; not what was built of them
    mkdir "$place/build"
    for part in zig sources; do [ ! -e build/$part ] || cp -R --preserve=links,mode,timestamps build/$part "$place/build/"; done
    rm -rf "$place/build/zig/targets" "$place/build/zig/cache"
done
(cd "$one" && ./dev release)
(umask 077 && cd "$other" && TZ=Asia/Kathmandu ./dev release)
sums() { (cd "$1/build/dist" && find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2); }
sums "$one" | tee "$folder/sums"
sums "$other" | diff "$folder/sums" -
n_cases=$(wc -l <"$folder/sums")
[ "$n_cases" -ge 12 ]
echo "$n_cases cases"
