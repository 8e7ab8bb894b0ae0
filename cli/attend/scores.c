/*
 * The scores of `qkv attend --x` before softmax: scaled, capped, with masks and slopes added. They
 * come from the library's lists of the largest scores of each row (qkv/stats.h), here so long that
 * they have all keys. If a score is only a scaled product, lists have the product with the sign of
 * the scale, which is scaled here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"

/* What the call fills, and what only it reads. */
struct lists {
    float *o, *scores;
    int64_t *keys;
};

static bool allocate(const qkv_attention_desc *d, struct lists *lists) {
    const size_t rows = (size_t)(d->n_batch * d->n_heads * d->len_q), keys = (size_t)d->len_k;
    lists->o = calloc(rows * (size_t)d->head_dim_v + 1, sizeof *lists->o);
    lists->scores = calloc(rows * keys + 1, sizeof *lists->scores);
    lists->keys = malloc((rows * keys + 1) * sizeof *lists->keys);
    if (!lists->o || !lists->scores || !lists->keys) return false;
    memset(lists->keys, -1, rows * keys * sizeof *lists->keys); /* rows that are not written */
    return true;
}

static qkv_status list(qkv_ctx *ctx, const struct attend_problem *problem, struct lists *lists) {
    qkv_attention_desc d = problem->desc;
    qkv_attention_stats stats;
    qkv_attention_stats_contiguous(&stats, &d);
    stats.top_k = d.len_k;
    stats.top_keys = lists->keys;
    stats.top_scores = lists->scores;
    d.flags = (d.flags | QKV_SET_STATS) & ~(uint32_t)QKV_SET_DROPOUT;
    d.stats = &stats;
    return qkv_attention_forward(ctx, &d, problem->q->data, problem->k->data, problem->v->data,
                                 lists->o, NULL, NULL);
}

/* What makes scores of what is listed in head h. */
static float factor_of(const qkv_attention_desc *d, int64_t h) {
    const bool adds = d->flags & QKV_SET_MASK && d->mask_type == QKV_MASK_F32,
               leans = d->flags & QKV_SET_ALIBI && d->alibi_slopes[h] != 0;
    if (d->flags & QKV_SET_SOFTCAP || adds || leans) return 1;
    return d->flags & QKV_SET_SCALE ? fabsf(d->scale) : (float)(1 / sqrt((double)d->head_dim));
}

static float *matrix(const qkv_attention_desc *d, const struct lists *lists, const float *lse) {
    const int64_t n_rows = d->n_batch * d->n_heads * d->len_q, n = d->len_k;
    float *const scores = malloc((size_t)(n_rows * n + 1) * sizeof *scores);
    for (int64_t r = 0; scores && r < n_rows; r++) {
        const float factor = factor_of(d, r / d->len_q % d->n_heads);
        for (int64_t j = 0; j < n; j++) scores[r * n + j] = isnan(lse[r]) ? NAN : -INFINITY;
        for (int64_t at = r * n; at < r * n + n; at++)
            if (lists->keys[at] >= 0) scores[r * n + lists->keys[at]] = factor * lists->scores[at];
    }
    return scores;
}

int attend_scores(qkv_ctx *ctx, const struct attend_problem *problem, const float *lse,
                  float **scores) {
    const qkv_attention_desc *d = &problem->desc;
    struct lists lists = { 0 };
    int code = EXIT_OK;
    if (d->len_k > QKV_STATS_MAX_TOP) return EXIT_OK;
    if (!allocate(d, &lists))
        code = cli_fail("out of memory");
    else if (list(ctx, problem, &lists) != QKV_OK)
        code = cli_fail("%s", qkv_ctx_message(ctx));
    else if (!(*scores = matrix(d, &lists, lse)))
        code = cli_fail("out of memory");
    free(lists.o);
    free(lists.scores);
    free(lists.keys);
    return code;
}
