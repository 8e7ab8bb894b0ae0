/*
 * Attention against float64 results of numpy (forward) and PyTorch (gradients), made by
 * tools/attention_cases.py, which also describes the file. First the double oracle of qkv-check,
 * which must agree to double precision; then the library.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/oracle.h"

/* The first sixteen integers of a case, in the order of the file. */
typedef struct header {
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_k, head_dim, head_dim_v;
    int64_t flags, q_offset, window_left, window_right, mask_type, mask_len_k, mask_dims, seed;
    int64_t has_d_lse, offsets_per_batch, unused[3];
    double scale, softcap;
} header;

typedef struct golden {
    qkv_attention_desc d;
    oracle_inputs in;
    float *q, *k, *v, *d_o, *d_lse;
    void *mask;
    const double *o, *lse, *d_q, *d_k, *d_v;
} golden;

typedef struct reader {
    char *data;
    size_t at, size;
} reader;

static const void *take(reader *r, int64_t n) {
    assert_true(n >= 0 && (uint64_t)n * 8 <= r->size - r->at);
    const void *p = r->data + r->at;
    r->at += (size_t)n * 8;
    return p;
}

static reader open_cases(void) {
    reader r = { .data = NULL };
    FILE *file = fopen(QKV_TEST_DATA "/attn/attention_cases.bin", "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    r.size = (size_t)ftell(file);
    rewind(file);
    r.data = malloc(r.size);
    assert_non_null(r.data);
    assert_int_equal(fread(r.data, 1, r.size, file), r.size);
    fclose(file);
    assert_memory_equal(take(&r, 1), "QKVCASE1", 8);
    return r;
}

/* ---- The inputs, by the script's hash -------------------------------------------------------- */

static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static uint64_t word(int64_t seed, int stream, int64_t i) {
    return mix((uint64_t)((seed * 1000 + stream) * 1000003 + i));
}

static float value(int64_t seed, int stream, int64_t i) {
    return (float)((double)(word(seed, stream, i) >> 40) / 4194304.0 - 2);
}

static float *values(int64_t seed, int stream, int64_t n) {
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = value(seed, stream, i);
    return x;
}

static void make_mask(golden *g, const header *f) {
    qkv_attention_desc *d = &g->d;
    const int64_t full[3] = { f->n_batch, f->n_heads, f->len_q };
    int64_t size[4] = { 1, 1, 1, f->mask_len_k ? f->mask_len_k : f->len_k };
    for (int i = 0; i < 3; i++)
        if (f->mask_dims >> i & 1) size[i] = full[i];
    int64_t n = 1;
    for (int i = 3; i >= 0; i--) {
        d->mask_stride[i] = size[i] == 1 ? 0 : n;
        n *= size[i];
    }
    float *bias = malloc((size_t)(n + 1) * sizeof *bias);
    unsigned char *sees = malloc((size_t)n + 1);
    assert_true(bias && sees);
    for (int64_t i = 0; i < n; i++) {
        sees[i] = word(f->seed, 9, i) % 4 != 0;
        bias[i] = sees[i] ? value(f->seed, 10, i) : -INFINITY;
    }
    d->mask_type = (qkv_mask_type)f->mask_type;
    d->mask_len_k = f->mask_len_k;
    g->mask = d->mask_type == QKV_MASK_BOOL ? (void *)sees : bias;
    d->mask = g->mask;
    free(d->mask_type == QKV_MASK_BOOL ? (void *)bias : sees);
}

static golden next_case(reader *r) {
    golden g = { .mask = NULL };
    header f;
    memcpy(&f, take(r, sizeof f / 8), sizeof f);
    qkv_attention_desc *d = &g.d;
    qkv_attention_desc_contiguous(d, f.n_batch, f.n_heads, f.n_kv_heads, f.len_q, f.len_k,
                                  f.head_dim, f.head_dim_v);
    d->flags = (uint32_t)f.flags;
    d->scale = (float)f.scale;
    d->softcap = (float)f.softcap;
    d->window_left = f.window_left;
    d->window_right = f.window_right;
    d->q_offset = f.q_offset;
    const int64_t *offsets = take(r, f.n_batch);
    d->q_offsets = f.offsets_per_batch ? offsets : NULL;
    d->kv_len = take(r, f.n_batch);
    d->q_len = take(r, f.n_batch);
    if (d->flags & QKV_SET_MASK) make_mask(&g, &f);
    const int64_t rows_q = f.n_batch * f.n_heads * f.len_q;
    const int64_t rows_k = f.n_batch * f.n_kv_heads * f.len_k;
    g.q = values(f.seed, 1, rows_q * f.head_dim);
    g.k = values(f.seed, 2, rows_k * f.head_dim);
    g.v = values(f.seed, 3, rows_k * f.head_dim_v);
    g.d_o = values(f.seed, 4, rows_q * f.head_dim_v);
    g.d_lse = f.has_d_lse ? values(f.seed, 5, rows_q) : NULL;
    g.in = (oracle_inputs){ .q = g.q, .k = g.k, .v = g.v, .d_o = g.d_o, .d_lse = g.d_lse };
    memcpy(g.in.d_o_stride, d->o_stride, sizeof d->o_stride);
    g.o = take(r, rows_q * f.head_dim_v);
    g.lse = take(r, rows_q);
    g.d_q = take(r, rows_q * f.head_dim);
    g.d_k = take(r, rows_k * f.head_dim);
    g.d_v = take(r, rows_k * f.head_dim_v);
    return g;
}

static void free_case(golden *g) {
    free(g->q);
    free(g->k);
    free(g->v);
    free(g->d_o);
    free(g->d_lse);
    free(g->mask);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void same(const char *name, int n_case, const double *x, const double *y, int64_t n,
                 double tolerance) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(y[i])) largest = fmax(largest, fabs(y[i]));
    for (int64_t i = 0; i < n; i++) {
        if (x[i] == y[i]) continue; /* infinities too */
        if (!(fabs(x[i] - y[i]) <= tolerance * fmax(largest, 0.01)))
            fail_msg("case %d, %s[%lld]: %.17g instead of %.17g", n_case, name, (long long)i, x[i],
                     y[i]);
    }
}

