/*
 * Properties of columns, diagonals and tiles of weights (qkv/columns.h) for any weights: the same
 * bits with any threads and padding; totals; equal, shifted and permuted keys; weights of rows;
 * halving of tiles; rows with an attention sink.
 */
#include <math.h>

#include "attn/columns_calls.h"
#include "check/oracle_row.h"

/* ---- Chosen problems ------------------------------------------------------------------------- */

/* A problem with everything asked for, after a forward call. */
typedef struct seen {
    check_case c;
    outputs o;
    columns_arrays x;
} seen;

static seen seen_new(const qkv_attention_desc *d, uint64_t seed) {
    seen s;
    case_dense(&s.c, d, seed, true);
    s.o = outputs_new(&s.c);
    s.x = columns_arrays_new(d, 3, true);
    s.x.c.row_weights = NULL;
    return s;
}

static void seen_run(seen *s, int n_threads) {
    forward(isa, &s->c, &s->o);
    columns(isa, n_threads, &s->c, &s->o, &s->x.c);
}

static void seen_free(seen *s) {
    columns_arrays_free(&s->x);
    outputs_free(&s->o);
    case_free(&s->c);
}

/* More blocks of keys than sums of diagonals, several of queries, and heads that share keys. */
static void threads_do_not_change_a_bit(void) {
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 2, 4, 2, 500, 2700, 16, 8);
    d.flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    d.q_offset = 2100;
    seen s = seen_new(&d, 5);
    case_seal(&s.c);
    seen_run(&s, 1);
    for (int n_threads = 2; n_threads <= 8; n_threads++) {
        columns_arrays x = columns_arrays_new(&d, 3, true);
        x.c.row_weights = NULL;
        columns(isa, n_threads, &s.c, &s.o, &x.c);
        const int differs = columns_difference(&s.x, &x);
        if (differs >= 0) fail_msg("%s, %d threads: array %d differs", isa, n_threads, differs);
        columns_arrays_free(&x);
    }
    seen_free(&s);
}

/* Scores as forward has them, and all else in double: what sums and exp2 lose, and lse. */
static void sums_are_within_a_millionth(void) {
    enum { LEN = 1500, DIM = 8 };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, LEN, LEN, DIM, DIM);
    seen s = seen_new(&d, 11);
    case_seal(&s.c);
    seen_run(&s, 2);
    double *received = oracle_zeros(LEN, sizeof *received), *p = oracle_zeros(LEN, sizeof *p);
    double *diagonal = oracle_zeros(2 * LEN, sizeof *diagonal);
    const float *q = s.c.q.data, *k = s.c.k.data;
    const qkv_attention_columns *c = &s.x.c;
    for (int i = 0; i < LEN; i++) {
        double sum = 0;
        for (int j = 0; j < LEN; j++) {
            float score = 0;
            for (int e = 0; e < DIM; e++) score = fmaf(q[i * DIM + e], k[j * DIM + e], score);
            sum += p[j] = exp2((double)score * (double)((float)(1 / sqrt(DIM)) * 1.44269504f));
        }
        for (int j = 0; j < LEN; j++)
            received[j] += p[j] / sum, diagonal[i - j + LEN] += p[j] / sum;
    }
    for (int j = 0; j < LEN; j++)
        if (fabs((double)c->received[j * c->stride[2]] / received[j] - 1) > 1e-6)
            fail_msg("%s: key %d received %.9g, not %.9g", isa, j,
                     (double)c->received[j * c->stride[2]], received[j]);
    for (int64_t n = 0; n < c->n_diagonals; n++) {
        const int64_t delta = c->first_diagonal + n;
        if (delta <= -LEN || delta >= LEN || c->diagonal_rows[n] < 20) continue;
        const double want = diagonal[delta + LEN] / (double)c->diagonal_rows[n];
        if (fabs((double)c->diagonal[n] / want - 1) > 1e-6)
            fail_msg("%s: diagonal %lld is %.9g, not %.9g", isa, (long long)delta,
                     (double)c->diagonal[n], want);
    }
    free(received);
    free(p);
    free(diagonal);
    seen_free(&s);
}

static double total(const float *x, int64_t n, int64_t step) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i * step];
    return sum;
}

/* Rows of the map sum to 1. */
static void check_map(const qkv_attention_columns *c) {
    for (int64_t a = 0; a < c->n_tiles_q; a++)
        if (c->tile_rows[a])
            assert_true(fabs(total(c->tile_mass + a * c->n_tiles_k, c->n_tiles_k, 1) - 1) <= 2e-6);
}

