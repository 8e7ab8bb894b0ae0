/*
 * The gradient of additive masks: what double says, the slope of the forward pass, and for all 16
 * ways to broadcast the sum of the gradient that broadcasts nothing; the same bits on every
 * instruction set and for any number of threads. Every instruction set in turn.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/attention_reference.h"
#include "attn/every_isa.h"

enum { B = 2, H = 2, G = 1 };

static uint64_t seed = 20261123;

/* A problem with a mask that broadcasts where a bit of `ways` is set: batch, head, query, key. */
typedef struct masked {
    problem p;
    float *mask, *d_lse, *d_mask;
    int64_t size[4], stride[4], n_elems;
} masked;

static masked masked_new(rng *r, int ways, int64_t len_q, int64_t len_k, int64_t dim) {
    masked m = { .p = problem_new(r, B, H, G, len_q, len_k, dim, dim + 3), .n_elems = 1 };
    const int64_t full[4] = { B, H, len_q, len_k };
    for (int n = 3; n >= 0; n--) {
        m.size[n] = ways >> n & 1 ? 1 : full[n];
        m.stride[n] = ways >> n & 1 ? 0 : m.n_elems;
        m.n_elems *= m.size[n];
    }
    m.mask = normals(r, m.n_elems);
    for (int64_t e = 3; e < m.n_elems; e += 7) m.mask[e] = -INFINITY;
    m.d_lse = normals(r, rows_q(&m.p));
    m.d_mask = floats(m.n_elems);
    m.p.d.flags |= QKV_SET_MASK;
    m.p.d.mask = m.mask;
    m.p.d.mask_type = QKV_MASK_F32;
    m.p.d.mask_len_k = ways & 8 ? 1 : 0;
    memcpy(m.p.d.mask_stride, m.stride, sizeof m.stride);
    return m;
}

static void masked_free(masked *m) {
    problem_free(&m->p);
    free(m->mask);
    free(m->d_lse);
    free(m->d_mask);
}

static void options(rng *r, masked *m, int turn) {
    if (turn % 2) m->p.d.flags |= QKV_SET_CAUSAL;
    if (turn % 3 == 0) {
        m->p.d.flags |= QKV_SET_SOFTCAP;
        m->p.d.softcap = 2;
    }
    if (turn % 5 == 4) {
        m->p.d.flags |= QKV_SET_DROPOUT;
        m->p.d.dropout = 0.3f;
        m->p.d.dropout_seed = rng_next(r);
    }
}

static void run_gradient(masked *m, const char *name, int n_threads, float *d_mask,
                         const int64_t stride[4]) {
    qkv_ctx *ctx = context_on(name, n_threads);
    qkv_attention_grads g = grads_of(&m->p);
    problem_run(ctx, &m->p);
    g.d_lse = m->d_lse;
    g.d_mask = d_mask;
    memcpy(g.d_mask_stride, stride, sizeof g.d_mask_stride);
    if (qkv_attention_backward(ctx, &m->p.d, m->p.q, m->p.k, m->p.v, m->p.o, m->p.lse, &g, NULL) !=
        QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
}

/* Sums of [b][h][i][j] over what the mask repeats; sizes: of absolute values. */
static double *summed(const masked *m, const double *full, bool sizes) {
    const int64_t len_q = m->p.d.len_q, len_k = m->p.d.len_k;
    double *sum = doubles(m->n_elems);
    for (int64_t e = 0; e < rows_q(&m->p) * len_k; e++) {
        const int64_t at[4] = { e / (H * len_q * len_k), e / (len_q * len_k) % H, e / len_k % len_q,
                                e % len_k };
        int64_t to = 0;
        for (int n = 0; n < 4; n++) to += at[n] * m->stride[n];
        sum[to] += sizes ? fabs(full[e]) : full[e];
    }
    return sum;
}

static void every_way_to_broadcast(void) {
    rng r = { seed };
    for (int ways = 0; ways < 16; ways++) {
        if (!takes_turn(isa_at, ways)) continue;
        masked m = masked_new(&r, ways, rng_between(&r, 1, 300), rng_between(&r, 2, 600), 16);
        options(&r, &m, ways);
        reference x = reference_new(&m.p);
        reference_run(&m.p, m.d_lse, &x);
        double *const want = summed(&m, x.d_mask, false), *const size = summed(&m, x.d_mask, true);
        run_gradient(&m, isa, 2, m.d_mask, m.stride);
        for (int64_t e = 0; e < m.n_elems; e++) {
            const double bound = 512 * 0x1p-24 * size[e] + 1e-7;
            if (!(fabs((double)m.d_mask[e] - want[e]) <= bound) ||
                (m.mask[e] == -INFINITY && m.d_mask[e] != 0))
                fail_msg("%s, way %d: d_mask[%lld] = %.9g is not %.9g", isa, ways, (long long)e,
                         (double)m.d_mask[e], want[e]);
        }
        free(want);
        free(size);
        reference_free(&x);
        masked_free(&m);
    }
}

/*
 * docs/numerics.md, step 9, from the gradient that sums nothing: blocks of 128 queries and 256
 * keys, 32 partial sums along a row, a chain over rows.
 */
static float block_sum(const float *rows, int64_t row, int64_t n, int64_t n_keys) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        float part[32] = { 0 };
        for (int64_t j = 0; j < n_keys; j++)
            part[j % 32] = j < 32 ? rows[i * row + j] : part[j % 32] + rows[i * row + j];
        for (int width = 16; width; width /= 2)
            for (int e = 0; e < width; e++) part[e] += part[e + width];
        sum = i ? sum + part[0] : part[0];
    }
    return sum;
}

