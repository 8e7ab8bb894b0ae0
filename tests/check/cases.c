/*
 * Making random problems. Shapes are small more often than large; every option is set in a part of
 * the cases; what no query may see is NaN, and the gaps between rows are NaN canaries.
 */
#include "check/cases.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t rng_next(rng *r) {
    uint64_t x = r->state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

int64_t rng_between(rng *r, int64_t low, int64_t high) {
    return low + (int64_t)((rng_next(r) >> 11) % (uint64_t)(high - low + 1));
}

bool rng_chance(rng *r, int percent) { return rng_between(r, 0, 99) < percent; }

float rng_normal(rng *r) {
    float sum = 0;
    for (int i = 0; i < 12; i++) sum += (float)(rng_next(r) >> 40) * 0x1p-24f;
    return sum - 6;
}

/* ---- Shapes and options ---------------------------------------------------------------------- */

static int64_t random_length(rng *r) {
    const int64_t kind = rng_between(r, 0, 99);
    if (kind < 4) return 0;
    if (kind < 12) return 1;
    if (kind < 55) return rng_between(r, 2, 40);
    if (kind < 82) return rng_between(r, 41, 130);
    return rng_between(r, 131, 300);
}

static int64_t random_dim(rng *r) {
    static const int64_t common[] = { 16, 32, 64, 63, 65, 80, 96, 128, 130 };
    if (rng_chance(r, 3)) return 0;
    if (rng_chance(r, 45)) return rng_between(r, 1, 24);
    return common[rng_between(r, 0, 8)];
}

static void random_shape(rng *r, qkv_attention_desc *d) {
    static const int64_t heads[][2] = { { 1, 1 }, { 1, 1 }, { 2, 2 }, { 3, 3 }, { 2, 1 },
                                        { 4, 2 }, { 3, 1 }, { 6, 2 }, { 4, 4 } };
    const int64_t kind = rng_between(r, 0, 8);
    int64_t n_batch = rng_between(r, 1, CASE_MAX_BATCH), n_heads = heads[kind][0];
    int64_t n_kv_heads = heads[kind][1];
    const int64_t len_q = random_length(r), len_k = random_length(r);
    int64_t head_dim = random_dim(r);
    int64_t head_dim_v = rng_chance(r, 70) ? head_dim : random_dim(r);
    if (n_batch * n_heads * len_q * len_k * (head_dim + head_dim_v) > 4000000) {
        n_batch = 1;
        n_heads = n_heads == n_kv_heads ? 1 : 2;
        n_kv_heads = 1;
    }
    qkv_attention_desc_contiguous(d, n_batch, n_heads, n_kv_heads, len_q, len_k, head_dim,
                                  head_dim_v);
}

/*
 * Batch, head and token in a random order, rows with a gap; an input may repeat along a dimension.
 */
static void random_strides(rng *r, const int64_t size[4], bool input, int64_t stride[3]) {
    static const int order[][3] = { { 2, 1, 0 }, { 2, 1, 0 }, { 1, 2, 0 }, { 1, 0, 2 } };
    const int *const o = order[rng_between(r, 0, 3)];
    int64_t step = size[3] + (rng_chance(r, 50) ? rng_between(r, 0, 7) : 0);
    for (int n = 0; n < 3; n++) {
        if (step == 0) step = 1;
        stride[o[n]] = step;
        step = step * size[o[n]] + (rng_chance(r, 30) ? rng_between(r, 0, 9) : 0);
    }
    if (input && rng_chance(r, 6)) stride[rng_between(r, 0, 2)] = 0;
}

void case_shape(const qkv_attention_desc *d, char which, int64_t size[4]) {
    const bool keys = which == 'k' || which == 'v';
    size[0] = d->n_batch;
    size[1] = keys ? d->n_kv_heads : d->n_heads;
    size[2] = keys ? d->len_k : d->len_q;
    size[3] = which == 'l' ? 1 : which == 'q' || which == 'k' ? d->head_dim : d->head_dim_v;
}

