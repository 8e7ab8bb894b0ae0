/*
 * Reading single weights W[out][in], or rows, such as the embedding of a word, of a linear layer
 * that has them in any of five forms: floats, which are trained, panels of Wᵀ in f32
 * (kernels/gemm.h), bf16 (kernels/gemm_bf16.h) or int8 (kernels/gemm_int8.h), or rows of blocks as
 * a GGUF file has them (kernels/blocks.h).
 */
#ifndef QKVI_LAYER_WEIGHTS_H
#define QKVI_LAYER_WEIGHTS_H

#include "kernels/blocks.h"
#include "kernels/gemm_bf16.h"
#include "kernels/gemm_int8.h"

typedef struct qkvi_weights {
    int64_t n_in;
    const float *floats, *panels; /* all but one of the five are NULL */
    const uint32_t *half;
    const qkvi_int8_panel *int8;
    const uint8_t *blocks;
    const qkvi_block_format *format; /* of blocks */
} qkvi_weights;

/* W[out][in] */
static inline float qkvi_weight_at(const qkvi_weights *w, int64_t out, int64_t in) {
    if (w->floats) return w->floats[out * w->n_in + in];
    if (w->blocks) return qkvi_blocks_at(w->format, w->blocks, w->n_in, out, in);
    if (w->panels) return w->panels[qkvi_gemm_packed_at(w->n_in, in, out)];
    return w->half ? qkvi_bf16_packed_at(w->n_in, in, out, w->half)
                   : qkvi_int8_packed_at(w->n_in, in, out, w->int8);
}

/* W[out][…]: n_in floats. */
static inline void qkvi_weight_row(const qkvi_weights *w, int64_t out, float *row) {
    if (w->blocks) {
        qkvi_blocks_row(w->format, w->blocks, w->n_in, out, row);
        return;
    }
    for (int64_t in = 0; in < w->n_in; in++) row[in] = qkvi_weight_at(w, out, in);
}

#endif
