/*
 * Beyond 2^31 elements (AT05): arrays whose batches, heads and tokens lie 2^31 and more elements
 * apart, keys whose index does not fit 32 bits, more scores and mask elements than that. Memory is
 * only reserved (MAP_NORESERVE), and all but a few pages are never touched. Results must have the
 * bits of the same numbers in a small, dense problem.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "attn/attention_problem.h"
#include "check/check.h"

static const char *isa;

/* Zeros that are not there until they are written. NULL: this system does not lend so much. */
static void *holes(size_t bytes) {
    void *const x = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return x == MAP_FAILED ? NULL : x;
}

static void same(const char *what, const float *x, const float *y, int64_t n) {
    const int64_t at = first_difference(x, y, (size_t)n);
    if (at >= 0)
        fail_msg("%s, %s[%lld]: %.9g, dense %.9g", isa, what, (long long)at, (double)x[at],
                 (double)y[at]);
}

/* ---- Far apart ------------------------------------------------------------------------------- */

enum { B = 2, H = 2, L = 3, DIM = 8, ROWS = B * H * L };
static const int64_t FAR[3] = { 13100000011, 6500000003, 2147483659 }; /* the last: above 2^31 */
static const size_t FAR_BYTES = (size_t)24000000000 * sizeof(float);

static int64_t place(int64_t row) {
    return row / (H * L) * FAR[0] + row / L % H * FAR[1] + row % L * FAR[2];
}

static void scatter(const float *dense, int64_t dim, float *far) {
    for (int64_t row = 0; row < ROWS; row++)
        memcpy(far + place(row), dense + row * dim, (size_t)dim * sizeof *far);
}

static void same_far(const char *what, const float *far, const float *dense, int64_t dim) {
    for (int64_t row = 0; row < ROWS; row++) same(what, far + place(row), dense + row * dim, dim);
}

static void all_far(problem *p, qkv_attention_grads *g) {
    int64_t *const strides[] = { p->d.q_stride, p->d.k_stride,   p->d.v_stride,
                                 p->d.o_stride, p->d.lse_stride, g->d_o_stride,
                                 g->d_q_stride, g->d_k_stride,   g->d_v_stride };
    for (size_t n = 0; n < sizeof strides / sizeof *strides; n++)
        memcpy(strides[n], FAR, sizeof FAR);
}

enum { FAR_ARRAYS = 12 };

/* A mask whose keys are adjacent and everything else is far; bytes and floats alike. */
static void set_mask(problem *p, qkv_mask_type type, void *mask, const int64_t stride[3]) {
    p->d.flags |= QKV_SET_MASK;
    p->d.mask_type = type;
    p->d.mask = mask;
    memcpy(p->d.mask_stride, stride, 3 * sizeof *stride);
    p->d.mask_stride[3] = 1;
}

static void fill_mask(qkv_mask_type type, void *dense, void *far) {
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t j = 0; j < L; j++) {
            const bool hidden = (row * L + j) % 4 == 1;
            const float value = hidden ? -INFINITY : 0.25f * (float)(row % 5);
            if (type == QKV_MASK_BITS) { /* L bits in a byte */
                unsigned char *const bits = (unsigned char *)dense + row;
                *bits = (unsigned char)(j == 0 ? !hidden : *bits | !hidden << j);
                ((unsigned char *)far)[place(row)] = *bits;
            } else if (type == QKV_MASK_BOOL) {
                ((unsigned char *)dense)[row * L + j] = !hidden;
                ((unsigned char *)far)[place(row) + j] = !hidden;
            } else {
                ((float *)dense)[row * L + j] = ((float *)far)[place(row) + j] = value;
            }
        }
}