/* Weights of a row sum to 1, however they are gone through. */
static void identities_hold(void) {
    enum { LEN = 900 };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, LEN, LEN, 24, 8);
    d.flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    d.q_offset = -30; /* as many rows see nothing */
    seen s = seen_new(&d, 8);
    float *q = s.c.q.data;
    qkv_attention_columns *c = &s.x.c;
    const int64_t first = c->first_diagonal, n = c->n_diagonals;
    for (int i = 0; i < LEN * 24; i++) q[i] *= (float)(i / 24 % 7);
    case_seal(&s.c);
    seen_run(&s, 3);
    assert_int_equal(c->n_empty_rows[0], 30);
    assert_int_equal(c->n_nan_rows[0], 0);
    assert_true(fabs(total(c->received, LEN, c->stride[2]) - (LEN - 30)) <= 1e-6 * LEN);
    assert_int_equal(c->n_cells[0], (LEN - 30) * (LEN - 29) / 2);
    for (int j = 0; j < LEN; j++) {
        const int64_t at = j * c->stride[2], want = j < LEN - 30 ? LEN - 30 - j : 0;
        assert_int_equal(c->n_queries[at], want);
        assert_true(c->entropy[at] >= 0 &&
                    (double)c->entropy[at] <= log((double)want + 1e-9) + 1e-5 + (want == 0) * 99);
        assert_true(c->largest[at] <= 1 && c->largest[at] <= c->received[at] * 1.000001f);
    }
    assert_true(c->largest[0] == 1 && c->largest_query[0] == 30); /* it sees nothing else */
    for (int64_t e = 0; e < n; e++) { /* delta = 0 ... LEN - 31, each of the rows that are left */
        const int64_t delta = first + e, rows = LEN - 30 - delta;
        assert_int_equal(c->diagonal_rows[e], delta >= 0 && rows > 0 ? rows : 0);
    }
    check_map(c);
    seen_free(&s);
}

/* All keys equal: each row gives all that it sees the same. */
static void equal_keys_receive_evenly(void) {
    enum { LEN_Q = 333, LEN_K = 555 };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, LEN_Q, LEN_K, 16, 8);
    seen s = seen_new(&d, 2);
    float *k = s.c.k.data;
    for (int64_t j = 1; j < LEN_K; j++) memcpy(k + 16 * j, k, 16 * sizeof *k);
    case_seal(&s.c);
    seen_run(&s, 2);
    for (int64_t j = 0; j < LEN_K; j++) {
        const int64_t at = j * s.x.c.stride[2];
        assert_true(fabs((double)s.x.c.received[at] * LEN_K / LEN_Q - 1) <= 1e-6);
        assert_true(fabs((double)s.x.c.entropy[at] - log(LEN_Q)) <= 1e-5);
    }
    seen_free(&s);
}

/* What is not there, keys and rows, changes no bit of what is: all by key, diagonals and tiles. */
static void padding_changes_nothing(void) {
    enum { LEN_Q = 210, LEN_K = 700, MORE_Q = 300, MORE_K = 2900 };
    const int64_t q_len = LEN_Q, kv_len = LEN_K;
    qkv_attention_desc d, more;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, LEN_Q, LEN_K, 16, 8);
    qkv_attention_desc_contiguous(&more, 1, 1, 1, MORE_Q, MORE_K, 16, 8);
    more.flags = QKV_SET_KV_LEN | QKV_SET_Q_LEN;
    more.kv_len = &kv_len;
    more.q_len = &q_len;
    static seen s, t; /* too large for a stack */
    s = seen_new(&d, 4), t = seen_new(&more, 6);
    const qkv_attention_columns *a = &s.x.c, *b = &t.x.c;
    memcpy(t.c.q.data, s.c.q.data, s.c.q.bytes);
    memcpy(t.c.k.data, s.c.k.data, s.c.k.bytes);
    memcpy(t.c.v.data, s.c.v.data, s.c.v.bytes);
    t.x.c.first_diagonal = a->first_diagonal;
    const int64_t n = t.x.c.n_diagonals =
        a->n_diagonals < b->n_diagonals ? a->n_diagonals : b->n_diagonals;
    s.x.c.n_diagonals = n;
    s.x.c.n_tiles_q = t.x.c.n_tiles_q = 13, s.x.c.n_tiles_k = t.x.c.n_tiles_k = 31;
    columns_arrays_fit(&d, &s.x);
    columns_arrays_fit(&more, &t.x);
    case_seal(&s.c);
    case_seal(&t.c);
    seen_run(&s, 2);
    seen_run(&t, 3);
    for (int j = 0; j < LEN_K; j++) {
        const int64_t at = j * a->stride[2], to = j * b->stride[2];
        same_bits("received", a->received + at, b->received + to, 1);
        same_bits("entropy", a->entropy + at, b->entropy + to, 1);
        assert_int_equal(a->n_queries[at], b->n_queries[to]);
    }
    for (int j = LEN_K; j < MORE_K; j++) assert_true(b->received[j * b->stride[2]] == 0);
    same_bits("diagonal", a->diagonal, b->diagonal, n);
    same_bits("tile_mass", a->tile_mass, b->tile_mass, 13 * 31);
    same_bits("tile_peak", a->tile_peak, b->tile_peak, 13 * 31);
    seen_free(&s);
    seen_free(&t);
}

