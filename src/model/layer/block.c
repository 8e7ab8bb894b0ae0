/* One block, forward: see block.h. */
#include "model/layer/block_parts.h"

#include "attn/ctx.h"
#include "core/ints.h"
#include "files/base.h"
#include "kernels/table.h"
#include "layer/rows.h"

/* ---- A residual part, forward ---------------------------------------------------------------- */

/* What f reads of x. */
static const float *enter(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_layernorm *norm,
                          int64_t n, const float *x, const qkvi_part_acts *part) {
    if (!qkvi_block_reads_norm(layer, norm)) return x;
    /* without a residual s is only read */
    qkvi_layernorm_forward(ctx, norm, layer->eps, n, NULL, (float *)x, part->y, part->stats);
    return part->y;
}

/* The part's output, from part->f that has f's result; out: its norm, or none. */
static const float *leave(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_layernorm *norm,
                          const qkvi_layernorm *out, const qkvi_row_dropout *dropout, int64_t n,
                          const float *x, const qkvi_part_acts *part) {
    if (out && out->gamma)
        qkvi_layernorm_forward(ctx, out, layer->eps, n, NULL, part->f, part->s, part->f_stats);
    qkvi_dropout_rows(ctx, dropout, n, norm->n, part->s);
    if (layer->adds) {
        qkvi_rows_add(ctx, n, norm->n, x, part->s);
        return part->s;
    }
    qkvi_layernorm_forward(ctx, norm, layer->eps, n, x, part->s, part->y, part->stats);
    return part->y;
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* to[i] = from[pick->rows[i]] */
static void gather(const qkvi_pick *pick, int64_t hidden, const float *from, float *to) {
    for (int64_t i = 0; i < pick->n; i++)
        memcpy(to + i * hidden, from + pick->rows[i] * hidden, (size_t)hidden * sizeof *to);
}

static qkv_status attend_rows(qkv_ctx *ctx, const qkvi_mha *mha, const qkvi_block_rows *rows,
                              bool cross, const float *x, qkvi_mha_acts *acts) {
    const qkvi_kept *const kept = &rows->kept;
    if (kept->attend) return kept->attend(ctx, kept->kept, mha, rows->layer, cross, x, acts);
    const qkvi_groups groups =
        qkvi_block_groups(rows, cross ? QKVI_CROSS_WEIGHTS : QKVI_SELF_WEIGHTS);
    return qkvi_mha_forward(ctx, mha, &groups, x, cross ? rows->memory : NULL, acts);
}

static qkv_status attend(qkv_ctx *ctx, const qkvi_mha *mha, const qkvi_block_rows *rows, bool cross,
                         const float *x, qkvi_mha_acts *acts) {
    const qkvi_outputs *const outputs = &rows->outputs;
    if (!outputs->give || !outputs->give(outputs->of, rows->layer, cross, acts->o))
        QKV_TRY(attend_rows(ctx, mha, rows, cross, x, acts));
    if (outputs->change) outputs->change(outputs->of, rows->layer, cross, acts->o);
    return QKV_OK;
}

static qkv_status cross_forward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block_rows *rows,
                                const float **x, qkvi_block_acts *acts) {
    const qkvi_row_dropout dropout = qkvi_block_site(rows, QKVI_CROSS_RESULT);
    const qkvi_part_acts *const part = &acts->part_cross;
    const int64_t n = rows->self.n_rows;
    const float *const z = enter(ctx, layer, &layer->norm_cross, n, *x, part);
    QKV_TRY(attend(ctx, &layer->cross, rows, true, z, &acts->cross));
    qkvi_linear_forward(ctx, &layer->cross.output, n, acts->cross.o, part->f);
    *x = leave(ctx, layer, &layer->norm_cross, NULL, &dropout, n, *x, part);
    return QKV_OK;
}

/* f(z) of the feed-forward part, for rows that acts have room for; f may be z. */
static void feed(qkv_ctx *ctx, const qkvi_block *layer, int64_t n, const float *z,
                 const qkvi_block_acts *acts, float *f) {
    const qkvi_linear *const maps[2] = { &layer->gate, &layer->up };
    float *const results[2] = { acts->gate, acts->u };
    if (layer->gate.n_out == 0) {
        qkvi_linear_pair_forward(ctx, &layer->up, layer->act, &layer->down, n, z, acts->u, acts->g,
                                 f);
        return;
    }
    qkvi_linears_forward(ctx, 2, maps, n, z, results, NULL);
    qkvi_gated_forward(ctx, layer->act, n, layer->up.n_out, acts->gate, acts->u, acts->g);
    qkvi_linear_forward(ctx, &layer->down, n, acts->g, f);
}

/* The feed-forward part reads `read` and is added to x. */
static void feed_forward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block_rows *rows,
                         int64_t n, const float *read, const float *x, qkvi_block_acts *acts) {
    const qkvi_row_dropout dropout = qkvi_block_site(rows, QKVI_FEED_FORWARD);
    const float *const z = enter(ctx, layer, &layer->norm2, n, read, &acts->part2);
    for (int64_t i = 0, some; i < n; i += some) {
        some = qkvi_min_i64(acts->n_feed, n - i);
        feed(ctx, layer, some, z + i * layer->up.n_in, acts, acts->part2.f + i * layer->down.n_out);
    }
    leave(ctx, layer, &layer->norm2, &layer->out2, &dropout, n, layer->from_norm ? z : x,
          &acts->part2);
}

qkv_status qkvi_block_forward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block_rows *rows,
                              const qkvi_pick *pick, const float *x, qkvi_block_acts *acts) {
    const qkvi_row_dropout dropout = qkvi_block_site(rows, QKVI_SELF_RESULT);
    const float *o = acts->mha.o;
    int64_t n = rows->self.n_rows;
    const float *const z = enter(ctx, layer, &layer->norm1, n, x, &acts->part1);
    QKV_TRY(attend(ctx, &layer->mha, rows, false, z, &acts->mha));
    if (layer->from_norm) x = z;
    if (pick) {
        gather(pick, qkvi_mha_width(&layer->mha), o, pick->o);
        gather(pick, layer->mha.hidden, x, pick->x);
        o = pick->o, x = pick->x, n = pick->n;
    }
    qkvi_linear_forward(ctx, &layer->mha.output, n, o, acts->part1.f);
    const float *y = leave(ctx, layer, &layer->norm1, &layer->out1, &dropout, n, x, &acts->part1);
    if (qkvi_block_crosses(layer)) QKV_TRY(cross_forward(ctx, layer, rows, &y, acts));
    feed_forward(ctx, layer, rows, n, layer->parallel ? x : y, y, acts);
    return QKV_OK;
}
