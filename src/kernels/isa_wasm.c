/* The templates on WebAssembly's simd128, or, with -mrelaxed-simd, on relaxed SIMD. */
#include "kernels/vec/vec_wasm.h"

#define ISA(x)   qkvi_wasm_##x
#define ISA_NAME "wasm"
#define ISA_NEED QKVI_CPU_WASM
#include "kernels/tmpl/isa_table.h"
