/*
 * Appending to a cache: everything is checked first, pages included; then the pages that the new
 * tokens fall into become the sequence's own, and rows are converted into them.
 *
 * int8: scale = max |x| / 127 of a token and head, elements x / scale to the nearest integer, even
 * in a tie, within +-127. A row with a value that is not finite has a NaN for a scale, so that who
 * sees it is NaN.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "attn/arrays.h"
#include "attn/kv_cache.h"
#include "kernels/table.h"

/* The tokens that a call brings. */
typedef struct tokens {
    int64_t n;
    qkv_dtype dtype;
    const char *k, *v;
    int64_t k_stride[2], v_stride[2]; /* head, token */
} tokens;

/* ---- Checks ---------------------------------------------------------------------------------- */

static qkv_status check_arrays(const qkv_kv_cache *c, const tokens *t, qkv_error *e) {
    qkvi_arrays all = { .count = 0 };
    const int64_t k[4] = { 1, c->o.n_kv_heads, t->n, c->o.head_dim };
    const int64_t v[4] = { 1, c->o.n_kv_heads, t->n, c->o.head_dim_v };
    const int64_t k_stride[3] = { 0, t->k_stride[0], t->k_stride[1] };
    const int64_t v_stride[3] = { 0, t->v_stride[0], t->v_stride[1] };
    const int64_t bytes = qkvi_dtype_bytes(t->dtype);
    qkvi_arrays_add(&all, "k", t->k, k, k_stride, false)->elem_bytes = bytes;
    qkvi_arrays_add(&all, "v", t->v, v, v_stride, false)->elem_bytes = bytes;
    return qkvi_arrays_check(&all, true, e);
}

/* Entries of the row of pages that n tokens from position `at` on fall into. */
static int64_t count_entries(const qkv_kv_cache *c, int64_t at, int64_t n) {
    if (n == 0) return 0;
    return qkvi_min_i64((at + n - 1) / c->o.page_len - at / c->o.page_len + 1, c->row_pages);
}

static bool is_own(const qkv_kv_cache *c, int32_t page) { return page >= 0 && c->refs[page] == 1; }

static qkv_status check_room(const qkv_kv_cache *c, int64_t sequence, int64_t n, qkv_error *e) {
    const int64_t len = c->len[sequence], n_entries = count_entries(c, len, n);
    int64_t need = 0;
    if (n > c->o.max_len - len)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "n = %" PRId64 " after %" PRId64
                              " tokens is more than max_len = %" PRId64,
                              n, len, c->o.max_len);
    if (c->o.ring_len && n > c->o.ring_len)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "n = %" PRId64 " is greater than ring_len = %" PRId64, n,
                              c->o.ring_len);
    for (int64_t m = 0; m < n_entries; m++) {
        const int64_t entry = (qkvi_kv_entry(c, len) + m) % c->row_pages;
        need += !is_own(c, c->pages[sequence * c->row_pages + entry]);
    }
    if (need > c->n_free)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "n = %" PRId64 " needs %" PRId64 " more pages, but %" PRId64
                              " of %" PRId64 " are free",
                              n, need, c->n_free, c->o.n_pages);
    return QKV_OK;
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static void copy_rows(char *array, int64_t row_bytes, const qkv_kv_cache *c, int32_t from,
                      int32_t to) {
    const size_t bytes = (size_t)(c->o.n_kv_heads * c->o.page_len * row_bytes);
    if (bytes) memcpy(array + (size_t)to * bytes, array + (size_t)from * bytes, bytes);
}

