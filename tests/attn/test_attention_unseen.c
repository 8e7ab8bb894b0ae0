/*
 * Keys that no query sees are never read. Every row of K and V has a page of its own; under random
 * rules, those that no query sees, by the definition, lose all access, and the results must be the
 * ones from before. Also: workspaces are the formulas of docs/numerics.md.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "check/cases.h"
#include "qkv/kv.h"

enum { H = 4, G = 2, LQ = 21, LK = 290, D = 5 };

typedef struct world {
    qkv_attention_desc d;
    qkv_attention_grads grads;
    int64_t kv_len, q_len;
    uint8_t bools[H * LQ * LK];
    float adds[H * LQ * LK];
    float *k, *v; /* a page a row */
    int64_t page; /* floats */
    float q[H * LQ * D], o[H * LQ * D], d_o[H * LQ * D], lse[H * LQ];
    float d_q[H * LQ * D], d_k[G * LK * D], d_v[G * LK * D];
} world;

static float *pages(int64_t page) {
    float *x = mmap(NULL, (size_t)(G * LK * page) * sizeof *x, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(x != MAP_FAILED);
    return x;
}

static void protect(const world *w, float *x, int64_t row, int access) {
    assert_int_equal(mprotect(x + row * w->page, (size_t)w->page * sizeof *x, access), 0);
}

static world *world_new(rng *r) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->page = sysconf(_SC_PAGESIZE) / (long)sizeof(float);
    w->k = pages(w->page);
    w->v = pages(w->page);
    for (int64_t j = 0; j < G * LK; j++)
        for (int c = 0; c < D; c++) {
            w->k[j * w->page + c] = rng_normal(r);
            w->v[j * w->page + c] = rng_normal(r);
        }
    for (int e = 0; e < H * LQ * D; e++) w->q[e] = rng_normal(r), w->d_o[e] = rng_normal(r);
    return w;
}

static void world_free(world *w) {
    munmap(w->k, (size_t)(G * LK * w->page) * sizeof(float));
    munmap(w->v, (size_t)(G * LK * w->page) * sizeof(float));
    free(w);
}

/* Masks that hide whole columns, so that some keys are seen by no query. */
static void random_mask(world *w, rng *r) {
    qkv_attention_desc *d = &w->d;
    const bool boolean = rng_chance(r, 50);
    const int hidden = (int)rng_between(r, 0, 100), one_row = rng_chance(r, 40);
    for (int h = 0; h < H; h++)
        for (int j = 0; j < LK; j++) {
            const bool never = rng_chance(r, hidden);
            for (int i = 0; i < LQ; i++) {
                const int e = (h * LQ + i) * LK + j;
                w->bools[e] = !never && rng_chance(r, 30);
                w->adds[e] = w->bools[e] ? rng_normal(r) : -INFINITY;
            }
        }
    d->flags |= QKV_SET_MASK;
    d->mask_type = boolean ? QKV_MASK_BOOL : QKV_MASK_F32;
    d->mask = boolean ? (const void *)w->bools : w->adds;
    d->mask_stride[1] = rng_chance(r, 50) ? 0 : LQ * LK;
    d->mask_stride[2] = one_row ? 0 : LK;
    d->mask_stride[3] = 1;
    d->mask_len_k = rng_chance(r, 20) ? rng_between(r, 2, LK) : 0;
}

static void random_rules(world *w, rng *r) {
    qkv_attention_desc *d = &w->d;
    qkv_attention_desc_contiguous(d, 1, H, G, LQ, LK, D, D);
    d->k_stride[1] = d->v_stride[1] = LK * w->page;
    d->k_stride[2] = d->v_stride[2] = w->page;
    d->k_stride[0] = d->v_stride[0] = 0;
    d->q_offset = rng_between(r, -30, LK + 10);
    d->window_left = rng_between(r, -1, 60);
    d->window_right = rng_between(r, -1, 60);
    w->kv_len = rng_between(r, 0, LK);
    w->q_len = rng_between(r, 0, LQ);
    d->kv_len = &w->kv_len;
    d->q_len = &w->q_len;
    const uint32_t optional[] = { QKV_SET_CAUSAL, QKV_SET_WINDOW, QKV_SET_Q_OFFSET, QKV_SET_KV_LEN,
                                  QKV_SET_Q_LEN };
    for (int n = 0; n < 5; n++)
        if (rng_chance(r, 35)) d->flags |= optional[n];
    if (rng_chance(r, 60)) random_mask(w, r);
    qkv_attention_grads_contiguous(&w->grads, d);
    memcpy(w->grads.d_k_stride, (int64_t[]){ 0, LK * D, D }, sizeof w->grads.d_k_stride);
    memcpy(w->grads.d_v_stride, (int64_t[]){ 0, LK * D, D }, sizeof w->grads.d_v_stride);
    w->grads.d_o = w->d_o;
    w->grads.d_q = w->d_q;
    w->grads.d_k = w->d_k;
    w->grads.d_v = w->d_v;
}

