/*
 * Linear layer, forward and backward: see linear.h.
 *
 * All three products use the same kernel, in f32 or bf16; forward also that in int8. Right factors
 * (weights, and x for d_W) are packed. Left factors (x and d_y) are read where they lie, d_yᵀ, and
 * rows that lie badly for the caches, in blocks that are copied; in bf16 they are rounded.
 */
#include "layer/linear.h"

#include "attn/ctx.h"
#include "kernels/gemm.h"
#include "kernels/table.h"
#include "layer/rows.h"

static void pack_half(qkv_ctx *ctx, int64_t k, int64_t n, const float *b, int64_t row_stride,
                      int64_t col_stride, uint32_t *packed) {
    if (ctx)
        qkvi_bf16_pack_b_by(ctx->kernels, ctx->pool, k, n, b, row_stride, col_stride, packed);
    else
        qkvi_bf16_pack_b(NULL, k, n, b, row_stride, col_stride, packed);
}

void qkvi_linear_pack(qkv_ctx *ctx, const qkvi_linear *layer) {
    qkvi_pool *pool = ctx ? ctx->pool : NULL;
    const qkvi_kernels *const kernels = ctx ? ctx->kernels : NULL;
    const int64_t n_in = layer->n_in, n_out = layer->n_out;
    if (!layer->weight) return;
    if (layer->forward)
        qkvi_gemm_pack_b(pool, kernels, n_in, n_out, layer->weight, 1, n_in, layer->forward);
    if (layer->backward)
        qkvi_gemm_pack_b(pool, kernels, n_out, n_in, layer->weight, n_in, 1, layer->backward);
    if (layer->half) pack_half(ctx, n_in, n_out, layer->weight, 1, n_in, layer->half);
    if (layer->half_backward)
        pack_half(ctx, n_out, n_in, layer->weight, n_in, 1, layer->half_backward);
    if (layer->int8)
        qkvi_int8_pack_b(kernels, pool, n_in, n_out, layer->weight, 1, n_in, layer->int8);
}

int64_t qkvi_rows_packed_elems(int64_t n_rows, int64_t n) {
    const size_t floats = qkvi_gemm_packed_elems(n_rows, n);
    const size_t words = qkvi_bf16_packed_words(n_rows, n); /* more of few rows */
    const size_t most = floats > words ? floats : words;
    return most < INT64_MAX ? (int64_t)most : INT64_MAX;
}

void qkvi_pack_rows(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *x,
                    float *packed) {
    const int64_t n = layer->n_in;
    if (layer->half)
        pack_half(ctx, n_rows, n, x, n, 1, (uint32_t *)packed);
    else
        qkvi_gemm_pack_b(ctx->pool, ctx->kernels, n_rows, n, x, n, 1, packed);
}

/* ---- Forward --------------------------------------------------------------------------------- */

/*
 * Rounded or copied inputs lie in the context, whose memory for them only grows: from malloc a
 * layer would get new pages each time. A second thread, or one without memory, gets NULL and does
 * without.
 */
typedef struct inputs {
    bool mine;
    void *at;
} inputs;

static inputs take_inputs(qkv_ctx *ctx, size_t bytes) {
    inputs space = { .mine = !atomic_exchange(&ctx->inputs_taken, true) };
    if (space.mine && bytes != SIZE_MAX)
        space.at = qkvi_arena_reserve(&ctx->inputs, &ctx->allocator, bytes);
    return space;
}

static void give_back(qkv_ctx *ctx, const inputs *space) {
    if (space->mine) atomic_store(&ctx->inputs_taken, false);
}

/* A product of floats, whose left factor may be copied. */
static void run_floats(qkv_ctx *ctx, qkvi_gemm_job *job) {
    job->kernels = ctx->kernels;
    const size_t elems = qkvi_gemm_copy_elems(ctx->pool, job, ctx->l1_ways);
    if (!elems) {
        qkvi_gemm(ctx->pool, job);
        return;
    }
    const inputs space = take_inputs(ctx, elems * sizeof *job->space);
    job->space = space.at;
    qkvi_gemm(ctx->pool, job);
    give_back(ctx, &space);
}

/* What products in bf16 work in. */
typedef struct half_space {
    inputs space;
    uint16_t *x, *wide; /* rows of n_in, and of n_wide if that is not 0 */
    float *sums;
} half_space;

static half_space enter_half(qkv_ctx *ctx, int64_t n_rows, int64_t n_in, int64_t n_wide) {
    half_space s = { .x = NULL };
    const size_t x = qkvi_bf16_input_elems(n_rows, n_in);
    const size_t wide = n_wide ? qkvi_bf16_input_elems(n_rows, n_wide) : 0;
    const size_t sums = qkvi_bf16_sums_elems(ctx->pool);
    qkvi_cutter cutter = { 0 };
    if (x > INT64_MAX || wide > INT64_MAX) return s;
    for (int pass = 0; pass < 2; pass++) {
        s.x = qkvi_cut(&cutter, (int64_t)x, sizeof *s.x);
        s.wide = qkvi_cut(&cutter, (int64_t)wide, sizeof *s.wide);
        s.sums = qkvi_cut(&cutter, (int64_t)sums, sizeof *s.sums);
        if (pass) break;
        s.space = take_inputs(ctx, cutter.overflow ? SIZE_MAX : cutter.used_bytes);
        if (!s.space.at) break;
        cutter = qkvi_cutter_on(s.space.at);
    }
    return s;
}

