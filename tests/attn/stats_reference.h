/*
 * The reference of statistics of rows (qkv/stats.h): in double, from all weights of a row, with the
 * largest errors that floats may have.
 */
#ifndef QKV_TESTS_STATS_REFERENCE_H
#define QKV_TESTS_STATS_REFERENCE_H

#include "attn/every_isa.h"
#include "attn/stats_arrays.h"
#include "check/oracle_row.h"
#include "check/rules.h"

#define STATS_EPSILON 0x1p-24

typedef struct stats_reference {
    const check_case *c;
    const stats_arrays *got;
    row r;
    int64_t n_empty, n_nan, n_compared;
} stats_reference;

static inline void stats_near(const stats_reference *x, const char *name, double is, double want,
                              double bound) {
    if (!(fabs(is - want) <= bound))
        fail_msg("%s, %s: %.9g instead of %.9g, bound %.3g\n%s", isa, name, is, want, bound,
                 x->c->text);
}

static inline void stats_expect_all(const stats_reference *x, int64_t b, int64_t h, int64_t i,
                                    bool nan) {
    const qkv_attention_desc *d = &x->c->d;
    for (int n = 0; n < STATS_FLOATS; n++)
        for (int64_t at = 0; at < x->got->per_row[n]; at++) {
            const float is = ((const float *)stats_at(d, x->got, n, b, h, i))[at];
            if (nan ? !isnan(is) : is != 0)
                fail_msg("%s, array %d of a row of %s: %g\n%s", isa, n, nan ? "NaN" : "nothing",
                         (double)is, x->c->text);
        }
    for (int64_t at = 0; at < x->got->s.top_k; at++)
        assert_int_equal(((const int64_t *)stats_at(d, x->got, STATS_TOP_KEYS, b, h, i))[at], -1);
    assert_int_equal(*(const int64_t *)stats_at(d, x->got, STATS_SEEN, b, h, i), nan ? -1 : 0);
}

/* Moments over the keys of a row whose scores are above -inf. */
typedef struct stats_moments {
    int64_t n;
    double largest, entropy, squares, sum, distance, square_distance;
    double mean, variance, most, range;
} stats_moments;

static inline stats_moments stats_moments_of(const qkv_attention_desc *d, const row *r,
                                             int64_t place) {
    stats_moments m = { 0 };
    double low = INFINITY, high = -INFINITY;
    for (int64_t j = 0; j < d->len_k; j++)
        if (r->sees[j] && r->s[j] > -INFINITY) m.n++, m.sum += r->p[j], m.mean += r->s[j];
    m.mean /= (double)m.n;
    for (int64_t j = 0; j < d->len_k; j++) {
        if (!r->sees[j] || !(r->s[j] > -INFINITY)) continue;
        const double w = r->p[j] / m.sum, far = fabs((double)(place - j));
        m.largest = fmax(m.largest, r->p[j]);
        if (w > 0) m.entropy -= w * log(w);
        m.squares += w * w;
        m.distance += w * far;
        m.square_distance += w * far * far;
        m.variance += (r->s[j] - m.mean) * (r->s[j] - m.mean) / (double)m.n;
        m.most = fmax(m.most, fabs(r->s[j]));
        low = fmin(low, r->s[j]), high = fmax(high, r->s[j]);
    }
    m.range = high - low;
    return m;
}

