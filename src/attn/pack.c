/* See pack.h. */
#include "attn/pack.h"

#include <string.h>

static void scale_panels(float *panels, int64_t n, float factor) {
    for (int64_t e = 0; e < n; e++) panels[e] *= factor;
}

static uint32_t scale_bf16(uint32_t x, float factor) {
    return qkvi_bf16_of_f32(qkvi_f32_of_bf16((uint16_t)x) * factor);
}

/* The same of pairs. */
static void scale_pairs(uint32_t *panels, int64_t n, float factor) {
    for (int64_t e = 0; e < n; e++) {
        uint32_t pair;
        memcpy(&pair, panels + e, sizeof pair);
        pair = scale_bf16(pair & 0xFFFF, factor) | scale_bf16(pair >> 16, factor) << 16;
        memcpy(panels + e, &pair, sizeof pair);
    }
}

void qkvi_pack_keys(const qkvi_problem *p, const qkvi_kernels *kernels, int64_t b, int64_t g,
                    int64_t key, int64_t n, const uint32_t see[QKVI_SEEN_WORDS],
                    qkvi_arithmetic class, float factor, void *panels) {
    const void *k = qkvi_elem(p->k, p->dtype, qkvi_k_at(p, p->k_stride, b, g, key));
    if (qkvi_classes[class].per_word == 2) {
        const int64_t depth = qkvi_key_words(class, p->head_dim);
        kernels->rows->pack_key_pairs(k, p->k_stride[2], n, p->head_dim, depth, see, panels);
        if (factor != 1) scale_pairs(panels, qkvi_round_up(n, QKVI_PANEL) * depth, factor);
        return;
    }
    for (int word, end = 0; qkvi_seen_next(see, end, &word, &end);) { /* the others are not read */
        const int64_t j = 32 * word, rows = qkvi_min_i64(32 * end, n) - j;
        float *to = (float *)panels + j * p->head_dim;
        kernels->rows->pack_keys[p->dtype](qkvi_elem(k, p->dtype, j * p->k_stride[2]),
                                           p->k_stride[2], rows, p->head_dim, see + word, to);
        if (factor != 1) scale_panels(to, qkvi_round_up(rows, QKVI_PANEL) * p->head_dim, factor);
    }
}
