/*
 * Which tables there are, and which of them this processor can run. Nothing is cached: a context
 * keeps its choice. cmake/isas.cmake says which ones a build is without.
 */
#include <stddef.h>
#include <string.h>

#include "core/cpu.h"
#include "kernels/table.h"

static const qkvi_kernels *const tables[] = {
    &qkvi_scalar_kernels,
#if !defined(QKV_WITHOUT_AVX2)
    &qkvi_avx2_kernels,
#endif
#if !defined(QKV_WITHOUT_AVX512)
    &qkvi_avx512_kernels,
#endif
#if !defined(QKV_WITHOUT_AVX512BF16)
    &qkvi_avx512bf16_kernels,
#endif
#if !defined(QKV_WITHOUT_NEON)
    &qkvi_neon_kernels,
#endif
#if !defined(QKV_WITHOUT_WASM)
    &qkvi_wasm_kernels,
#endif
};
enum { N_TABLES = sizeof tables / sizeof tables[0] };

const qkvi_kernels *qkvi_kernels_at(int index) {
    const uint32_t features = qkvi_cpu_features();
    for (int t = 0; t < N_TABLES; t++)
        if ((tables[t]->need & ~features) == 0 && index-- == 0) return tables[t];
    return NULL;
}

const qkvi_kernels *qkvi_kernels_best(void) {
    const uint32_t features = qkvi_cpu_features();
    const qkvi_kernels *best = NULL;
    for (int t = 0; t < N_TABLES; t++)
        if ((tables[t]->need & ~features) == 0) best = tables[t];
    return best;
}

const qkvi_kernels *qkvi_kernels_named(const char *name) {
    const qkvi_kernels *table;
    for (int index = 0; (table = qkvi_kernels_at(index)); index++)
        if (strcmp(table->name, name) == 0) return table;
    return NULL;
}
