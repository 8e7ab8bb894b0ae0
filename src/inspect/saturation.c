/**
 * Why scores are divided by sqrt(d): softmax over dot products of random vectors, with and without.
 *
 *     gradient of softmax    J = diag(w) - w w^T
 *     |J|_F^2 = sum w_i^2 - 2 sum w_i^3 + (sum w_i^2)^2
 *
 * The values are the identity matrix, so the output of attention is its weights w. Entropy, largest
 * weight, mean and variance of the scores are statistics of the same call.
 */

#include "attn/ctx.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "inspect/normal.h"
#include "qkv/inspect.h"
#include "qkv/stats.h"

enum { MAX_DIM = 1 << 16, MAX_LEN = 1 << 12 };
enum { RNG_SATURATION = 0x73617401 /* purpose of the random stream */ };

/* Arrays of a problem, in one block. */
struct arrays {
    float *q, *k, *identity, *weights;          /* weights [n_draws][n_queries][n_keys] */
    float *entropy, *largest, *mean, *variance; /* [n_draws][n_queries] */
};

static float *make(const qkv_saturation *row, struct arrays *a) {
    const size_t d = (size_t)row->head_dim, m = (size_t)row->n_keys;
    const size_t draws = (size_t)row->n_draws, n = draws * (size_t)row->n_queries;
    float *block = qkvi_calloc_array(n * d + draws * m * d + m * m + n * m + 4 * n, sizeof *block);
    if (!block) return NULL;
    a->q = block;
    a->k = a->q + n * d;
    a->identity = a->k + draws * m * d;
    a->weights = a->identity + m * m;
    a->entropy = a->weights + n * m;
    a->largest = a->entropy + n;
    a->mean = a->largest + n;
    a->variance = a->mean + n;
    return block;
}

static void fill(const qkv_ctx *ctx, uint64_t seed, const qkv_saturation *row, struct arrays *a) {
    qkvi_rng rng = qkvi_rng_make(seed, RNG_SATURATION, (uint64_t)row->head_dim);
    const int64_t n =
        row->n_draws * (row->n_queries + row->n_keys) * row->head_dim; /* k follows q */
    for (int64_t i = 0; i < n; i += 2) {
        double normal[2];
        qkvi_two_normals(ctx->kernels, &rng, normal);
        a->q[i] = (float)normal[0];
        if (i + 1 < n) a->q[i + 1] = (float)normal[1];
    }
    for (int64_t j = 0; j < row->n_keys; j++) a->identity[j * row->n_keys + j] = 1;
}

static double gradient_norm(int64_t n, const float *weights) {
    double squares = 0, cubes = 0;
    for (int64_t j = 0; j < n; j++) {
        const double w = (double)weights[j];
        squares += w * w;
        cubes += w * w * w;
    }
    const double square = squares - 2 * cubes + squares * squares;
    return square > 0 ? sqrt(square) : 0;
}

/* Means over queries; the variance of all scores from those of the rows. */
static void summarise(const struct arrays *a, qkv_saturation *row) {
    const int64_t n_rows = row->n_draws * row->n_queries;
    const double n = (double)n_rows;
    double mean = 0, square = 0;
    row->entropy = row->largest = row->gradient = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        row->entropy += (double)a->entropy[i] / n;
        row->largest += (double)a->largest[i] / n;
        row->gradient += gradient_norm(row->n_keys, a->weights + i * row->n_keys) / n;
        mean += (double)a->mean[i] / n;
        square += ((double)a->variance[i] + (double)a->mean[i] * (double)a->mean[i]) / n;
    }
    row->score_variance = square - mean * mean;
}

static qkv_status measure(qkv_ctx *ctx, const struct arrays *a, qkv_saturation *row,
                          qkv_error *error) {
    qkv_attention_desc desc;
    qkv_attention_stats stats;
    qkv_attention_desc_contiguous(&desc, row->n_draws, 1, 1, row->n_queries, row->n_keys,
                                  row->head_dim, row->n_keys);
    desc.v_stride[0] = 0; /* one identity for all */
    qkv_attention_stats_contiguous(&stats, &desc);
    stats.entropy = a->entropy;
    stats.largest = a->largest;
    stats.logit_mean = a->mean;
    stats.logit_variance = a->variance;
    desc.scale = (float)row->scale;
    desc.stats = &stats;
    desc.flags |= QKV_SET_SCALE | QKV_SET_STATS;
    const qkv_status status =
        qkv_attention_forward(ctx, &desc, a->q, a->k, a->identity, a->weights, NULL, NULL);
    if (status != QKV_OK) return qkvi_error_set(error, status, "%s", qkv_ctx_message(ctx));
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    summarise(a, row);
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}

static qkv_status check(const qkv_ctx *ctx, int64_t head_dim, int64_t n_draws, int64_t n_queries,
                        int64_t n_keys, const qkv_saturation *rows, qkv_error *error) {
    if (!ctx || !rows)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", ctx ? "rows" : "ctx");
    const struct {
        const char *name;
        int64_t value, most;
    } sizes[] = { { "head_dim", head_dim, MAX_DIM },
                  { "n_draws", n_draws, MAX_LEN },
                  { "n_queries", n_queries, MAX_LEN },
                  { "n_keys", n_keys, MAX_LEN } };
    for (int i = 0; i < 4; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].most)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s = %lld is not between 1 and %lld",
                                  sizes[i].name, (long long)sizes[i].value,
                                  (long long)sizes[i].most);
    return QKV_OK;
}

qkv_status qkv_inspect_saturation(qkv_ctx *ctx, int64_t head_dim, int64_t n_draws,
                                  int64_t n_queries, int64_t n_keys, uint64_t seed,
                                  qkv_saturation *given, size_t row_bytes, qkv_error *error) {
    qkv_saturation rows[2];
    QKV_TRY(check(ctx, head_dim, n_draws, n_queries, n_keys, given, error));
    QKV_TRY(qkvi_element_check(row_bytes, sizeof *rows, "row_bytes", error));
    struct arrays a;
    rows[0] = (qkv_saturation){ .head_dim = head_dim,
                                .n_draws = n_draws,
                                .n_queries = n_queries,
                                .n_keys = n_keys,
                                .scale = 1 };
    rows[1] = rows[0];
    rows[1].scale = 1 / sqrt((double)head_dim);
    float *block = make(rows, &a);
    if (!block) return qkvi_no_memory(error, "random vectors");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    fill(ctx, seed, rows, &a);
    qkvi_fpstate_leave(saved);
    qkv_status status = measure(ctx, &a, &rows[0], error);
    if (status == QKV_OK) status = measure(ctx, &a, &rows[1], error);
    for (int i = 0; status == QKV_OK && i < 2; i++)
        qkvi_element_write(given, i, row_bytes, &rows[i], sizeof *rows);
    free(block);
    return status;
}
