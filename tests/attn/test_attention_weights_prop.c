/*
 * Weights that are shown (qkv_attention_weights) beside the softmax in double. Queries and keys are
 * integers, whose scores are exact as floats, so the only errors are those of the weights: relative
 * 2^-22, 2^-149 beside that, and rows that sum to 1. The bits are those of scalar, of any threads,
 * of any rectangle and of a workspace that the library measured.
 */
#include <math.h>

#include "attn/columns_calls.h"
#include "check/oracle_row.h"

enum { DIM = 3, CASES = 60 };

/* The score of query i and key j, as forward's definition has it; -inf: hidden. */
static double score_of(const qkv_attention_desc *d, const float *q, const float *k, int64_t i,
                       int64_t j) {
    double dot = 0;
    if (d->flags & QKV_SET_CAUSAL && j > i) return -INFINITY;
    for (int e = 0; e < DIM; e++) dot += (double)q[i * DIM + e] * (double)k[j * DIM + e];
    dot *= (double)d->scale;
    if (!(d->flags & QKV_SET_MASK)) return dot;
    const float added = ((const float *)d->mask)[i * d->len_k + j]; /* finished: a float */
    return (double)((float)dot + added);
}

static void check_row(const qkv_attention_desc *d, const float *q, const float *k, int64_t i,
                      const float *shown, double *t) {
    const int64_t n = d->len_k;
    double most = d->flags & QKV_SET_SINKS ? (double)d->sinks[0] : -INFINITY, all = 0, sum = 0;
    for (int64_t j = 0; j < n; j++) t[j] = score_of(d, q, k, i, j), most = fmax(most, t[j]);
    const double sink = d->flags & QKV_SET_SINKS ? exp((double)d->sinks[0] - most) : 0;
    for (int64_t j = 0; j < n; j++) all += exp(t[j] - most);
    for (int64_t j = 0; j < n; j++) {
        const double want = exp(t[j] - most) / (all + sink), is = (double)shown[j];
        if (!(fabs(is - want) <= 0x1p-22 * want + 0x1p-149))
            fail_msg("%s: weight[%lld][%lld] = %.9g, not %.9g, of score %.9g, greatest %.9g", isa,
                     (long long)i, (long long)j, is, want, t[j], most);
        sum += is;
    }
    if (!(fabs(sum - all / (all + sink)) <= 0x1p-24 * sqrt((double)n)))
        fail_msg("%s: row %lld of %lld weights sums to %.17g", isa, (long long)i, (long long)n,
                 sum);
}

typedef struct setting {
    qkv_attention_desc d;
    float *q, *k, *lse, *mask, sink;
} setting;

static void setting_free(setting *s) {
    free(s->q);
    free(s->k);
    free(s->lse);
    free(s->mask);
}

