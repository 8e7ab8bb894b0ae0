/* The templates with the tile of AVX2 and NEON, for announced.h. */
#include "kernels/vec/vec_scalar.h"

#include "attn/announced/announced.h"

#define ISA(x)   announced_6x16_##x
#define ISA_NAME "announced 6x16"
#define ISA_NEED 0
#include "kernels/tmpl/isa_table.h"