static void sums_have_their_order(void) {
    rng r = { seed + 1 };
    for (int ways = 0; ways < 16; ways++) {
        if (!takes_turn(isa_at, ways)) continue;
        const int64_t len_q = rng_between(&r, 100, 300), len_k = rng_between(&r, 200, 600);
        masked m = masked_new(&r, 0, len_q, len_k, 16);
        int64_t stride[4], size[4];
        const int64_t full[4] = { B, H, len_q, len_k };
        float *const out = floats(m.n_elems), *const want = floats(m.n_elems);
        int64_t n_out = 1;
        options(&r, &m, ways);
        run_gradient(&m, isa, 1, m.d_mask, m.stride);
        for (int n = 3; n >= 0; n--) {
            size[n] = ways >> n & 1 ? 1 : full[n];
            stride[n] = ways >> n & 1 ? 0 : n_out;
            n_out *= size[n];
        }
        run_gradient(&m, isa, 3, out, stride);
        const int64_t step_q = size[2] == 1 ? 128 : 1, step_k = size[3] == 1 ? 256 : 1;
        for (int64_t b = 0; b < B; b++)
            for (int64_t h = 0; h < H; h++)
                for (int64_t i = 0; i < len_q; i += step_q)
                    for (int64_t j = 0; j < len_k; j += step_k) {
                        const int64_t n = len_q - i < step_q ? len_q - i : step_q;
                        const int64_t n_keys = len_k - j < step_k ? len_k - j : step_k;
                        const float *from = m.d_mask + ((b * H + h) * len_q + i) * len_k + j;
                        want[b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3]] +=
                            block_sum(from, len_k, n, n_keys);
                    }
        same_bits("d_mask", out, want, n_out);
        free(out);
        free(want);
        masked_free(&m);
    }
}

static void bits_are_the_same(void) {
    static const int threads[] = { 1, 3, 16 };
    rng r = { seed + 2 };
    for (int ways = 0; ways < 16; ways++) {
        if (!takes_turn(isa_at, ways)) continue;
        masked m = masked_new(&r, ways, rng_between(&r, 1, 300), rng_between(&r, 1, 600), 20);
        float *const other = floats(m.n_elems);
        options(&r, &m, ways);
        if (ways % 4 == 1) m.p.v[rng_between(&r, 0, n_v(&m.p) - 1)] = NAN;
        run_gradient(&m, "scalar", 2, m.d_mask, m.stride);
        for (int n = 0; n < 3; n++) {
            run_gradient(&m, isa, threads[n], other, m.stride);
            same_bits("d_mask", m.d_mask, other, m.n_elems);
        }
        free(other);
        masked_free(&m);
    }
}

