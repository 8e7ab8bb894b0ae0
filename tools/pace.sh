#!/bin/sh
# Prints the pace: how many times slower this processor is than the reference processor, at this moment (tests/limits/pace.c).
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
cc -O3 -ffp-contract=off tests/limits/pace.c -o build/pace
exec build/pace
