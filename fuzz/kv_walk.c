/* See kv_walk.h. */
#include "fuzz/kv_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qkv/kv.h>

#include "core/half.h"

enum { MOST_SEQ = 4, MOST_HEADS = 2, MOST_DIM = 20, MOST_LEN = 160, MOST_STEPS = 60, MOST_Q = 3 };

/* Rows as they are stored: 4 bytes for an element, whatever its type. */
typedef struct rows {
    unsigned char x[MOST_SEQ][MOST_HEADS][MOST_LEN][4 * MOST_DIM];
    float scale[MOST_SEQ][MOST_HEADS][MOST_LEN];
} rows;

static struct {
    qkv_kv_cache_options o;
    qkv_kv_cache *cache;
    rows k, v;
    int64_t len[MOST_SEQ], first[MOST_SEQ];
    bool forked; /* pages may be shared: how many are free is not modelled */
    int bytes;   /* of an element */
    int accepted;
} w;

static qkv_ctx *ctx, *other;

/* ---- Values ---------------------------------------------------------------------------------- */

static uint32_t noise; /* a step has one byte for all its values */

static void begin_values(fuzz_reader *in) { noise = 2654435761u * (fuzz_byte(in) + 1u); }

static float value(void) {
    static const float odd[] = { 0, -0.0f, 1e-40f, 3e38f, -1, 65519, 65520, INFINITY, NAN };
    noise = noise * 1664525u + 1013904223u;
    const unsigned byte = noise >> 24, rare = noise >> 12 & 63;
    return rare == 0 && byte < sizeof odd / sizeof *odd ? odd[byte] : ((float)byte - 128) / 37;
}

