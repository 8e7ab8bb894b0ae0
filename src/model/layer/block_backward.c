/* One block, backward: see block.h. */
#include "model/layer/block_parts.h"

#include "attn/ctx.h"
#include "files/base.h"
#include "kernels/table.h"
#include "layer/rows.h"

/* ---- A residual part, backward --------------------------------------------------------------- */

/* d, the gradient of the part's output, becomes that of s; returns the gradient of f's result. */
static float *leave_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_layernorm *norm,
                             const qkvi_layernorm *d_norm, const qkvi_layernorm *out,
                             const qkvi_layernorm *d_out, const qkvi_row_dropout *dropout,
                             int64_t n, const qkvi_part_acts *part, float *d,
                             const qkvi_block_scratch *scratch) {
    const bool normed = out && out->gamma;
    if (!layer->adds)
        qkvi_layernorm_backward(ctx, norm, d_norm, n, part->s, part->stats, d, d,
                                scratch->mha.sums);
    if (dropout->rate == 0 && !normed) return d;
    memcpy(scratch->d_part, d, (size_t)(n * norm->n) * sizeof *d);
    qkvi_dropout_rows(ctx, dropout, n, norm->n, scratch->d_part);
    if (normed)
        qkvi_layernorm_backward(ctx, out, d_out, n, part->f, part->f_stats, scratch->d_part,
                                scratch->d_part, scratch->mha.sums);
    return scratch->d_part;
}

/* Where the gradient of what f read is added: nothing there yet, or that of the sum with it. */
static float *read_gradient(const qkvi_block *layer, const qkvi_layernorm *norm, int64_t n,
                            float *d, const qkvi_block_scratch *scratch) {
    const size_t n_bytes = (size_t)(n * layer->mha.hidden) * sizeof *d;
    if (!qkvi_block_reads_norm(layer, norm)) return d;
    if (layer->from_norm)
        memcpy(scratch->d_part, d, n_bytes);
    else
        memset(scratch->d_part, 0, n_bytes);
    return scratch->d_part;
}

/* d becomes the gradient of x, from that of what f read. */
static void enter_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_layernorm *norm,
                           const qkvi_layernorm *d_norm, int64_t n, const float *x,
                           const qkvi_part_acts *part, float *d, float *d_read,
                           const qkvi_block_scratch *scratch) {
    if (!qkvi_block_reads_norm(layer, norm)) return;
    qkvi_layernorm_backward(ctx, norm, d_norm, n, x, part->stats, d_read,
                            layer->from_norm ? d : d_read, scratch->mha.sums);
    if (!layer->from_norm) qkvi_rows_add(ctx, n, norm->n, d_read, d);
}

/* Gradients of a norm's parameters, [2][n]. */
static void keep_norm(const qkvi_layernorm *d, float *kept) {
    memcpy(kept, d->gamma, (size_t)d->n * sizeof *kept);
    if (d->beta) memcpy(kept + d->n, d->beta, (size_t)d->n * sizeof *kept);
}

static void add_norm(const float *kept, const qkvi_layernorm *d) {
    for (int64_t i = 0; i < d->n; i++) d->gamma[i] += kept[i];
    for (int64_t i = 0; d->beta && i < d->n; i++) d->beta[i] += kept[d->n + i];
}

