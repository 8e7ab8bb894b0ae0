/*
 * Embeddings, forward and backward: see embed.h.
 *
 * Backward is a scatter: rows with the same index are added up. A stable counting sort lists the
 * rows of each index in order; one thread sums each index, in blocks of QKVI_ROW_BLOCK rows like
 * every sum over rows.
 */
#include "layer/embed.h"

#include <string.h>

#include "attn/ctx.h"
#include "kernels/table.h"
#include "layer/angles.h"
#include "layer/rows.h"

/* ---- Sinusoids ---------------------------------------------------------------------------------
 *
 * In double, by series (angles.h), so that no libm decides the bits; the error is a few 1e-16 of
 * the angle, far below half an ulp of a float.
 */

#define LN_10000 0x1.26bb1bbb55516p+3

/* exp(-x) for 0 <= x < 16, as (exp(-x / 32))^32 */
static double exp_minus(double x) {
    double term = 1, sum = 1;
    for (int m = 1; m < 20; m++) {
        term *= -x / 32 / m;
        sum += term;
    }
    for (int square = 0; square < 5; square++) sum *= sum;
    return sum;
}

/* table[p][c] = the sine (quarter = 0) or cosine (1) of p 10000^(-2 wave / hidden) */
static void fill_wave(int64_t n_positions, int64_t hidden, int64_t wave, int quarter, int64_t c,
                      float *table) {
    const double frequency = exp_minus(LN_10000 * ((double)(2 * wave) / (double)hidden));
    for (int64_t p = 0; p < n_positions; p++)
        table[p * hidden + c] = (float)qkvi_sinusoid((double)p * frequency, quarter);
}

void qkvi_sinusoids(int64_t n_positions, int64_t hidden, float *table) {
    for (int64_t c = 0; c < hidden; c++)
        fill_wave(n_positions, hidden, c / 2, (int)(c % 2), c, table);
}

void qkvi_sinusoids_half(int64_t n_positions, int64_t hidden, float *table) {
    const int64_t n_sines = (hidden + 1) / 2;
    for (int64_t c = 0; c < hidden; c++)
        fill_wave(n_positions, hidden, c % n_sines, c >= n_sines, c, table);
}

/* ---- Forward --------------------------------------------------------------------------------- */

typedef struct forward_job {
    const qkvi_embed *layer;
    const qkvi_embed_rows *rows;
    float *s;
} forward_job;

static void forward_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const forward_job *j = argument;
    const qkvi_embed *e = j->layer;
    for (int64_t r = rows.first; r < rows.first + rows.count; r++) {
        float *const s = j->s + r * e->hidden;
        const float *word = e->word ? e->word + j->rows->ids[r] * e->hidden : s;
        const float *const position =
            e->n_positions > 0 ? e->position + j->rows->places[r] * e->hidden : e->type;
        if (!e->word) qkvi_weight_row(&e->tied, j->rows->ids[r], s);
        ctx->kernels->layer->add3(e->hidden, e->word_scale, word,
                                  e->type + j->rows->types[r] * e->hidden, position, s);
    }
}

void qkvi_embed_forward(qkv_ctx *ctx, const qkvi_embed *layer, int64_t n_rows,
                        const qkvi_embed_rows *rows, float *s) {
    forward_job j = { layer, rows, s };
    qkvi_rows_run(ctx, n_rows, forward_block, &j);
}

typedef struct gather_job {
    int64_t n;
    const int32_t *ids;
    float scale;
    bool add;
    const float *table;
    float *y;
} gather_job;

/* A sum of one row, added to y: fma(scale, row, y). */
static void gather_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const gather_job *j = argument;
    float *const y = j->y + rows.first * j->n;
    if (!j->add) memset(y, 0, (size_t)(rows.count * j->n) * sizeof *y);
    for (int64_t r = 0; r < rows.count; r++)
        ctx->kernels->layer->sum_rows(1, j->ids + rows.first + r, j->n, j->scale, j->table,
                                      y + r * j->n);
}