/* Checks that each listed key may be at its place, given the errors that scores may have. */
static inline void stats_compare_top(const stats_reference *x, int64_t b, int64_t h, int64_t i,
                                     double score_error, double error) {
    const qkv_attention_desc *d = &x->c->d;
    const int64_t *keys = stats_at(d, x->got, STATS_TOP_KEYS, b, h, i);
    const float *weights = stats_at(d, x->got, STATS_TOP_WEIGHTS, b, h, i);
    bool *listed = oracle_zeros(d->len_k, sizeof *listed);
    int64_t n_listed = 0, n_seen = 0;
    double least = INFINITY, most = -INFINITY;
    for (int64_t n = 0; n < x->got->s.top_k; n++) {
        if (keys[n] == -1) {
            assert_true(weights[n] == 0);
            continue;
        }
        assert_int_equal(n_listed, n);
        assert_in_range(keys[n], 0, d->len_k - 1);
        assert_true(x->r.sees[keys[n]] && !listed[keys[n]]);
        listed[keys[n]] = true;
        n_listed++;
        least = fmin(least, x->r.s[keys[n]]);
        if (n > 0) assert_true(weights[n] <= weights[n - 1]);
        stats_near(x, "top_weights", (double)weights[n], x->r.p[keys[n]],
                   error * x->r.p[keys[n]] + 1e-37);
    }
    for (int64_t j = 0; j < d->len_k; j++) {
        if (!x->r.sees[j] || !(x->r.s[j] > -INFINITY)) continue;
        n_seen++;
        if (!listed[j]) most = fmax(most, x->r.s[j]);
    }
    assert_int_equal(n_listed, n_seen < x->got->s.top_k ? n_seen : x->got->s.top_k);
    if (most > -INFINITY) assert_true(most <= least + 2 * score_error);
    free(listed);
}

static inline void stats_compare_masses(const stats_reference *x, int64_t b, int64_t h, int64_t i,
                                        int64_t place, double error) {
    const qkv_attention_desc *d = &x->c->d;
    const qkv_attention_stats *s = &x->got->s;
    const float *class_mass = stats_at(d, x->got, STATS_CLASS_MASS, b, h, i);
    const float *offset_mass = stats_at(d, x->got, STATS_OFFSET_MASS, b, h, i);
    double classes[QKV_STATS_MAX_CLASSES + 1] = { 0 }, offsets[QKV_STATS_MAX_OFFSETS] = { 0 };
    for (int64_t j = 0; j < d->len_k; j++) {
        if (!x->r.sees[j]) continue;
        classes[s->classes[b * s->classes_stride + j]] += x->r.p[j];
        for (int64_t n = 0; n < s->n_offsets; n++)
            if (s->offsets[n] <= j - place && j - place < s->offsets[n + 1])
                offsets[n] += x->r.p[j];
    }
    for (int64_t c = 0; c < s->n_classes; c++)
        stats_near(x, "class_mass", (double)class_mass[c], classes[c], error * classes[c] + 1e-34);
    for (int64_t n = 0; n < s->n_offsets; n++)
        stats_near(x, "offset_mass", (double)offset_mass[n], offsets[n],
                   error * offsets[n] + 1e-34);
}

/* By the query's token, and by weights of keys. */
static inline void stats_compare_tokens(const stats_reference *x, int64_t b, int64_t h, int64_t i,
                                        int64_t place, double error) {
    const qkv_attention_desc *d = &x->c->d;
    const qkv_attention_stats *s = &x->got->s;
    const int32_t token = s->tokens_q[b * s->tokens_q_stride + i];
    const int32_t *tokens = s->tokens_k + b * s->tokens_k_stride;
    const float *weights =
        s->key_weights + b * s->key_weights_stride[0] + h * s->key_weights_stride[1];
    double weighted = 0, same = 0, duplicate = 0, induction = 0;
    for (int64_t j = 0; j < d->len_k; j++) {
        if (!x->r.sees[j]) continue;
        const double p = x->r.p[j];
        weighted += p * (double)weights[j];
        if (tokens[j] == token && j != place) same += p;
        if (tokens[j] == token && j < place) duplicate += p;
        if (j > 0 && j <= place && tokens[j - 1] == token) induction += p;
    }
#define NEAR(n, name, want)                                                                        \
    stats_near(x, name, (double)stats_float(d, x->got, n, b, h, i), want, error *(want) + 1e-34)
    NEAR(STATS_WEIGHTED, "weighted_mass", weighted);
    NEAR(STATS_SAME, "same_token", same);
    NEAR(STATS_DUPLICATE, "duplicate", duplicate);
    NEAR(STATS_INDUCTION, "induction", induction);
#undef NEAR
}

