/*
 * Block masks: the same bits as with the same mask as bytes, forward and backward, whatever else
 * hides keys; a list of all blocks is like no mask; hidden keys may be NaN; keys that no query sees
 * are not read. Every instruction set in turn.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "attn/every_isa.h"

enum { B = 2, H = 4, G = 2, MOST_Q = 330, MOST_K = 700, MOST_ROWS = MOST_Q / 32 + 2 };

static uint64_t seed = 20261124;

static int64_t offsets[B * H * MOST_ROWS];
static int32_t lists[B * H * MOST_ROWS * (MOST_K / 32 + 1)];

static int64_t blocks(int64_t len, int64_t block) { return (len + block - 1) / block; }

/* Lists of their own for every batch and head, or for all; `percent` of the blocks. */
static void hang_blocks(qkv_attention_desc *d, rng *r, int64_t block_len, bool same, int percent) {
    const int64_t rows = blocks(d->len_q, block_len), n_keys = blocks(d->len_k, block_len);
    int64_t n = rng_between(r, 0, 3), *next = offsets;
    d->flags |= QKV_SET_BLOCK_MASK;
    d->block_len = block_len;
    d->block_offsets = offsets, d->block_index = lists;
    d->block_offsets_stride[0] = same ? 0 : H * (rows + 1);
    d->block_offsets_stride[1] = same ? 0 : rows + 1;
    for (int64_t bh = 0; bh < (same ? 1 : B * H); bh++) {
        for (int64_t row = 0; row < rows; row++) {
            *next++ = n;
            const int share = rng_chance(r, 15) ? 0 : percent;
            for (int32_t c = 0; c < n_keys; c++)
                if (rng_chance(r, share)) lists[n++] = c;
        }
        *next++ = n;
    }
}

static bool listed(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t *row = d->block_offsets + b * d->block_offsets_stride[0] +
                         h * d->block_offsets_stride[1] + i / d->block_len;
    for (int64_t n = row[0]; n < row[1]; n++)
        if (d->block_index[n] == j / d->block_len) return true;
    return false;
}

/* The block mask in bytes. */
static unsigned char *bytes_of(const qkv_attention_desc *d) {
    unsigned char *mask = malloc((size_t)(B * H * d->len_q * d->len_k)), *next = mask;
    assert_non_null(mask);
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t i = 0; i < d->len_q; i++)
                for (int64_t j = 0; j < d->len_k; j++)
                    *next++ = (unsigned char)listed(d, b, h, i, j);
    return mask;
}

static void set_others(problem *p, rng *r, int turn) {
    static int64_t offset[B], kv_len[B], q_len[B];
    static int32_t seg_q[MOST_Q], seg_k[MOST_K];
    static float slopes[H], sinks[H];
    const uint32_t options[] = { QKV_SET_CAUSAL, QKV_SET_WINDOW,   QKV_SET_KV_LEN,  QKV_SET_Q_LEN,
                                 QKV_SET_CHUNK,  QKV_SET_SEGMENTS, QKV_SET_SOFTCAP, QKV_SET_ALIBI,
                                 QKV_SET_SINKS,  QKV_SET_DROPOUT };
    qkv_attention_desc *d = &p->d;
    for (int b = 0; b < B; b++) {
        offset[b] = rng_between(r, -30, d->len_k);
        kv_len[b] = rng_between(r, 0, d->len_k), q_len[b] = rng_between(r, 0, d->len_q);
    }
    for (int i = 0; i < MOST_Q; i++) seg_q[i] = i / 70 % 3;
    for (int j = 0; j < MOST_K; j++) seg_k[j] = j / 90 % 3;
    for (int h = 0; h < H; h++) slopes[h] = rng_normal(r) / 8, sinks[h] = rng_normal(r);
    d->q_offsets = offset, d->kv_len = kv_len, d->q_len = q_len, d->chunk = 150;
    d->window_left = 100, d->window_right = 40, d->softcap = 3, d->dropout = 0.3f;
    d->seg_q = seg_q, d->seg_k = seg_k, d->alibi_slopes = slopes, d->sinks = sinks;
    if (turn % 3 == 0) return;
    d->flags |= QKV_SET_Q_OFFSET;
    for (size_t n = 0; n < sizeof options / sizeof *options; n++)
        if (rng_chance(r, 25)) d->flags |= options[n];
}

static void compare(const problem *x, const problem *y) {
    same_bits("o", x->o, y->o, n_o(x));
    same_bits("lse", x->lse, y->lse, rows_q(x));
    same_bits("d_q", x->d_q, y->d_q, n_q(x));
    same_bits("d_k", x->d_k, y->d_k, n_k(x));
    same_bits("d_v", x->d_v, y->d_v, n_v(x));
}

