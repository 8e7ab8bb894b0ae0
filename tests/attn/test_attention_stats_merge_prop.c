/*
 * Row statistics of shards of the keys, joined, are those of all keys: moments and masses within
 * 1e-6, lists, numbers of keys and counts of rows exactly, for any split, also into parts in which
 * rows see nothing; the same bits for any number of threads.
 */
#include "attn/every_isa.h"
#include "attn/stats_arrays.h"
#include "check/oracle_row.h"
#include "check/rules.h"

enum { CASES = UNDER_SANITIZER ? 20 : 120, MOST_PARTS = 5, DIM = 16 };

/* A problem, of which a shard has the keys from `first` on. */
typedef struct shard {
    qkv_attention_desc d;
    stats_arrays s;
    float *scores, *lse, *o;
    int64_t first;
} shard;

typedef struct whole {
    int64_t n_batch, n_heads, len_q, len_k;
    float *q, *k, *v;
    uint64_t seed;
} whole;

static shard shard_new(const whole *w, int64_t first, int64_t end, bool causal) {
    shard x = { .first = first };
    qkv_attention_desc_contiguous(&x.d, w->n_batch, w->n_heads, w->n_heads, w->len_q, w->len_k, DIM,
                                  DIM);
    x.s = stats_arrays_new(&x.d, w->seed, true); /* the same for all: of all keys */
    x.d.len_k = end - first;
    x.d.q_offset = w->len_k / 3 - first;
    x.d.flags |= QKV_SET_Q_OFFSET | (causal ? QKV_SET_CAUSAL : 0);
    const int64_t rows = w->n_batch * w->n_heads * w->len_q;
    x.scores = floats(
        layout_elems((int64_t[]){ w->n_batch, w->n_heads, w->len_q, x.s.s.top_k },
                     (int64_t[]){ x.s.s.stride[0] * x.s.s.top_k, x.s.s.stride[1] * x.s.s.top_k,
                                  x.s.s.stride[2] * x.s.s.top_k }));
    x.lse = floats(rows);
    x.o = floats(rows * DIM);
    x.s.s.top_scores = x.scores;
    return x;
}

static void shard_free(shard *x) {
    stats_arrays_free(&x->s);
    free(x->scores);
    free(x->lse);
    free(x->o);
}