static inline void stats_compare_row(const qkv_attention_desc *d, const operands *values, int64_t b,
                                     int64_t h, int64_t i, void *argument) {
    stats_reference *const x = argument;
    const int64_t offset = d->q_offsets ? d->q_offsets[b] : d->q_offset;
    const int64_t place = i + (d->flags & QKV_SET_Q_OFFSET ? offset : 0);
    if (i >= layout_queries(d, b)) return;
    row_run(d, values, b, h, i, &x->r);
    const stats_moments m = stats_moments_of(d, &x->r, place);
    const bool nan = isnan(x->r.lse), empty = !nan && m.n == 0;
    x->n_nan += nan;
    x->n_empty += empty;
    if (nan || empty) {
        stats_expect_all(x, b, h, i, nan);
        return;
    }
    const double products = 4 * sqrt((double)d->head_dim) * x->r.magnitude + 4 * x->r.bias;
    const double lost = 0x1p-126 * (double)d->head_dim * fabs(rule_scale(d));
    const double score_error = STATS_EPSILON * (products + 8 * m.most) + lost;
    const double error = 2 * score_error + STATS_EPSILON * (64 + 8 * sqrt((double)m.n));
#define GOT(n) (double)stats_float(d, x->got, n, b, h, i)
    assert_int_equal(*(const int64_t *)stats_at(d, x->got, STATS_SEEN, b, h, i), m.n);
    if (error > 0.01) return;
    x->n_compared++;
    stats_near(x, "largest", GOT(STATS_LARGEST), m.largest, error * m.largest + 1e-37);
    stats_compare_top(x, b, h, i, score_error, error);
    stats_compare_masses(x, b, h, i, place, error);
    stats_compare_tokens(x, b, h, i, place, error);
    stats_near(x, "logit_mean", GOT(STATS_LOGIT_MEAN), m.mean,
               score_error + STATS_EPSILON * (m.range * 16 + m.most * 4));
    stats_near(x, "logit_variance", GOT(STATS_LOGIT_VARIANCE), m.variance,
               4 * (sqrt(m.variance) + score_error) * score_error + 1e-6 * m.range * m.range +
                   1e-37);
    stats_near(x, "logit_largest", GOT(STATS_LOGIT_LARGEST), m.most, score_error + 1e-37);
    if (m.sum < 1e-30) return; /* the sink has everything: what keys share is beneath p */
    stats_near(x, "entropy", GOT(STATS_ENTROPY), m.entropy, 2 * error * (1 + m.entropy) + 1e-6);
    stats_near(x, "effective_keys", GOT(STATS_EFFECTIVE), 1 / m.squares, 4 * error / m.squares);
    stats_near(x, "mean_distance", GOT(STATS_DISTANCE), m.distance, 2 * error * m.distance + 1e-30);
    stats_near(x, "mean_square_distance", GOT(STATS_SQUARE), m.square_distance,
               2 * error * m.square_distance + 1e-30);
    assert_true(GOT(STATS_LARGEST) ==
                (double)*(const float *)stats_at(d, x->got, STATS_TOP_WEIGHTS, b, h, i));
#undef GOT
}

/*
 * All rows of the case, and how many are empty or NaN. Returns how many were compared number by
 * number.
 */
static inline int64_t stats_compare(const check_case *c, const stats_arrays *got) {
    const oracle_inputs in = case_inputs(c);
    operands values = operands_new(&c->d, &in);
    stats_reference x = { .c = c, .got = got, .r = row_new(&c->d) };
    for_each_row(&c->d, &values, stats_compare_row, &x);
    for (int64_t n = 0; n < c->d.n_batch * c->d.n_heads; n++) {
        x.n_empty -= got->s.n_empty_rows[n];
        x.n_nan -= got->s.n_nan_rows[n];
    }
    if (x.n_empty || x.n_nan) fail_msg("%s: rows are not counted right\n%s", isa, c->text);
    row_free(&x.r);
    operands_free(&values);
    return x.n_compared;
}

#endif
