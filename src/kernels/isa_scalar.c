/* The templates on scalar. */
#include "kernels/vec/vec_scalar.h"

#define ISA_TABLE qkvi_kernels_scalar
#define ISA_NAME  "scalar"
#define ISA_NEED  0
#include "kernels/tmpl/isa_table.h"