static void weigh(const setting *s, const char *on, int n_threads, int64_t i0, int64_t i1,
                  int64_t j0, int64_t j1, float *p) {
    qkv_ctx *ctx = context_on(on, n_threads);
    qkv_attention_columns nothing;
    qkv_call_options call = qkv_call_options_init();
    size_t bytes = 0;
    qkv_attention_columns_contiguous(&nothing, &s->d);
    if (qkv_attention_columns_workspace(ctx, &s->d, &nothing, &bytes) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    guarded room = guarded_new(bytes, false);
    call.workspace = room.data;
    call.workspace_bytes = bytes;
    if (qkv_attention_weights(ctx, &s->d, s->q, s->k, s->lse, 0, 0, i0, i1, j0, j1, p, j1 - j0,
                              &call) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    assert_true(guarded_intact(&room));
    guarded_free(&room);
    qkv_ctx_free(ctx);
}

/* Scores up to `greatest` in magnitude: integers below 4,096 times a scale. */
static setting setting_new(rng *r, int64_t len_q, int64_t len_k, float greatest) {
    setting s = { .q = floats(len_q * DIM), .k = floats(len_k * DIM), .lse = floats(len_q) };
    const int64_t most = rng_between(r, 1, 1300);
    qkv_attention_desc_contiguous(&s.d, 1, 1, 1, len_q, len_k, DIM, 0);
    s.d.flags = QKV_SET_SCALE;
    s.d.scale = greatest / (float)(DIM * most * most);
    for (int64_t n = 0; n < len_q * DIM; n++) s.q[n] = (float)rng_between(r, -most, most);
    for (int64_t n = 0; n < len_k * DIM; n++) s.k[n] = (float)rng_between(r, -most, most);
    return s;
}

static void forward_of(const setting *s) {
    qkv_ctx *ctx = context_on(isa, 2);
    float none = 0;
    if (qkv_attention_forward(ctx, &s->d, s->q, s->k, &none, &none, s->lse, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
}

static void one_case(rng *r) {
    static const float sizes[] = { 0, 1, 20, 300, 20000, 1e6f };
    const int64_t len_q = rng_between(r, 1, 130), len_k = rng_between(r, 1, 900);
    setting s = setting_new(r, len_q, len_k, sizes[rng_between(r, 0, 5)]);
    if (rng_chance(r, 30)) s.d.flags |= QKV_SET_CAUSAL;
    if (rng_chance(r, 30)) {
        s.sink = (float)rng_between(r, -20, 20);
        s.d.sinks = &s.sink;
        s.d.flags |= QKV_SET_SINKS;
    }
    if (rng_chance(r, 30)) { /* with a scale that is exact, so that scores are floats */
        s.d.scale = 0x1p-10f;
        s.mask = floats(len_q * len_k);
        for (int64_t n = 0; n < len_q * len_k; n++) s.mask[n] = (float)rng_between(r, -9, 9);
        s.d.mask = s.mask;
        s.d.mask_type = QKV_MASK_F32;
        s.d.mask_stride[2] = len_k;
        s.d.mask_stride[3] = 1;
        s.d.flags |= QKV_SET_MASK;
    }
    float *all = floats(len_q * len_k), *other = floats(len_q * len_k);
    double *t = oracle_zeros(len_k, sizeof *t);
    forward_of(&s);
    weigh(&s, isa, (int)rng_between(r, 1, 5), 0, len_q, 0, len_k, all);
    for (int64_t i = 0; i < len_q; i++) check_row(&s.d, s.q, s.k, i, all + i * len_k, t);
    weigh(&s, "scalar", 1, 0, len_q, 0, len_k, other);
    same_bits("weights of scalar", all, other, len_q * len_k);
    const int64_t i0 = rng_between(r, 0, len_q), i1 = rng_between(r, i0, len_q);
    const int64_t j0 = rng_between(r, 0, len_k), j1 = rng_between(r, j0, len_k);
    weigh(&s, isa, 2, i0, i1, j0, j1, other);
    for (int64_t i = i0; i < i1; i++)
        same_bits("weights of a rectangle", all + i * len_k + j0, other + (i - i0) * (j1 - j0),
                  j1 - j0);
    free(all);
    free(other);
    free(t);
    setting_free(&s);
}

static void weights_are_the_softmax(void) {
    rng r = { 0x5EED };
    for (int n = 0; n < CASES; n++) one_case(&r);
}

/*
 * So many blocks of keys that rows come in several waves; a few keys, at either end of a block. 77
 * million pairs: too many for scalar, unless it is all there is.
 */
static void waves_do_not_show(void) {
    enum { ROWS = 1100, KEYS = 70000, FROM = 1000 };
    if (isa_at == 0 && qkv_isa_name(1)) return;
    rng r = { 7 };
    setting s = setting_new(&r, ROWS, KEYS, 50);
    float *few = floats(ROWS * 3), *last = floats(KEYS);
    double *t = oracle_zeros(KEYS, sizeof *t);
    forward_of(&s);
    weigh(&s, isa, 2, 0, ROWS, 256 * 9 - 1, 256 * 9 + 2, few);
    for (int64_t i = FROM; i < ROWS; i += 33) {
        weigh(&s, isa, 1, i, i + 1, 0, KEYS, last);
        check_row(&s.d, s.q, s.k, i, last, t);
        same_bits("weights of few keys", last + 256 * 9 - 1, few + 3 * i, 3);
    }
    free(few);
    free(last);
    free(t);
    setting_free(&s);
}

/*
 * Scores so great that a float lse is no reference at all: a hundred equal ones share the weight.
 */
static void beyond_all_bounds(void) {
    enum { KEYS = 100 };
    rng r = { 9 };
    setting s = setting_new(&r, 1, KEYS, 1);
    float p[KEYS];
    s.d.scale = 1e30f;
    for (int e = 0; e < DIM; e++) s.q[e] = 3;
    for (int64_t n = 0; n < KEYS * DIM; n++) s.k[n] = 5;
    forward_of(&s);
    weigh(&s, isa, 1, 0, 1, 0, KEYS, p);
    for (int j = 0; j < KEYS; j++) assert_true(p[j] == 0.01f);
    setting_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(weights_are_the_softmax),
        PROPERTY(waves_do_not_show),
        PROPERTY(beyond_all_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