static void far_problem(qkv_mask_type type, float *const far[FAR_ARRAYS]) {
    static float dense_mask[ROWS * L];
    const int64_t in_row = type == QKV_MASK_BITS ? 1 : L;
    const int64_t dense_stride[3] = { H * L * in_row, L * in_row, in_row };
    rng r = { 9 };
    problem p = problem_new(&r, B, H, H, L, L, DIM, DIM), x = p;
    qkv_attention_grads g = grads_of(&p);
    qkv_ctx *ctx = context_on(isa, 2);
    if (type != QKV_MASK_NONE) {
        fill_mask(type, dense_mask, far[9]);
        set_mask(&p, type, dense_mask, dense_stride);
        set_mask(&x, type, far[9], FAR);
    }
    problem_run(ctx, &p);
    all_far(&x, &g);
    scatter(p.q, DIM, far[0]);
    scatter(p.k, DIM, far[1]);
    scatter(p.v, DIM, far[2]);
    scatter(p.d_o, DIM, far[5]);
    assert_int_equal(qkv_attention_forward(ctx, &x.d, far[0], far[1], far[2], far[3], far[4], NULL),
                     QKV_OK);
    same_far("o", far[3], p.o, DIM);
    same_far("lse", far[4], p.lse, 1);
    g.d_o = far[5], g.d_q = far[6], g.d_k = far[7], g.d_v = far[8];
    assert_int_equal(
        qkv_attention_backward(ctx, &x.d, far[0], far[1], far[2], far[3], far[4], &g, NULL),
        QKV_OK);
    same_far("d_q", far[6], p.d_q, DIM);
    same_far("d_k", far[7], p.d_k, DIM);
    same_far("d_v", far[8], p.d_v, DIM);
    qkv_ctx_free(ctx);
    problem_free(&p);
}

static void far_merge(float *const far[FAR_ARRAYS]) {
    rng r = { 10 };
    problem p = problem_new(&r, B, H, H, L, L, DIM, DIM), x = p;
    qkv_attention_grads g = grads_of(&p);
    qkv_ctx *ctx = context_on(isa, 2);
    float lse[2][ROWS];
    const void *o_parts[] = { p.q, p.k }, *far_o[] = { far[0], far[1] };
    const float *lse_parts[] = { lse[0], lse[1] }, *far_lse[] = { far[2], far[5] };
    for (int i = 0; i < ROWS; i++) lse[0][i] = rng_normal(&r), lse[1][i] = rng_normal(&r);
    all_far(&x, &g);
    for (int part = 0; part < 2; part++) {
        scatter(o_parts[part], DIM, far[part]);
        scatter(lse_parts[part], 1, part ? far[5] : far[2]);
    }
    assert_int_equal(qkv_attention_merge(ctx, &p.d, 2, o_parts, lse_parts, p.o, p.lse), QKV_OK);
    assert_int_equal(qkv_attention_merge(ctx, &x.d, 2, far_o, far_lse, far[3], far[4]), QKV_OK);
    same_far("o of merge", far[3], p.o, DIM);
    same_far("lse of merge", far[4], p.lse, 1);
    qkv_ctx_free(ctx);
    problem_free(&p);
}

static void AT05_rows_far_apart(void **state) {
    (void)state;
    float *far[FAR_ARRAYS];
    for (int n = 0; n < FAR_ARRAYS; n++)
        if (!(far[n] = holes(FAR_BYTES))) skip();
    for (int n = 0; (isa = qkv_isa_name(n)); n++) {
        far_problem(QKV_MASK_NONE, far);
        far_problem(QKV_MASK_BOOL, far);
        far_problem(QKV_MASK_F32, far);
        far_problem(QKV_MASK_BITS, far);
        far_merge(far);
    }
    for (int n = 0; n < FAR_ARRAYS; n++) munmap(far[n], FAR_BYTES);
}

/* ---- Keys whose index does not fit 32 bits --------------------------------------------------- */