static void all_strides(rng *r, check_case *c) {
    qkv_attention_desc *d = &c->d;
    const struct {
        char shape;
        bool input;
        int64_t *stride;
    } list[] = { { 'q', true, d->q_stride },    { 'k', true, d->k_stride },
                 { 'v', true, d->v_stride },    { 'o', false, d->o_stride },
                 { 'l', false, d->lse_stride }, { 'o', true, c->d_o_stride },
                 { 'q', false, c->d_q_stride }, { 'k', false, c->d_k_stride },
                 { 'v', false, c->d_v_stride } };
    for (size_t n = 0; n < sizeof list / sizeof *list; n++) {
        int64_t size[4];
        case_shape(d, list[n].shape, size);
        random_strides(r, size, list[n].input, list[n].stride);
    }
}

static void random_options(rng *r, check_case *c) {
    static const float scales[] = { 0, 1, -0.5f, 0.3f, 2, 1e-20f, -0.125f };
    qkv_attention_desc *d = &c->d;
    if (rng_chance(r, 25)) {
        d->flags |= QKV_SET_SCALE;
        d->scale = scales[rng_between(r, 0, 6)];
    }
    if (rng_chance(r, 20)) {
        d->flags |= QKV_SET_SOFTCAP;
        d->softcap = rng_chance(r, 50) ? 20.0f : 0.5f + fabsf(rng_normal(r));
    }
    if (rng_chance(r, 30)) d->flags |= QKV_SET_CAUSAL;
    if (rng_chance(r, 20)) {
        d->flags |= QKV_SET_WINDOW;
        d->window_left = rng_chance(r, 30) ? -1 : rng_between(r, 0, d->len_k / 2 + 1);
        d->window_right = rng_chance(r, 30) ? -1 : rng_between(r, 0, d->len_k / 2 + 1);
    }
    if (rng_chance(r, 40)) {
        d->flags |= QKV_SET_Q_OFFSET;
        d->q_offset = rng_chance(r, 50) ? d->len_k - d->len_q : rng_between(r, -20, 20);
        for (int b = 0; b < CASE_MAX_BATCH; b++) c->q_offsets[b] = rng_between(r, -30, 30);
        if (rng_chance(r, 50)) d->q_offsets = c->q_offsets;
    }
    for (int b = 0; b < CASE_MAX_BATCH; b++) {
        c->kv_len[b] = rng_chance(r, 15) ? 0 : rng_between(r, 0, d->len_k);
        c->q_len[b] = rng_between(r, 0, d->len_q);
    }
    for (int b = 0; b < CASE_MAX_BATCH; b++) c->prefix_len[b] = rng_between(r, 0, d->len_k);
    if (d->flags & QKV_SET_CAUSAL && rng_chance(r, 25)) d->flags |= QKV_SET_PREFIX_LEN;
    d->prefix_len = c->prefix_len;
    if (rng_chance(r, 15)) {
        d->flags |= QKV_SET_CHUNK;
        d->chunk = rng_chance(r, 30) ? rng_between(r, 1, 4) : rng_between(r, 1, d->len_k + 2);
    }
    if (rng_chance(r, 25)) d->flags |= QKV_SET_KV_LEN;
    if (rng_chance(r, 20)) d->flags |= QKV_SET_Q_LEN;
    d->kv_len = c->kv_len;
    d->q_len = c->q_len;
}

/* ---- Values ---------------------------------------------------------------------------------- */

enum { NORMAL, EQUAL, ONE_HOT, LARGE, DOMINATING, SUBNORMAL, CANCELLING, PATTERNS };
static const char *const PATTERN_NAMES[] = { "normal",          "equal",      "one-hot",
                                             "scores in +-100", "dominating", "subnormal",
                                             "cancelling" };

