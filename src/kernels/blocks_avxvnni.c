/* Products by blocks on AVX2 with VNNI of 256 bits. */
#ifndef __AVXVNNI__
#error "compile with -mavxvnni"
#endif
#include "kernels/tmpl/blocks_256.h"

const qkvi_block_kernels qkvi_blocks_avxvnni = { "avxvnni", QKVI_CPU_AVXVNNI, blocks_round,
                                                 multiply };
