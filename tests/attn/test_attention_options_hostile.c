/*
 * Extreme values of options that have an array or a number: prefix lengths, chunks, segments, bit
 * masks, ALiBi and sinks. Refusals (AT01, AT03, AT04) with their messages; results against the
 * double oracle, and bit by bit between instruction sets (AT12, AT14, AT16).
 */
#include "attn/attention_world.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check/check.h"

/* ---- Refused --------------------------------------------------------------------------------- */

static void AT01_null_arrays_of_options(void **state) {
    (void)state;
    const qkv_status no = QKV_ERR_ARGUMENT;
    REFUSE(EVERY, w->d.flags = QKV_SET_PREFIX_LEN | QKV_SET_CAUSAL, no,
           "prefix_len is NULL, but QKV_SET_PREFIX_LEN is set");
    REFUSE(EVERY, (w->d.flags = QKV_SET_SEGMENTS, w->d.seg_k = w->seg_k_data), no,
           "seg_q is NULL, but QKV_SET_SEGMENTS is set");
    REFUSE(EVERY, (w->d.flags = QKV_SET_SEGMENTS, w->d.seg_q = w->seg_q_data), no,
           "seg_k is NULL, but QKV_SET_SEGMENTS is set");
    REFUSE(EVERY, w->d.flags = QKV_SET_ALIBI, no, "alibi_slopes is NULL, but QKV_SET_ALIBI is set");
    REFUSE(EVERY, w->d.flags = QKV_SET_SINKS, no, "sinks is NULL, but QKV_SET_SINKS is set");
    REFUSE(EVERY, w->d.flags = QKV_SET_DISTANCE_BIAS, no,
           "distance_bias is NULL, but QKV_SET_DISTANCE_BIAS is set");
    REFUSE(BACKWARD, w->g.d_distance_bias = w->out.d_distances, no,
           "d_distance_bias is set without QKV_SET_DISTANCE_BIAS");
    REFUSE(BACKWARD, w->g.d_sinks = w->out.d_sinks, no, "d_sinks is set without QKV_SET_SINKS");
    ACCEPT(EVERY, (w->d.flags = QKV_SET_SINKS, w->d.sinks = w->sinks)); /* d_sinks may be NULL */
    world *w = fresh_masked(QKV_MASK_BITS);
    w->d.mask = NULL;
    refuse(w, COMPUTE, no, "mask is NULL, but has the shape [2][4][3][1]");
}

static void AT01_null_is_fine_without_elements(void **state) {
    (void)state;
    const uint32_t all =
        QKV_SET_PREFIX_LEN | QKV_SET_CAUSAL | QKV_SET_SEGMENTS | QKV_SET_ALIBI | QKV_SET_SINKS;
    ACCEPT(EVERY, (w->d.flags = QKV_SET_SEGMENTS, w->d.len_k = 0, w->d.seg_q = w->seg_q_data));
    ACCEPT(EVERY, (w->d.flags = QKV_SET_SEGMENTS, w->d.len_q = 0, w->d.seg_k = w->seg_k_data));
    ACCEPT(EVERY, (w->d.flags = QKV_SET_ALIBI | QKV_SET_SINKS, w->d.n_heads = 0));
    ACCEPT(EVERY,
           (w->d.flags = all & ~(uint32_t)(QKV_SET_ALIBI | QKV_SET_SINKS), w->d.n_batch = 0));
    ACCEPT(EVERY, (w->d.flags = all, w->d.n_batch = w->d.n_heads = w->d.n_kv_heads = 0));
}

/* The gradient of a mask needs one that is added, and rows of its own, but for sums. */
static void AT03_AT04_gradient_of_the_mask(void **state) {
    (void)state;
    static const qkv_mask_type not_added[] = { QKV_MASK_BOOL, QKV_MASK_BITS };
    const char *const text = "d_mask is set without an additive mask";
    REFUSE(BACKWARD, w->g.d_mask = w->out.d_mask, QKV_ERR_ARGUMENT, text);
    for (int n = 0; n < 2; n++) {
        world *w = fresh_masked(not_added[n]);
        w->g.d_mask = w->out.d_mask;
        refuse(w, BACKWARD, QKV_ERR_ARGUMENT, text);
    }
    for (int n = 0; n < 4; n++) {
        char message[128];
        world *w = fresh_with_options();
        w->g.d_mask_stride[n] = -1;
        snprintf(message, sizeof message, "d_mask_stride[%d] = -1 is negative", n);
        refuse(w, BACKWARD, QKV_ERR_STRIDE, message);
        w = fresh_with_options();
        w->g.d_mask_stride[n] = INT64_MAX / 2;
        snprintf(message, sizeof message,
                 "d_mask_stride[%d] = %" PRId64 " times %d overflows the address space", n,
                 w->g.d_mask_stride[n], (int[]){ B, H, LQ, LK }[n] - 1);
        refuse(w, BACKWARD, QKV_ERR_STRIDE, message);
        w = fresh_with_options();
        w->g.d_mask_stride[n] = 0;
        accept(w, BACKWARD);
    }
    world *w = fresh_with_options();
    w->g.d_mask_stride[2] = LK - 1;
    refuse(w, BACKWARD, QKV_ERR_STRIDE,
           "d_mask_stride[2] = 4 is less than 5, the elements that it steps over: rows would "
           "overlap");
    w->g.d_mask_stride[3] = 0;
    accept(w, BACKWARD);
    w = fresh_with_options();
    w->d.mask_len_k = 1; /* d_mask has one key too, whatever its stride */
    w->g.d_mask_stride[3] = INT64_MAX;
    accept(w, BACKWARD);
    w = fresh_with_options();
    w->g.d_mask = (float *)(uintptr_t)w->d.mask;
    refuse(w, BACKWARD, QKV_ERR_ARGUMENT, "d_mask, an output, overlaps mask");
}

