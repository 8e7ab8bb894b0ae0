# cost: 8
# The tool for old systems, by zig and glibc 2.17: the bits of this build on every instruction set, the same answers; no symbol of a
# newer glibc; every lesson but those that draw; the wheel.
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

# The same libraries as a wheel, in an environment of its own.
./dev wheel gnu217
wheel=$(echo build/wheels/*.whl)
python3 tools/check_wheel.py "$wheel"
python/environment/bin/auditwheel show "$wheel" | grep -q 'platform tag: "manylinux_2_17_x86_64"'
case_ok "$wheel: sizes, licences, what auditwheel says"
folder=build/deep/gnu217
rm -rf $folder
python3 -m venv $folder
$folder/bin/python -m pip install -q --disable-pip-version-check "$wheel"
for test in test_attention test_arrays test_cache test_checked test_models test_looking; do
    (cd python/tests && "../../$folder/bin/python" -m unittest $test)
    case_ok "$test with $wheel"
done
echo "$n_cases cases"
