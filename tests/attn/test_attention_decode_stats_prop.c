/*
 * Statistics of weights from decode (qkv/stats.h, qkv/kv.h): random problems with every feature,
 * type and layout of what is stored, against a materialised reference in double; the same bits on
 * every instruction set, with 1 to 16 threads, for one query as for several, and wherever keys lie;
 * o and lse with the bits of a call without statistics; and, at many splits, what forward says of
 * the same rows: its lists exactly.
 */
#include "attn/stats_reference.h"
#include "check/outputs.h"
#include "check/stored_case.h"

enum { CASES = UNDER_SANITIZER ? 60 : 400 };

/* ---- Random problems ------------------------------------------------------------------------- */

static void decode(const char *on, int n_threads, const check_case *c, const qkv_kv_view *view,
                   const stats_arrays *s, const outputs *x) {
    qkv_ctx *ctx = context_on(on, n_threads);
    qkv_attention_desc d = c->d;
    if (s) d.flags |= QKV_SET_STATS, d.stats = &s->s;
    if (qkv_attention_decode(ctx, &d, c->q.data, view, x->o.data, x->lse.data, NULL) != QKV_OK)
        fail_msg("%s\n%s", qkv_ctx_message(ctx), c->text);
    qkv_ctx_free(ctx);
}

static outputs new_outputs(const check_case *c) {
    return (outputs){ .o = output_new(&c->d, 'o', c->d.o_stride, c->at_end),
                      .lse = output_new(&c->d, 'l', c->d.lse_stride, c->at_end) };
}

/* The same numbers from another place, number of threads, or instruction set. */
static void expect_the_same(const char *what, const char *on, int n_threads, const check_case *c,
                            const qkv_kv_view *view, const stats_arrays *want,
                            const outputs *plain) {
    stats_arrays s = stats_arrays_new(&c->d, c->seed, c->at_end);
    outputs x = new_outputs(c);
    decode(on, n_threads, c, view, &s, &x);
    const int differs = stats_difference(want, &s);
    if (differs >= 0) fail_msg("%s, %s: array %d differs\n%s", isa, what, differs, c->text);
    if (!same_elements(&plain->o, &x.o, outputs_element(&c->d, 0)) ||
        !same_elements(&plain->lse, &x.lse, ELEMENT_F32))
        fail_msg("%s, %s: statistics changed o or lse\n%s", isa, what, c->text);
    outputs_free(&x);
    stats_arrays_free(&s);
}

static int64_t one_case(const stored_case *y, rng *r) {
    const check_case *c = &y->c;
    const int n_threads = (int)rng_between(r, 1, 16);
    outputs plain = new_outputs(c), with = new_outputs(c);
    stats_arrays s = stats_arrays_new(&c->d, c->seed, c->at_end);
    decode(isa, n_threads, c, &y->kv.view, NULL, &plain);
    decode(isa, n_threads, c, &y->kv.view, &s, &with);
    if (!stats_intact(&c->d, &s)) fail_msg("%s: written outside of rows\n%s", isa, c->text);
    expect_the_same("one thread", isa, 1, c, &y->kv.view, &s, &plain);
    expect_the_same("scalar", "scalar", (int)rng_between(r, 1, 8), c, &y->kv.view, &s, &plain);
    kv_stored dense = stored_contiguous(c, &y->kv);
    expect_the_same("contiguous", isa, n_threads, c, &dense.view, &s, &plain);
    stored_free(&dense);
    const int64_t n_compared = stats_compare(c, &s);
    outputs_free(&plain);
    outputs_free(&with);
    stats_arrays_free(&s);
    return n_compared;
}

static void random_problems_agree_with_the_reference(void) {
    rng r = { 0xDEC57A };
    int64_t n_compared = 0;
    for (int n = 0; n < CASES; n++) {
        const uint64_t seed = rng_next(&r);
        elem_type stored;
        const recipe y = stored_recipe(seed, &stored);
        stored_case x;
        stored_case_make_of(&x, &y, stored, seed);
        n_compared += one_case(&x, &r);
        stored_case_free(&x);
    }
    assert_true(n_compared > 4 * CASES);
}