/* The same problem with arrays of its own. */
static problem copy_of(const problem *p) {
    rng none = { 1 };
    problem c = problem_new(&none, B, H, G, p->d.len_q, p->d.len_k, p->d.head_dim, p->d.head_dim_v);
    c.d = p->d;
    memcpy(c.q, p->q, (size_t)n_q(p) * sizeof(float));
    memcpy(c.k, p->k, (size_t)n_k(p) * sizeof(float));
    memcpy(c.v, p->v, (size_t)n_v(p) * sizeof(float));
    memcpy(c.d_o, p->d_o, (size_t)n_o(p) * sizeof(float));
    return c;
}

static problem random_problem(rng *r) {
    return problem_new(r, B, H, G, rng_between(r, 1, MOST_Q), rng_between(r, 1, MOST_K), 16,
                       rng_chance(r, 50) ? 32 : 20);
}

static void blocks_are_bytes(void) {
    static const int64_t lens[] = { 32, 64, 96, 128 };
    rng r = { seed };
    for (int turn = 0; turn < 36; turn++) {
        if (!takes_turn(isa_at, turn)) continue;
        problem p = random_problem(&r);
        set_others(&p, &r, turn);
        hang_blocks(&p.d, &r, lens[turn % 4], turn % 5 == 4, (int)rng_between(&r, 5, 90));
        problem bytes = copy_of(&p);
        unsigned char *mask = bytes_of(&p.d);
        const int64_t row = p.d.len_k, stride[4] = { H * p.d.len_q * row, p.d.len_q * row, row, 1 };
        bytes.d.flags = (p.d.flags & ~(uint32_t)QKV_SET_BLOCK_MASK) | QKV_SET_MASK;
        bytes.d.mask_type = QKV_MASK_BOOL, bytes.d.mask = mask;
        memcpy(bytes.d.mask_stride, stride, sizeof stride);
        run_with(&p, 1 + turn % 3);
        run_with(&bytes, 1 + turn % 2);
        compare(&p, &bytes);
        free(mask);
        problem_free(&p);
        problem_free(&bytes);
    }
}

