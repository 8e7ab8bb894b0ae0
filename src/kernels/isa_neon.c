/* The templates on neon. */
#include "kernels/vec/vec_neon.h"

#define ISA_TABLE qkvi_kernels_neon
#define ISA_NAME  "neon"
#define ISA_NEED  QKVI_CPU_NEON
#include "kernels/tmpl/isa_table.h"