static float pattern_value(rng *r, int pattern, char which, int64_t token, int64_t c, int64_t dim) {
    const float x = rng_normal(r);
    switch (pattern) {
    case EQUAL: return which == 'q' || which == 'k' ? 0.5f : x;
    case ONE_HOT: return which == 'v' || which == 'o' ? x : c == token % (dim ? dim : 1) ? 1.0f : 0;
    case LARGE: return which == 'q' ? 10 * x : which == 'k' ? 3 * x : x;
    case DOMINATING:
        return which == 'k' && token == 1 ? 300 * fabsf(x) : which == 'q' ? fabsf(x) * 4 : x;
    case SUBNORMAL: return x * (which == 'q' || which == 'k' ? 1e-25f : 1e-39f);
    case CANCELLING: return c % 2 ? x * 0.01f - 4 : x * 0.01f + 4;
    default: return x;
    }
}

static guarded input_new(rng *r, check_case *c, char which, const int64_t stride[3], int pattern) {
    int64_t size[4];
    case_shape(&c->d, which, size);
    guarded g = output_new(size, stride, c->at_end);
    float *const x = g.data;
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = 0; i < size[2]; i++)
                for (int64_t ch = 0; ch < size[3]; ch++)
                    x[b * stride[0] + h * stride[1] + i * stride[2] + ch] =
                        pattern_value(r, pattern, which, i, ch, size[3]);
    return g;
}

/* Keeps one mask in three fully open or fully closed for some rows. */
static void make_mask(rng *r, check_case *c) {
    qkv_attention_desc *d = &c->d;
    static const qkv_mask_type types[] = { QKV_MASK_F32, QKV_MASK_BOOL, QKV_MASK_BITS };
    d->mask_type = types[rng_between(r, 0, 2)];
    const bool additive = d->mask_type == QKV_MASK_F32, bits = d->mask_type == QKV_MASK_BITS;
    int64_t size[4] = { d->n_batch, d->n_heads, d->len_q, d->len_k };
    if (d->len_k > 1 && rng_chance(r, 20)) d->mask_len_k = rng_between(r, 1, d->len_k);
    if (d->mask_len_k) size[3] = d->mask_len_k;
    if (rng_chance(r, 8)) size[3] = d->mask_len_k = 1;
    if (bits) size[3] = (size[3] + 7) / 8;
    for (int n = 0; n < 3; n++)
        if (rng_chance(r, 30)) size[n] = size[n] ? 1 : 0;
    int64_t step = !bits && rng_chance(r, 15) ? 2 : 1;
    for (int n = 3; n >= 0; n--) {
        d->mask_stride[n] = size[n] == 1 && !(bits && n == 3) ? 0 : step;
        step = step * size[n] + rng_between(r, 0, 2);
    }
    int64_t last = 1;
    for (int n = 0; n < 4; n++) last = size[n] ? last + (size[n] - 1) * d->mask_stride[n] : 0;
    if (!size[0] || !size[1] || !size[2] || !size[3]) last = 0;
    c->mask = guarded_new((size_t)last * (additive ? sizeof(float) : 1), c->at_end);
    const int open = (int)rng_between(r, 0, 9);
    const int percent = open == 0 ? 0 : open == 1 ? 2 : open == 2 ? 100 : 70;
    const float low = rng_chance(r, 15) ? -FLT_MAX : -INFINITY; /* a number, or hidden */
    for (int64_t n = 0; n < last; n++) {
        const bool sees = rng_chance(r, percent);
        if (additive)
            ((float *)c->mask.data)[n] = sees ? rng_normal(r) * 3 : low;
        else
            ((unsigned char *)c->mask.data)[n] = sees ? (unsigned char)rng_between(r, 1, 255) : 0;
    }
    d->flags |= QKV_SET_MASK;
    d->mask = c->mask.data;
}

