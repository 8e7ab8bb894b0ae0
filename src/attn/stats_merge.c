/*
 * Row statistics over disjoint sets of keys, joined: with a_n = exp(lse_n - lse) the share of part
 * n,
 *
 *     sums of p x (masses, distances)   sum_n a_n x_n          largest   max_n a_n x_n
 *     entropy                           sum_n a_n (H_n - log a_n)
 *     effective keys                    1 / sum_n (a_n^2 / N_n)
 *     scores                            mean and variance over sum_n n_n keys; the greatest |s|
 *     lists                             by their scores, then by key
 *
 * in double, parts in the order given, exp and log of our own (kernels/vec/vec_double.h): the same
 * bits everywhere. A part in which the row saw no key (lse = -inf) adds nothing.
 */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "attn/call_arrays.h"
#include "attn/ctx.h"
#include "attn/problem.h"
#include "attn/sequence.h"
#include "attn/stats.h"
#include "core/options.h"
#include "kernels/vec/vec_double.h"

typedef struct stats_merge {
    const qkvi_problem *p; /* p->stats: what is written */
    int n_parts, n_tasks;
    const qkv_attention_stats *const *parts;
    const float *const *lse_parts;
    const int64_t *first_keys;
} stats_merge;

/* ---- Fields ---------------------------------------------------------------------------------- */

typedef enum field_kind { FIELD_SUM, FIELD_LARGEST, FIELD_ENTROPY, FIELD_KEYS } field_kind;

