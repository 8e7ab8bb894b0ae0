/* The templates on neon. */
#include "kernels/vec/vec_neon.h"

#define ISA(x)   qkvi_neon_##x
#define ISA_NAME "neon"
#define ISA_NEED QKVI_CPU_NEON
#include "kernels/tmpl/isa_table.h"