static guarded segments_new(rng *r, const check_case *c, int64_t len, int64_t *stride) {
    const int64_t rows = rng_chance(r, 30) ? 1 : c->d.n_batch;
    *stride = rows == 1 ? 0 : len + rng_between(r, 0, 3);
    guarded g =
        guarded_new(len ? (size_t)((rows - 1) * *stride + len) * sizeof(int32_t) : 0, c->at_end);
    const bool sorted = rng_chance(r, 60);
    for (int64_t b = 0; len && b < rows; b++) {
        int32_t id = -1;
        for (int64_t i = 0; i < len; i++) {
            if (sorted)
                id += rng_chance(r, 5);
            else
                id = (int32_t)rng_between(r, 0, 2);
            ((int32_t *)g.data)[b * *stride + i] = id;
        }
    }
    return g;
}

static guarded per_head(rng *r, const check_case *c, float size) {
    guarded g = guarded_new((size_t)c->d.n_heads * sizeof(float), c->at_end);
    for (int64_t h = 0; h < c->d.n_heads; h++)
        ((float *)g.data)[h] = rng_chance(r, 20) ? 0 : size * rng_normal(r);
    return g;
}

/* Segments, ALiBi, sinks. */
static void make_modifiers(rng *r, check_case *c) {
    qkv_attention_desc *d = &c->d;
    if (rng_chance(r, 15)) {
        d->flags |= QKV_SET_SEGMENTS;
        c->seg_q = segments_new(r, c, d->len_q, &d->seg_q_stride);
        c->seg_k = segments_new(r, c, d->len_k, &d->seg_k_stride);
        d->seg_q = c->seg_q.data;
        d->seg_k = c->seg_k.data;
    }
    if (rng_chance(r, 15)) {
        d->flags |= QKV_SET_ALIBI;
        c->slopes = per_head(r, c, 0.3f);
        d->alibi_slopes = c->slopes.data;
    }
    if (rng_chance(r, 15)) {
        d->flags |= QKV_SET_SINKS;
        c->sinks = per_head(r, c, rng_chance(r, 20) ? 50 : 2);
        if (rng_chance(r, 10)) ((float *)c->sinks.data)[0] = -INFINITY;
        d->sinks = c->sinks.data;
    }
}

/* ---- Values that are not finite -------------------------------------------------------------- */

/*
 * Is element token of head hk (a key/value head) of an array with these strides shared with any
 * other?
 */
static bool key_seen_by_any(const qkv_attention_desc *d, int64_t b, int64_t g, int64_t j) {
    const int64_t per_group = d->n_heads / d->n_kv_heads;
    for (int64_t h = g * per_group; h < (g + 1) * per_group; h++)
        for (int64_t i = 0; i < (d->flags & QKV_SET_Q_LEN ? d->q_len[b] : d->len_q); i++)
            if (oracle_sees(d, b, h, i, j)) return true;
    return false;
}

static bool repeats(const int64_t size[4], const int64_t stride[3]) {
    for (int n = 0; n < 3; n++)
        if (size[n] > 1 && stride[n] == 0) return true;
    return false;
}

