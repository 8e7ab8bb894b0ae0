# cost: 3.5
# The same source at two places, of different lengths and one with spaces: the same bytes in every library and in the tool.
. tools/deep/lib.sh
one=. other="build/deep/a copy of the source"
./dev build release
sh -eu tools/deep/copy.sh "$other"
for file in libqkv.a libqkvmodel.a libqkvview.a libqkv.so libqkvmodel.so libqkvview.so qkv; do
    cmp "$one/build/release/$file" "$other/build/release/$file"
    sha256sum "$one/build/release/$file"
    n_cases=$((n_cases + 1))
done
echo "$n_cases cases"