/* The output projection of an attention: d_o from the gradient of y = o Woᵀ + bo. */
static void output_backward(qkv_ctx *ctx, const qkvi_mha *mha, const qkvi_mha *d_mha, int64_t n,
                            const float *o, const float *d_y, float *d_o,
                            const qkvi_mha_scratch *scratch) {
    qkvi_pack_rows(ctx, &mha->output, n, o, scratch->packed);
    qkvi_linear_backward_params(ctx, &mha->output, &d_mha->output, n, d_y, scratch->packed,
                                scratch->sums);
    qkvi_linear_backward_input(ctx, &mha->output, n, d_y, d_o);
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* Floats that the gradients of a norm of queries or keys are summed in. */
static int64_t norm_sums(const qkvi_layernorm *norm, int64_t n_rows, int64_t width) {
    return norm->gamma ? 2 * qkvi_colsum_elems(n_rows * (width / norm->n), norm->n) : 0;
}

void qkvi_block_scratch_cut(const qkvi_block *layer, int64_t n_rows, int64_t n_keys,
                            qkvi_cutter *cutter, qkvi_block_scratch *scratch) {
    const int64_t hidden = layer->mha.hidden, wide = layer->up.n_out;
    const int64_t width = qkvi_mha_width(&layer->mha), kv_width = qkvi_mha_kv_width(&layer->mha);
    const int64_t most = hidden > width ? hidden : width, widest = wide > most ? wide : most;
    const int64_t n_most = n_rows > n_keys ? n_rows : n_keys;
    const struct {
        float **rows;
        int64_t width;
    } arrays[] = { { &scratch->mha.d_q, width },
                   { &scratch->mha.d_k, kv_width },
                   { &scratch->mha.d_v, kv_width },
                   { &scratch->mha.d_o, width },
                   { &scratch->d_part, hidden } };
    for (int i = 0; i < 5; i++)
        *arrays[i].rows = qkvi_cut(cutter, n_most * arrays[i].width, sizeof(float));
    scratch->mha.packed = qkvi_cut(cutter, qkvi_rows_packed_elems(n_most, widest), sizeof(float));
    scratch->mha.product = qkvi_cut(cutter, layer->up.half ? n_most * hidden : 0, sizeof(float));
    const qkvi_distance_bias *const d = layer->mha.distances;
    scratch->mha.d_bias =
        qkvi_cut(cutter, d ? d->n_heads * qkvi_distance_bias_size(d) : 0, sizeof(float));
    int64_t sums = 2 * qkvi_colsum_elems(n_most, hidden);
    sums = qkvi_max_i64(sums, qkvi_colsum_elems(n_most, widest));
    sums = qkvi_max_i64(sums, norm_sums(&layer->mha.q_norm, n_most, width));
    sums = qkvi_max_i64(sums, norm_sums(&layer->mha.k_norm, n_most, kv_width));
    scratch->mha.sums = qkvi_cut(cutter, sums, sizeof(float));
    scratch->d_g = qkvi_cut(cutter, n_rows * wide, sizeof(float));
    scratch->d_gate = qkvi_cut(cutter, layer->gate.n_out > 0 ? n_rows * wide : 0, sizeof(float));
    scratch->d_output = qkvi_cut(cutter, layer->parallel ? n_rows * hidden : 0, sizeof(float));
    scratch->d_norm =
        qkvi_cut(cutter, qkvi_block_shares_norm(layer) ? 2 * hidden : 0, sizeof(float));
}

/* to = 0, then to[pick->rows[i]] += from[i] in order */
static void scatter(qkv_ctx *ctx, const qkvi_pick *pick, int64_t n_rows, int64_t hidden,
                    const float *from, float *to) {
    memset(to, 0, (size_t)(n_rows * hidden) * sizeof *to);
    for (int64_t i = 0; i < pick->n; i++)
        ctx->kernels->layer->add(hidden, from + i * hidden, to + pick->rows[i] * hidden);
}

/* The gradients of the feed-forward part; x is what it read as the block's input. */
static void feed_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block *grads,
                          const qkvi_block_rows *rows, int64_t n, const float *x,
                          const qkvi_block_acts *acts, float *d,
                          const qkvi_block_scratch *scratch) {
    const int64_t wide = layer->up.n_out;
    const qkvi_part_acts *const part = &acts->part2;
    const qkvi_row_dropout dropout = qkvi_block_site(rows, QKVI_FEED_FORWARD);
    float *packed = scratch->mha.packed, *sums = scratch->mha.sums, *d_g = scratch->d_g;
    const float *const d_f = leave_backward(ctx, layer, &layer->norm2, &grads->norm2, &layer->out2,
                                            &grads->out2, &dropout, n, part, d, scratch);

    /* f = g Wdᵀ + bd */
    qkvi_pack_rows(ctx, &layer->down, n, acts->g, packed);
    qkvi_linear_backward_params(ctx, &layer->down, &grads->down, n, d_f, packed, sums);
    qkvi_linear_backward_input(ctx, &layer->down, n, d_f, d_g);

    /* g = act(u), or act(gate) ⊙ u: d_g becomes the gradient of u */
    const bool gated = layer->gate.n_out > 0;
    if (gated)
        qkvi_gated_backward(ctx, layer->act, n, wide, acts->gate, acts->u, d_g, scratch->d_gate);
    else
        qkvi_act_backward(ctx, layer->act, n, wide, acts->u, d_g, d_g);

    /* u = z Wuᵀ + bu, gate = z Wgᵀ + bg */
    float *const d_z = read_gradient(layer, &layer->norm2, n, d, scratch);
    qkvi_pack_rows(ctx, &layer->up, n, qkvi_block_read(layer, &layer->norm2, part, x), packed);
    qkvi_linear_backward_params(ctx, &layer->up, &grads->up, n, d_g, packed, sums);
    qkvi_linear_backward_input_add(ctx, &layer->up, n, d_g, d_z, scratch->mha.product);
    if (gated) {
        qkvi_linear_backward_params(ctx, &layer->gate, &grads->gate, n, scratch->d_gate, packed,
                                    sums);
        qkvi_linear_backward_input_add(ctx, &layer->gate, n, scratch->d_gate, d_z,
                                       scratch->mha.product);
    }
    enter_backward(ctx, layer, &layer->norm2, &grads->norm2, n, x, part, d, d_z, scratch);
}

