/* One encoder block, forward and backward: see block.h. */
#include "model/layer/block.h"

#include <string.h>

#include "attn/ctx.h"
#include "kernels/gemm.h"
#include "kernels/table.h"
#include "model/layer/act.h"
#include "model/layer/rows.h"

/* ---- Forward --------------------------------------------------------------------------------- */

/* to[i] = from[pick->rows[i]] */
static void gather(const qkvi_pick *pick, int64_t hidden, const float *from, float *to) {
    for (int64_t i = 0; i < pick->n; i++)
        memcpy(to + i * hidden, from + pick->rows[i] * hidden, (size_t)hidden * sizeof *to);
}

/* What follows attention, row by row: y2 from o and x [n][hidden]. */
static void rest_forward(qkv_ctx *ctx, const qkvi_block *layer, int64_t n, const float *o,
                         const float *x, const qkvi_block_acts *acts) {
    qkvi_linear_forward(ctx, &layer->mha.output, n, o, acts->s1);
    qkvi_layernorm_forward(ctx, &layer->norm1, layer->eps, n, x, acts->s1, acts->y1, acts->stats1);
    qkvi_linear_gelu_forward(ctx, &layer->up, n, acts->y1, acts->u, acts->g);
    qkvi_linear_forward(ctx, &layer->down, n, acts->g, acts->s2);
    qkvi_layernorm_forward(ctx, &layer->norm2, layer->eps, n, acts->y1, acts->s2, acts->y2,
                           acts->stats2);
}

qkv_status qkvi_block_forward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_groups *groups,
                              const qkvi_pick *pick, const float *x, qkvi_block_acts *acts) {
    QKV_TRY(qkvi_mha_forward(ctx, &layer->mha, groups, x, &acts->mha));
    if (!pick) {
        rest_forward(ctx, layer, groups->n_rows, acts->mha.o, x, acts);
        return QKV_OK;
    }
    gather(pick, layer->mha.hidden, acts->mha.o, pick->o);
    gather(pick, layer->mha.hidden, x, pick->x);
    rest_forward(ctx, layer, pick->n, pick->o, pick->x, acts);
    return QKV_OK;
}

/* ---- Backward -------------------------------------------------------------------------------- */

void qkvi_block_scratch_cut(const qkvi_block *layer, int64_t n_rows, qkvi_cutter *cutter,
                            qkvi_block_scratch *scratch) {
    const int64_t hidden = layer->mha.hidden, wide = layer->up.n_out;
    const int64_t widest = wide > hidden ? wide : hidden;
    float **const rows[] = { &scratch->mha.d_q, &scratch->mha.d_k, &scratch->mha.d_v,
                             &scratch->mha.d_o };
    for (int i = 0; i < 4; i++) *rows[i] = qkvi_cut(cutter, n_rows * hidden, sizeof(float));
    scratch->mha.packed =
        qkvi_cut(cutter, (int64_t)qkvi_gemm_packed_elems(n_rows, widest), sizeof(float));
    const int64_t norm_sums = 2 * qkvi_colsum_elems(n_rows, hidden);
    const int64_t wide_sums = qkvi_colsum_elems(n_rows, widest);
    scratch->mha.sums =
        qkvi_cut(cutter, norm_sums > wide_sums ? norm_sums : wide_sums, sizeof(float));
    scratch->d_g = qkvi_cut(cutter, n_rows * wide, sizeof(float));
}

/* to = 0, then to[pick->rows[i]] += from[i] in order */
static void scatter(qkv_ctx *ctx, const qkvi_pick *pick, int64_t n_rows, int64_t hidden,
                    const float *from, float *to) {
    memset(to, 0, (size_t)(n_rows * hidden) * sizeof *to);
    for (int64_t i = 0; i < pick->n; i++)
        ctx->kernels->layer.add(hidden, from + i * hidden, to + pick->rows[i] * hidden);
}

/*
 * d [n][hidden] comes in as the gradient of y2 and goes out as that of s1; d_o [n][hidden] is that
 * of o.
 */
static void rest_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block *grads, int64_t n,
                          const float *o, const qkvi_block_acts *acts, float *d, float *d_o,
                          const qkvi_block_scratch *scratch) {
    const int64_t hidden = layer->mha.hidden, wide = layer->up.n_out;
    float *packed = scratch->mha.packed, *sums = scratch->mha.sums, *d_g = scratch->d_g;

    /* s2 = y1 + f; y2 = norm2(s2): d becomes the gradient of s2, hence of f and, in part, of y1 */
    qkvi_layernorm_backward(ctx, &layer->norm2, &grads->norm2, n, acts->s2, acts->stats2, d, d,
                            sums);

    /* f = g Wdᵀ + bd */
    qkvi_pack_rows(ctx, n, wide, acts->g, packed);
    qkvi_linear_backward_params(ctx, &grads->down, n, d, packed, sums);
    qkvi_linear_backward_input(ctx, &layer->down, n, d, d_g, false);

    /* g = gelu(u): d_g becomes the gradient of u */
    qkvi_gelu_backward(ctx, n, wide, acts->u, d_g, d_g);

    /* u = y1 Wuᵀ + bu: d becomes the whole gradient of y1 */
    qkvi_pack_rows(ctx, n, hidden, acts->y1, packed);
    qkvi_linear_backward_params(ctx, &grads->up, n, d_g, packed, sums);
    qkvi_linear_backward_input(ctx, &layer->up, n, d_g, d, true);

    /* s1 = x + a; y1 = norm1(s1): d becomes the gradient of s1, hence of a and, in part, of x */
    qkvi_layernorm_backward(ctx, &layer->norm1, &grads->norm1, n, acts->s1, acts->stats1, d, d,
                            sums);

    /* a = o Woᵀ + bo */
    qkvi_pack_rows(ctx, n, hidden, o, packed);
    qkvi_linear_backward_params(ctx, &grads->mha.output, n, d, packed, sums);
    qkvi_linear_backward_input(ctx, &layer->mha.output, n, d, d_o, false);
}

qkv_status qkvi_block_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block *grads,
                               const qkvi_groups *groups, const qkvi_pick *pick, const float *x,
                               const qkvi_block_acts *acts, float *d,
                               const qkvi_block_scratch *scratch) {
    const int64_t n = groups->n_rows, hidden = layer->mha.hidden;
    if (!pick) {
        rest_backward(ctx, layer, grads, n, acts->mha.o, acts, d, scratch->mha.d_o, scratch);
    } else {
        float *const d_o = pick->x; /* x itself has been used up: nothing needs it */
        rest_backward(ctx, layer, grads, pick->n, pick->o, acts, pick->d, d_o, scratch);
        scatter(ctx, pick, n, hidden, d_o, scratch->mha.d_o);
        scatter(ctx, pick, n, hidden, pick->d, d);
    }
    /* o = mha(x): d becomes the whole gradient of x */
    return qkvi_mha_backward(ctx, &layer->mha, &grads->mha, groups, x, &acts->mha, d,
                             &scratch->mha);
}
