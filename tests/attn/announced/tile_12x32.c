/* The templates with the tile of AVX-512, for announced.h. */
#define V_MR 12
#define V_NV 2
#include "kernels/vec/vec_scalar.h"

#include "attn/announced/announced.h"

#define ISA(x)   announced_12x32_##x
#define ISA_NAME "announced 12x32"
#define ISA_NEED 0
#include "kernels/tmpl/isa_table.h"
