/* The templates on avx512. */
#include "kernels/vec/vec_avx512.h"

#define ISA(x)   qkvi_avx512_##x
#define ISA_NAME "avx512"
#define ISA_NEED QKVI_CPU_AVX512
#include "kernels/tmpl/isa_table.h"