static bool sees(const world *w, int h, int64_t i, int64_t j) {
    const qkv_attention_desc *d = &w->d;
    const int64_t p = i + (d->flags & QKV_SET_Q_OFFSET ? d->q_offset : 0);
    const bool window = d->flags & QKV_SET_WINDOW;
    if (d->flags & QKV_SET_Q_LEN && i >= w->q_len) return false;
    if (d->flags & QKV_SET_KV_LEN && j >= w->kv_len) return false;
    if (d->flags & QKV_SET_CAUSAL && j > p) return false;
    if (window && d->window_left >= 0 && j < p - d->window_left) return false;
    if (window && d->window_right >= 0 && j > p + d->window_right) return false;
    if (!(d->flags & QKV_SET_MASK)) return true;
    if (d->mask_len_k && j >= d->mask_len_k) return false;
    return w->bools[h * d->mask_stride[1] + i * d->mask_stride[2] + j];
}

static bool anybody_sees(const world *w, int g, int64_t j) {
    for (int h = g * (H / G); h < (g + 1) * (H / G); h++)
        for (int64_t i = 0; i < LQ; i++)
            if (sees(w, h, i, j)) return true;
    return false;
}

static void run(qkv_ctx *ctx, world *w) {
    memset(w->o, 0, sizeof w->o);
    memset(w->lse, 0, sizeof w->lse);
    memset(w->d_q, 0, sizeof w->d_q);
    assert_int_equal(qkv_attention_forward(ctx, &w->d, w->q, w->k, w->v, w->o, w->lse, NULL), 0);
    assert_int_equal(
        qkv_attention_backward(ctx, &w->d, w->q, w->k, w->v, w->o, w->lse, &w->grads, NULL), 0);
}

static void one_case(qkv_ctx *ctx, uint64_t seed, int *n_hidden) {
    rng r = { seed };
    world *w = world_new(&r), *before = malloc(sizeof *before);
    assert_non_null(before);
    random_rules(w, &r);
    run(ctx, w);
    memcpy(before, w, sizeof *w);
    for (int64_t row = 0; row < G * LK; row++) {
        if (anybody_sees(w, (int)(row / LK), row % LK)) continue;
        protect(w, w->k, row, PROT_NONE);
        protect(w, w->v, row, PROT_NONE);
        *n_hidden += 1;
    }
    run(ctx, w);
    assert_memory_equal(w->o, before->o, sizeof w->o);
    assert_memory_equal(w->lse, before->lse, sizeof w->lse);
    assert_memory_equal(w->d_q, before->d_q, sizeof w->d_q);
    assert_memory_equal(w->d_k, before->d_k, sizeof w->d_k);
    assert_memory_equal(w->d_v, before->d_v, sizeof w->d_v);
    free(before);
    world_free(w);
}

static void AT13b_hidden_keys_are_not_read(void **state) {
    (void)state;
    qkv_ctx *ctx = NULL;
    int n_hidden = 0;
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        print_message("seed %d\n", (int)seed);
        one_case(ctx, seed, &n_hidden);
    }
    assert_true(n_hidden > 60 * G * LK / 10);
    qkv_ctx_free(ctx);
}

static int64_t up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

/* docs/numerics.md, Workspace. */
static int64_t formula(const qkv_attention_desc *d, int64_t threads) {
    const int64_t v = up(d->head_dim_v, 32), l = up(d->len_k, 256);
    const double work = (double)(d->n_batch * d->n_heads * d->len_q * d->len_k) *
                        (double)(d->head_dim + d->head_dim_v);
    const double most = 1 + work / (1 << 20);
    const int64_t t = most < (double)threads ? (int64_t)most : threads;
    const int64_t heads = d->n_batch * d->n_kv_heads, p = t < heads ? t : heads;
    int64_t r = 96;
    if (v > 2048) r = 96 * 2048 / v / 12 * 12 < 12 ? 12 : 96 * 2048 / v / 12 * 12;
    const bool amx = d->arithmetic == QKV_CLASS_AMX, dp = amx || d->arithmetic == QKV_CLASS_DP;
    const int64_t words = dp ? up(d->head_dim, amx ? 32 : 2) / 2 + v / 2 : d->head_dim + v;
    const int64_t floats = up(4 * r * (up(d->head_dim, 16) + 16), 64);
    const int64_t pairs = up(2 * r * (up(d->head_dim, 2) + 32), 64);
    const int64_t apart = d->q_stride[2] * (d->dtype == QKV_F32 ? 4 : 2);
    const bool far = apart && apart % 4096 == 0 && d->len_q > 1;
    const int64_t q = amx                   ? 2 * up(r, 16) * up(d->head_dim, 32)
                      : dp                  ? far ? pairs : 0
                      : d->dtype == QKV_F32 ? far ? floats : 0
                                            : floats;
    return up(32 * p, 64) + up(24 * t, 64) + t * (121600 + up(4 * r * (v + 16), 64) + q) +
           p * (4 * l * words + up(l / 256, 64));
}

