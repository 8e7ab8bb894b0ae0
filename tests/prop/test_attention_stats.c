/*
 * Statistics of weights (qkv/stats.h): random problems with every feature against a materialised
 * reference in double; the same bits on every instruction set with 1 to 16 threads, and o and lse with
 * the bits of a call without statistics; identities that hold whatever the weights are; lists of the
 * greatest scores exactly, where scores are whole numbers; entropy at 8,192 keys.
 */
#include "check/oracle_row.h"
#include "check/outputs.h"
#include "check/rules.h"
#include "every_isa.h"
#include "stats_arrays.h"

enum { CASES = SANITIZED ? 60 : 400 };

static const double EPSILON = 0x1p-24;

/* ---- The reference --------------------------------------------------------------------------- */

typedef struct reference {
    const check_case *c;
    const stats_arrays *got;
    row r;
    int64_t n_empty, n_nan, n_compared;
} reference;

static void near(const reference *x, const char *name, double is, double want, double bound) {
    if (!(fabs(is - want) <= bound))
        fail_msg("%s, %s: %.9g instead of %.9g, bound %.3g\n%s", isa, name, is, want, bound,
                 x->c->text);
}

static void expect_all(const reference *x, int64_t b, int64_t h, int64_t i, bool nan) {
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

/* Of the keys above -inf. */
typedef struct moments {
    int64_t n;
    double largest, entropy, squares, sum, distance, square_distance;
    double mean, variance, most, range;
} moments;

static moments moments_of(const qkv_attention_desc *d, const row *r, int64_t place) {
    moments m = { 0 };
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

/* Each listed key is one of those that may stand there, given what scores may be off by. */
static void compare_top(const reference *x, int64_t b, int64_t h, int64_t i, double score_error,
                        double error) {
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
        near(x, "top_weights", (double)weights[n], x->r.p[keys[n]],
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

static void compare_masses(const reference *x, int64_t b, int64_t h, int64_t i, int64_t place,
                           double error) {
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
        near(x, "class_mass", (double)class_mass[c], classes[c], error * classes[c] + 1e-34);
    for (int64_t n = 0; n < s->n_offsets; n++)
        near(x, "offset_mass", (double)offset_mass[n], offsets[n], error * offsets[n] + 1e-34);
}

/* By the query's token, and by weights of keys. */
static void compare_tokens(const reference *x, int64_t b, int64_t h, int64_t i, int64_t place,
                           double error) {
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
    near(x, name, (double)stats_float(d, x->got, n, b, h, i), want, error *(want) + 1e-34)
    NEAR(STATS_WEIGHTED, "weighted_mass", weighted);
    NEAR(STATS_SAME, "same_token", same);
    NEAR(STATS_DUPLICATE, "duplicate", duplicate);
    NEAR(STATS_INDUCTION, "induction", induction);
#undef NEAR
}

static void compare_row(const qkv_attention_desc *d, const operands *values, int64_t b, int64_t h,
                        int64_t i, void *argument) {
    reference *const x = argument;
    const int64_t offset = d->q_offsets ? d->q_offsets[b] : d->q_offset;
    const int64_t place = i + (d->flags & QKV_SET_Q_OFFSET ? offset : 0);
    if (i >= layout_queries(d, b)) return;
    row_run(d, values, b, h, i, &x->r);
    const moments m = moments_of(d, &x->r, place);
    const bool nan = isnan(x->r.lse), empty = !nan && m.n == 0;
    x->n_nan += nan;
    x->n_empty += empty;
    if (nan || empty) {
        expect_all(x, b, h, i, nan);
        return;
    }
    const double products = 4 * sqrt((double)d->head_dim) * x->r.magnitude + 4 * x->r.bias;
    const double lost = 0x1p-126 * (double)d->head_dim * fabs(rule_scale(d));
    const double score_error = EPSILON * (products + 8 * m.most) + lost;
    const double error = 2 * score_error + EPSILON * (64 + 8 * sqrt((double)m.n));
#define GOT(n) (double)stats_float(d, x->got, n, b, h, i)
    assert_int_equal(*(const int64_t *)stats_at(d, x->got, STATS_SEEN, b, h, i), m.n);
    if (error > 0.01) return;
    x->n_compared++;
    near(x, "largest", GOT(STATS_LARGEST), m.largest, error * m.largest + 1e-37);
    compare_top(x, b, h, i, score_error, error);
    compare_masses(x, b, h, i, place, error);
    compare_tokens(x, b, h, i, place, error);
    near(x, "logit_mean", GOT(STATS_LOGIT_MEAN), m.mean,
         score_error + EPSILON * (m.range * 16 + m.most * 4));
    near(x, "logit_variance", GOT(STATS_LOGIT_VARIANCE), m.variance,
         4 * (sqrt(m.variance) + score_error) * score_error + 1e-6 * m.range * m.range + 1e-37);
    near(x, "logit_largest", GOT(STATS_LOGIT_LARGEST), m.most, score_error + 1e-37);
    if (m.sum < 1e-30) return; /* the sink has everything: what keys share is beneath p */
    near(x, "entropy", GOT(STATS_ENTROPY), m.entropy, 2 * error * (1 + m.entropy) + 1e-6);
    near(x, "effective_keys", GOT(STATS_EFFECTIVE), 1 / m.squares, 4 * error / m.squares);
    near(x, "mean_distance", GOT(STATS_DISTANCE), m.distance, 2 * error * m.distance + 1e-30);
    near(x, "mean_square_distance", GOT(STATS_SQUARE), m.square_distance,
         2 * error * m.square_distance + 1e-30);
    assert_true(GOT(STATS_LARGEST) ==
                (double)*(const float *)stats_at(d, x->got, STATS_TOP_WEIGHTS, b, h, i));
#undef GOT
}

/* ---- Random problems ------------------------------------------------------------------------- */

static void forward(const char *on, int n_threads, const check_case *c, const stats_arrays *s,
                    const outputs *x) {
    qkv_ctx *ctx = context_on(on, n_threads);
    qkv_attention_desc d = c->d;
    if (s) d.flags |= QKV_SET_STATS, d.stats = &s->s;
    if (qkv_attention_forward(ctx, &d, c->q.data, c->k.data, c->v.data, x->o.data, x->lse.data,
                              NULL) != QKV_OK)
        fail_msg("%s\n%s", qkv_ctx_message(ctx), c->text);
    qkv_ctx_destroy(ctx);
}

static bool same_elements(const guarded *x, const guarded *y, elem_type type) {
    for (size_t n = 0; n < x->bytes / element_bytes(type); n++) {
        const double p = element_get(x->data, type, (int64_t)n);
        const double q = element_get(y->data, type, (int64_t)n);
        if (memcmp(&p, &q, sizeof p) != 0 && !(isnan(p) && isnan(q))) return false;
    }
    return true;
}

static int64_t one_case(const check_case *c, int n_threads) {
    outputs plain = outputs_new(c), with = outputs_new(c);
    stats_arrays s = stats_arrays_new(&c->d, c->seed, c->at_end);
    stats_arrays scalar = stats_arrays_new(&c->d, c->seed, c->at_end);
    forward(isa, n_threads, c, NULL, &plain);
    forward(isa, n_threads, c, &s, &with);
    if (!same_elements(&plain.o, &with.o, outputs_element(&c->d, 0)) ||
        !same_elements(&plain.lse, &with.lse, ELEMENT_F32))
        fail_msg("%s: statistics changed o or lse\n%s", isa, c->text);
    forward("scalar", 1, c, &scalar, &with);
    const int differs = stats_difference(&s, &scalar);
    if (differs >= 0) fail_msg("%s: array %d is not that of scalar\n%s", isa, differs, c->text);
    if (!stats_intact(&c->d, &s)) fail_msg("%s: written outside of rows\n%s", isa, c->text);

    const oracle_inputs in = case_inputs(c);
    operands values = operands_new(&c->d, &in);
    reference x = { .c = c, .got = &s, .r = row_new(&c->d) };
    for_each_row(&c->d, &values, compare_row, &x);
    for (int64_t n = 0; n < c->d.n_batch * c->d.n_heads; n++) {
        x.n_empty -= s.s.n_empty_rows[n];
        x.n_nan -= s.s.n_nan_rows[n];
    }
    if (x.n_empty || x.n_nan) fail_msg("%s: rows are not counted right\n%s", isa, c->text);
    row_free(&x.r);
    operands_free(&values);
    outputs_free(&plain);
    outputs_free(&with);
    stats_arrays_free(&s);
    stats_arrays_free(&scalar);
    return x.n_compared;
}

static void random_problems_agree_with_the_reference(void) {
    rng r = { 0x57A7 };
    int64_t n_compared = 0;
    for (int n = 0; n < CASES; n++) {
        check_case c;
        case_make(&c, rng_next(&r));
        n_compared += one_case(&c, (int)rng_between(&r, 1, 16));
        case_free(&c);
    }
    assert_true(n_compared > 10 * CASES);
}

/* ---- Chosen problems ------------------------------------------------------------------------- */

/* A head of one sequence, dense. */
typedef struct head {
    qkv_attention_desc d;
    float *q, *k, *v, *o;
} head;

static head head_new(int64_t len_q, int64_t len_k, int64_t dim) {
    head x;
    rng r = { 17 };
    qkv_attention_desc_contiguous(&x.d, 1, 1, 1, len_q, len_k, dim, dim);
    x.q = normals(&r, len_q * dim);
    x.k = normals(&r, len_k * dim);
    x.v = normals(&r, len_k * dim);
    x.o = floats(len_q * dim);
    return x;
}

static void head_free(head *x) {
    free(x->q);
    free(x->k);
    free(x->v);
    free(x->o);
}

static void head_run(const head *x, const qkv_attention_stats *s, int n_threads) {
    qkv_ctx *ctx = context_on(isa, n_threads);
    qkv_attention_desc d = x->d;
    d.flags |= QKV_SET_STATS;
    d.stats = s;
    assert_int_equal(qkv_attention_forward(ctx, &d, x->q, x->k, x->v, x->o, NULL, NULL), QKV_OK);
    qkv_ctx_destroy(ctx);
}

static void threads_do_not_change_a_bit(void) {
    rng r = { 5 };
    check_case c;
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 2, 1, 700, 900, 32, 32);
    d.flags = QKV_SET_CAUSAL;
    case_dense(&c, &d, rng_next(&r), true);
    case_seal(&c);
    outputs o = outputs_new(&c);
    stats_arrays first = stats_arrays_new(&d, 1, true);
    forward(isa, 1, &c, &first, &o);
    for (int n_threads = 2; n_threads <= 8; n_threads++) {
        stats_arrays s = stats_arrays_new(&d, 1, true);
        forward(isa, n_threads, &c, &s, &o);
        assert_int_equal(stats_difference(&first, &s), -1);
        stats_arrays_free(&s);
    }
    stats_arrays_free(&first);
    outputs_free(&o);
    case_free(&c);
}

/* Scores are whole numbers, many of them equal: of equal ones the smaller key comes first. */
static void lists_are_exact_and_ties_go_to_the_smaller_key(void) {
    enum { LEN_Q = 40, LEN_K = 1000, K = 64 };
    for (int k = 1; k <= K; k += k < 9 ? 1 : 11) {
        head x = head_new(LEN_Q, LEN_K, 1);
        qkv_attention_stats s;
        int64_t *keys = calloc(LEN_Q * K, sizeof *keys);
        assert_non_null(keys);
        for (int i = 0; i < LEN_Q; i++) x.q[i] = (float)(i % 5 - 2);
        for (int j = 0; j < LEN_K; j++) x.k[j] = (float)((j * 7919 + k) % 41);
        qkv_attention_stats_contiguous(&s, &x.d);
        s.top_k = k;
        s.top_keys = keys;
        head_run(&x, &s, 2);
        for (int i = 0; i < LEN_Q; i++)
            for (int n = 0; n < k; n++) { /* how many stand before it */
                const int64_t at = keys[i * k + n];
                int64_t before = 0;
                for (int64_t j = 0; j < LEN_K; j++) {
                    const float other = x.q[i] * x.k[j], own = x.q[i] * x.k[at];
                    before += other > own || (other == own && j < at);
                }
                assert_int_equal(before, n);
            }
        free(keys);
        head_free(&x);
    }
}

/* All keys equal: H = ln n, n effective keys, as many as row i sees; its first row sees one, which has all. */
static void equal_keys_are_shared_evenly(void) {
    enum { LEN = 777 };
    head x = head_new(LEN, LEN, 16);
    float *entropy = floats(LEN), *effective = floats(LEN), *largest = floats(LEN);
    qkv_attention_stats s;
    for (int64_t j = 1; j < LEN; j++) memcpy(x.k + 16 * j, x.k, 16 * sizeof *x.k);
    x.d.flags |= QKV_SET_CAUSAL;
    qkv_attention_stats_contiguous(&s, &x.d);
    s.entropy = entropy, s.effective_keys = effective, s.largest = largest;
    head_run(&x, &s, 3);
    assert_true(largest[0] == 1 && entropy[0] == 0 && effective[0] == 1);
    for (int i = 0; i < LEN; i++) {
        const double n = i + 1;
        assert_true(fabs((double)entropy[i] - log(n)) <= 2e-6);
        assert_true(fabs((double)effective[i] - n) <= 2e-6 * n);
        assert_true(fabs((double)largest[i] * n - 1) <= 2e-6);
    }
    free(entropy);
    free(effective);
    free(largest);
    head_free(&x);
}

/* 0 <= H <= ln n; 1 <= N <= e^H; classes and offsets that cover all keys have all the mass. */
static void identities_hold(void) {
    enum { LEN = 600, CLASSES = 5 };
    static const int64_t offsets[] = { -LEN, -64, -8, -1, 0, 1, 2, 9, LEN };
    enum { BINS = sizeof offsets / sizeof *offsets - 1 };
    head x = head_new(LEN, LEN, 24);
    float *entropy = floats(LEN), *effective = floats(LEN), *largest = floats(LEN);
    float *masses = floats(LEN * CLASSES), *bins = floats(LEN * BINS), *top = floats(LEN * 20);
    uint8_t classes[LEN];
    qkv_attention_stats s;
    for (int j = 0; j < LEN; j++) classes[j] = (uint8_t)(j * j % CLASSES);
    for (int64_t i = 0; i < LEN * 24; i++) x.q[i] *= (float)(i / 24 % 9);
    qkv_attention_stats_contiguous(&s, &x.d);
    s.entropy = entropy, s.effective_keys = effective, s.largest = largest;
    s.n_classes = CLASSES, s.classes = classes, s.class_mass = masses;
    s.n_offsets = BINS, s.offsets = offsets, s.offset_mass = bins;
    s.top_k = 20, s.top_weights = top;
    head_run(&x, &s, 2);
    for (int i = 0; i < LEN; i++) {
        double sum = 0, in_bins = 0, listed = 0;
        assert_true(entropy[i] >= 0 && (double)entropy[i] <= log(LEN) + 2e-6);
        assert_true((double)effective[i] >= 1 - 1e-6);
        assert_true((double)effective[i] <= exp((double)entropy[i]) * (1 + 1e-5));
        for (int c = 0; c < CLASSES; c++) sum += (double)masses[i * CLASSES + c];
        for (int c = 0; c < BINS; c++) in_bins += (double)bins[i * BINS + c];
        for (int n = 0; n < 20; n++) listed += (double)top[i * 20 + n];
        assert_true(fabs(sum - 1) <= 2e-6 && fabs(in_bins - 1) <= 2e-6 && listed <= 1 + 2e-6);
        assert_true(top[i * 20] == largest[i]);
    }
    free(entropy);
    free(effective);
    free(largest);
    free(masses);
    free(bins);
    free(top);
    head_free(&x);
}

/* Scores that share an offset of 100, at 8,192 keys: entropy is within 2e-5 all the same. */
static void entropy_keeps_its_digits_beside_an_offset(void) {
    enum { LEN_Q = 50, LEN_K = 8192 };
    head x = head_new(LEN_Q, LEN_K, 1);
    float entropy[LEN_Q];
    qkv_attention_stats s;
    x.d.flags |= QKV_SET_SCALE;
    x.d.scale = 1;
    for (int i = 0; i < LEN_Q; i++) x.q[i] = 1 + (float)i / 64;
    for (int j = 0; j < LEN_K; j++) x.k[j] = (100 + x.k[j]) / x.q[0];
    qkv_attention_stats_contiguous(&s, &x.d);
    s.entropy = entropy;
    head_run(&x, &s, 2);
    for (int i = 0; i < LEN_Q; i++) {
        double sum = 0, weighted = 0;
        const float least = 100;
        for (int j = 0; j < LEN_K; j++) {
            const double score = (double)(x.q[i] * x.k[j]) - (double)least * (double)x.q[i];
            sum += exp(score);
            weighted += exp(score) * score;
        }
        const double want = log(sum) - weighted / sum;
        if (fabs((double)entropy[i] - want) > 2e-5)
            fail_msg("%s: row %d has %.9g, not %.9g", isa, i, (double)entropy[i], want);
    }
    head_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(random_problems_agree_with_the_reference),
        PROPERTY(threads_do_not_change_a_bit),
        PROPERTY(lists_are_exact_and_ties_go_to_the_smaller_key),
        PROPERTY(equal_keys_are_shared_evenly),
        PROPERTY(identities_hold),
        PROPERTY(entropy_keeps_its_digits_beside_an_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