static void oracle_agrees_with_numpy_and_pytorch(void **state) {
    (void)state;
    reader r = open_cases();
    const int64_t n_cases = *(const int64_t *)take(&r, 1);
    assert_int_equal(n_cases, 40);
    for (int n = 0; n < n_cases; n++) {
        golden g = next_case(&r);
        const qkv_attention_desc *d = &g.d;
        oracle_forward f = oracle_forward_new(d);
        oracle_backward b = oracle_backward_new(d);
        oracle_forward_run(d, &g.in, &f);
        oracle_backward_run(d, &g.in, &b);
        const int64_t rows_q = d->n_batch * d->n_heads * d->len_q;
        const int64_t rows_k = d->n_batch * d->n_kv_heads * d->len_k;
        same("o", n, f.o, g.o, rows_q * d->head_dim_v, 1e-13);
        same("lse", n, f.lse, g.lse, rows_q, 1e-13);
        same("d_q", n, b.d_q, g.d_q, rows_q * d->head_dim, 1e-12);
        same("d_k", n, b.d_k, g.d_k, rows_k * d->head_dim, 1e-12);
        same("d_v", n, b.d_v, g.d_v, rows_k * d->head_dim_v, 1e-12);
        oracle_forward_free(&f);
        oracle_backward_free(&b);
        free_case(&g);
    }
    assert_int_equal(r.at, r.size);
    free(r.data);
}

static float *floats(int64_t n) {
    float *x = calloc((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

/*
 * The bound of docs/numerics.md for other frameworks; rows that are not written hold 0 on both
 * sides.
 */
static void near(const char *name, int n_case, const char *isa, const float *x, const double *y,
                 int64_t n) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(y[i])) largest = fmax(largest, fabs(y[i]));
    for (int64_t i = 0; i < n; i++) {
        if ((double)x[i] == y[i]) continue;
        if (!(fabs((double)x[i] - y[i]) <= 1e-5 * fmax(largest, 0.01)))
            fail_msg("case %d on %s, %s[%lld]: %.9g instead of %.17g", n_case, isa, name,
                     (long long)i, (double)x[i], y[i]);
    }
}

static void run_library(const golden *g, int n_case, qkv_ctx *ctx) {
    const qkv_attention_desc *d = &g->d;
    const int64_t rows_q = d->n_batch * d->n_heads * d->len_q;
    const int64_t rows_k = d->n_batch * d->n_kv_heads * d->len_k;
    float *o = floats(rows_q * d->head_dim_v), *lse = floats(rows_q);
    float *d_q = floats(rows_q * d->head_dim), *d_k = floats(rows_k * d->head_dim);
    float *d_v = floats(rows_k * d->head_dim_v);
    qkv_attention_grads grads;
    qkv_attention_grads_contiguous(&grads, d);
    grads.d_o = g->d_o;
    grads.d_lse = g->d_lse;
    grads.d_q = d_q;
    grads.d_k = d_k;
    grads.d_v = d_v;
    if (qkv_attention_forward(ctx, d, g->q, g->k, g->v, o, lse, NULL) != QKV_OK ||
        qkv_attention_backward(ctx, d, g->q, g->k, g->v, o, lse, &grads, NULL) != QKV_OK)
        fail_msg("case %d: %s", n_case, qkv_ctx_message(ctx));
    const char *isa = qkv_ctx_isa(ctx);
    near("o", n_case, isa, o, g->o, rows_q * d->head_dim_v);
    near("lse", n_case, isa, lse, g->lse, rows_q);
    near("d_q", n_case, isa, d_q, g->d_q, rows_q * d->head_dim);
    near("d_k", n_case, isa, d_k, g->d_k, rows_k * d->head_dim);
    near("d_v", n_case, isa, d_v, g->d_v, rows_k * d->head_dim_v);
    float *const all[] = { o, lse, d_q, d_k, d_v };
    for (int n = 0; n < 5; n++) free(all[n]);
}

static void library_agrees_with_numpy_and_pytorch(void **state) {
    (void)state;
    for (int n_isa = 0; qkv_isa_name(n_isa); n_isa++) {
        qkv_ctx *ctx = NULL;
        qkv_ctx_options options = qkv_ctx_options_init();
        options.isa = qkv_isa_name(n_isa);
        options.n_threads = 2;
        assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
        reader r = open_cases();
        const int64_t n_cases = *(const int64_t *)take(&r, 1);
        for (int n = 0; n < n_cases; n++) {
            golden g = next_case(&r);
            run_library(&g, n, ctx);
            free_case(&g);
        }
        free(r.data);
        qkv_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oracle_agrees_with_numpy_and_pytorch),
        cmocka_unit_test(library_agrees_with_numpy_and_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