static void workspace_is_the_formula(void **state) {
    (void)state;
    rng r = { 3 };
    for (int threads = 1; threads <= 5; threads += 2) {
        qkv_ctx_options options = qkv_ctx_options_init();
        qkv_ctx *ctx = NULL;
        options.n_threads = threads;
        assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
        for (int n = 0; n < 100; n++) {
            qkv_attention_desc d;
            size_t bytes = 0;
            const int64_t g = rng_between(&r, 1, 3);
            qkv_attention_desc_contiguous(&d, rng_between(&r, 1, 3), g * rng_between(&r, 1, 3), g,
                                          rng_between(&r, 0, 400), rng_between(&r, 0, 2000),
                                          rng_between(&r, 0, 300),
                                          rng_between(&r, 0, n % 10 ? 200 : 65536));
            if (n % 4 == 0) d.q_stride[2] = 1024 * rng_between(&r, 0, 4);
            d.dtype = (qkv_dtype)(n % 3);
            if (d.dtype == QKV_BF16)
                d.arithmetic = (qkv_class)(QKV_CLASS_F32 + n / 3 % 3);
            else
                d.arithmetic = QKV_CLASS_F32;
            assert_int_equal(qkv_attention_workspace(ctx, &d, &bytes), QKV_OK);
            assert_int_equal(bytes, formula(&d, threads));
        }
        qkv_ctx_free(ctx);
    }
}

/* A problem with every size at least 1, of f32 or bf16. */
static void random_sizes(rng *r, int n, qkv_attention_desc *d) {
    const int64_t g = rng_between(r, 1, 3);
    qkv_attention_desc_contiguous(d, rng_between(r, 1, 3), g * rng_between(r, 1, 3), g,
                                  rng_between(r, 1, n % 5 ? 20 : 400), rng_between(r, 1, 2000),
                                  rng_between(r, 1, 300), rng_between(r, 1, 200));
    d->dtype = n % 2 ? QKV_BF16 : QKV_F32;
    d->arithmetic = n % 4 == 1 ? QKV_CLASS_DP : QKV_CLASS_F32;
    d->flags = n % 3 == 0 ? QKV_SET_CAUSAL : n % 3 == 1 ? QKV_SET_SOFTCAP : QKV_SET_DROPOUT;
    d->softcap = 1;
    d->dropout = 0.5f;
}

/* docs/numerics.md, Workspace of the backward pass. */
static int64_t backward_formula(const qkv_attention_desc *d, int64_t threads) {
    const int64_t dim = up(d->head_dim, 32), v = up(d->head_dim_v, 32);
    const int64_t heads = d->n_batch * d->n_kv_heads, blocks = up(d->len_k, 256) / 256 * heads;
    const int64_t products =
        d->n_batch * d->n_heads * d->len_q * d->len_k * (d->head_dim + d->head_dim_v);
    const int64_t asked = products < 100000 ? 1 : threads, t = asked < blocks ? asked : blocks;
    int64_t bytes = t * (169984 + 3584 * dim + 2560 * v) + up(152 * t, 64);
    if (d->arithmetic == QKV_CLASS_DP) bytes += 94208 * t;
    if (d->flags & QKV_SET_SOFTCAP) bytes += 24576 * t;
    if (d->flags & QKV_SET_DROPOUT) bytes += 512 * t;
    if (d->len_k > 256) bytes += up(8 * d->n_batch * d->n_heads * (up(d->len_q, 128) / 128), 64);
    if (d->dtype == QKV_F32) return bytes;
    const int64_t most = d->flags & QKV_SET_CAUSAL ? 2 * t : t, p = most < heads ? most : heads;
    return bytes + p * up(4 * d->len_q * d->head_dim * d->n_heads / d->n_kv_heads, 64) +
           up(24 * p, 64);
}