/* The forward pass moves as the gradient says, when the mask is moved along a direction. */
static void it_is_the_slope(void **state) {
    rng r = { seed + 3 };
    (void)state;
    for (int ways = 0; ways < 16; ways++) {
        masked m = masked_new(&r, ways, 11, 19, 8);
        options(&r, &m, ways);
        run_gradient(&m, NULL, 2, m.d_mask, m.stride);
        float *const from = floats(m.n_elems), *const along = normals(&r, m.n_elems);
        const float step = 0x1p-9f;
        double sides[2] = { 0, 0 }, slope = 0;
        memcpy(from, m.mask, (size_t)m.n_elems * sizeof *from);
        for (int side = 0; side < 2; side++) {
            reference x = reference_new(&m.p);
            for (int64_t e = 0; e < m.n_elems; e++)
                m.mask[e] = from[e] + (side ? -step : step) * along[e];
            reference_run(&m.p, m.d_lse, &x);
            for (int64_t e = 0; e < n_o(&m.p); e++) sides[side] += x.o[e] * (double)m.p.d_o[e];
            for (int64_t row = 0; row < rows_q(&m.p); row++)
                if (isfinite(x.lse[row])) sides[side] += x.lse[row] * (double)m.d_lse[row];
            reference_free(&x);
        }
        for (int64_t e = 0; e < m.n_elems; e++) slope += (double)along[e] * (double)m.d_mask[e];
        const double seen = (sides[0] - sides[1]) / (2 * (double)step);
        if (!(fabs(seen - slope) <= 1e-3 * (fabs(slope) + 1)))
            fail_msg("way %d: %g and %g", ways, seen, slope);
        free(from);
        free(along);
        masked_free(&m);
    }
}

/* Without asking for it nothing changes; what does not exist is 0; gaps stay as they are. */
static void it_stands_alone(void) {
    enum { LQ = 140, LK = 300 };
    static const int64_t q_len[B] = { 100, 140 }, kv_len[B] = { 290, 7 };
    static const int64_t stride[4] = { 2000003, 250000, 2, 2 * LQ }; /* keys outside of queries */
    rng r = { seed + 4 };
    masked m = masked_new(&r, 0, LQ, LK, 16);
    float *const d_q = floats(n_q(&m.p)), *const d_k = floats(n_k(&m.p));
    float *const out = floats(B * stride[0]);
    m.p.d.flags |= QKV_SET_Q_LEN | QKV_SET_KV_LEN;
    m.p.d.q_len = q_len;
    m.p.d.kv_len = kv_len;
    run_gradient(&m, isa, 2, NULL, m.stride);
    memcpy(d_q, m.p.d_q, (size_t)n_q(&m.p) * sizeof *d_q);
    memcpy(d_k, m.p.d_k, (size_t)n_k(&m.p) * sizeof *d_k);
    for (int64_t e = 0; e < B * stride[0]; e++) out[e] = 7;
    run_gradient(&m, isa, 2, m.d_mask, m.stride);
    run_gradient(&m, isa, 2, out, stride);
    same_bits("d_q", d_q, m.p.d_q, n_q(&m.p));
    same_bits("d_k", d_k, m.p.d_k, n_k(&m.p));
    int64_t n_other = 0;
    for (int64_t e = 0; e < m.n_elems; e++) {
        const int64_t b = e / (H * LQ * LK), h = e / (LQ * LK) % H, i = e / LK % LQ, j = e % LK;
        float *const at = out + b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
        if (i >= q_len[b] || j >= kv_len[b]) assert_true(m.d_mask[e] == 0);
        if (*at != m.d_mask[e]) fail_msg("%s: d_mask[%lld]", isa, (long long)e);
        *at = 7;
    }
    for (int64_t e = 0; e < B * stride[0]; e++) n_other += out[e] != 7;
    assert_int_equal(n_other, 0);
    free(out);
    free(d_q);
    free(d_k);
    masked_free(&m);
}

