/*
 * Statistics of weights (qkv/stats.h): random problems with every feature against a materialised
 * reference in double; the same bits on every instruction set with 1 to 16 threads, and o and lse
 * with the bits of a call without statistics; identities that hold whatever the weights are; lists
 * of the greatest scores exactly, where scores are whole numbers; entropy at 8,192 keys.
 */
#include "attn/every_isa.h"
#include "attn/stats_reference.h"
#include "check/outputs.h"
#include "check/rules.h"

enum { CASES = UNDER_SANITIZER ? 60 : 400 };

/* ---- Random problems ------------------------------------------------------------------------- */

static void forward(const char *on, int n_threads, const check_case *c, const stats_arrays *s,
                    const outputs *x) {
    qkv_ctx *ctx = context_on(on, n_threads);
    qkv_attention_desc d = c->d;
    if (s) d.flags |= QKV_SET_STATS, d.stats = &s->s;
    if (qkv_attention_forward(ctx, &d, c->q.data, c->k.data, c->v.data, x->o.data, x->lse.data,
                              NULL) != QKV_OK)
        fail_msg("%s\n%s", qkv_ctx_message(ctx), c->text);
    qkv_ctx_free(ctx);
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

    const int64_t n_compared = stats_compare(c, &s);
    outputs_free(&plain);
    outputs_free(&with);
    stats_arrays_free(&s);
    stats_arrays_free(&scalar);
    return n_compared;
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
    qkv_ctx_free(ctx);
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

/*
 * All keys equal: H = ln n, n effective keys, as many as row i sees; its first row sees one, which
 * has all.
 */
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