/* The gradient of the mask, each element or summed over heads, queries or keys. */
static float *mask_gradient(problem *p, int64_t n, int turn) {
    const int64_t row = p->d.len_k, len_q = p->d.len_q;
    const int64_t stride[4] = { H * len_q * row, turn & 4 ? 0 : len_q * row, turn & 1 ? 0 : row,
                                turn & 2 ? 0 : 1 };
    qkv_attention_grads g = grads_of(p);
    qkv_ctx *ctx = context_on(isa, 2);
    g.d_mask = floats(n);
    memcpy(g.d_mask_stride, stride, sizeof stride);
    if (qkv_attention_backward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, &g, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
    return g.d_mask;
}

static void compare_mask_gradients(problem *x, problem *y, int64_t n, int turn) {
    float *const a = mask_gradient(x, n, turn), *const b = mask_gradient(y, n, turn);
    same_bits("d_mask", a, b, n);
    free(a), free(b);
}

/* An explicit mask beside it: both hide. */
static void with_another_mask(void) {
    rng r = { seed + 1 };
    for (int turn = 0; turn < 12; turn++) {
        if (!takes_turn(isa_at, turn)) continue;
        problem p = random_problem(&r);
        hang_blocks(&p.d, &r, turn % 2 ? 64 : 32, false, 60);
        const int64_t n = p.d.len_q * p.d.len_k;
        unsigned char *mask = bytes_of(&p.d), *own = malloc((size_t)n);
        float *adds = floats(n), *both = floats(B * H * n);
        assert_non_null(own);
        for (int64_t e = 0; e < n; e++) {
            own[e] = rng_chance(&r, 70);
            adds[e] = own[e] ? rng_normal(&r) : -INFINITY;
        }
        for (int64_t e = 0; e < B * H * n; e++) {
            both[e] = mask[e] ? adds[e % n] : -INFINITY;
            mask[e] &= own[e % n];
        }
        problem one = copy_of(&p);
        const int64_t row = p.d.len_k, repeats[4] = { 0, 0, row, 1 };
        const int64_t stride[4] = { H * n, n, row, 1 };
        p.d.flags |= QKV_SET_MASK, one.d.flags = QKV_SET_MASK;
        p.d.mask_type = one.d.mask_type = turn % 3 ? QKV_MASK_BOOL : QKV_MASK_F32;
        p.d.mask = turn % 3 ? (const void *)own : adds;
        one.d.mask = turn % 3 ? (const void *)mask : both;
        memcpy(p.d.mask_stride, repeats, sizeof repeats);
        memcpy(one.d.mask_stride, stride, sizeof stride);
        run_with(&p, 2);
        run_with(&one, 1);
        compare(&p, &one);
        if (turn % 3 == 0) compare_mask_gradients(&p, &one, B * H * n, turn);
        problem_free(&p);
        problem_free(&one);
        free(mask), free(own), free(adds), free(both);
    }
}

static void all_blocks_are_no_mask(void) {
    rng r = { seed + 2 };
    for (int turn = 0; turn < 4; turn++) {
        problem p = random_problem(&r), none = copy_of(&p);
        hang_blocks(&p.d, &r, 32 * (turn + 1), true, 100);
        int64_t n = 0; /* really all: hang_blocks leaves rows empty */
        for (int64_t row = 0; row < blocks(p.d.len_q, p.d.block_len); row++) {
            offsets[row] = n;
            for (int32_t c = 0; c < blocks(p.d.len_k, p.d.block_len); c++) lists[n++] = c;
            offsets[row + 1] = n;
        }
        run_with(&p, 2);
        run_with(&none, 2);
        compare(&p, &none);
        problem_free(&p);
        problem_free(&none);
    }
}

/* NaN in the keys of one block, and then only in the rows of queries that see it. */
static void hidden_nan(void) {
    rng r = { seed + 3 };
    problem p = problem_new(&r, B, H, G, 200, 600, 16, 32), odd = copy_of(&p);
    hang_blocks(&p.d, &r, 64, true, 50);
    odd.d = p.d;
    const int64_t bad = 5; /* block of keys */
    for (int64_t g = 0; g < B * G; g++)
        for (int64_t j = bad * 64; j < bad * 64 + 64; j++)
            odd.k[(g * 600 + j) * 16 + j % 16] = odd.v[(g * 600 + j) * 32 + j % 32] = NAN;
    run_with(&p, 1);
    run_with(&odd, 2);
    for (int64_t row = 0; row < B * H * 200; row++) {
        const bool sees = listed(&p.d, 0, 0, row % 200, bad * 64);
        for (int c = 0; c < 32; c++) assert_true(sees == (bool)isnan(odd.o[row * 32 + c]));
        if (sees) continue;
        same_bits("o", p.o + row * 32, odd.o + row * 32, 32);
        same_bits("d_q", p.d_q + row * 16, odd.d_q + row * 16, 16);
    }
    problem_free(&p);
    problem_free(&odd);
}

/* Blocks that no list names have no memory behind them. */
static void unseen_blocks_are_not_read(void) {
    enum { PAGE = 4096, D = 16, L = 64 * 8 };
    static const int64_t two[] = { 0, 1, 2, 2 };
    static const int32_t index[] = { 3, 3 }; /* a block of 64 keys of 16 channels fills a page */
    rng r = { seed + 4 };
    problem p = problem_new(&r, 1, 1, 1, 150, L, D, D), hole = p;
    p.d.flags = QKV_SET_BLOCK_MASK;
    p.d.block_len = 64, p.d.block_offsets = two, p.d.block_index = index;
    hole.d = p.d;
    float *const k =
        mmap(NULL, L * D * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(k != MAP_FAILED && 64 * D * sizeof *k == PAGE);
    memcpy(k, p.k, L * D * 4);
    memcpy(p.v, p.k, L * D * 4);
    for (int block = 0; block < 8; block++)
        if (block != 3) assert_int_equal(mprotect(k + block * 64 * D, PAGE, PROT_NONE), 0);
    hole.k = hole.v = k;
    hole.o = floats(n_o(&p)), hole.lse = floats(rows_q(&p));
    hole.d_q = floats(n_q(&p)), hole.d_k = floats(n_k(&p)), hole.d_v = floats(n_v(&p));
    run_with(&p, 2);
    run_with(&hole, 2);
    compare(&p, &hole);
    float *const own[] = { hole.o, hole.lse, hole.d_q, hole.d_k, hole.d_v };
    for (size_t n = 0; n < sizeof own / sizeof *own; n++) free(own[n]);
    munmap(k, L * D * 4);
    problem_free(&p);
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        PROPERTY(blocks_are_bytes),           PROPERTY(with_another_mask),
        PROPERTY(all_blocks_are_no_mask),     PROPERTY(hidden_nan),
        PROPERTY(unseen_blocks_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