/* ---- Chosen problems ------------------------------------------------------------------------- */

enum { LEN_Q = 5, LEN_K = 5000, HEADS = 6, KV_HEADS = 2, DIM = 32 };

typedef struct answer {
    stats_arrays s;
    float *o, *lse;
} answer;

static void answer_free(answer *x) {
    stats_arrays_free(&x->s);
    free(x->o);
    free(x->lse);
}

static qkv_attention_desc grouped(uint32_t flags, int64_t len_q) {
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, HEADS, KV_HEADS, len_q, LEN_K, DIM, DIM);
    d.flags = flags;
    d.q_offset = LEN_K - LEN_Q;
    return d;
}

static answer answer_new(const qkv_attention_desc *d) {
    return (answer){ stats_arrays_new(d, 99, true), floats(HEADS * LEN_Q * DIM),
                     floats(HEADS * LEN_Q) };
}

static void run_into(answer *x, const qkv_attention_desc *of, const problem *p, int n_threads,
                     bool forward) {
    qkv_attention_desc d = *of;
    qkv_ctx *ctx = context_on(isa, n_threads);
    qkv_kv_view view;
    d.flags |= QKV_SET_STATS;
    d.stats = &x->s.s;
    qkv_kv_view_contiguous(&view, &d, QKV_F32);
    view.k = p->k, view.v = p->v;
    const qkv_status status =
        forward ? qkv_attention_forward(ctx, &d, p->q, p->k, p->v, x->o, x->lse, NULL)
                : qkv_attention_decode(ctx, &d, p->q, &view, x->o, x->lse, NULL);
    if (status != QKV_OK) fail_msg("%s", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
}

static answer run(const qkv_attention_desc *d, const problem *p, int n_threads, bool forward) {
    answer x = answer_new(d);
    run_into(&x, d, p, n_threads, forward);
    return x;
}

/* Scores are the same floats in whatever order they are summed. */
static problem many_splits(void) {
    rng r = { 41 };
    problem p = problem_new(&r, 1, HEADS, KV_HEADS, LEN_Q, LEN_K, DIM, DIM);
    for (int64_t e = 0; e < HEADS * LEN_Q * DIM; e++) p.q[e] = rintf(16 * p.q[e]) / 16;
    for (int64_t e = 0; e < KV_HEADS * LEN_K * DIM; e++) p.k[e] = rintf(16 * p.k[e]) / 16;
    return p;
}

static void threads_do_not_change_a_bit(void) {
    problem p = many_splits();
    const qkv_attention_desc d = grouped(QKV_SET_CAUSAL | QKV_SET_Q_OFFSET, LEN_Q);
    answer first = run(&d, &p, 1, false);
    for (int n_threads = 2; n_threads <= 8; n_threads++) {
        answer x = run(&d, &p, n_threads, false);
        assert_int_equal(stats_difference(&first.s, &x.s), -1);
        same_bits("o", first.o, x.o, HEADS * LEN_Q * DIM);
        same_bits("lse", first.lse, x.lse, HEADS * LEN_Q);
        answer_free(&x);
    }
    answer_free(&first);
    problem_free(&p);
}

/* Two floats that were summed in different orders. */
static void expect_near(int n, double x, double y) {
    if (!(fabs(x - y) <= 4e-6 * fmax(fabs(x), fabs(y)) + 2e-6))
        fail_msg("%s, array %d: decode has %.9g, forward %.9g", isa, n, x, y);
}

static void forward_says_the_same(void) {
    static const uint32_t rules[] = { 0, QKV_SET_CAUSAL, QKV_SET_WINDOW,
                                      QKV_SET_SINKS | QKV_SET_SOFTCAP };
    static const float sinks[HEADS] = { 1, -INFINITY, 8, 0, -3, 2 };
    problem p = many_splits();
    for (size_t n = 0; n < sizeof rules / sizeof *rules; n++) {
        qkv_attention_desc d = grouped(rules[n] | QKV_SET_Q_OFFSET, LEN_Q);
        d.window_left = 2500, d.window_right = 1;
        d.softcap = 30;
        d.sinks = sinks;
        answer x = run(&d, &p, 3, false), y = run(&d, &p, 2, true);
        for (int64_t at = 0; at < HEADS * LEN_Q; at++) {
            const int64_t h = at / LEN_Q, i = at % LEN_Q;
            for (int a = 0; a < STATS_FLOATS; a++)
                for (int64_t e = 0; e < x.s.per_row[a]; e++)
                    expect_near(a, (double)((const float *)stats_at(&d, &x.s, a, 0, h, i))[e],
                                (double)((const float *)stats_at(&d, &y.s, a, 0, h, i))[e]);
            assert_int_equal(*(const int64_t *)stats_at(&d, &x.s, STATS_SEEN, 0, h, i),
                             *(const int64_t *)stats_at(&d, &y.s, STATS_SEEN, 0, h, i));
            assert_memory_equal(stats_at(&d, &x.s, STATS_TOP_KEYS, 0, h, i),
                                stats_at(&d, &y.s, STATS_TOP_KEYS, 0, h, i),
                                (size_t)x.s.s.top_k * sizeof(int64_t));
        }
        answer_free(&x);
        answer_free(&y);
    }
    problem_free(&p);
}

/* What is told about keys, and about query i. */
static void share_inputs(qkv_attention_stats *s, const qkv_attention_stats *of, int64_t i) {
    s->classes = of->classes;
    s->offsets = of->offsets;
    s->key_weights = of->key_weights;
    s->tokens_k = of->tokens_k;
    s->tokens_q = of->tokens_q + i;
}

/* A query alone has the numbers that it has among others, with any queries that share its keys. */
static void a_query_alone_has_the_same_bits(void) {
    problem p = many_splits();
    const uint32_t rules = QKV_SET_CAUSAL | QKV_SET_WINDOW | QKV_SET_Q_OFFSET;
    qkv_attention_desc all = grouped(rules, LEN_Q), one = grouped(rules, 1);
    all.window_left = one.window_left = 1400; /* its beginning is not that of others */
    answer x = run(&all, &p, 4, false);
    memcpy(one.q_stride, all.q_stride, sizeof one.q_stride);
    for (int64_t i = 0; i < LEN_Q; i++) {
        problem q = p;
        q.q += i * all.q_stride[2];
        one.q_offset = all.q_offset + i;
        answer y = answer_new(&one);
        share_inputs(&y.s.s, &x.s.s, i);
        run_into(&y, &one, &q, 1, false);
        for (int64_t h = 0; h < HEADS; h++) {
            static const int same[] = { STATS_ENTROPY,       STATS_EFFECTIVE,  STATS_DISTANCE,
                                        STATS_SQUARE,        STATS_LOGIT_MEAN, STATS_LOGIT_VARIANCE,
                                        STATS_TOP_WEIGHTS,   STATS_CLASS_MASS, STATS_OFFSET_MASS,
                                        STATS_LOGIT_LARGEST, STATS_WEIGHTED,   STATS_SAME,
                                        STATS_DUPLICATE,     STATS_INDUCTION };
            for (size_t n = 0; n < sizeof same / sizeof *same; n++)
                assert_memory_equal(stats_at(&all, &x.s, same[n], 0, h, i),
                                    stats_at(&one, &y.s, same[n], 0, h, 0),
                                    (size_t)x.s.per_row[same[n]] * sizeof(float));
        }
        answer_free(&y);
    }
    answer_free(&x);
    problem_free(&p);
}

/* One query of one channel over keys of one channel. */
typedef struct single {
    qkv_attention_desc d;
    float *keys, *values;
} single;

static single single_new(int64_t n) {
    single x = { .keys = floats(n), .values = floats(n) };
    qkv_attention_desc_contiguous(&x.d, 1, 1, 1, 1, n, 1, 1);
    return x;
}

static void single_run(const single *x, float q, const qkv_attention_stats *s) {
    qkv_attention_desc d = x->d;
    qkv_kv_view view;
    float o;
    d.flags |= QKV_SET_STATS;
    d.stats = s;
    qkv_kv_view_contiguous(&view, &d, QKV_F32);
    view.k = x->keys, view.v = x->values;
    qkv_ctx *ctx = context_on(isa, 3);
    assert_int_equal(qkv_attention_decode(ctx, &d, &q, &view, &o, NULL, NULL), QKV_OK);
    qkv_ctx_free(ctx);
}

static void single_free(single *x) {
    free(x->keys);
    free(x->values);
}

/*
 * Scores are whole numbers, many equal, in several splits: of equal ones the smaller key comes
 * first.
 */
static void lists_are_exact_and_ties_go_to_the_smaller_key(void) {
    enum { KEYS = 3000, K = 64 };
    single x = single_new(KEYS);
    for (int k = 1; k <= K; k += k < 9 ? 1 : 11) {
        int64_t listed[K];
        qkv_attention_stats s;
        for (int j = 0; j < KEYS; j++) x.keys[j] = (float)((j * 7919 + k) % 41);
        qkv_attention_stats_contiguous(&s, &x.d);
        s.top_k = k;
        s.top_keys = listed;
        single_run(&x, 2, &s);
        for (int n = 0; n < k; n++) { /* how many stand before it */
            const float own = x.keys[listed[n]];
            int64_t before = 0;
            for (int64_t j = 0; j < KEYS; j++)
                before += x.keys[j] > own || (x.keys[j] == own && j < listed[n]);
            assert_int_equal(before, n);
        }
    }
    single_free(&x);
}

/* Scores that share an offset of 100, at 8,192 keys: entropy is within 2e-5 all the same. */
static void entropy_keeps_its_digits_beside_an_offset(void) {
    enum { KEYS = 8192 };
    rng r = { 23 };
    single x = single_new(KEYS);
    qkv_attention_stats s;
    double sum = 0, weighted = 0;
    float entropy;
    for (int j = 0; j < KEYS; j++) {
        x.keys[j] = 100 + rng_normal(&r);
        const double score = (double)x.keys[j] - 100;
        sum += exp(score);
        weighted += exp(score) * score;
    }
    qkv_attention_stats_contiguous(&s, &x.d);
    s.entropy = &entropy;
    x.d.flags |= QKV_SET_SCALE;
    x.d.scale = 1;
    single_run(&x, 1, &s);
    assert_true(fabs((double)entropy - (log(sum) - weighted / sum)) <= 2e-5);
    single_free(&x);
}

/* All keys equal: H = ln n and n effective keys, at 131,072 of them too. */
static void equal_keys_are_shared_evenly(void) {
    enum { KEYS = 131072 };
    single x = single_new(KEYS);
    qkv_attention_stats s;
    float entropy, effective, largest;
    for (int j = 0; j < KEYS; j++) x.keys[j] = 3;
    qkv_attention_stats_contiguous(&s, &x.d);
    s.entropy = &entropy, s.effective_keys = &effective, s.largest = &largest;
    single_run(&x, 1, &s);
    assert_true(fabs((double)entropy - log(KEYS)) <= 2e-6);
    assert_true(fabs((double)effective - KEYS) <= 2e-6 * KEYS);
    assert_true(fabs((double)largest * KEYS - 1) <= 2e-6);
    single_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(random_problems_agree_with_the_reference),
        PROPERTY(threads_do_not_change_a_bit),
        PROPERTY(forward_says_the_same),
        PROPERTY(a_query_alone_has_the_same_bits),
        PROPERTY(lists_are_exact_and_ties_go_to_the_smaller_key),
        PROPERTY(entropy_keeps_its_digits_beside_an_offset),
        PROPERTY(equal_keys_are_shared_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