static qkv_status cross_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block *grads,
                                 const qkvi_block_rows *rows, const float *x,
                                 const qkvi_block_acts *acts, float *d, float *d_memory,
                                 const qkvi_block_scratch *scratch) {
    const qkvi_groups groups = qkvi_block_groups(rows, QKVI_CROSS_WEIGHTS);
    const qkvi_row_dropout dropout = qkvi_block_site(rows, QKVI_CROSS_RESULT);
    const qkvi_part_acts *const part = &acts->part_cross;
    const int64_t n = groups.n_rows;
    const float *const d_f = leave_backward(ctx, layer, &layer->norm_cross, &grads->norm_cross,
                                            NULL, NULL, &dropout, n, part, d, scratch);
    output_backward(ctx, &layer->cross, &grads->cross, n, acts->cross.o, d_f, scratch->mha.d_o,
                    &scratch->mha);
    float *const d_z = read_gradient(layer, &layer->norm_cross, n, d, scratch);
    QKV_TRY(qkvi_mha_backward(ctx, &layer->cross, &grads->cross, &groups,
                              qkvi_block_read(layer, &layer->norm_cross, part, x), rows->memory,
                              &acts->cross, d_z, d_memory, &scratch->mha));
    enter_backward(ctx, layer, &layer->norm_cross, &grads->norm_cross, n, x, part, d, d_z, scratch);
    return QKV_OK;
}

/*
 * d of the output of the first part becomes that of x. d_part: d, or the picked rows of it; of a
 * parallel block that of the output alone, d having that of x through the feed-forward part, too.
 */
static qkv_status self_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block *grads,
                                const qkvi_block_rows *rows, const qkvi_pick *pick, const float *x,
                                const qkvi_block_acts *acts, float *d_part, float *d,
                                const qkvi_block_scratch *scratch) {
    const qkvi_groups groups = qkvi_block_groups(rows, QKVI_SELF_WEIGHTS);
    const qkvi_row_dropout dropout = qkvi_block_site(rows, QKVI_SELF_RESULT);
    const qkvi_part_acts *const part = &acts->part1;
    const int64_t n_rows = groups.n_rows, hidden = layer->mha.hidden;
    const int64_t n = pick ? pick->n : n_rows;
    float *const d_o = pick ? pick->x : scratch->mha.d_o; /* nothing needs pick->x any more */
    const float *const d_f = leave_backward(ctx, layer, &layer->norm1, &grads->norm1, &layer->out1,
                                            &grads->out1, &dropout, n, part, d_part, scratch);
    output_backward(ctx, &layer->mha, &grads->mha, n, pick ? pick->o : acts->mha.o, d_f, d_o,
                    &scratch->mha);
    if (pick) {
        scatter(ctx, pick, n_rows, qkvi_mha_width(&layer->mha), d_o, scratch->mha.d_o);
        scatter(ctx, pick, n_rows, hidden, pick->d, d);
    }
    float *const d_z = read_gradient(layer, &layer->norm1, n_rows, d, scratch);
    QKV_TRY(qkvi_mha_backward(ctx, &layer->mha, &grads->mha, &groups,
                              qkvi_block_read(layer, &layer->norm1, part, x), NULL, &acts->mha, d_z,
                              d_z, &scratch->mha));
    enter_backward(ctx, layer, &layer->norm1, &grads->norm1, n_rows, x, part, d, d_z, scratch);
    return QKV_OK;
}

static const float *output_of(const qkvi_block *layer, const qkvi_part_acts *part) {
    return layer->adds ? part->s : part->y;
}

qkv_status qkvi_block_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block *grads,
                               const qkvi_block_rows *rows, const qkvi_pick *pick, const float *x,
                               const qkvi_block_acts *acts, float *d, float *d_memory,
                               const qkvi_block_scratch *scratch) {
    const int64_t n = pick ? pick->n : rows->self.n_rows;
    const float *const x1 = output_of(layer, &acts->part1);
    const bool crosses = qkvi_block_crosses(layer);
    const float *const x2 = crosses ? output_of(layer, &acts->part_cross) : x1;
    float *const d_y = pick ? pick->d : d;
    const size_t n_d = layer->parallel ? (size_t)(n * layer->mha.hidden) : 0;
    const float *const read = pick ? pick->x : x;
    if (n_d > 0) memcpy(scratch->d_output, d_y, n_d * sizeof *d_y);
    feed_backward(ctx, layer, grads, rows, n, layer->parallel ? read : x2, acts, d_y, scratch);
    if (crosses) QKV_TRY(cross_backward(ctx, layer, grads, rows, x1, acts, d, d_memory, scratch));
    const bool shared = qkvi_block_shares_norm(layer); /* the other part stores its gradient anew */
    if (shared) keep_norm(&grads->norm2, scratch->d_norm);
    QKV_TRY(self_backward(ctx, layer, grads, rows, pick, x, acts,
                          layer->parallel ? scratch->d_output : d_y, d, scratch));
    if (shared) add_norm(scratch->d_norm, &grads->norm1);
    return QKV_OK;
}
