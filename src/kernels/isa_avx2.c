/* The templates on avx2. */
#include "kernels/vec/vec_avx2.h"

#define ISA(x)   qkvi_avx2_##x
#define ISA_NAME "avx2"
#define ISA_NEED QKVI_CPU_AVX2
#include "kernels/tmpl/isa_table.h"
