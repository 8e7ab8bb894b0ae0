/**
 * Norms of what heads move (Kobayashi, Kuribayashi, Yokoi and Inui 2020). Head h adds to query i
 *     sum_j p[i][j] f(x_j),    f(x_j) = W_h v_j,    v_j = W_V x_j + b_V
 * with W_h the columns of the output projection that read head h. Of each key this is |W_h v_j|:
 *     |W v|^2 = v^T (W^T W) v
 * so that a head costs head_dim^2 (hidden + n) instead of head_dim hidden n. Values are made again
 * from what the layer read, by the same layers.
 */
#include <math.h>

#include "attn/ctx.h"
#include "core/fpstate.h"
#include "core/ints.h"
#include "inspect/rows.h"
#include "model/model_impl.h"
#include "model/run_impl.h"
#include "qkv/patterns.h"

/* One attention of one input. */
typedef struct moved {
    const qkvi_mha *mha;
    int64_t n;    /* keys */
    float *v;     /* [n][kv_width] */
    float *w;     /* [hidden][width] of the output projection */
    double *gram; /* [n_heads][head_dim][head_dim] */
    float *norms; /* [n_heads][n] */
} moved;

static void moved_free(moved *m) {
    qkvi_aligned_free(m->v);
    free(m->w);
    free(m->gram);
}

/* W_h^T W_h, of which the lower half is all of it. */
static void make_gram(const moved *m, int64_t h, double *gram) {
    const int64_t d = m->mha->head_dim, width = qkvi_mha_width(m->mha);
    memset(gram, 0, (size_t)(d * d) * sizeof *gram);
    for (int64_t c = 0; c < m->mha->output.n_out; c++) {
        const float *const row = m->w + c * width + h * d;
        for (int64_t a = 0; a < d; a++)
            for (int64_t b = 0; b <= a; b++) gram[a * d + b] += (double)row[a] * (double)row[b];
    }
}

static double square_of(const double *gram, int64_t d, const float *v) {
    double sum = 0;
    for (int64_t a = 0; a < d; a++) {
        double row = gram[a * d + a] * (double)v[a];
        for (int64_t b = 0; b < a; b++) row += 2 * gram[a * d + b] * (double)v[b];
        sum += row * (double)v[a];
    }
    return sum;
}

/* Heads are independent. */
static void measure_head(void *argument, int index) {
    const moved *const m = argument;
    const int64_t h = index, d = m->mha->head_dim, kv_width = qkvi_mha_kv_width(m->mha);
    const int64_t at = h / (m->mha->n_heads / m->mha->n_kv_heads) * d;
    double *const gram = m->gram + h * d * d;
    make_gram(m, h, gram);
    for (int64_t j = 0; j < m->n; j++) {
        const double square = square_of(gram, d, m->v + j * kv_width + at);
        m->norms[h * m->n + j] = square < 0 ? 0 : (float)sqrt(square); /* NaN stays */
    }
}

static qkv_status allocate(moved *m, qkv_error *error) {
    const int64_t width = qkvi_mha_width(m->mha), d = m->mha->head_dim;
    int64_t n_v, n_w, n_gram;
    if (qkvi_mul_i64(m->n, qkvi_mha_kv_width(m->mha), &n_v))
        m->v = qkvi_aligned_array((size_t)n_v, sizeof *m->v);
    if (qkvi_mul_i64(m->mha->output.n_out, width, &n_w))
        m->w = qkvi_malloc_array((size_t)n_w, sizeof *m->w);
    if (qkvi_mul_i64(width, d, &n_gram))
        m->gram = qkvi_malloc_array((size_t)n_gram, sizeof *m->gram);
    return m->v && m->w && m->gram ? QKV_OK : qkvi_no_memory(error, "norms of values");
}

/* Values of n rows x, as attention reads them. */
static qkv_status make_values(qkv_ctx *ctx, const qkvi_block *block, bool cross, const float *x,
                              const moved *m, qkv_error *error) {
    const qkvi_layernorm *const norm = &block->norm1;
    if (cross || !block->pre_norm || !norm->gamma) {
        qkvi_linear_forward(ctx, &m->mha->value, m->n, x, m->v);
        return QKV_OK;
    }
    float *const y = qkvi_aligned_array((size_t)(m->n * (norm->n + 2)), sizeof *y);
    if (!y) return qkvi_no_memory(error, "norms of values");
    qkvi_layernorm_forward(ctx, norm, block->eps, m->n, NULL, (float *)(uintptr_t)x, y,
                           y + m->n * norm->n);
    qkvi_linear_forward(ctx, &m->mha->value, m->n, y, m->v);
    qkvi_aligned_free(y);
    return QKV_OK;
}

static qkv_status measure(qkv_ctx *ctx, const qkvi_block *block, bool cross, const float *x,
                          moved *m, qkv_error *error) {
    QKV_TRY(allocate(m, error));
    const qkvi_weights weights = qkvi_linear_weights(&m->mha->output);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    for (int64_t c = 0; c < m->mha->output.n_out; c++)
        qkvi_weight_row(&weights, c, m->w + c * weights.n_in);
    const qkv_status status = make_values(ctx, block, cross, x, m, error);
    if (status == QKV_OK) qkvi_pool_run(ctx->pool, (int)m->mha->n_heads, measure_head, m);
    qkvi_fpstate_leave(saved);
    return status;
}

qkv_status qkv_inspect_norms(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                             qkv_attention_kind which, int64_t b, int64_t layer, float *norms,
                             qkv_error *error) {
    qkv_capture c = qkv_capture_init();
    QKV_TRY(qkvi_run_check(ctx, model, run, b, norms, "norms", error));
    QKV_TRY(qkv_run_capture(run, which, b, layer, &c, error));
    const bool cross = which == QKV_CROSS;
    const qkvi_block *const block = &model->net->stacks[which == QKV_SELF ? 0 : 1].blocks[layer];
    const float *const x = cross ? qkv_run_hidden(run, QKV_SELF, b, run->n_layers)
                                 : qkv_run_hidden(run, which, b, layer);
    if (!x)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run was made without QKV_RUN_HIDDEN");
    moved m = { .mha = cross ? &block->cross : &block->mha, .n = c.n_keys, .norms = norms };
    const qkv_status status = measure(ctx, block, cross, x, &m, error);
    moved_free(&m);
    return status;
}
