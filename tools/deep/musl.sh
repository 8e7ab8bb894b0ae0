# cost: 8
# The static tool, by zig and musl: the bits of this build on every instruction set, the same answers; small, alone on an empty root,
# in small stacks; every lesson but those that draw.
. tools/deep/lib.sh
. tools/deep/targets.sh
./dev build release qkv-tool
./dev build musl qkv-tool
tool=build/musl/qkv

if readelf -l $tool | grep 'program interpreter'; then exit 1; fi
case_ok "needs no loader"
bytes=$(wc -c <$tool)
[ "$bytes" -le 9000000 ]
case_ok "$bytes bytes"

# The data of the embedded model is in the tool; of files, those that it is given.
root=$(mktemp -d build/deep/root.XXXXXX)
cp $tool tests/cli/data/q.npy tests/cli/data/k.npy tests/cli/data/v.npy "$root"
if [ "$(id -u)" -eq 0 ]; then become=; else become="unshare --map-root-user"; fi
for line in --version info "look '$text'" "fill '$text'" "check --cases 5 --pairs 0" "attend --q q.npy --k k.npy --v v.npy --json"; do
    (cd tests/cli/data && eval "../../../$release $line") | sed 's/"seconds":[^,}]*//' >build/deep/$$.here
    eval "$become chroot '$root' /qkv $line" | sed 's/"seconds":[^,}]*//' | cmp - build/deep/$$.here
    case_ok "on an empty root: qkv $line"
done
rm -r build/deep/$$.here "$root"

same_check $tool
same_answers $tool
lessons $tool
small_stacks $tool
echo "$n_cases cases"
