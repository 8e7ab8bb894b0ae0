/*
 * The templates on avx512 with VDPBF16PS, which class dp is made of, and VNNI. Parts without
 * products of them, and products of floats, are those of avx512.
 */
#include "kernels/vec/vec_avx512.h"

#ifndef __AVX512BF16__
#error "isa_avx512bf16.c needs -mavx512bf16"
#endif

#define ISA(x)      qkvi_avx512bf16_##x
#define SHARED(x)   qkvi_avx512_##x
#define ISA_NAME    "avx512bf16"
#define ISA_NEED    QKVI_CPU_AVX512BF16
#define ISA_FAST_DP QKVI_CPU_FAST_DP
#include "kernels/tmpl/isa_table.h"