/* Floats of a row that are joined one by one. */
static const struct {
    const char *name;
    size_t at;
    field_kind kind;
} fields[] = {
#define FIELD(name, kind)                                                                          \
    { #name, offsetof(qkv_attention_stats, name), kind }
    FIELD(largest, FIELD_LARGEST),
    FIELD(entropy, FIELD_ENTROPY),
    FIELD(effective_keys, FIELD_KEYS),
    FIELD(mean_distance, FIELD_SUM),
    FIELD(mean_square_distance, FIELD_SUM),
    FIELD(class_mass, FIELD_SUM),
    FIELD(offset_mass, FIELD_SUM),
    FIELD(weighted_mass, FIELD_SUM),
    FIELD(same_token, FIELD_SUM),
    FIELD(duplicate, FIELD_SUM),
    FIELD(induction, FIELD_SUM),
#undef FIELD
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static float *field_of(const qkv_attention_stats *s, int field) {
    return *(float *const *)((const char *)s + fields[field].at);
}

/* How many numbers a row has of it. */
static int64_t length_of(const qkv_attention_stats *s, int field) {
    if (fields[field].at == offsetof(qkv_attention_stats, class_mass)) return s->n_classes;
    if (fields[field].at == offsetof(qkv_attention_stats, offset_mass)) return s->n_offsets;
    return 1;
}

/* ---- One row --------------------------------------------------------------------------------- */

/* A row, and what its lse comes to. */
typedef struct merged_row {
    const qkvi_problem *p;
    int64_t b, h, i, lse_at;
    double lse;
    bool nan, empty;
} merged_row;

static double log_of(double x) { return vd_log(vd_set1(x))[0]; }

/* Of zeros the positive one. */
static float rounded(double x) { return (float)x + 0.0f; }

static int64_t place(const qkv_attention_stats *s, const merged_row *r) {
    return qkvi_q_at(r->p, s->stride, r->b, r->h, r->i);
}

/* The part's share; 0 without a key. */
static double share(const stats_merge *x, const merged_row *r, int n) {
    const float lse = x->lse_parts[n][r->lse_at];
    return lse == -INFINITY ? 0 : vd_exp_one((double)lse - r->lse);
}

static void find_lse(const stats_merge *x, merged_row *r) {
    double most = -INFINITY, sum = 0;
    for (int n = 0; n < x->n_parts; n++) {
        const float lse = x->lse_parts[n][r->lse_at];
        r->nan |= isnan(lse) || lse == INFINITY;
        if ((double)lse > most) most = (double)lse;
    }
    r->empty = !r->nan && most == -INFINITY;
    if (r->nan || r->empty) return;
    for (int n = 0; n < x->n_parts; n++)
        if (x->lse_parts[n][r->lse_at] != -INFINITY)
            sum += vd_exp_one((double)x->lse_parts[n][r->lse_at] - most);
    r->lse = most + log_of(sum);
}

static double join(const stats_merge *x, const merged_row *r, int field, int64_t at) {
    double sum = 0;
    for (int n = 0; n < x->n_parts; n++) {
        const qkv_attention_stats *s = x->parts[n];
        const double a = share(x, r, n);
        if (a == 0) continue;
        const double value = (double)field_of(s, field)[place(s, r) * length_of(s, field) + at];
        switch (fields[field].kind) {
        case FIELD_SUM: sum += a * value; break;
        case FIELD_LARGEST: sum = a * value > sum ? a * value : sum; break;
        case FIELD_ENTROPY: sum += a * (value - log_of(a)); break;
        case FIELD_KEYS: sum += a * a / value; break;
        }
    }
    return fields[field].kind == FIELD_KEYS ? 1 / sum : sum;
}

static void join_fields(const stats_merge *x, const merged_row *r) {
    const qkv_attention_stats *to = &x->p->stats;
    for (int f = 0; f < N_FIELDS; f++) {
        const int64_t length = length_of(to, f);
        float *out = field_of(to, f);
        if (!out) continue;
        out += place(to, r) * length;
        for (int64_t at = 0; at < length; at++)
            out[at] = r->nan ? NAN : r->empty ? 0 : rounded(join(x, r, f, at));
    }
}

/* Moments of scores: of as many keys as there are, whatever their weights. */
static void join_scores(const stats_merge *x, const merged_row *r) {
    const qkv_attention_stats *to = &x->p->stats;
    const int64_t at = place(to, r);
    double mean = 0, squares = 0, largest = 0;
    int64_t n_seen = 0;
    for (int n = 0; n < x->n_parts && !r->nan && !r->empty; n++) {
        const qkv_attention_stats *s = x->parts[n];
        if (s->n_seen) n_seen += s->n_seen[place(s, r)];
        if (to->logit_mean || to->logit_variance)
            mean += (double)s->n_seen[place(s, r)] * (double)s->logit_mean[place(s, r)];
        if (to->logit_largest && (double)s->logit_largest[place(s, r)] > largest)
            largest = (double)s->logit_largest[place(s, r)];
    }
    if (n_seen) mean /= (double)n_seen;
    for (int n = 0; n < x->n_parts && to->logit_variance && n_seen; n++) {
        const qkv_attention_stats *s = x->parts[n];
        const double count = (double)s->n_seen[place(s, r)];
        const double far = (double)s->logit_mean[place(s, r)] - mean;
        if (count > 0) squares += count * ((double)s->logit_variance[place(s, r)] + far * far);
    }
    const double variance = n_seen ? squares / (double)n_seen : 0;
    if (to->logit_mean) to->logit_mean[at] = r->nan ? NAN : rounded(mean);
    if (to->logit_variance) to->logit_variance[at] = r->nan ? NAN : (float)variance;
    if (to->logit_largest) to->logit_largest[at] = r->nan ? NAN : (float)largest;
    if (to->n_seen) to->n_seen[at] = r->nan ? -1 : n_seen;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

typedef struct entry {
    float score;
    int64_t key; /* of the union; -1: none */
    int part;
    int64_t at;
} entry;

static entry entry_of(const stats_merge *x, const merged_row *r, int n, int64_t index) {
    const qkv_attention_stats *s = x->parts[n];
    if (index >= s->top_k) return (entry){ .key = -1 };
    const int64_t at = place(s, r) * s->top_k + index, first = x->first_keys ? x->first_keys[n] : 0;
    const int64_t key = s->top_keys[at];
    return (entry){ s->top_scores[at], key < 0 ? -1 : key + first, n, at };
}

/* The best of the parts' entries that come after `last` (key -1: of all). */
static entry next_entry(const stats_merge *x, const merged_row *r, entry last) {
    entry best = { .key = -1 };
    for (int n = 0; n < x->n_parts; n++)
        for (int64_t index = 0; index < x->parts[n]->top_k; index++) {
            const entry e = entry_of(x, r, n, index);
            if (e.key < 0) break;
            if (last.key >= 0 &&
                (e.score > last.score || (e.score == last.score && e.key <= last.key)))
                continue;
            if (best.key < 0 || e.score > best.score || (e.score == best.score && e.key < best.key))
                best = e;
            break; /* the part's own list is in this order */
        }
    return best;
}

static void join_lists(const stats_merge *x, const merged_row *r) {
    const qkv_attention_stats *to = &x->p->stats;
    const int64_t first = place(to, r) * to->top_k;
    entry last = { .key = -1 };
    bool any = !r->nan && !r->empty;
    for (int64_t index = 0; index < to->top_k; index++) {
        if (any) last = next_entry(x, r, last);
        any &= last.key >= 0;
        double weight = r->nan ? NAN : 0;
        if (any && to->top_weights)
            weight = share(x, r, last.part) * (double)x->parts[last.part]->top_weights[last.at];
        if (to->top_keys) to->top_keys[first + index] = any ? last.key : -1;
        if (to->top_scores) to->top_scores[first + index] = any ? last.score : -INFINITY;
        if (to->top_weights) to->top_weights[first + index] = (float)weight;
    }
}

static int64_t queries_of(const qkvi_problem *p, int64_t b) {
    return p->q_len ? p->q_len[b] : qkvi_len_q(p, b);
}

static void merge_row(const stats_merge *x, int64_t b, int64_t h, int64_t i) {
    merged_row r = { x->p, b, h, i, qkvi_q_at(x->p, x->p->lse_stride, b, h, i), 0, false, false };
    find_lse(x, &r);
    join_fields(x, &r);
    join_scores(x, &r);
    if (x->p->stats.top_k) join_lists(x, &r);
    const qkvi_attend_stats done = { .n_empty = r.empty, .n_nan = r.nan };
    qkvi_stats_count(x->p, b, h, &done);
}

/* Rows are independent, so any division gives the same bits. */
static void merge_rows(void *argument, int index) {
    const stats_merge *x = argument;
    const qkvi_problem *p = x->p;
    for (int64_t head = 0; head < p->n_batch * p->n_heads; head++) {
        const int64_t b = head / p->n_heads, n = queries_of(p, b);
        for (int64_t i = n * index / x->n_tasks; i < n * (index + 1) / x->n_tasks; i++)
            merge_row(x, b, head % p->n_heads, i);
    }
}

/* ---- What is asked for ----------------------------------------------------------------------- */

static qkv_status lacks(int n, const char *name, qkv_error *e) {
    return qkvi_error_set(e, QKV_ERR_ARGUMENT, "parts[%d].%s is NULL, but it is needed", n, name);
}

static qkv_status differs(int n, const char *name, int64_t is, int64_t want, qkv_error *e) {
    return qkvi_error_set(e, QKV_ERR_SHAPE,
                          "parts[%d].%s = %" PRId64 ", that of the result is %" PRId64, n, name, is,
                          want);
}

static qkv_status check_fields(const qkv_attention_stats *to, int n, const qkv_attention_stats *s,
                               qkv_error *e) {
    const bool moments = to->logit_mean || to->logit_variance;
    for (int f = 0; f < N_FIELDS; f++)
        if (field_of(to, f) && !field_of(s, f)) return lacks(n, fields[f].name, e);
    if ((moments || to->n_seen) && !s->n_seen) return lacks(n, "n_seen", e);
    if (moments && !s->logit_mean) return lacks(n, "logit_mean", e);
    if (to->logit_variance && !s->logit_variance) return lacks(n, "logit_variance", e);
    if (to->logit_largest && !s->logit_largest) return lacks(n, "logit_largest", e);
    if (to->top_k && !s->top_keys) return lacks(n, "top_keys", e);
    if (to->top_k && !s->top_scores) return lacks(n, "top_scores", e);
    if (to->top_weights && !s->top_weights) return lacks(n, "top_weights", e);
    if (to->top_k && s->top_k != to->top_k) return differs(n, "top_k", s->top_k, to->top_k, e);
    if (to->class_mass && s->n_classes != to->n_classes)
        return differs(n, "n_classes", s->n_classes, to->n_classes, e);
    if (to->offset_mass && s->n_offsets != to->n_offsets)
        return differs(n, "n_offsets", s->n_offsets, to->n_offsets, e);
    return QKV_OK;
}

/* One part against the result, which it may not share memory with. */
static __attribute__((noinline)) qkv_status check_part(const qkvi_problem *p, int n,
                                                       const qkv_attention_stats *part,
                                                       const float *lse, qkv_error *e) {
    qkvi_problem in = *p;
    qkvi_arrays all = { .count = 0 };
    const qkvi_shapes shapes = qkvi_shapes_of(p);
    char name[32];
    snprintf(name, sizeof name, "parts[%d]", n);
    if (!part) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is NULL", name);
    in.stats = (qkv_attention_stats){ 0 };
    QKV_TRY(qkvi_options_read(&in.stats, sizeof in.stats, part, name, e));
    QKV_TRY(check_fields(&p->stats, n, &in.stats, e));
    qkvi_stats_arrays(p, &all);
    const int n_outputs = all.count;
    qkvi_stats_arrays(&in, &all);
    for (int a = n_outputs; a < all.count; a++) all.list[a].output = false;
    snprintf(name, sizeof name, "lse_parts[%d]", n);
    qkvi_arrays_add(&all, name, lse, shapes.lse, p->lse_stride, false);
    return qkvi_arrays_check(&all, true, e);
}

static qkv_status read_problem(const qkv_attention_desc *desc, const stats_merge *x,
                               const qkv_attention_stats *out, qkvi_problem *p, qkv_error *e) {
    qkv_attention_desc with;
    QKV_TRY(qkvi_problem_read(desc, p, e));
    if (p->sinks)
        return qkvi_error_set(e, QKV_ERR_UNSUPPORTED,
                              "QKV_SET_SINKS: a sink is in the lse of one part only, so shares "
                              "of keys cannot be told from it");
    if (x->n_parts < 1)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "n_parts = %d is less than 1", x->n_parts);
    if (!x->parts || !x->lse_parts || !out)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is NULL",
                              !x->parts       ? "parts"
                              : !x->lse_parts ? "lse_parts"
                                              : "stats");
    with = (qkv_attention_desc){ .stats = out };
    QKV_TRY(qkvi_stats_read(&with, p, e));
    for (int n = 0; n < x->n_parts; n++) QKV_TRY(check_part(p, n, x->parts[n], x->lse_parts[n], e));
    return QKV_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

qkv_status qkv_attention_stats_merge(qkv_ctx *ctx, const qkv_attention_desc *desc, int n_parts,
                                     const qkv_attention_stats *const *parts,
                                     const float *const *lse_parts, const int64_t *first_keys,
                                     const qkv_attention_stats *stats) {
    qkvi_problem problem;
    QKV_TRY(qkvi_ctx_begin(ctx));
    stats_merge x = { .p = &problem,
                      .n_parts = n_parts,
                      .n_tasks = qkvi_pool_threads(ctx->pool),
                      .parts = parts,
                      .lse_parts = lse_parts,
                      .first_keys = first_keys };
    const qkv_status status = read_problem(desc, &x, stats, &problem, &ctx->error);
    if (status == QKV_OK) {
        qkvi_stats_begin(&problem);
        qkvi_pool_run(ctx->pool, x.n_tasks, merge_rows, &x);
    }
    return qkvi_ctx_end(ctx, status);
}
