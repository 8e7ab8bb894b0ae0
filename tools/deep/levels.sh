# cost: 5
# The library at other levels of optimisation than those of the presets: the same bits, the same bounds, no warnings but
# for large stack frames, which are small where code is optimized.
. tools/deep/lib.sh
for pair in gcc:-Og gcc:-O2 clang:-Og; do
    case $pair in gcc*) frames=frame-larger-than= ;; *) frames=frame-larger-than ;; esac
    build=build/level/${pair%:*}${pair#*:}
    cmake -S . -B "$build" -G Ninja -DQKV_TESTS=ON "-DCMAKE_C_COMPILER=${pair%:*}" -DCMAKE_BUILD_TYPE=None \
        "-DCMAKE_C_FLAGS=${pair#*:} -Werror -Wno-error=$frames"
    cmake --build "$build" --target qkv-check
    echo "== $pair"
    check_kernels "$build/qkv-check" --cases 150
done
echo "$n_cases cases"