/* Keys overlap (a stride of 1), so that 2^32 of them are 16 GiB of holes; a window sees a few. */
static void check_far_keys(float *k, float *workspace, size_t workspace_bytes, int64_t len_k,
                           int64_t offset) {
    enum { LQ = 100, D = 4, NEAR = 1024 };
    const int64_t first = offset / 256 * 256 - 256;
    rng r = { 31 };
    problem p = problem_new(&r, 1, 1, 1, LQ, NEAR, D, D), x = p;
    qkv_ctx *ctx = context_on(isa, 2);
    qkv_call_options call = qkv_call_options_init();
    for (int64_t e = 0; e < NEAR + D; e++) k[first + e] = rng_normal(&r);
    p.d.k_stride[2] = p.d.v_stride[2] = 1;
    p.d.flags = QKV_SET_WINDOW | QKV_SET_Q_OFFSET | QKV_SET_CAUSAL;
    p.d.window_left = 30;
    if (offset % 3 == 0) { /* distances and chunks are those of the near problem, too */
        static const float slope = 0.3f;
        p.d.flags |= QKV_SET_ALIBI | QKV_SET_CHUNK;
        p.d.alibi_slopes = &slope;
        p.d.chunk = 64;
    }
    x.d = p.d;
    p.d.q_offset = offset - first;
    assert_int_equal(qkv_attention_forward(ctx, &p.d, p.q, k + first, k + first, p.o, p.lse, NULL),
                     QKV_OK);
    x.d.len_k = len_k;
    x.d.q_offset = offset;
    call.workspace = workspace;
    assert_int_equal(qkv_attention_workspace(ctx, &x.d, &call.workspace_bytes), QKV_OK);
    assert_true(call.workspace_bytes <= workspace_bytes);
    x.o = floats(n_o(&p));
    x.lse = floats(rows_q(&p));
    assert_int_equal(qkv_attention_forward(ctx, &x.d, p.q, k, k, x.o, x.lse, &call), QKV_OK);
    same("o", x.o, p.o, n_o(&p));
    same("lse", x.lse, p.lse, rows_q(&p));
    free(x.o);
    free(x.lse);
    qkv_ctx_free(ctx);
    problem_free(&p);
}

static void AT05_more_keys_than_32_bits_count(void **state) {
    (void)state;
    const int64_t len_k = ((int64_t)1 << 32) + 5000;
    const size_t k_bytes = (size_t)(len_k + 8) * sizeof(float), most = (size_t)1 << 40;
    float *k = holes(k_bytes), *workspace = holes(most);
    if (!k || !workspace) skip();
    static const int64_t offsets[] = { ((int64_t)1 << 31) - 40, ((int64_t)1 << 31) + 1000,
                                       ((int64_t)1 << 32) - 50, ((int64_t)1 << 32) + 3002 };
    for (int n = 0; (isa = qkv_isa_name(n)); n++)
        for (int o = 0; o < 4; o++) check_far_keys(k, workspace, most, len_k, offsets[o]);
    munmap(k, k_bytes);
    munmap(workspace, most);
}

/* ---- More scores, and mask elements, than 32 bits count -------------------------------------- */

enum { LONG = 66000, WIDE = 3, PIECE = 768 };

/* The same numbers around query `at`, as a problem of their own: blocks begin where they begin. */
static void check_piece(qkv_ctx *ctx, const problem *p, int64_t at) {
    const int64_t first = at / 256 * 256 - 256, middle = at - first;
    problem s = { .d = p->d };
    qkv_attention_desc_contiguous(&s.d, 1, 1, 1, PIECE, PIECE, WIDE, WIDE);
    s.d.flags = p->d.flags;
    s.d.window_left = p->d.window_left;
    s.d.window_right = p->d.window_right;
    s.d.mask_type = p->d.mask_type;
    memcpy(s.d.mask_stride, p->d.mask_stride, sizeof s.d.mask_stride);
    const int64_t mask_at = first * p->d.mask_stride[2] + first * p->d.mask_stride[3];
    if (p->d.mask)
        s.d.mask = (const char *)p->d.mask + mask_at * (s.d.mask_type == QKV_MASK_F32 ? 4 : 1);
    float *const inputs[] = { p->q, p->k, p->v, p->d_o };
    float **const ours[] = { &s.q, &s.k, &s.v, &s.d_o };
    for (int n = 0; n < 4; n++) *ours[n] = inputs[n] + first * WIDE;
    s.o = floats(n_o(&s)), s.lse = floats(rows_q(&s));
    s.d_q = floats(n_q(&s)), s.d_k = floats(n_k(&s)), s.d_v = floats(n_v(&s));
    problem_run(ctx, &s);
    same("o", p->o + at * WIDE, s.o + middle * WIDE, WIDE);
    same("lse", p->lse + at, s.lse + middle, 1);
    same("d_q", p->d_q + at * WIDE, s.d_q + middle * WIDE, WIDE);
    same("d_k", p->d_k + at * WIDE, s.d_k + middle * WIDE, WIDE);
    same("d_v", p->d_v + at * WIDE, s.d_v + middle * WIDE, WIDE);
    free(s.o), free(s.lse), free(s.d_q), free(s.d_k), free(s.d_v);
}

