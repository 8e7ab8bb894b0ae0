/*
 * Linear layer, forward and backward: see linear.h.
 *
 * All three products run on the same kernel. Weights and x are packed; d_y and x as left factors
 * are only broadcast, so d_yᵀ is a matter of strides.
 */
#include "model/layer/linear.h"

#include "attn/ctx.h"
#include "kernels/gemm.h"
#include "kernels/table.h"
#include "model/layer/rows.h"

void qkvi_linear_pack(qkv_ctx *ctx, const qkvi_linear *layer) {
    qkvi_pool *pool = ctx ? ctx->pool : NULL;
    const int64_t n_in = layer->n_in, n_out = layer->n_out;
    if (!layer->weight) return;
    if (layer->forward) qkvi_gemm_pack_b(pool, n_in, n_out, layer->weight, 1, n_in, layer->forward);
    if (layer->half) qkvi_bf16_pack_b(pool, n_in, n_out, layer->weight, 1, n_in, layer->half);
    if (layer->backward)
        qkvi_gemm_pack_b(pool, n_out, n_in, layer->weight, n_in, 1, layer->backward);
}

void qkvi_pack_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *packed) {
    qkvi_gemm_pack_b(ctx->pool, n_rows, n, x, n, 1, packed);
}

/*
 * x in bf16 lives in the context, whose memory for it only grows: from malloc a layer would get new
 * pages each time. A second thread, or one without memory, does without.
 */
static void forward_half(qkv_ctx *ctx, qkvi_gemm_bf16_job *job) {
    const bool mine = !atomic_exchange(&ctx->inputs_taken, true);
    size_t bytes;
    if (mine && qkvi_mul_size(qkvi_bf16_input_elems(job->m, job->k), sizeof *job->half, &bytes))
        job->half = qkvi_arena_reserve(&ctx->inputs, &ctx->allocator, bytes);
    qkvi_gemm_bf16(ctx->pool, job);
    if (mine) atomic_store(&ctx->inputs_taken, false);
}

static void forward(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *x,
                    float *y, qkvi_gemm_map *map, float *mapped) {
    const int64_t n_in = layer->n_in, n_out = layer->n_out;
    if (!layer->half) {
        qkvi_gemm_mapped(ctx->pool, ctx->kernels, n_rows, n_out, n_in, x, n_in, 1, layer->forward,
                         y, n_out, layer->bias, false, map, mapped);
        return;
    }
    qkvi_gemm_bf16_job job = { .kernels = ctx->kernels,
                               .class = layer->half_mode.class,
                               .has_amx = layer->half_mode.has_amx,
                               .m = n_rows,
                               .n = n_out,
                               .k = n_in,
                               .a = x,
                               .a_row = n_in,
                               .packed_b = layer->half,
                               .c = y,
                               .c_row = n_out,
                               .bias = layer->bias,
                               .map = map,
                               .mapped = mapped };
    forward_half(ctx, &job);
}

void qkvi_linear_forward(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *x,
                         float *y) {
    forward(ctx, layer, n_rows, x, y, NULL, NULL);
}

void qkvi_linear_act_forward(qkv_ctx *ctx, const qkvi_linear *layer, qkvi_act act, int64_t n_rows,
                             const float *x, float *y, float *g) {
    forward(ctx, layer, n_rows, x, y, ctx->kernels->layer.act_forward[act], g);
}

void qkvi_linear_backward_input(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows,
                                const float *d_y, float *d_x, bool accumulate) {
    /* y = x Wᵀ + b */
    qkvi_gemm(ctx->pool, ctx->kernels, n_rows, layer->n_in, layer->n_out, d_y, layer->n_out, 1,
              layer->backward, d_x, layer->n_in, NULL, accumulate);
}

void qkvi_linear_backward_params(qkv_ctx *ctx, const qkvi_linear *d, int64_t n_rows,
                                 const float *d_y, const float *x_packed, float *scratch) {
    /* y = x Wᵀ + b */
    qkvi_gemm(ctx->pool, ctx->kernels, d->n_out, d->n_in, n_rows, d_y, 1, d->n_out, x_packed,
              d->weight, d->n_in, NULL, false);
    if (d->bias) qkvi_colsum(ctx, n_rows, d->n_out, d_y, scratch, d->bias);
}