static void run_in(qkv_ctx *ctx, const half_space *s, const qkvi_linear *layer,
                   qkvi_gemm_bf16_job *job) {
    job->kernels = ctx->kernels;
    job->class = ctx->class_of[layer->half_class];
    job->sums = s->sums;
    qkvi_gemm_bf16(ctx->pool, job);
}

static void run_half(qkv_ctx *ctx, const qkvi_linear *layer, qkvi_gemm_bf16_job *job) {
    const half_space space = enter_half(ctx, job->m, job->k, 0);
    job->half = space.x;
    run_in(ctx, &space, layer, job);
    give_back(ctx, &space.space);
}

static qkvi_gemm_bf16_job forward_job(const qkvi_linear *layer, int64_t n_rows, const float *x,
                                      float *y) {
    return (qkvi_gemm_bf16_job){ .m = n_rows,
                                 .n = layer->n_out,
                                 .k = layer->n_in,
                                 .a = x,
                                 .a_row = layer->n_in,
                                 .packed_b = layer->half,
                                 .c = y,
                                 .c_row = layer->n_out,
                                 .bias = layer->bias };
}

/* map, of the first layer; NULL: none. */
static void run_int8(qkv_ctx *ctx, int n_layers, const qkvi_linear *const *layers, int64_t n_rows,
                     const float *x, float *const *y, qkvi_gemm_map *map, float *mapped) {
    qkvi_gemm_int8_job jobs[QKVI_GEMM_INT8_JOBS];
    const size_t n_groups = qkvi_int8_groups(n_rows, layers[0]->n_in);
    const inputs space =
        take_inputs(ctx, n_groups == SIZE_MAX ? SIZE_MAX : n_groups * sizeof(qkvi_int8_group));
    for (int l = 0; l < n_layers; l++)
        jobs[l] = (qkvi_gemm_int8_job){ .kernels = ctx->kernels,
                                        .m = n_rows,
                                        .n = layers[l]->n_out,
                                        .k = layers[l]->n_in,
                                        .a = x,
                                        .packed_b = layers[l]->int8,
                                        .c = y[l],
                                        .bias = layers[l]->bias,
                                        .map = l == 0 ? map : NULL,
                                        .mapped = mapped,
                                        .rows = space.at };
    qkvi_gemm_int8(ctx->pool, n_layers, jobs);
    give_back(ctx, &space);
}

static void run_blocks(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *x,
                       float *y, qkvi_gemm_map *map, float *mapped) {
    const inputs space = take_inputs(ctx, qkvi_blocks_room(layer->format, n_rows, layer->n_in));
    qkvi_blocks_job job = { .kernels = ctx->kernels,
                            .format = layer->format,
                            .m = n_rows,
                            .n = layer->n_out,
                            .k = layer->n_in,
                            .a = x,
                            .b = layer->blocks,
                            .c = y,
                            .bias = layer->bias,
                            .map = map,
                            .mapped = mapped,
                            .rows = space.at };
    qkvi_blocks_gemm(ctx->pool, &job);
    give_back(ctx, &space);
}

static void forward(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *x,
                    float *y, qkvi_gemm_map *map, float *mapped) {
    const int64_t n_in = layer->n_in, n_out = layer->n_out;
    if (layer->int8) {
        run_int8(ctx, 1, &layer, n_rows, x, &y, map, mapped);
        return;
    }
    if (layer->blocks) {
        run_blocks(ctx, layer, n_rows, x, y, map, mapped);
        return;
    }
    if (!layer->half) {
        qkvi_gemm_job job = { .m = n_rows,
                              .n = n_out,
                              .k = n_in,
                              .a = x,
                              .a_row = n_in,
                              .a_col = 1,
                              .packed_b = layer->forward,
                              .c = y,
                              .c_row = n_out,
                              .bias = layer->bias,
                              .map = map,
                              .mapped = mapped };
        run_floats(ctx, &job);
        return;
    }
    qkvi_gemm_bf16_job job = forward_job(layer, n_rows, x, y);
    job.map = map, job.mapped = mapped;
    run_half(ctx, layer, &job);
}

void qkvi_linear_forward(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *x,
                         float *y) {
    forward(ctx, layer, n_rows, x, y, NULL, NULL);
}

void qkvi_linear_act_forward(qkv_ctx *ctx, const qkvi_linear *layer, qkvi_act act, int64_t n_rows,
                             const float *x, float *y, float *g) {
    forward(ctx, layer, n_rows, x, y, ctx->kernels->layer->act_forward[act], g);
}

