# cost: 4.5
# The copy with spaces in its path, installed, moved and used by strangers' programs; and built within a stranger's project.
. tools/deep/lib.sh
copy="build/deep/a copy of the source"
sh -eu tools/deep/copy.sh "$copy"
sh tests/install/run.sh "$copy/build/release" "build/deep/an installed tree" >build/deep/install.cases || {
    cat build/deep/install.cases
    exit 1
}
cat build/deep/install.cases
read -r n_cases _ <<COUNT
$(tail -n 1 build/deep/install.cases)
COUNT

inside="build/deep/inside another project"
rm -rf "$inside"
cmake -S tests/install/outside -B "$inside" -G Ninja "-DQKV_SOURCE=$PWD/$copy" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_C_FLAGS=-O1 # whether it builds and runs there: no more of the compiler's time than that needs
cmake --build "$inside" --target attend_c_shared attend_c_static
for kind in shared static; do
    "$inside/attend_c_$kind"
    n_cases=$((n_cases + 1))
done
echo "$n_cases cases"