/* Its keys, with what belongs to them. */
static void shard_run(const whole *w, shard *x) {
    qkv_ctx *ctx = context_on(isa, 2);
    qkv_attention_stats s = x->s.s;
    s.classes += x->first;
    s.key_weights += x->first;
    s.tokens_k += x->first;
    x->d.stats = &s;
    x->d.flags |= QKV_SET_STATS;
    if (qkv_attention_forward(ctx, &x->d, w->q, w->k + x->first * DIM, w->v + x->first * DIM, x->o,
                              x->lse, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    x->d.flags &= ~(uint32_t)QKV_SET_STATS;
    x->d.stats = NULL;
    qkv_ctx_free(ctx);
}

static void join(const shard *parts, int n_parts, int n_threads, shard *out) {
    const qkv_attention_stats *stats[MOST_PARTS];
    const float *lse[MOST_PARTS];
    int64_t first[MOST_PARTS];
    for (int n = 0; n < n_parts; n++) {
        stats[n] = &parts[n].s.s;
        lse[n] = parts[n].lse;
        first[n] = parts[n].first;
    }
    qkv_ctx *ctx = context_on(isa, n_threads);
    if (qkv_attention_stats_merge(ctx, &out->d, n_parts, stats, lse, first, &out->s.s) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
}

/* ---- Against the whole ----------------------------------------------------------------------- */

static void near(const char *name, double is, double want, double bound, uint64_t seed) {
    if (!(fabs(is - want) <= bound) && !(isnan(is) && isnan(want)))
        fail_msg("%s, %s: %.9g, of all keys %.9g, bound %.3g (seed %llu)", isa, name, is, want,
                 bound, (unsigned long long)seed);
}

/* Absolute errors that a relative one of 1e-6 of shares and numbers makes. */
static void compare_row(const whole *w, const shard *all, const shard *joined, int64_t b, int64_t h,
                        int64_t i) {
    const double far = (double)(w->len_q + w->len_k), error = 4e-6;
    for (int n = 0; n < STATS_FLOATS; n++) {
        if (n == STATS_INDUCTION) continue; /* what follows the end of another shard is not in it */
        for (int64_t at = 0; at < all->s.per_row[n]; at++) {
            const double want = (double)((const float *)stats_at(&all->d, &all->s, n, b, h, i))[at];
            const double is =
                (double)((const float *)stats_at(&all->d, &joined->s, n, b, h, i))[at];
            double size = 1 + fabs(want);
            if (n == STATS_SQUARE) size = far * far;
            if (n == STATS_DISTANCE) size = far;
            if (n == STATS_LOGIT_VARIANCE) size = 8 * (1 + fabs(want));
            if (n == STATS_WEIGHTED) size = 16;
            near("a statistic", is, want, error * size, w->seed + (uint64_t)n);
        }
    }
    const int64_t *want = stats_at(&all->d, &all->s, STATS_TOP_KEYS, b, h, i);
    const int64_t *is = stats_at(&all->d, &joined->s, STATS_TOP_KEYS, b, h, i);
    for (int64_t n = 0; n < all->s.s.top_k; n++) assert_int_equal(is[n], want[n]);
    assert_int_equal(*(const int64_t *)stats_at(&all->d, &joined->s, STATS_SEEN, b, h, i),
                     *(const int64_t *)stats_at(&all->d, &all->s, STATS_SEEN, b, h, i));
}

static void compare(const whole *w, const shard *all, const shard *joined) {
    for (int64_t b = 0; b < w->n_batch; b++)
        for (int64_t h = 0; h < w->n_heads; h++) {
            const int64_t head = b * w->n_heads + h;
            assert_int_equal(joined->s.s.n_empty_rows[head], all->s.s.n_empty_rows[head]);
            assert_int_equal(joined->s.s.n_nan_rows[head], all->s.s.n_nan_rows[head]);
            for (int64_t i = 0; i < w->len_q; i++) compare_row(w, all, joined, b, h, i);
        }
}

/* ---- Splits ---------------------------------------------------------------------------------- */

static void one_case(uint64_t seed) {
    rng r = { seed };
    whole w = { .n_batch = 1, /* keys of a shard are rows of one array */
                .n_heads = 1,
                .len_q = rng_between(&r, 1, 40),
                .len_k = rng_between(&r, 1, 600),
                .seed = seed };
    w.q = normals(&r, w.len_q * DIM);
    w.k = normals(&r, w.len_k * DIM);
    w.v = normals(&r, w.len_k * DIM);
    if (rng_chance(&r, 20)) w.q[rng_between(&r, 0, w.len_q * DIM - 1)] = NAN;
    for (int64_t n = 0; n < w.len_k * DIM && rng_chance(&r, 40); n++)
        w.k[n] = (float)(int)w.k[n]; /* equal scores */
    const bool causal = rng_chance(&r, 50);
    static shard all, joined, again, parts[MOST_PARTS];
    all = shard_new(&w, 0, w.len_k, causal);
    const int n_parts = (int)rng_between(&r, 1, MOST_PARTS);
    int64_t first = 0;
    shard_run(&w, &all);
    for (int n = 0; n < n_parts; n++) {
        const int64_t end = n + 1 < n_parts ? rng_between(&r, first, w.len_k) : w.len_k;
        parts[n] = shard_new(&w, first, end, causal);
        shard_run(&w, &parts[n]);
        first = end;
    }
    joined = shard_new(&w, 0, w.len_k, causal);
    again = shard_new(&w, 0, w.len_k, causal);
    join(parts, n_parts, 1, &joined);
    compare(&w, &all, &joined);
    join(parts, n_parts, (int)rng_between(&r, 2, 8), &again);
    if (stats_difference(&joined.s, &again.s) >= 0)
        fail_msg("threads change bits (seed %llu)", (unsigned long long)seed);
    assert_true(stats_intact(&joined.d, &joined.s));
    for (int n = 0; n < n_parts; n++) shard_free(&parts[n]);
    shard_free(&all);
    shard_free(&joined);
    shard_free(&again);
    free(w.q);
    free(w.k);
    free(w.v);
}

static void any_split_joined_is_the_whole(void) {
    rng r = { 0x4A01 };
    for (int n = 0; n < CASES; n++) one_case(rng_next(&r));
}

int main(void) {
    const struct CMUnitTest tests[] = { PROPERTY(any_split_joined_is_the_whole) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
