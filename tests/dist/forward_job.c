/* See jobs.h. */
#include <stdio.h>
#include <stdlib.h>

#include "dist/jobs.h"
#include "dist/ordered.h"

static qkv_ctx *context(const char *isa, int n_threads) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = isa;
    options.n_threads = n_threads;
    if (qkv_ctx_create(&options, &ctx, NULL) != QKV_OK) abort();
    return ctx;
}

/* ---- Statistics ------------------------------------------------------------------------------ */

/* Those of a rank's rows; counts are its own. */
static qkv_attention_stats stats_piece(const forward_job *j, int rank, int64_t *counts) {
    const int64_t q = j->at.q[rank];
    const stats_arrays *const x = j->stats;
    qkv_attention_stats s = x->s;
    float **const floats[STATS_FLOATS] = {
        &s.largest,
        &s.entropy,
        &s.effective_keys,
        &s.mean_distance,
        &s.mean_square_distance,
        &s.logit_mean,
        &s.logit_variance,
        &s.logit_largest,
        &s.top_weights,
        &s.class_mass,
        &s.offset_mass,
        &s.weighted_mass,
        &s.same_token,
        &s.duplicate,
        &s.induction,
    };
    for (int n = 0; n < STATS_FLOATS; n++) *floats[n] += q * s.stride[2] * x->per_row[n];
    s.n_seen += q * s.stride[2];
    s.top_keys += q * s.stride[2] * s.top_k;
    s.tokens_q += q;
    s.n_empty_rows = counts;
    s.n_nan_rows = counts + j->c->d.n_batch * j->c->d.n_heads;
    return s;
}

/* Row i of a head: its arrays, and what it adds to the counts of a rank that has the bits. */
static int row_differs(const forward_job *j, int64_t b, int64_t h, int64_t i, int64_t expected[2]) {
    const qkv_attention_desc *const d = &j->c->d;
    for (int n = 0; n < STATS_ARRAYS; n++) {
        const void *const x = stats_at(d, j->stats, n, b, h, i);
        const void *const y = stats_at(d, j->whole_stats, n, b, h, i);
        const size_t count = (size_t)j->stats->per_row[n];
        if (n < STATS_FLOATS ? first_difference_of(ELEMENT_F32, x, y, count) >= 0
                             : memcmp(x, y, count * stats_element(n)) != 0)
            return 1 + n;
    }
    const int64_t seen = *(const int64_t *)stats_at(d, j->whole_stats, STATS_SEEN, b, h, i);
    expected[0] += seen == 0;
    expected[1] += seen < 0;
    return 0;
}

static int stats_differ(const forward_job *j, int rank, const int64_t *counts) {
    const qkv_attention_desc *const d = &j->c->d;
    const int64_t n_heads = d->n_batch * d->n_heads;
    for (int64_t head = 0; head < n_heads; head++) {
        const int64_t b = head / d->n_heads, h = head % d->n_heads;
        int64_t expected[2] = { 0, 0 };
        int differs = 0;
        for (int64_t i = j->at.q[rank]; i < j->at.q[rank + 1] && i < layout_queries(d, b); i++)
            if (!differs) differs = row_differs(j, b, h, i, expected);
        if (!differs && (counts[head] != expected[0] || counts[n_heads + head] != expected[1]))
            differs = 1 + STATS_ARRAYS;
        if (!differs) continue;
        fprintf(stderr, "rank %d: array %d of statistics differs\n%s\n", rank, differs - 1,
                j->c->text);
        return 1;
    }
    return 0;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

int forward_job_of_rank(qkvi_transport *t, void *user) {
    const forward_job *const j = user;
    piece p = piece_of(j->c, j->x, &j->at, t->rank);
    int64_t *const counts =
        calloc((size_t)(2 * j->c->d.n_batch * j->c->d.n_heads) + 1, sizeof *counts);
    qkv_attention_stats stats;
    qkvi_group *const group = qkvi_group_new(t);
    qkv_ctx *const ctx = context(j->isa, j->n_threads);
    if (!group || !counts) abort();
    if (j->stats) {
        stats = stats_piece(j, t->rank, counts);
        p.d.flags |= QKV_SET_STATS;
        p.d.stats = &stats;
    }
    group->chunk_keys = j->chunk_keys;
    const qkv_status status = qkvi_ordered_forward(group, ctx, &p.d, &p.a);
    if (status != QKV_OK)
        fprintf(stderr, "rank %d: %s\n%s\n", t->rank, group->error.message, j->c->text);
    qkvi_group_free(group);
    qkv_ctx_free(ctx);
    int failed = status != QKV_OK || piece_differs(j->c, j->x, j->whole, &j->at, t->rank);
    if (!failed && j->stats) failed = stats_differ(j, t->rank, counts);
    free(counts);
    return failed;
}

outputs forward_in_one_process(const check_case *c, stats_arrays *stats) {
    outputs x = outputs_new(c);
    qkv_attention_desc d = c->d;
    if (stats) {
        d.flags |= QKV_SET_STATS;
        d.stats = &stats->s;
    }
    qkv_ctx *const ctx = context("scalar", 1);
    const qkv_status status =
        qkv_attention_forward(ctx, &d, c->q.data, c->k.data, c->v.data, x.o.data, x.lse.data, NULL);
    if (status != QKV_OK) {
        fprintf(stderr, "%s\n%s\n", qkv_ctx_message(ctx), c->text);
        exit(1);
    }
    qkv_ctx_free(ctx);
    return x;
}