/* A row as the cache should store it. */
static void store(const float *x, int64_t dim, unsigned char *y, float *scale) {
    float most = 0;
    bool finite = true;
    for (int64_t c = 0; c < dim; c++) {
        finite = finite && isfinite(x[c]);
        most = fmaxf(most, fabsf(x[c]));
    }
    *scale = finite ? most / 127 : NAN;
    for (int64_t c = 0; c < dim; c++) {
        uint16_t half = w.o.dtype == QKV_F16 ? qkvi_f16_of_f32(x[c]) : qkvi_bf16_of_f32(x[c]);
        if (w.o.dtype == QKV_F32) memcpy(y + 4 * c, &x[c], 4);
        if (w.o.dtype == QKV_BF16 || w.o.dtype == QKV_F16) memcpy(y + 2 * c, &half, 2);
        if (w.o.dtype != QKV_I8) continue;
        const float z = *scale > 0 ? nearbyintf(x[c] / *scale) : 0;
        const signed char byte = (signed char)(z > 127 ? 127 : z < -127 ? -127 : z);
        memcpy(y + c, &byte, 1);
    }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void tell(qkv_status status) {
    qkv_error error = { status, "" };
    strncpy(error.message, qkv_ctx_message(ctx), sizeof error.message - 1);
    if (fuzz_accepted(status, &error)) w.accepted++;
}

static int64_t pages_of(int64_t s) {
    int64_t n = 0;
    bool used[64] = { false };
    for (int64_t at = w.first[s]; at < w.len[s]; at++) {
        const int64_t slot = w.o.ring_len ? at % w.o.ring_len : at;
        n += !used[slot / w.o.page_len];
        used[slot / w.o.page_len] = true;
    }
    return n;
}

static void check_state(void) {
    int64_t used = 0;
    for (int64_t s = 0; s < w.o.n_sequences; s++) {
        FUZZ_CHECK(qkv_kv_cache_len(w.cache, s) == w.len[s]);
        used += pages_of(s);
    }
    FUZZ_CHECK(qkv_kv_cache_free_pages(w.cache) >= w.o.n_pages - used);
    if (!w.forked) FUZZ_CHECK(qkv_kv_cache_free_pages(w.cache) == w.o.n_pages - used);
}

static void append(fuzz_reader *in, int64_t s) {
    static float k[MOST_HEADS * MOST_LEN * MOST_DIM], v[MOST_HEADS * MOST_LEN * MOST_DIM];
    const int64_t n = fuzz_byte(in) % 40, heads = w.o.n_kv_heads;
    const int64_t dim = w.o.head_dim, dim_v = w.o.head_dim_v;
    begin_values(in);
    for (int64_t e = 0; e < heads * n * dim; e++) k[e] = value();
    for (int64_t e = 0; e < heads * n * dim_v; e++) v[e] = value();
    if (s < w.o.n_sequences && w.len[s] + n > MOST_LEN) return;
    const int64_t room = qkv_kv_cache_free_pages(w.cache);
    const qkv_status status = qkv_kv_cache_append(ctx, w.cache, s, n, QKV_F32, k, NULL, v, NULL);
    tell(status);
    if (status != QKV_OK) {
        FUZZ_CHECK(s >= w.o.n_sequences || (w.o.max_len && w.len[s] + n > w.o.max_len) ||
                   (w.o.ring_len && n > w.o.ring_len) || n > room * w.o.page_len || w.forked ||
                   (n && room <= (n - 1) / w.o.page_len + 1));
        return;
    }
    for (int64_t t = 0; t < n; t++)
        for (int64_t g = 0; g < heads; g++) {
            const int64_t at = w.len[s] + t;
            store(k + (g * n + t) * dim, dim, w.k.x[s][g][at], &w.k.scale[s][g][at]);
            store(v + (g * n + t) * dim_v, dim_v, w.v.x[s][g][at], &w.v.scale[s][g][at]);
        }
    w.len[s] += n;
    if (w.o.ring_len && w.len[s] - w.o.ring_len > w.first[s]) w.first[s] = w.len[s] - w.o.ring_len;
}

static void truncate_some(fuzz_reader *in, int64_t s) {
    const int64_t len = fuzz_byte(in) % 4 ? fuzz_byte(in) : 0;
    const bool fits = s < w.o.n_sequences && len <= w.len[s] && (!len || len >= w.first[s]);
    const qkv_status status = qkv_kv_cache_truncate(ctx, w.cache, s, len);
    tell(status);
    FUZZ_CHECK((status == QKV_OK) == fits);
    if (!fits) return;
    w.len[s] = len;
    if (!len) w.first[s] = 0;
}

static void fork_some(fuzz_reader *in, int64_t s) {
    const int64_t to = fuzz_byte(in) % (MOST_SEQ + 1);
    const bool fits = s < w.o.n_sequences && to < w.o.n_sequences && to != s && !w.len[to];
    const qkv_status status = qkv_kv_cache_fork(ctx, w.cache, s, to);
    tell(status);
    FUZZ_CHECK((status == QKV_OK) == fits);
    if (!fits) return;
    w.forked = true;
    w.len[to] = w.len[s];
    w.first[to] = w.first[s];
    memcpy(w.k.x[to], w.k.x[s], sizeof w.k.x[s]);
    memcpy(w.v.x[to], w.v.x[s], sizeof w.v.x[s]);
    memcpy(w.k.scale[to], w.k.scale[s], sizeof w.k.scale[s]);
    memcpy(w.v.scale[to], w.v.scale[s], sizeof w.v.scale[s]);
}

/* ---- Decode ---------------------------------------------------------------------------------- */

static qkv_kv_view model_view(int64_t s) {
    const int64_t rows_bytes = 4 * MOST_DIM / w.bytes;
    const int64_t stride[3] = { MOST_HEADS * MOST_LEN * rows_bytes, MOST_LEN * rows_bytes,
                                rows_bytes };
    const int64_t scales[3] = { MOST_HEADS * MOST_LEN, MOST_LEN, 1 };
    qkv_kv_view view = { .struct_size = sizeof view,
                         .dtype = w.o.dtype,
                         .k = w.k.x[s],
                         .v = w.v.x[s],
                         .k_scale = w.k.scale[s][0],
                         .v_scale = w.v.scale[s][0] };
    memcpy(view.k_stride, stride, sizeof stride);
    memcpy(view.v_stride, stride, sizeof stride);
    memcpy(view.k_scale_stride, scales, sizeof scales);
    memcpy(view.v_scale_stride, scales, sizeof scales);
    return view;
}

static bool same(const float *x, const float *y, int64_t n) {
    for (int64_t e = 0; e < n; e++)
        if (memcmp(&x[e], &y[e], sizeof *x) && !(isnan(x[e]) && isnan(y[e]))) return false;
    return true;
}

static void decode(fuzz_reader *in, int64_t s) {
    enum { ROWS = MOST_SEQ * 4 * MOST_HEADS * MOST_Q };
    static float q[ROWS * MOST_DIM], o[2][ROWS * MOST_DIM], lse[2][ROWS];
    const uint8_t how = fuzz_byte(in);
    const int64_t n_q = 1 + how % MOST_Q, group = 1 + (how >> 2) % 4;
    const int64_t n = w.o.n_sequences - s, left = fuzz_byte(in);
    const int64_t *len = NULL;
    int64_t q_offsets[MOST_SEQ];
    bool lost = false;
    qkv_kv_view view;
    qkv_attention_desc d;
    const qkv_status made = qkv_kv_cache_view(ctx, w.cache, s, n, &view, &len);
    tell(made);
    FUZZ_CHECK((made == QKV_OK) == (s < w.o.n_sequences));
    if (made != QKV_OK) return;
    qkv_attention_desc_contiguous(&d, n, group * w.o.n_kv_heads, w.o.n_kv_heads, n_q, MOST_LEN,
                                  w.o.head_dim, w.o.head_dim_v);
    d.flags = QKV_SET_KV_LEN | QKV_SET_CAUSAL | QKV_SET_Q_OFFSET | QKV_SET_WINDOW;
    d.kv_len = len;
    d.q_offsets = q_offsets;
    d.window_left = how & 64 ? left : -1;
    d.window_right = -1;
    for (int64_t b = 0; b < n; b++) {
        q_offsets[b] = w.len[s + b] - n_q;
        const int64_t from = d.window_left < 0 ? 0 : q_offsets[b] - d.window_left;
        lost |= w.len[s + b] && (from > 0 ? from : 0) < w.first[s + b];
    }
    begin_values(in);
    for (int e = 0; e < ROWS * MOST_DIM; e++) q[e] = value();
    const qkv_status status =
        qkv_attention_decode(how & 128 ? ctx : other, &d, q, &view, o[0], lse[0], NULL);
    FUZZ_CHECK(status == (lost ? QKV_ERR_SHAPE : QKV_OK));
    if (lost) return;
    const qkv_kv_view plain = model_view(s);
    FUZZ_CHECK(qkv_attention_decode(ctx, &d, q, &plain, o[1], lse[1], NULL) == QKV_OK);
    FUZZ_CHECK(same(o[0], o[1], n * d.n_heads * n_q * d.head_dim_v));
    FUZZ_CHECK(same(lse[0], lse[1], n * d.n_heads * n_q));
    w.accepted++;
}

/* ---- The walk -------------------------------------------------------------------------------- */

static qkv_ctx *context(const char *isa, int n_threads) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_ctx *made = NULL;
    options.isa = isa;
    options.n_threads = n_threads;
    FUZZ_CHECK(qkv_ctx_create(&options, &made, NULL) == QKV_OK);
    return made;
}

