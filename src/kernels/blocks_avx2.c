/* Products by blocks on AVX2. */
#include "kernels/tmpl/blocks_256.h"

const qkvi_block_kernels qkvi_blocks_avx2 = { "avx2", QKVI_CPU_AVX2, blocks_round, multiply };