/*
 * A vector that is added to all keys changes nothing, and keys that change places take along what
 * is theirs.
 */
static void shifts_and_permutations(void) {
    enum { LEN = 300, DIM = 16 };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, LEN, LEN, DIM, 8);
    static seen s[3]; /* too large for a stack */
    for (int n = 0; n < 3; n++) s[n] = seen_new(&d, 7);
    float *k0 = s[0].c.k.data, *k1 = s[1].c.k.data, *k2 = s[2].c.k.data;
    for (int j = 0; j < LEN; j++)
        for (int c = 0; c < DIM; c++) {
            k1[j * DIM + c] += (float)c / 8 - 1;
            k2[(j * 7 + 5) % LEN * DIM + c] = k0[j * DIM + c];
        }
    for (int n = 0; n < 3; n++) {
        case_seal(&s[n].c);
        seen_run(&s[n], 2);
    }
    const qkv_attention_columns *a = &s[0].x.c, *b = &s[1].x.c, *p = &s[2].x.c;
    for (int j = 0; j < LEN; j++) {
        const int64_t at = j * a->stride[2], to = (j * 7 + 5) % LEN * p->stride[2];
        const double r = (double)a->received[at];
        assert_true(fabs((double)b->received[at] - r) <= 1e-5 * r);
        assert_true(fabs((double)p->received[to] - r) <= 1e-6 * r);
        assert_true(fabs((double)p->entropy[to] - (double)a->entropy[at]) <= 1e-5);
        assert_int_equal(p->largest_query[to], a->largest_query[at]);
    }
    for (int n = 0; n < 3; n++) seen_free(&s[n]);
}

/* Shards of keys that have the lse of all of them: what belongs to a key has the same bits. */
static void shards_with_the_lse_of_all(void) {
    enum { LEN_Q = 333, LEN_K = 800, DIM = 16 };
    const int64_t cuts[] = { 0, 100, 512, 513, LEN_K };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, LEN_Q, LEN_K, DIM, 8);
    d.flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    d.q_offset = 400;
    seen s = seen_new(&d, 13);
    const float *k = s.c.k.data;
    static float received[LEN_K], entropy[LEN_K];
    static int64_t largest_query[LEN_K];
    case_seal(&s.c);
    seen_run(&s, 2);
    qkv_ctx *ctx = context_on(isa, 2);
    for (int n = 0; n < 4; n++) {
        qkv_attention_columns c;
        d.len_k = cuts[n + 1] - cuts[n];
        d.q_offset = 400 - cuts[n];
        qkv_attention_columns_contiguous(&c, &d);
        c.received = received + cuts[n];
        c.entropy = entropy + cuts[n];
        c.largest_query = largest_query + cuts[n];
        assert_int_equal(qkv_attention_columns_pass(ctx, &d, s.c.q.data, k + cuts[n] * DIM,
                                                    s.o.lse.data, &c, NULL),
                         QKV_OK);
    }
    for (int j = 0; j < LEN_K; j++) {
        const int64_t at = j * s.x.c.stride[2];
        same_bits("received", &s.x.c.received[at], &received[j], 1);
        same_bits("entropy", &s.x.c.entropy[at], &entropy[j], 1);
        assert_int_equal(largest_query[j], s.x.c.largest_query[at]);
    }
    qkv_ctx_free(ctx);
    seen_free(&s);
}