static void AT03_numbers_of_options(void **state) {
    (void)state;
    for (int b = 0; b < B; b++) {
        char text[128];
        world *w = fresh_with_options();
        int64_t prefix[B] = { 0 };
        w->d.prefix_len = prefix;
        prefix[b] = -1;
        snprintf(text, sizeof text, "prefix_len[%d] = -1 is not in [0, 5]", b);
        refuse(w, EVERY, QKV_ERR_SHAPE, text);
        prefix[b] = LK + 1;
        snprintf(text, sizeof text, "prefix_len[%d] = 6 is not in [0, 5]", b);
        refuse(w, EVERY, QKV_ERR_SHAPE, text);
    }
    REFUSE(EVERY, (w->d.flags = QKV_SET_PREFIX_LEN, w->d.prefix_len = w->lengths), QKV_ERR_ARGUMENT,
           "QKV_SET_PREFIX_LEN is set without QKV_SET_CAUSAL");
    static const int64_t chunks[] = { 0, -1, INT64_MIN, INT64_MAX, ((int64_t)1 << 48) + 1 };
    for (int n = 0; n < 5; n++) {
        char text[128];
        snprintf(text, sizeof text, "chunk = %" PRId64 " is not in [1, 281474976710656]",
                 chunks[n]);
        REFUSE(EVERY, (w->d.flags = QKV_SET_CHUNK, w->d.chunk = chunks[n]), QKV_ERR_ARGUMENT, text);
    }
    ACCEPT(EVERY, (w->d.flags = QKV_SET_CHUNK, w->d.chunk = (int64_t)1 << 48));
    ACCEPT(EVERY, w->d.chunk = -5); /* no flag */
}

static void AT03_AT04_strides_of_options(void **state) {
    (void)state;
    static const int64_t bad[] = { -1, INT64_MIN, INT64_MAX, INT64_MAX / 8 + 1 };
    static const char *const rules[] = { "is negative", "is negative",
                                         "times 1 overflows the address space",
                                         "times 1 overflows the address space" };
    for (int n = 0; n < 4; n++)
        for (int keys = 0; keys < 2; keys++) {
            char text[128];
            world *w = fresh_with_options();
            *(keys ? &w->d.seg_k_stride : &w->d.seg_q_stride) = bad[n];
            snprintf(text, sizeof text, "seg_%c_stride[0] = %" PRId64 " %s", keys ? 'k' : 'q',
                     bad[n], rules[n]);
            refuse(w, COMPUTE | QUERIES, QKV_ERR_STRIDE, text);
        }
    for (int64_t stride = 0; stride <= 8; stride += 2) {
        char text[128];
        world *w = fresh_masked(QKV_MASK_BITS);
        w->d.mask_stride[3] = stride;
        snprintf(text, sizeof text, "mask_stride[3] = %d is not 1, the bits of a row are dense",
                 (int)stride);
        refuse(w, EVERY, QKV_ERR_STRIDE, text);
    }
}

/* ---- Values ---------------------------------------------------------------------------------- */

typedef struct shape {
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_k, dim, dim_v;
} shape;

static const shape SHAPES[] = { { 2, 4, 2, 7, 9, 5, 6 },
                                { 1, 2, 1, 40, 300, 16, 20 },
                                { 2, 4, 2, 11, 14, 32, 64 } };

typedef void change(check_case *c, int n);

static void everywhere(const char *what, change *make, int n) {
    const check_options options = { .isa = NULL };
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++) {
        const shape *x = &SHAPES[s];
        check_report report = { 0 };
        check_case c;
        qkv_attention_desc d;
        qkv_attention_desc_contiguous(&d, x->n_batch, x->n_heads, x->n_kv_heads, x->len_q, x->len_k,
                                      x->dim, x->dim_v);
        case_dense(&c, &d, (uint64_t)(n + 1), n % 2);
        make(&c, n);
        case_seal(&c);
        check_case_everywhere(&options, &c, (uint64_t)n, &report);
        case_free(&c);
        if (report.failures) fail_msg("%s, variant %d: %s", what, n, report.message);
    }
}

