# cost: 4.5
# AArch64: everything cross-compiled by gcc, warnings are errors, and tests of it run under qemu-user; no spills; binaries with BTI, PAC
# and what else hardens them. (Left out are tests that take minutes, and those that fork while threads run: qemu aborts.)
. tools/deep/lib.sh
tools/arm64_root.sh build/arm64
fast='^(golden_(attention|bert|tokenizer)|prop_(attention|store_mutations)'
fast="$fast|unit_(attention_(check|unseen)|attn_desc|core_(cpu|memory|rng|status)|ctx|gemm|inspect|layer_(kernels|rows)|run|store_.*|train_parts|vocab))\$"
preset_tests aarch64 -R "$fast"
for check in hardening spills; do
    sh "tools/check_$check.sh" build/aarch64
    n_cases=$((n_cases + 1))
done
echo "$n_cases cases"
