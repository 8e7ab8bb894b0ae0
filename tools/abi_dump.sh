#!/bin/sh
# abi_dump.sh FOLDER: what programs see of each library, types included, as FOLDER/NAME.abi.gz (libabigail), of a build
# without optimization in build/abi. tests/abi has those of the last release.
set -eu
cd "$(dirname "$0")/.."
folder=$1
libraries="qkv qkvmodel qkvview qkvmpi"
cmake -G Ninja -S . -B build/abi -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O0 -g" -DQKV_ISAS=scalar -DQKV_TESTS=OFF >build/abi.log
cmake --build build/abi --target $(printf '%s_shared ' $libraries) >>build/abi.log
for library in $libraries; do
    abidw --headers-dir include/qkv --drop-private-types --suppressions tests/abi/private.abignore --no-comp-dir-path --no-corpus-path --no-show-locs \
        --type-id-style hash build/abi/lib$library.so >"$folder/lib$library.abi"
    gzip -n -9 -f "$folder/lib$library.abi"
done