/* A piece's forward pass against the oracle: the row alone, with the keys that it sees. */
static void check_oracle(const problem *p, int64_t at, int64_t left, int64_t n_keys) {
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, 1, n_keys, WIDE, WIDE);
    const int64_t first = at - left;
    const oracle_inputs in = { .q = p->q + at * WIDE,
                               .k = p->k + first * WIDE,
                               .v = p->v + first * WIDE };
    oracle_forward f = oracle_forward_new(&d);
    oracle_forward_run(&d, &in, &f);
    assert_true(fabs((double)p->lse[at] - f.lse[0]) <= f.lse_bound[0]);
    for (int c = 0; c < WIDE; c++)
        assert_true(fabs((double)p->o[at * WIDE + c] - f.o[c]) <= f.o_bound[0]);
    oracle_forward_free(&f);
}

static void long_problem(qkv_mask_type type, void *mask) {
    static const int64_t places[] = { 300, 32540, 46341, 65000, LONG - 800 };
    rng r = { 12 };
    problem p = problem_new(&r, 1, 1, 1, LONG, LONG, WIDE, WIDE);
    qkv_ctx *ctx = context_on(isa, 2);
    p.d.flags = QKV_SET_WINDOW;
    p.d.window_left = 20;
    p.d.window_right = 10;
    const int64_t stride[3] = { 0, 0, LONG };
    if (type != QKV_MASK_NONE) set_mask(&p, type, mask, stride);
    problem_run(ctx, &p);
    for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
        check_piece(ctx, &p, places[n]);
        if (type != QKV_MASK_BOOL) check_oracle(&p, places[n], 20, 31);
        if (type == QKV_MASK_BOOL) assert_true(p.lse[places[n] + 400] == -INFINITY); /* a hole */
    }
    qkv_ctx_free(ctx);
    problem_free(&p);
}

static void AT05_more_scores_than_32_bits_count(void **state) {
    (void)state;
    const size_t elems = (size_t)LONG * LONG;
    unsigned char *const bools = holes(elems);
    float *const adds = holes(elems * sizeof *adds);
    static const int64_t places[] = { 300, 32540, 46341, 65000, LONG - 800 };
    if (!bools || !adds) skip();
    for (size_t n = 0; n < sizeof places / sizeof *places; n++) /* an island in the dark */
        for (int64_t i = places[n] - 50; i < places[n] + 50; i++)
            for (int64_t j = i - 15; j < i + 5; j++) bools[i * LONG + j] = (i + j) % 3 != 0;
    for (int n = 0; (isa = qkv_isa_name(n)); n++) {
        long_problem(QKV_MASK_NONE, NULL);
        long_problem(QKV_MASK_BOOL, bools);
        long_problem(QKV_MASK_F32, adds);
    }
    munmap(bools, elems);
    munmap(adds, elems * sizeof *adds);
}

/* ---- Inputs that repeat ---------------------------------------------------------------------- */