/* With any sign and payload: what computes with bits must not take it for a number. */
static float some_nan(rng *r) {
    const uint32_t bits =
        0x7fc00000u | (uint32_t)rng_next(r) % 0x400000u | (rng_chance(r, 50) ? 0x80000000u : 0);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float not_finite(rng *r) {
    const int64_t kind = rng_between(r, 0, 2);
    return kind == 0 ? some_nan(r) : kind == 1 ? INFINITY : -INFINITY;
}

static void poison_row(rng *r, float *row, int64_t n) {
    for (int64_t c = 0; c < n; c++)
        if (rng_chance(r, 60)) row[c] = not_finite(r);
}

/* Keys that nobody sees, and query rows past q_len, hold rubbish. */
static void poison_hidden(rng *r, check_case *c) {
    const qkv_attention_desc *d = &c->d;
    int64_t k[4], v[4], q[4], o[4];
    case_shape(d, 'k', k);
    case_shape(d, 'v', v);
    case_shape(d, 'q', q);
    case_shape(d, 'o', o);
    for (int64_t b = 0; b < d->n_batch; b++) {
        for (int64_t g = 0; g < d->n_kv_heads; g++)
            for (int64_t j = 0; j < d->len_k; j++) {
                if (key_seen_by_any(d, b, g, j)) continue;
                const int64_t *sk = d->k_stride, *sv = d->v_stride;
                if (!repeats(k, sk))
                    poison_row(r, (float *)c->k.data + b * sk[0] + g * sk[1] + j * sk[2], k[3]);
                if (!repeats(v, sv))
                    poison_row(r, (float *)c->v.data + b * sv[0] + g * sv[1] + j * sv[2], v[3]);
            }
        for (int64_t h = 0; d->flags & QKV_SET_Q_LEN && h < d->n_heads; h++)
            for (int64_t i = d->q_len[b]; i < d->len_q; i++) {
                const int64_t *sq = d->q_stride, *so = c->d_o_stride;
                if (!repeats(q, sq))
                    poison_row(r, (float *)c->q.data + b * sq[0] + h * sq[1] + i * sq[2], q[3]);
                if (!repeats(o, so))
                    poison_row(r, (float *)c->d_o.data + b * so[0] + h * so[1] + i * so[2], o[3]);
            }
    }
}

/* One row of one array becomes rubbish that some may see and others may not. */
static void poison_one(rng *r, check_case *c) {
    static const char which[] = "kvqo";
    const char w = which[rng_between(r, 0, 3)];
    const int64_t *const stride = w == 'k'   ? c->d.k_stride
                                  : w == 'v' ? c->d.v_stride
                                  : w == 'q' ? c->d.q_stride
                                             : c->d_o_stride;
    const guarded *const g = w == 'k' ? &c->k : w == 'v' ? &c->v : w == 'q' ? &c->q : &c->d_o;
    int64_t size[4], at = 0;
    case_shape(&c->d, w, size);
    if (!g->bytes) return;
    for (int n = 0; n < 3; n++) at += stride[n] * rng_between(r, 0, size[n] - 1);
    poison_row(r, (float *)g->data + at, size[3]);
    c->visible_nan = true;
}

/* ---- The case -------------------------------------------------------------------------------- */

static void describe(check_case *c, const char *pattern) {
    const qkv_attention_desc *d = &c->d;
    snprintf(c->text, sizeof c->text,
             "B %" PRId64 " H %" PRId64 ":%" PRId64 " len %" PRId64 " x %" PRId64 " dim %" PRId64
             ",%" PRId64 " flags 0x%x scale %g softcap %g window %" PRId64 ",%" PRId64
             " offset %" PRId64 "%s mask %d (%" PRId64 ") %s%s",
             d->n_batch, d->n_heads, d->n_kv_heads, d->len_q, d->len_k, d->head_dim, d->head_dim_v,
             (unsigned)d->flags, (double)d->scale, (double)d->softcap, d->window_left,
             d->window_right, d->q_offset, d->q_offsets ? "s" : "", (int)d->mask_type,
             d->mask_len_k, pattern, c->visible_nan ? ", NaN" : "");
}

enum { CASE_INPUTS = 10 };
static void inputs_of(check_case *c, guarded *list[CASE_INPUTS]) {
    guarded *const all[CASE_INPUTS] = { &c->q,    &c->k,     &c->v,     &c->d_o,    &c->d_lse,
                                        &c->mask, &c->seg_q, &c->seg_k, &c->slopes, &c->sinks };
    memcpy(list, all, sizeof all);
}

void case_make(check_case *c, uint64_t seed) {
    rng random = { seed }, *r = &random;
    memset(c, 0, sizeof *c);
    c->seed = seed;
    random_shape(r, &c->d);
    random_options(r, c);
    all_strides(r, c);
    c->at_end = rng_chance(r, 60);
    c->wants_lse = rng_chance(r, 80);
    const int pattern = rng_chance(r, 50) ? NORMAL : (int)rng_between(r, 0, PATTERNS - 1);
    c->q = input_new(r, c, 'q', c->d.q_stride, pattern);
    c->k = input_new(r, c, 'k', c->d.k_stride, pattern);
    c->v = input_new(r, c, 'v', c->d.v_stride, pattern);
    c->d_o = input_new(r, c, 'o', c->d_o_stride, pattern);
    if (rng_chance(r, 40)) c->d_lse = input_new(r, c, 'l', c->d.lse_stride, NORMAL);
    if (rng_chance(r, 35)) make_mask(r, c);
    make_modifiers(r, c);
    poison_hidden(r, c);
    if (rng_chance(r, 15)) poison_one(r, c);
    case_seal(c);
    describe(c, PATTERN_NAMES[pattern]);
}

void case_dense(check_case *c, const qkv_attention_desc *d, uint64_t seed, bool at_end) {
    qkv_attention_grads g;
    rng r = { seed };
    *c = (check_case){ .seed = seed, .d = *d, .at_end = at_end };
    qkv_attention_grads_contiguous(&g, d);
    memcpy(c->d_o_stride, g.d_o_stride, sizeof c->d_o_stride);
    memcpy(c->d_q_stride, g.d_q_stride, sizeof c->d_q_stride);
    memcpy(c->d_k_stride, g.d_k_stride, sizeof c->d_k_stride);
    memcpy(c->d_v_stride, g.d_v_stride, sizeof c->d_v_stride);
    c->q = input_new(&r, c, 'q', c->d.q_stride, NORMAL);
    c->k = input_new(&r, c, 'k', c->d.k_stride, NORMAL);
    c->v = input_new(&r, c, 'v', c->d.v_stride, NORMAL);
    c->d_o = input_new(&r, c, 'o', c->d_o_stride, NORMAL);
    c->d_lse = input_new(&r, c, 'l', c->d.lse_stride, NORMAL);
}

void case_seal(check_case *c) {
    guarded *inputs[CASE_INPUTS];
    inputs_of(c, inputs);
    for (int n = 0; n < CASE_INPUTS; n++)
        if (inputs[n]->map) guarded_read_only(inputs[n]);
}

void case_free(check_case *c) {
    guarded *inputs[CASE_INPUTS];
    inputs_of(c, inputs);
    for (int n = 0; n < CASE_INPUTS; n++) guarded_free(inputs[n]);
}

oracle_inputs case_inputs(const check_case *c) {
    oracle_inputs in = { .q = c->q.data, .k = c->k.data, .v = c->v.data };
    in.d_o = c->d_o.data;
    in.d_lse = c->d_lse.data;
    memcpy(in.d_o_stride, c->d_o_stride, sizeof in.d_o_stride);
    return in;
}

/* ---- Outputs --------------------------------------------------------------------------------- */

guarded output_new(const int64_t size[4], const int64_t stride[3], bool at_end) {
    int64_t elems = size[3];
    for (int n = 0; n < 3; n++) elems = size[n] && elems ? elems + (size[n] - 1) * stride[n] : 0;
    return guarded_new((size_t)elems * sizeof(float), at_end);
}

bool output_intact(const guarded *g, const int64_t size[4], const int64_t stride[3],
                   const int64_t *rows) {
    if (!guarded_intact(g)) return false;
    const size_t n = g->bytes / sizeof(float);
    unsigned char *const ours = calloc(n + 1, 1);
    if (!ours) return false;
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = 0; i < (rows ? rows[b] : size[2]); i++)
                memset(ours + b * stride[0] + h * stride[1] + i * stride[2], 1, (size_t)size[3]);
    const uint32_t *const x = g->data;
    bool intact = true;
    for (size_t at = 0; at < n; at++) intact &= ours[at] || x[at] == 0xFFFFFFFFu;
    free(ours);
    return intact;
}