/* The entry has a page of its own: its shared one copied, or a new one. */
static void make_own(qkv_kv_cache *c, int32_t *entry) {
    const int32_t shared = *entry;
    if (is_own(c, shared)) return;
    *entry = qkvi_kv_take(c);
    if (shared < 0) return;
    c->refs[shared]--;
    copy_rows(c->k, c->o.head_dim * c->elem_bytes, c, shared, *entry);
    copy_rows(c->v, c->o.head_dim_v * c->elem_bytes, c, shared, *entry);
    if (c->o.dtype != QKV_I8) return;
    copy_rows((char *)c->k_scale, sizeof(float), c, shared, *entry);
    copy_rows((char *)c->v_scale, sizeof(float), c, shared, *entry);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void quantise(const float *x, int64_t dim, int8_t *y, float *scale) {
    const float to_integer = 12582912.0f; /* 1.5 2^23: adding it rounds to the nearest, even */
    float most = 0, odd = 0;
    for (int64_t c = 0; c < dim; c++) {
        most = fabsf(x[c]) > most ? fabsf(x[c]) : most;
        odd += x[c] * 0; /* NaN if any is not finite */
    }
    *scale = isnan(odd) ? NAN : most / 127;
    for (int64_t c = 0; c < dim; c++) {
        float z = *scale > 0 ? x[c] / *scale : 0;
        z = z > 127 ? 127 : z < -127 ? -127 : z;
        y[c] = (int8_t)((z + to_integer) - to_integer);
    }
}

/* The row of head g and token n of the caller's, which may be NULL if rows have no channels. */
static const char *row_of(const tokens *t, const char *x, const int64_t stride[2], int64_t dim,
                          int64_t g, int64_t n) {
    return dim ? x + (g * stride[0] + n * stride[1]) * qkvi_dtype_bytes(t->dtype) : x;
}

/* A row of a token into place `row` of an array of rows. */
static void store(const qkvi_kernels *kernels, qkv_kv_cache *c, qkv_dtype from, const void *x,
                  int64_t dim, char *array, float *scales, int64_t row) {
    kernels->rows->load[from](x, 0, 1, dim, c->row, 0);
    if (c->o.dtype == QKV_I8)
        quantise(c->row, dim, (int8_t *)array + row * dim, &scales[row]);
    else
        kernels->rows->store[c->o.dtype](c->row, 0, 1, dim, 1, array + row * dim * c->elem_bytes,
                                         0);
}

static void write(const qkvi_kernels *kernels, qkv_kv_cache *c, int64_t sequence, const tokens *t) {
    const int64_t dim = c->o.head_dim, dim_v = c->o.head_dim_v;
    for (int64_t n = 0; n < t->n; n++) {
        const int64_t at = c->len[sequence] + n;
        const int64_t page = c->pages[sequence * c->row_pages + qkvi_kv_entry(c, at)];
        for (int64_t g = 0; g < c->o.n_kv_heads; g++) {
            const int64_t row = (page * c->o.n_kv_heads + g) * c->o.page_len + qkvi_kv_token(c, at);
            store(kernels, c, t->dtype, row_of(t, t->k, t->k_stride, dim, g, n), dim, c->k,
                  c->k_scale, row);
            store(kernels, c, t->dtype, row_of(t, t->v, t->v_stride, dim_v, g, n), dim_v, c->v,
                  c->v_scale, row);
        }
    }
}

/* ---- The call -------------------------------------------------------------------------------- */

static qkv_status append(qkv_ctx *ctx, qkv_kv_cache *c, int64_t sequence, const tokens *t) {
    qkv_error *const e = &ctx->error;
    QKV_TRY(qkvi_kv_check_sequence(c, "sequence", sequence, e));
    if (t->n < 0 || t->n > QKVI_MAX_SIZE)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "n = %" PRId64 " is not in [0, %" PRId64 "]", t->n,
                              QKVI_MAX_SIZE);
    if ((int)t->dtype < QKV_F32 || t->dtype > QKV_F16)
        return qkvi_error_set(e, QKV_ERR_DTYPE, "dtype = %d is none of QKV_F32, QKV_BF16, QKV_F16",
                              (int)t->dtype);
    QKV_TRY(check_arrays(c, t, e));
    QKV_TRY(check_room(c, sequence, t->n, e));
    const int64_t len = c->len[sequence], n_entries = count_entries(c, len, t->n);
    for (int64_t m = 0; m < n_entries; m++) {
        const int64_t entry = (qkvi_kv_entry(c, len) + m) % c->row_pages;
        make_own(c, &c->pages[sequence * c->row_pages + entry]);
    }
    if (t->n) write(ctx->kernels, c, sequence, t);
    c->len[sequence] += t->n;
    if (c->o.ring_len)
        c->first[sequence] = qkvi_max_i64(c->first[sequence], c->len[sequence] - c->o.ring_len);
    return QKV_OK;
}

qkv_status qkv_kv_cache_append(qkv_ctx *ctx, qkv_kv_cache *cache, int64_t sequence, int64_t n,
                               qkv_dtype dtype, const void *k, const int64_t k_stride[2],
                               const void *v, const int64_t v_stride[2]) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    tokens t = { .n = n, .dtype = dtype, .k = k, .v = v };
    for (int i = 0; i < 2 && cache; i++) { /* dense: [n_kv_heads][n][dim] */
        const uint64_t rows = i ? 1 : (uint64_t)n;
        t.k_stride[i] = k_stride ? k_stride[i] : (int64_t)(rows * (uint64_t)cache->o.head_dim);
        t.v_stride[i] = v_stride ? v_stride[i] : (int64_t)(rows * (uint64_t)cache->o.head_dim_v);
    }
    return qkvi_ctx_end(ctx, append(ctx, cache, sequence, &t));
}
