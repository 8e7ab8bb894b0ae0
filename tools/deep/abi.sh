# cost: 1.5
# What programs see of the libraries is what it was in the last release, types included: abidiff of abigail-tools, beside
# tests/abi/*.abi.gz. New functions and new values of an enum pass. A field behind all others of a struct, which docs/api.md allows,
# does not, since abidiff 2.2 cannot tell it from one that moved: whoever adds one reads the report, and renews the file.
. tools/deep/lib.sh
folder=build/deep/abi
rm -rf $folder
mkdir -p $folder
tools/abi_dump.sh $folder
for old in tests/abi/*.abi.gz; do
    name=$(basename "$old" .abi.gz)
    gzip -dc "$old" >"$folder/$name.old"
    gzip -dc "$folder/$name.abi.gz" >"$folder/$name.new"
    # libraries of another minor version have another name (docs/api.md)
    sed -i "s/ soname='[^']*'/$(sed -n "s/.*\\( soname='[^']*'\\).*/\\1/p" "$folder/$name.new" | head -n 1)/" "$folder/$name.old"
    abidiff --suppressions tests/abi/private.abignore --no-show-locs --no-added-syms "$folder/$name.old" "$folder/$name.new" ||
        { echo "$name: not what it was. If docs/api.md allows it: tools/abi_dump.sh tests/abi" && exit 1; }
    n_cases=$((n_cases + 1))
done
echo "$n_cases cases"