#define EVERYWHERE(make, n) everywhere(#make, (make), n)

/* Per head, in guarded memory. */
static const float *per_head(check_case *c, guarded *g, const float *values, int n_values, int n) {
    *g = guarded_new((size_t)c->d.n_heads * sizeof(float), c->at_end);
    for (int64_t h = 0; h < c->d.n_heads; h++)
        ((float *)g->data)[h] = values[(n + 5 * h) % n_values];
    return g->data;
}

static const float LOGITS[] = { 0,      -INFINITY, INFINITY, NAN,    -3e38f, 88,
                                -1e30f, 1e4f,      -0.0f,    1e-40f, -1e4,   -FLT_MAX };
enum { N_LOGITS = sizeof LOGITS / sizeof *LOGITS };

static void with_sinks(check_case *c, int n) {
    c->d.flags |= QKV_SET_SINKS | (n & 16 ? QKV_SET_CAUSAL | QKV_SET_Q_OFFSET : 0);
    c->d.q_offset = -3; /* rows that see nothing but their sink */
    c->d.sinks = per_head(c, &c->sinks, LOGITS, N_LOGITS, n % 16);
}

static void AT16_sinks_of_any_value(void **state) {
    (void)state;
    for (int n = 0; n < 32; n++) EVERYWHERE(with_sinks, n);
}

static const float SLOPES[] = { 0, 0.5f, -0.25f, 1e-40f, 1e4f, -1e4f, -0.0f, 1e-6f };

static void with_slopes(check_case *c, int n) {
    const int64_t offsets[] = { 0, c->d.len_k - c->d.len_q, -4, 100 };
    c->d.flags |= QKV_SET_ALIBI | QKV_SET_Q_OFFSET | (n & 8 ? QKV_SET_CAUSAL : 0);
    c->d.q_offset = offsets[n % 4];
    c->d.alibi_slopes = per_head(c, &c->slopes, SLOPES, 8, n);
}

/* Slopes that are not finite make rows of their head NaN, infinite or empty: never others. */
static const float BAD_SLOPES[] = { NAN, INFINITY, -INFINITY, 3e38f, 1, 2 };

static void with_bad_slopes(check_case *c, int n) {
    with_slopes(c, n);
    guarded_free(&c->slopes);
    c->forward_only = true;
    c->d.alibi_slopes = per_head(c, &c->slopes, BAD_SLOPES, 6, n);
}

static void AT14_slopes_of_any_value(void **state) {
    (void)state;
    for (int n = 0; n < 16; n++) EVERYWHERE(with_slopes, n);
    for (int n = 0; n < 12; n++) EVERYWHERE(with_bad_slopes, n);
}

static void with_distances(check_case *c, int n) {
    static const int64_t reach[] = { 0, 3, 400 };
    const float *const values = n >= 9 ? BAD_SLOPES : SLOPES;
    const int64_t size = 2 * reach[n % 3] + 1;
    c->d.flags |= QKV_SET_DISTANCE_BIAS | (n & 4 ? QKV_SET_CAUSAL : 0);
    c->d.distance_before = c->d.distance_after = reach[n % 3];
    c->d.distance_bias_stride = size;
    c->forward_only = n >= 9;
    c->distances = guarded_new((size_t)(c->d.n_heads * size) * sizeof(float), c->at_end);
    for (int64_t e = 0; e < c->d.n_heads * size; e++)
        ((float *)c->distances.data)[e] = values[(e + n) % (n >= 9 ? 6 : 8)];
    c->d.distance_bias = c->distances.data;
}

/* Numbers that are not finite, too: NaN and +inf make rows NaN, and only those that meet them. */
static void AT14_distance_bias_of_any_value(void **state) {
    (void)state;
    for (int n = 0; n < 18; n++) EVERYWHERE(with_distances, n);
}

static void with_chunk(check_case *c, int n) {
    static const int64_t chunks[] = { 1, 2, 5, 16, 255, 256, 257, (int64_t)1 << 48 };
    static const int64_t offsets[] = { 0, 3, -6, 250, (int64_t)1 << 48, -((int64_t)1 << 48) };
    c->d.flags |= QKV_SET_CHUNK | QKV_SET_Q_OFFSET | (n % 3 == 0 ? QKV_SET_CAUSAL : 0);
    c->d.chunk = chunks[n % 8];
    c->d.q_offset = offsets[n / 8];
}

