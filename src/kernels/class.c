/* See class.h. */
#include "kernels/class.h"

#include "core/cpu.h"
#include "kernels/table.h"

const qkvi_class_row qkvi_classes[QKVI_N_CLASSES] = {
    [QKVI_CLASS_F32] = { .given = QKV_CLASS_F32,
                         .given_name = "QKV_CLASS_F32",
                         .name = "f32",
                         .type = QKV_F32,
                         .per_word = 1,
                         .step = 1 },
    [QKVI_CLASS_DP] = { .given = QKV_CLASS_DP,
                        .given_name = "QKV_CLASS_DP",
                        .name = "dp",
                        .type = QKV_BF16,
                        .per_word = 2,
                        .step = 2,
                        .rounds = true,
                        .how = "dot products of pairs of bf16, weights rounded to bf16" },
#define AMX(words)                                                                                 \
    {                                                                                              \
        .given = QKV_CLASS_AMX, .given_name = "QKV_CLASS_AMX", .name = "amx", .type = QKV_BF16,    \
        .per_word = 2, .step = 32, .q_rows = 16, .rounds = true, .forward_only = true,             \
        .no_small = "class amx", .how = words                                                      \
    }
    [QKVI_CLASS_AMX] = AMX("dot products of 32 of bf16, weights rounded to bf16; without AMX slow"),
    [QKVI_CLASS_AMX_TILES] = AMX("dot products of 32 of bf16, weights rounded to bf16"),
};

void qkvi_classes_here(const qkvi_kernels *kernels, qkvi_arithmetic of[QKVI_N_GIVEN]) {
    const bool tiles = (kernels->need & QKVI_CPU_AVX512BF16) && qkvi_cpu_amx();
    const bool fast_dp = (kernels->fast_dp & qkvi_cpu_features()) != 0;
    of[QKV_CLASS_F32] = QKVI_CLASS_F32;
    of[QKV_CLASS_DP] = QKVI_CLASS_DP;
    of[QKV_CLASS_AMX] = tiles ? QKVI_CLASS_AMX_TILES : QKVI_CLASS_AMX;
    of[QKV_CLASS_AUTO] = tiles ? QKVI_CLASS_AMX_TILES : fast_dp ? QKVI_CLASS_DP : QKVI_CLASS_F32;
}

const qkvi_class_row *qkvi_class_given(qkv_class given) {
    for (int n = 0; n < QKVI_N_CLASSES; n++)
        if (qkvi_classes[n].given == given) return &qkvi_classes[n];
    return NULL;
}