void qkvi_gather(qkv_ctx *ctx, int64_t n, int64_t n_rows, const int32_t *ids, float scale, bool add,
                 const float *table, float *y) {
    gather_job j = { n, ids, scale, add, table, y };
    qkvi_rows_run(ctx, n_rows, gather_block, &j);
}

/* ---- Backward -------------------------------------------------------------------------------- */

enum { MAX_TASKS = 64 };

typedef struct scatter_job {
    qkv_ctx *ctx;
    int64_t hidden, n_slots;
    float scale;
    int n_tasks;
    const int32_t *end; /* [n_slots]: rows of slot i are order[end[i - 1]] … order[end[i] - 1] */
    const int32_t *order; /* [n_rows] */
    const float *d_s;
    float *d_table; /* [n_slots][hidden], added to */
} scatter_job;

static void scatter_task(void *argument, int index) {
    const scatter_job *j = argument;
    for (int64_t slot = index; slot < j->n_slots; slot += j->n_tasks) {
        int32_t row = slot ? j->end[slot - 1] : 0;
        while (row < j->end[slot]) {
            const int32_t left = j->end[slot] - row;
            const int32_t count = left < QKVI_ROW_BLOCK ? left : QKVI_ROW_BLOCK;
            j->ctx->kernels->layer->sum_rows(count, j->order + row, j->hidden, j->scale, j->d_s,
                                             j->d_table + slot * j->hidden);
            row += count;
        }
    }
}

void qkvi_scatter(qkv_ctx *ctx, int64_t hidden, int64_t n_slots, int64_t left_out, int64_t n_rows,
                  const int32_t *slots, float scale, const float *d_s, float *d_table,
                  int32_t *scratch) {
    int32_t *end = scratch, *order = scratch + n_slots, first = 0;
    memset(end, 0, (size_t)n_slots * sizeof *end);
    for (int64_t r = 0; r < n_rows; r++) end[slots[r]] += slots[r] != left_out;
    for (int64_t i = 0; i < n_slots; i++) { /* counts become first places … */
        const int32_t count = end[i];
        end[i] = first;
        first += count;
    }
    for (int64_t r = 0; r < n_rows; r++) /* … and ends */
        if (slots[r] != left_out) order[end[slots[r]]++] = (int32_t)r;

    const int n_tasks = n_slots < MAX_TASKS ? (int)n_slots : MAX_TASKS;
    scatter_job j = { ctx, hidden, n_slots, scale, n_tasks, end, order, d_s, d_table };
    qkvi_pool_run(ctx->pool, n_tasks, scatter_task, &j);
}

int64_t qkvi_embed_scratch_elems(const qkvi_embed *layer, int64_t n_rows) {
    int64_t n_slots = layer->n_words;
    if (n_slots < layer->n_positions) n_slots = layer->n_positions;
    if (n_slots < layer->n_types) n_slots = layer->n_types;
    return n_slots + n_rows;
}

void qkvi_embed_backward(qkv_ctx *ctx, const qkvi_embed *d, int64_t n_rows,
                         const qkvi_embed_rows *rows, const float *d_s, int32_t *scratch) {
    const int64_t hidden = d->hidden;
    /* s[row] = (word_scale word[id] + type[segment]) + position[place] */
    qkvi_scatter(ctx, hidden, d->n_words, d->padding, n_rows, rows->ids, d->word_scale, d_s,
                 d->word, scratch);
    if (d->type) {
        memset(d->type, 0, (size_t)(d->n_types * hidden) * sizeof *d->type);
        qkvi_scatter(ctx, hidden, d->n_types, -1, n_rows, rows->types, 1, d_s, d->type, scratch);
    }
    if (!d->position) return;
    memset(d->position, 0, (size_t)(d->n_positions * hidden) * sizeof *d->position);
    qkvi_scatter(ctx, hidden, d->n_positions, d->padding_place, n_rows, rows->places, 1, d_s,
                 d->position, scratch);
}