static void with_prefix(check_case *c, int n) {
    const int64_t prefixes[] = { 0, 1, c->d.len_k / 2, c->d.len_k - 1, c->d.len_k };
    c->d.flags |= QKV_SET_PREFIX_LEN | QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    c->d.q_offset = n / 5 - 3;
    for (int b = 0; b < CASE_MAX_BATCH; b++) c->prefix_len[b] = prefixes[(n + 2 * b) % 5];
    c->d.prefix_len = c->prefix_len;
    if (n % 2) {
        c->d.flags |= QKV_SET_CHUNK | QKV_SET_WINDOW;
        c->d.chunk = 4;
        c->d.window_left = 6;
        c->d.window_right = -1;
    }
}

static void AT16_chunks_and_prefixes(void **state) {
    (void)state;
    for (int n = 0; n < 48; n++) EVERYWHERE(with_chunk, n);
    for (int n = 0; n < 40; n++) EVERYWHERE(with_prefix, n);
}

static void fill_segments(guarded *g, int64_t n_batch, int64_t stride, int64_t len, int n,
                          bool at_end) {
    static const int32_t names[] = { 0, -1, INT32_MAX, INT32_MIN, 7 };
    *g = guarded_new((size_t)((n_batch - 1) * stride + len) * sizeof(int32_t), at_end);
    for (int64_t b = 0; b < n_batch; b++)
        for (int64_t t = 0; t < len; t++)
            ((int32_t *)g->data)[b * stride + t] = n % 4 == 0   ? 3
                                                   : n % 4 == 1 ? (int32_t)t
                                                                : names[(t / 3 + b + n) % 5];
}

/* One segment; one token a segment; some of any names, in any order; nothing in common. */
static void with_segments(check_case *c, int n) {
    qkv_attention_desc *d = &c->d;
    d->flags |= QKV_SET_SEGMENTS | (n & 8 ? QKV_SET_CAUSAL : 0);
    d->seg_q_stride = n & 16 ? 0 : d->len_q;
    d->seg_k_stride = n & 16 ? 0 : d->len_k;
    fill_segments(&c->seg_q, d->n_batch, d->seg_q_stride, d->len_q, n, c->at_end);
    fill_segments(&c->seg_k, d->n_batch, d->seg_k_stride, d->len_k, n & 4 ? n + 1 : n, c->at_end);
    d->seg_q = c->seg_q.data;
    d->seg_k = c->seg_k.data;
}

static void AT16_segments_of_any_name(void **state) {
    (void)state;
    for (int n = 0; n < 32; n++) EVERYWHERE(with_segments, n);
}

/* Rows of bits; those beyond the last key are ones, and mean nothing. */
static void with_bits(check_case *c, int n) {
    qkv_attention_desc *d = &c->d;
    static const int lengths[] = { 0, 1, 2, 7, 8, 9 };
    const int64_t length = lengths[n % 6] ? lengths[n % 6] : d->len_k, row = (length + 7) / 8;
    const int64_t rows = n & 8 ? 1 : d->n_batch * d->n_heads * d->len_q;
    c->mask = guarded_new((size_t)(rows * row), c->at_end);
    for (int64_t e = 0; e < rows * row; e++) {
        unsigned char bits = (unsigned char)(n & 16 ? 0 : e * 73 + n);
        if (e % row == row - 1 && length % 8) bits |= (unsigned char)(0xFF << length % 8);
        ((unsigned char *)c->mask.data)[e] = bits;
    }
    d->flags |= QKV_SET_MASK;
    d->mask_type = QKV_MASK_BITS;
    d->mask = c->mask.data;
    d->mask_len_k = lengths[n % 6];
    d->mask_stride[3] = 1;
    d->mask_stride[2] = n & 8 ? 0 : row;
    d->mask_stride[1] = n & 8 ? 0 : row * d->len_q;
    d->mask_stride[0] = n & 8 ? 0 : row * d->len_q * d->n_heads;
}

static void AT12a_bits_of_masks(void **state) {
    (void)state;
    for (int n = 0; n < 32; n++) EVERYWHERE(with_bits, n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT01_null_arrays_of_options),
        cmocka_unit_test(AT01_null_is_fine_without_elements),
        cmocka_unit_test(AT03_AT04_gradient_of_the_mask),
        cmocka_unit_test(AT03_numbers_of_options),
        cmocka_unit_test(AT03_AT04_strides_of_options),
        cmocka_unit_test(AT12a_bits_of_masks),
        cmocka_unit_test(AT14_slopes_of_any_value),
        cmocka_unit_test(AT14_distance_bias_of_any_value),
        cmocka_unit_test(AT16_sinks_of_any_value),
        cmocka_unit_test(AT16_chunks_and_prefixes),
        cmocka_unit_test(AT16_segments_of_any_name),
    };
    return cmocka_run_group_tests(tests, make_world_ctx, destroy_world_ctx);
}