/* A number added to all scores of a row changes none of its weights. */
static void a_row_may_be_raised(void) {
    enum { LEN = 200 };
    static float mask[LEN * LEN];
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, LEN, LEN, 16, 8);
    for (int n = 0; n < LEN * LEN; n++) mask[n] = (float)(n / LEN % 9 * 3 - 12);
    static seen s, t; /* too large for a stack */
    s = seen_new(&d, 14);
    d.flags = QKV_SET_MASK;
    d.mask_type = QKV_MASK_F32;
    d.mask = mask;
    d.mask_stride[2] = LEN, d.mask_stride[3] = 1;
    t = seen_new(&d, 14);
    case_seal(&s.c);
    case_seal(&t.c);
    seen_run(&s, 2);
    seen_run(&t, 2);
    for (int j = 0; j < LEN; j++) {
        const int64_t at = j * s.x.c.stride[2];
        const double r = (double)s.x.c.received[at];
        assert_true(fabs((double)t.x.c.received[at] - r) <= 5e-6 * r);
        assert_true(fabs((double)t.x.c.entropy[at] - (double)s.x.c.entropy[at]) <= 2e-5);
    }
    seen_free(&s);
    seen_free(&t);
}

/*
 * The vote of SnapKV, and a step of rollout: sums of the rows that are asked for, from a rectangle.
 */
static void weights_of_rows_choose_them(void) {
    enum { LEN = 400, WINDOW = 16 };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, LEN, LEN, 16, 8);
    d.flags = QKV_SET_CAUSAL;
    seen s = seen_new(&d, 12);
    float *x = floats(LEN), *p = floats(WINDOW * LEN);
    for (int i = LEN - WINDOW; i < LEN; i++) x[i] = (float)(i % 3 - 1) * 0.5f + 0.25f;
    s.x.c.row_weights = x;
    s.x.c.row_weights_stride[0] = s.x.c.row_weights_stride[1] = LEN;
    s.x.c.row_weights_stride[2] = 1;
    case_seal(&s.c);
    seen_run(&s, 2);
    qkv_ctx *ctx = context_on(isa, 2);
    assert_int_equal(qkv_attention_weights(ctx, &d, s.c.q.data, s.c.k.data, s.o.lse.data, 0, 0,
                                           LEN - WINDOW, LEN, 0, LEN, p, LEN, NULL),
                     QKV_OK);
    qkv_ctx_free(ctx);
    for (int j = 0; j < LEN; j++) {
        double sum = 0, size = 0;
        for (int i = 0; i < WINDOW; i++) {
            const double term = (double)p[i * LEN + j] * (double)x[LEN - WINDOW + i];
            sum += term, size += fabs(term);
        }
        assert_true(fabs((double)s.x.c.received[j * s.x.c.stride[2]] - sum) <= 1e-6 * size);
    }
    free(x);
    free(p);
    seen_free(&s);
}

/*
 * Beside a sink lse does not say whether a row saw a key: rows before the first key, and all rows
 * of a sink so great that lse is the sink.
 */
static void rows_beside_a_sink(void) {
    enum { LEN = 150 };
    for (int great = 0; great < 2; great++) {
        const float sinks[] = { great ? 1e6f : 0.5f };
        qkv_attention_desc d;
        qkv_attention_desc_contiguous(&d, 1, 1, 1, LEN, LEN, 16, 8);
        d.flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET | QKV_SET_SINKS;
        d.q_offset = -10;
        d.sinks = sinks;
        seen s = seen_new(&d, 12);
        s.c.d.sinks = sinks;
        case_seal(&s.c);
        seen_run(&s, 3);
        int64_t rows = 0;
        for (int64_t a = 0; a < s.x.c.n_tiles_q; a++) rows += s.x.c.tile_rows[a];
        assert_int_equal(s.x.c.n_empty_rows[0], 10);
        assert_int_equal(rows, LEN - 10);
        assert_int_equal(s.x.c.n_cells[0], (LEN - 10) * (LEN - 9) / 2);
        if (great) assert_true(s.x.c.received[0] == 0 && s.x.c.largest_query[0] == -1);
        seen_free(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(threads_do_not_change_a_bit),
        PROPERTY(sums_are_within_a_millionth),
        PROPERTY(identities_hold),
        PROPERTY(equal_keys_receive_evenly),
        PROPERTY(padding_changes_nothing),
        PROPERTY(shifts_and_permutations),
        PROPERTY(shards_with_the_lse_of_all),
        PROPERTY(a_row_may_be_raised),
        PROPERTY(weights_of_rows_choose_them),
        PROPERTY(rows_beside_a_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