void qkvi_linears_forward(qkv_ctx *ctx, int n_layers, const qkvi_linear *const *layers,
                          int64_t n_rows, const float *x, float *const *y, uint16_t *const *half) {
    if (layers[0]->int8) {
        run_int8(ctx, n_layers, layers, n_rows, x, y, NULL, NULL);
        return;
    }
    if (!layers[0]->half) {
        for (int l = 0; l < n_layers; l++) forward(ctx, layers[l], n_rows, x, y[l], NULL, NULL);
        return;
    }
    const half_space space = enter_half(ctx, n_rows, layers[0]->n_in, 0);
    for (int l = 0; l < n_layers; l++) {
        qkvi_gemm_bf16_job job = forward_job(layers[l], n_rows, x, y[l]);
        job.half = space.x, job.half_filled = l > 0;
        job.rows = half ? half[l] : NULL;
        run_in(ctx, &space, layers[l], &job);
    }
    give_back(ctx, &space.space);
}

void qkvi_linear_pair_forward(qkv_ctx *ctx, const qkvi_linear *up, qkvi_act act,
                              const qkvi_linear *down, int64_t n_rows, const float *x, float *u,
                              float *g, float *y) {
    const bool in_half = up->half && down->half && u == g;
    const half_space space =
        in_half ? enter_half(ctx, n_rows, up->n_in, up->n_out) : (half_space){ 0 };
    if (!space.wide) {
        give_back(ctx, &space.space);
        qkvi_linear_act_forward(ctx, up, act, n_rows, x, u, g);
        qkvi_linear_forward(ctx, down, n_rows, g, y);
        return;
    }
    qkvi_gemm_bf16_job job = forward_job(up, n_rows, x, u);
    job.map = ctx->kernels->layer->act_forward[act], job.mapped = g;
    job.half = space.x, job.rounded = space.wide;
    run_in(ctx, &space, up, &job);
    job = forward_job(down, n_rows, NULL, y);
    job.half = space.wide, job.half_filled = true;
    run_in(ctx, &space, down, &job);
    give_back(ctx, &space.space);
}

/* ---- Backward: y = x Wᵀ + b ------------------------------------------------------------------ */

static void input_half(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *d_y,
                       float *d_x) {
    qkvi_gemm_bf16_job job = { .m = n_rows,
                               .n = layer->n_in,
                               .k = layer->n_out,
                               .a = d_y,
                               .a_row = layer->n_out,
                               .packed_b = layer->half_backward,
                               .c = d_x,
                               .c_row = layer->n_in };
    run_half(ctx, layer, &job);
}

static void input_floats(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *d_y,
                         float *d_x, bool add) {
    qkvi_gemm_job job = { .m = n_rows,
                          .n = layer->n_in,
                          .k = layer->n_out,
                          .a = d_y,
                          .a_row = layer->n_out,
                          .a_col = 1,
                          .packed_b = layer->backward,
                          .c = d_x,
                          .c_row = layer->n_in,
                          .accumulate = add };
    run_floats(ctx, &job);
}

void qkvi_linear_backward_input(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows,
                                const float *d_y, float *d_x) {
    if (layer->half_backward)
        input_half(ctx, layer, n_rows, d_y, d_x);
    else
        input_floats(ctx, layer, n_rows, d_y, d_x, false);
}

void qkvi_linear_backward_input_add(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows,
                                    const float *d_y, float *d_x, float *product) {
    if (!layer->half_backward) {
        input_floats(ctx, layer, n_rows, d_y, d_x, true);
        return;
    }
    input_half(ctx, layer, n_rows, d_y, product);
    qkvi_rows_add(ctx, n_rows, layer->n_in, product, d_x);
}

static void weight_half(qkv_ctx *ctx, const qkvi_linear *layer, const qkvi_linear *d,
                        int64_t n_rows, const float *d_y, const float *x_packed) {
    qkvi_gemm_bf16_job job = { .m = d->n_out,
                               .n = d->n_in,
                               .k = n_rows,
                               .a = d_y,
                               .a_row = 1,
                               .a_col = d->n_out,
                               .packed_b = (const uint32_t *)x_packed,
                               .c = d->weight,
                               .c_row = d->n_in };
    run_half(ctx, layer, &job);
}

static void weight_floats(qkv_ctx *ctx, const qkvi_linear *d, int64_t n_rows, const float *d_y,
                          const float *x_packed) {
    qkvi_gemm_job job = { .m = d->n_out,
                          .n = d->n_in,
                          .k = n_rows,
                          .a = d_y,
                          .a_row = 1,
                          .a_col = d->n_out,
                          .packed_b = x_packed,
                          .c = d->weight,
                          .c_row = d->n_in };
    run_floats(ctx, &job);
}

void qkvi_linear_backward_params(qkv_ctx *ctx, const qkvi_linear *layer, const qkvi_linear *d,
                                 int64_t n_rows, const float *d_y, const float *x_packed,
                                 float *scratch) {
    if (layer->half)
        weight_half(ctx, layer, d, n_rows, d_y, x_packed);
    else
        weight_floats(ctx, d, n_rows, d_y, x_packed);
    if (d->bias) qkvi_colsum(ctx, n_rows, d->n_out, d_y, scratch, d->bias);
}