/* A list of visible blocks is a mask of -inf: the same gradient, summed or not. */
static void blocks_are_hidden(void) {
    enum { LEN = 300, BLOCK = 32, ROWS = (LEN + BLOCK - 1) / BLOCK };
    static int64_t offsets[ROWS + 1];
    static int32_t index[ROWS * ROWS];
    rng r = { seed + 6 };
    for (int turn = 0; turn < 8; turn++) {
        if (!takes_turn(isa_at, turn)) continue;
        const int ways = turn % 2 ? 4 : 0; /* 4: one row for all queries */
        masked m = masked_new(&r, 0, LEN, LEN, 16);
        int64_t stride[4];
        memcpy(stride, m.stride, sizeof stride);
        if (ways) stride[0] = 2 * LEN, stride[1] = LEN, stride[2] = 0;
        float *const want = floats(m.n_elems), *const mask = normals(&r, m.n_elems);
        memcpy(mask, m.mask, (size_t)m.n_elems * sizeof *mask);
        options(&r, &m, turn);
        int64_t n = 0;
        for (int64_t row = 0; row < ROWS; row++) {
            offsets[row] = n;
            for (int32_t col = 0; col < ROWS; col++) {
                if (rng_chance(&r, 50)) {
                    index[n++] = col;
                    continue;
                }
                for (int64_t e = 0; e < m.n_elems; e++)
                    if (e / LEN % LEN / BLOCK == row && e % LEN / BLOCK == col) mask[e] = -INFINITY;
            }
        }
        offsets[ROWS] = n;
        m.p.d.mask = mask;
        run_gradient(&m, isa, 2, want, stride);
        m.p.d.mask = m.mask;
        m.p.d.flags |= QKV_SET_BLOCK_MASK;
        m.p.d.block_len = BLOCK;
        m.p.d.block_offsets = offsets;
        m.p.d.block_index = index;
        run_gradient(&m, isa, 2, m.d_mask, stride);
        same_bits("d_mask", want, m.d_mask, ways ? B * H * LEN : m.n_elems);
        free(want);
        free(mask);
        masked_free(&m);
    }
}

/* A mask shorter than the keys; no channels at all; a head without keys, as sum and not. */
static void odd_shapes(void) {
    rng r = { seed + 5 };
    masked m = masked_new(&r, 0, 50, 300, 16);
    const int64_t row = 130, stride[4] = { H * 50 * row, 50 * row, row, 1 };
    m.p.d.mask_len_k = row;
    memcpy(m.p.d.mask_stride, stride, sizeof stride);
    reference x = reference_new(&m.p);
    reference_run(&m.p, m.d_lse, &x);
    run_gradient(&m, isa, 2, m.d_mask, stride);
    for (int64_t n = 0; n < B * H * 50; n++)
        for (int64_t j = 0; j < row; j++)
            assert_true(fabs((double)m.d_mask[n * row + j] - x.d_mask[n * 300 + j]) <= 2e-5);
    reference_free(&x);
    masked_free(&m);

    m = masked_new(&r, 0, 40, 50, 0);
    m.p.d.head_dim_v = 0;
    reference y = reference_new(&m.p);
    reference_run(&m.p, m.d_lse, &y);
    run_gradient(&m, isa, 2, m.d_mask, m.stride);
    for (int64_t e = 0; e < m.n_elems; e++)
        assert_true(fabs((double)m.d_mask[e] - y.d_mask[e]) <= 2e-5);
    reference_free(&y);
    masked_free(&m);

    m = masked_new(&r, 8, 40, 0, 16);
    for (int64_t e = 0; e < m.n_elems; e++) m.d_mask[e] = 7;
    run_gradient(&m, isa, 2, m.d_mask, m.stride);
    for (int64_t e = 0; e < m.n_elems; e++) assert_true(m.d_mask[e] == 0);
    masked_free(&m);
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        PROPERTY(every_way_to_broadcast),
        PROPERTY(sums_have_their_order),
        PROPERTY(bits_are_the_same),
        cmocka_unit_test(it_is_the_slope),
        PROPERTY(it_stands_alone),
        PROPERTY(blocks_are_hidden),
        PROPERTY(odd_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