/* 2^31 logical elements of K and V, and all batches read the same few hundred. */
static void AT05_batches_that_repeat(void **state) {
    (void)state;
    enum { BATCHES = 70000, LK = 2000, D = 16, KINDS = 7 };
    int64_t *const kv_len = calloc(BATCHES, sizeof *kv_len);
    float *const o = floats((int64_t)BATCHES * D), *const lse = floats(BATCHES);
    assert_true((int64_t)BATCHES * LK * D > INT32_MAX && kv_len);
    for (int b = 0; b < BATCHES; b++) kv_len[b] = b % KINDS;
    rng r = { 2 };
    problem p = problem_new(&r, 1, 1, 1, 1, LK, D, D);
    for (int n = 0; (isa = qkv_isa_name(n)); n++) {
        qkv_ctx *ctx = context_on(isa, 2);
        qkv_attention_desc d;
        qkv_attention_desc_contiguous(&d, BATCHES, 1, 1, 1, LK, D, D);
        d.q_stride[0] = d.k_stride[0] = d.v_stride[0] = 0;
        d.flags = QKV_SET_KV_LEN;
        d.kv_len = kv_len;
        assert_int_equal(qkv_attention_forward(ctx, &d, p.q, p.k, p.v, o, lse, NULL), QKV_OK);
        for (int64_t kind = 0; kind < KINDS; kind++) {
            p.d.flags = QKV_SET_KV_LEN;
            p.d.kv_len = &kind;
            assert_int_equal(qkv_attention_forward(ctx, &p.d, p.q, p.k, p.v, p.o, p.lse, NULL),
                             QKV_OK);
            for (int64_t b = kind; b < BATCHES; b += KINDS) {
                same("o", o + b * D, p.o, D);
                same("lse", lse + b, p.lse, 1);
            }
        }
        qkv_ctx_free(ctx);
    }
    problem_free(&p);
    free(kv_len), free(o), free(lse);
}

/* Rows past q_len are not written, so 2^32 rows of outputs need no memory. */
static void AT05_more_rows_than_32_bits_count(void **state) {
    (void)state;
    const int64_t len_q = ((int64_t)1 << 32) + 7, rows = 10;
    enum { LK = 90, D = 4, HEADS = 2 };
    const size_t bytes = (size_t)len_q * HEADS * D * sizeof(float);
    float *x[5];
    for (int n = 0; n < 5; n++)
        if (!(x[n] = holes(bytes))) skip();
    for (int n = 0; (isa = qkv_isa_name(n)); n++) {
        rng r = { 6 };
        problem p = problem_new(&r, 1, HEADS, 1, rows, LK, D, D);
        qkv_ctx *ctx = context_on(isa, 2);
        problem_run(ctx, &p);
        qkv_attention_desc d;
        qkv_attention_desc_contiguous(&d, 1, HEADS, 1, len_q, LK, D, D);
        qkv_attention_grads g;
        qkv_attention_grads_contiguous(&g, &d);
        d.flags = QKV_SET_Q_LEN;
        d.q_len = &rows;
        for (int64_t h = 0; h < HEADS; h++) {
            memcpy(x[0] + h * d.q_stride[1], p.q + h * rows * D, (size_t)rows * D * sizeof(float));
            memcpy(x[3] + h * d.o_stride[1], p.d_o + h * rows * D,
                   (size_t)rows * D * sizeof(float));
        }
        g.d_o = x[3], g.d_q = x[4];
        g.d_k = floats(n_k(&p)), g.d_v = floats(n_v(&p));
        assert_int_equal(qkv_attention_forward(ctx, &d, x[0], p.k, p.v, x[1], x[2], NULL), QKV_OK);
        assert_int_equal(qkv_attention_backward(ctx, &d, x[0], p.k, p.v, x[1], x[2], &g, NULL),
                         QKV_OK);
        for (int64_t h = 0; h < HEADS; h++) {
            same("o", x[1] + h * d.o_stride[1], p.o + h * rows * D, rows * D);
            same("lse", x[2] + h * d.lse_stride[1], p.lse + h * rows, rows);
            same("d_q", x[4] + h * g.d_q_stride[1], p.d_q + h * rows * D, rows * D);
        }
        same("d_k", g.d_k, p.d_k, n_k(&p));
        same("d_v", g.d_v, p.d_v, n_v(&p));
        free(g.d_k), free(g.d_v);
        qkv_ctx_free(ctx);
        problem_free(&p);
    }
    for (int n = 0; n < 5; n++) munmap(x[n], bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT05_rows_far_apart),
        cmocka_unit_test(AT05_more_keys_than_32_bits_count),
        cmocka_unit_test(AT05_more_scores_than_32_bits_count),
        cmocka_unit_test(AT05_batches_that_repeat),
        cmocka_unit_test(AT05_more_rows_than_32_bits_count),
    };
    if (UNDER_TSAN) return 0; /* minutes, and nothing about threads */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
