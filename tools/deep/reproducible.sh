# The same source at another place, of another length and with spaces, without any cache: the same bytes in every library and
# in the tool.
. tools/deep/lib.sh
./dev build release
sh tools/deep/copy.sh
copy="build/deep/a copy of the source"
for file in libqkv.a libqkvmodel.a libqkvview.a libqkv.so libqkvmodel.so libqkvview.so qkv; do
    cmp "build/release/$file" "$copy/build/release/$file"
    sha256sum "$copy/build/release/$file"
    n_cases=$((n_cases + 1))
done
echo "$n_cases cases"