/* docs/numerics.md, Workspace of decode. */
static int64_t decode_formula(const qkv_attention_desc *d, int64_t threads) {
    const int64_t dim = up(d->head_dim, 16), v = up(d->head_dim_v, 16), wide = dim > v ? dim : v;
    const int64_t r = 65536 / wide < 32 ? 65536 / wide : 32;
    const double work =
        (double)(d->n_batch * d->n_heads * d->len_q + 4 * d->n_batch * d->n_kv_heads) *
        (double)d->len_k * (double)(d->head_dim + d->head_dim_v);
    const double most = 1 + work / (1 << 18);
    const int64_t t = most < (double)threads ? (int64_t)most : threads;
    const int64_t part = 320 + 4 * r * v, rows = d->n_heads / d->n_kv_heads * d->len_q;
    const int64_t u = d->n_batch * d->n_kv_heads * ((rows + r - 1) / r);
    const int64_t s = (d->len_k + 1023) / 1024;
    const int64_t own =
        up(64 * t, 64) + t * (75712 + up(160 * r, 64) + 4 * r * (dim + v) + 64 * wide);
    if (t == 1 || u >= 4 * t) return own + 2 * t * up(part, 64);
    return own + up(u * s * part, 64) + up(8 * u, 64);
}

static void other_workspaces_are_their_formulas(void **state) {
    (void)state;
    rng r = { 4 };
    for (int threads = 1; threads <= 5; threads += 2) {
        qkv_ctx_options options = qkv_ctx_options_init();
        qkv_ctx *ctx = NULL;
        options.n_threads = threads;
        assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
        for (int n = 0; n < 120; n++) {
            qkv_attention_desc d;
            size_t bytes = 0;
            random_sizes(&r, n, &d);
            assert_int_equal(qkv_attention_backward_workspace(ctx, &d, &bytes), QKV_OK);
            assert_int_equal(bytes, backward_formula(&d, threads));
            d.flags = 0;
            assert_int_equal(qkv_attention_decode_workspace(ctx, &d, &bytes), QKV_OK);
            assert_int_equal(bytes, decode_formula(&d, threads));
        }
        qkv_ctx_free(ctx);
    }
}

/* With the header's "up to 256" for the struct itself. */
static void cache_is_the_formula(void **state) {
    (void)state;
    static const int64_t bytes[] = { 4, 2, 2, 1 };
    qkv_ctx *ctx = NULL;
    rng r = { 0xCAC4E };
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    for (int n = 0; n < 100; n++) {
        qkv_kv_cache *cache;
        qkv_kv_cache_options o = qkv_kv_cache_options_init();
        o.dtype = (qkv_dtype)rng_between(&r, 0, 3);
        o.n_sequences = rng_between(&r, 1, 9);
        o.n_kv_heads = rng_between(&r, 1, 4);
        o.head_dim = rng_between(&r, 0, 100);
        o.head_dim_v = rng_between(&r, 0, 1000);
        o.page_len = 16 * rng_between(&r, 1, 3);
        o.n_pages = rng_between(&r, 1, 20);
        if (n % 2) o.ring_len = o.page_len * rng_between(&r, 1, o.n_pages);
        const int64_t rows = o.n_pages * o.n_kv_heads * o.page_len, element = bytes[o.dtype];
        const int64_t row = n % 2 ? o.ring_len / o.page_len : o.n_pages;
        const int64_t scales = o.dtype == QKV_I8 ? 2 * up(4 * rows, 64) : 0;
        const int64_t formula = up(rows * o.head_dim * element, 64) +
                                up(rows * o.head_dim_v * element, 64) + scales +
                                2 * up(4 * o.n_pages, 64) + up(4 * row * o.n_sequences, 64) +
                                2 * up(8 * o.n_sequences, 64) +
                                up(4 * (o.head_dim > o.head_dim_v ? o.head_dim : o.head_dim_v), 64);
        assert_int_equal(qkv_kv_cache_create(ctx, &o, &cache), QKV_OK);
        assert_in_range(qkv_kv_cache_bytes(cache), (size_t)formula + 1, (size_t)formula + 256);
        qkv_kv_cache_free(cache);
    }
    qkv_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT13b_hidden_keys_are_not_read),
        cmocka_unit_test(workspace_is_the_formula),
        cmocka_unit_test(other_workspaces_are_their_formulas),
        cmocka_unit_test(cache_is_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
