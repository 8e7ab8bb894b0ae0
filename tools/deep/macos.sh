# cost: 14
# The tool, the check of kernels and the libraries for macOS, by zig, for both processors. Nothing of them can be run here: what they ask
# of the system is read. (cmake/zig.cmake has no macOS older than 11.)
. tools/deep/lib.sh
for preset in macos-arm64 macos-x86_64; do
    ./dev build $preset
    folder=build/$preset
    for file in $folder/qkv $folder/qkv-check $folder/libqkv.dylib $folder/libqkvmodel.dylib; do
        python3 tools/macho.py "$file" --check
        case_ok "$file takes what it needs of libSystem"
    done
    [ "$(python3 tools/macho.py $folder/qkv --check | sed -n '1s/, .*//p')" = ${preset#macos-} ]
    case_ok "$folder/qkv is for ${preset#macos-}"
done
echo "$n_cases cases"
