/* The templates on scalar. */
#include "kernels/vec/vec_scalar.h"

#define ISA(x)   qkvi_scalar_##x
#define ISA_NAME "scalar"
#define ISA_NEED 0
#include "kernels/tmpl/isa_table.h"