static bool begin(fuzz_reader *in) {
    if (!ctx) {
        ctx = context("scalar", 1);
        other = context(NULL, 3);
    }
    memset(&w, 0, sizeof w);
    w.o = qkv_kv_cache_options_init();
    w.o.dtype = (qkv_dtype)(fuzz_byte(in) % 5);
    w.o.n_sequences = fuzz_byte(in) % (MOST_SEQ + 1);
    w.o.n_kv_heads = fuzz_byte(in) % (MOST_HEADS + 1);
    w.o.head_dim = fuzz_byte(in) % (MOST_DIM + 1);
    w.o.head_dim_v = fuzz_byte(in) % (MOST_DIM + 1);
    w.o.page_len = fuzz_byte(in) % 3 * 8 + 16;
    w.o.n_pages = fuzz_byte(in) % 14;
    const uint8_t ring = fuzz_byte(in);
    w.o.ring_len = ring < 128 ? 0 : ring % 3 * w.o.page_len + ring / 255;
    w.o.max_len = fuzz_byte(in) % 2 ? fuzz_byte(in) : 0;
    const bool fits = w.o.dtype <= QKV_I8 && w.o.n_sequences && w.o.n_kv_heads && w.o.n_pages &&
                      w.o.page_len % 16 == 0 && w.o.ring_len % w.o.page_len == 0 &&
                      w.o.ring_len <= w.o.n_pages * w.o.page_len &&
                      (w.o.ring_len || w.o.max_len <= w.o.n_pages * w.o.page_len);
    const qkv_status status = qkv_kv_cache_create(ctx, &w.o, &w.cache);
    tell(status);
    FUZZ_CHECK((status == QKV_OK) == fits);
    w.bytes = w.o.dtype == QKV_F32 ? 4 : w.o.dtype == QKV_I8 ? 1 : 2;
    return fits;
}

int kv_walk(const uint8_t *bytes, size_t n_bytes) {
    fuzz_reader in = { bytes, n_bytes };
    if (!begin(&in)) return 0;
    for (int step = 0; step < MOST_STEPS && in.left; step++) {
        const uint8_t what = fuzz_byte(&in);
        const int64_t s = what / 8 % (MOST_SEQ + 1);
        if (what % 8 < 4)
            append(&in, s);
        else if (what % 8 == 4)
            truncate_some(&in, s);
        else if (what % 8 == 5)
            fork_some(&in, s);
        else
            decode(&in, s);
        check_state();
    }
    for (int64_t s = 0; s < w.o.n_sequences; s++)
        FUZZ_CHECK(qkv_kv_cache_truncate(ctx, w.cache, s, 0) == QKV_OK);
    FUZZ_CHECK(qkv_kv_cache_free_pages(w.cache) == w.o.n_pages);
    qkv_kv_cache_free(w.cache);
    return w.accepted;
}
