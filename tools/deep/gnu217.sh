# cost: 8
# The tool for old systems, by zig and glibc 2.17: the bits of this build on every instruction set, the same answers; no symbol of a
# newer glibc; every lesson but those that draw.
. tools/deep/lib.sh
. tools/deep/targets.sh
./dev build release qkv-tool
./dev build gnu217 qkv-tool
tool=build/gnu217/qkv

readelf --version-info --wide $tool | grep -o 'GLIBC_2\.[0-9.]*' | sort -V | uniq >build/deep/$$.asked
[ -s build/deep/$$.asked ]
[ "$(tail -n 1 build/deep/$$.asked | sed 's/GLIBC_2\.//; s/\..*//')" -le 17 ]
case_ok "asks for nothing that is newer than $(tail -n 1 build/deep/$$.asked)"
rm build/deep/$$.asked

same_check $tool
same_answers $tool
lessons $tool

echo "$n_cases cases"
