/*
 * What the descriptor's checks refuse, with the exact text, and what they make of what they accept.
 * Nothing here computes: the pointers only have to be plausible.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attn/mask.h"
#include "attn/problem.h"

enum { B = 2, H = 4, G = 2, LQ = 3, LK = 5, D = 8, DV = 6 };

/* A problem that is right. Each test breaks one thing in a fresh copy. */
typedef struct world {
    qkv_attention_desc d;
    qkv_attention_grads grads;
    float q[B * H * LQ * D], k[B * G * LK * D], v[B * G * LK * DV], o[B * H * LQ * DV];
    float lse[B * H * LQ], d_o[B * H * LQ * DV], d_lse[B * H * LQ];
    float d_q[B * H * LQ * D], d_k[B * G * LK * D], d_v[B * G * LK * DV];
    float mask_f32[B * H * LQ * LK];
    unsigned char mask_bool[B * H * LQ * LK];
    int64_t lengths[B];
    qkvi_problem p;
    qkvi_grads g;
} world;

static world *fresh(void) {
    static world w;
    memset(&w, 0, sizeof w);
    qkv_attention_desc_contiguous(&w.d, B, H, G, LQ, LK, D, DV);
    qkv_attention_grads_contiguous(&w.grads, &w.d);
    w.grads.d_o = w.d_o;
    w.grads.d_lse = w.d_lse;
    w.grads.d_q = w.d_q;
    w.grads.d_k = w.d_k;
    w.grads.d_v = w.d_v;
    return &w;
}

static world *masked(qkv_mask_type type) {
    world *w = fresh();
    const int64_t stride[4] = { H * LQ * LK, LQ * LK, LK, 1 };
    w->d.flags |= QKV_SET_MASK;
    w->d.mask_type = type;
    w->d.mask = type == QKV_MASK_F32 ? (const void *)w->mask_f32 : w->mask_bool;
    memcpy(w->d.mask_stride, stride, sizeof stride);
    return w;
}

static void says(qkv_status got, qkv_status want, const qkv_error *error, const char *text) {
    if (want != QKV_OK) assert_string_equal(error->message, text);
    if (got != want) fail_msg("%s instead of %s", qkv_status_name(got), qkv_status_name(want));
}

static void forward(world *w, qkv_status want, const char *text) {
    qkv_error error = { QKV_OK, "" };
    says(qkvi_problem_forward(&w->d, w->q, w->k, w->v, w->o, w->lse, NULL, &w->p, &error), want,
         &error, text);
}

static void forward_on(world *w, const void *q, const void *k, const void *v, void *o, float *lse,
                       qkv_status want, const char *text) {
    qkv_error error = { QKV_OK, "" };
    says(qkvi_problem_forward(&w->d, q, k, v, o, lse, NULL, &w->p, &error), want, &error, text);
}

static void backward(world *w, qkv_status want, const char *text) {
    qkv_error error = { QKV_OK, "" };
    says(qkvi_problem_backward(&w->d, w->q, w->k, w->v, w->o, w->lse, &w->grads, NULL, &w->p, &w->g,
                               &error),
         want, &error, text);
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        world *w = fresh();                                                                        \
        change;                                                                                    \
        forward(w, status, text);                                                                  \
    } while (0)
#define ACCEPTED(change) REFUSED(change, QKV_OK, "")

static void a_right_problem_passes(void **state) {
    (void)state;
    world *w = fresh();
    forward(w, QKV_OK, "");
    assert_int_equal(w->p.heads_per_kv, 2);
    assert_true(w->p.scale == (float)(1 / sqrt(8.0)));
    assert_int_equal(w->p.window_left, QKVI_NO_WINDOW);
    assert_int_equal(w->p.window_right, QKVI_NO_WINDOW);
    assert_int_equal(w->p.mask_len_k, LK);
    assert_false(w->p.has_softcap);
    backward(w, QKV_OK, "");
    assert_ptr_equal(w->g.d_k, w->d_k);
    qkv_error error;
    assert_int_equal(qkvi_problem_shape(&w->d, true, &w->p, &error), QKV_OK);
    assert_null(w->p.q);
}

static void versions(void **state) {
    (void)state;
    struct {
        qkv_attention_desc d;
        uint64_t tail[4];
    } newer = { .tail = { 0 } };
    world *w = fresh();
    newer.d = w->d;
    newer.d.struct_size = sizeof newer;
    qkv_error error = { QKV_OK, "" };
    assert_int_equal(qkvi_problem_shape(&newer.d, true, &w->p, &error), QKV_OK);
    newer.tail[2] = 1;
    assert_int_equal(qkvi_problem_shape(&newer.d, true, &w->p, &error), QKV_ERR_VERSION);
    assert_int_equal(qkvi_problem_shape(NULL, true, &w->p, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "desc is NULL");
    w->d.struct_size = 8;
    assert_int_equal(qkvi_problem_shape(&w->d, true, &w->p, &error), QKV_ERR_ARGUMENT);
    w = fresh();
    w->grads.struct_size = 1;
    qkvi_grads g;
    assert_int_equal(qkvi_problem_backward(&w->d, w->q, w->k, w->v, w->o, w->lse, &w->grads, NULL,
                                           &w->p, &g, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(
        qkvi_problem_backward(&w->d, w->q, w->k, w->v, w->o, w->lse, NULL, NULL, &w->p, &g, &error),
        QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "grads is NULL");
}

static void AT03_AT09_AT10_sizes(void **state) {
    (void)state;
    REFUSED(w->d.flags = 0x80004, QKV_ERR_VERSION, "flags = 0x80004 has the unknown bits 0x80000");
    REFUSED(w->d.dtype = (qkv_dtype)7, QKV_ERR_DTYPE,
            "dtype = 7 is none of QKV_F32, QKV_BF16, QKV_F16");
    REFUSED(w->d.n_batch = -1, QKV_ERR_SHAPE, "n_batch = -1 is negative");
    REFUSED(w->d.n_heads = -4, QKV_ERR_SHAPE, "n_heads = -4 is negative");
    REFUSED(w->d.n_kv_heads = -1, QKV_ERR_SHAPE, "n_kv_heads = -1 is negative");
    REFUSED(w->d.len_q = INT64_MIN, QKV_ERR_SHAPE, "len_q = -9223372036854775808 is negative");
    REFUSED(w->d.len_k = -1, QKV_ERR_SHAPE, "len_k = -1 is negative");
    REFUSED(w->d.head_dim = 65537, QKV_ERR_SHAPE, "head_dim = 65537 is greater than 65536");
    REFUSED(w->d.head_dim_v = 65537, QKV_ERR_SHAPE, "head_dim_v = 65537 is greater than 65536");
    REFUSED(w->d.len_k = INT64_MAX, QKV_ERR_SHAPE,
            "len_k = 9223372036854775807 is greater than 281474976710656");
    REFUSED(w->d.n_kv_heads = 3, QKV_ERR_SHAPE, "n_heads = 4 is not a multiple of n_kv_heads = 3");
    REFUSED(w->d.n_kv_heads = 0, QKV_ERR_SHAPE, "n_heads = 4 is not a multiple of n_kv_heads = 0");
    REFUSED(w->d.n_batch = w->d.len_q = (int64_t)1 << 40, QKV_ERR_SHAPE,
            "n_batch * n_heads * len_q = 1099511627776 * 4 * 1099511627776 is greater than "
            "1152921504606846976");
}

static void AT11_AT16_numbers(void **state) {
    (void)state;
    const uint32_t scale = QKV_SET_SCALE, cap = QKV_SET_SOFTCAP, window = QKV_SET_WINDOW;
    ACCEPTED((w->d.flags = scale, w->d.scale = 0));
    ACCEPTED((w->d.flags = scale, w->d.scale = -3));
    ACCEPTED((w->d.flags = scale, w->d.scale = FLT_TRUE_MIN));
    ACCEPTED(w->d.scale = NAN); /* no flag: ignored */
    REFUSED((w->d.flags = scale, w->d.scale = NAN), QKV_ERR_ARGUMENT, "scale = nan is not finite");
    REFUSED((w->d.flags = scale, w->d.scale = -INFINITY), QKV_ERR_ARGUMENT,
            "scale = -inf is not finite");
    REFUSED((w->d.flags = cap, w->d.softcap = 0), QKV_ERR_ARGUMENT,
            "softcap = 0 is not a finite number above 0");
    REFUSED((w->d.flags = cap, w->d.softcap = -1), QKV_ERR_ARGUMENT,
            "softcap = -1 is not a finite number above 0");
    REFUSED((w->d.flags = cap, w->d.softcap = NAN), QKV_ERR_ARGUMENT,
            "softcap = nan is not a finite number above 0");
    REFUSED((w->d.flags = window, w->d.window_left = -2), QKV_ERR_ARGUMENT,
            "window_left = -2 is less than -1 (unbounded)");
    REFUSED((w->d.flags = window, w->d.window_right = INT64_MIN), QKV_ERR_ARGUMENT,
            "window_right = -9223372036854775808 is less than -1 (unbounded)");
    world *w = fresh();
    w->d.flags = window | QKV_SET_CAUSAL;
    w->d.window_left = INT64_MAX;
    w->d.window_right = 7; /* causal is another rule */
    forward(w, QKV_OK, "");
    assert_int_equal(w->p.window_left, QKVI_NO_WINDOW);
    assert_int_equal(w->p.window_right, 7);
    assert_true(w->p.causal);
    w->d.head_dim = 0;
    forward(w, QKV_OK, "");
    assert_true(w->p.scale == 1.0f);
}

static void AT03_lengths(void **state) {
    (void)state;
    REFUSED(w->d.flags = QKV_SET_KV_LEN, QKV_ERR_ARGUMENT,
            "kv_len is NULL, but QKV_SET_KV_LEN is set");
    REFUSED(w->d.flags = QKV_SET_Q_LEN, QKV_ERR_ARGUMENT,
            "q_len is NULL, but QKV_SET_Q_LEN is set");
    world *w = fresh();
    w->d.flags = QKV_SET_KV_LEN;
    w->d.kv_len = w->lengths;
    w->lengths[1] = LK;
    forward(w, QKV_OK, "");
    w->lengths[1] = LK + 1;
    forward(w, QKV_ERR_SHAPE, "kv_len[1] = 6 is not in [0, 5]");
    w->d.flags = QKV_SET_Q_LEN;
    w->d.q_len = w->lengths;
    w->lengths[1] = -1;
    forward(w, QKV_ERR_SHAPE, "q_len[1] = -1 is not in [0, 3]");
    w->d.q_len = (const int64_t *)((const char *)w->lengths + 4);
    forward(w, QKV_ERR_ARGUMENT, "q_len is not aligned to its element, 8 bytes");
    w->d.flags = QKV_SET_Q_OFFSET;
    w->d.q_offset = INT64_MIN;
    forward(w, QKV_ERR_SHAPE,
            "q_offset = -9223372036854775808 is not in [-281474976710656, 281474976710656]");
    w->d.q_offsets = w->lengths; /* wins over q_offset */
    forward(w, QKV_OK, "");
    w->lengths[0] = INT64_MAX;
    forward(w, QKV_ERR_SHAPE,
            "q_offsets[0] = 9223372036854775807 is not in [-281474976710656, 281474976710656]");
}

static void AT12_masks(void **state) {
    (void)state;
    forward(masked(QKV_MASK_BOOL), QKV_OK, "");
    forward(masked(QKV_MASK_F32), QKV_OK, "");
    forward(masked(QKV_MASK_NONE), QKV_ERR_DTYPE,
            "mask_type = 0 is none of QKV_MASK_BOOL, QKV_MASK_F32, QKV_MASK_BITS, "
            "QKV_MASK_BF16, QKV_MASK_F16");
    world *w = masked(QKV_MASK_F32);
    w->d.mask_len_k = LK + 1;
    forward(w, QKV_ERR_SHAPE, "mask_len_k = 6 is greater than len_k = 5");
    w->d.mask_len_k = -1;
    forward(w, QKV_ERR_SHAPE, "mask_len_k = -1 is negative");
    w->d.mask_len_k = 2;
    forward(w, QKV_OK, "");
    assert_int_equal(qkvi_rules_of(&w->p, 0).n_keys, 2);
    w->d.mask_len_k = 1; /* repeats */
    forward(w, QKV_OK, "");
    assert_int_equal(qkvi_rules_of(&w->p, 0).n_keys, LK);
    assert_int_equal(w->p.mask_stride[3], 0);
    w = masked(QKV_MASK_BOOL);
    w->d.mask = NULL;
    forward(w, QKV_ERR_ARGUMENT, "mask is NULL, but has the shape [2][4][3][5]");
    w = masked(QKV_MASK_BOOL);
    w->d.mask_stride[3] = -1;
    forward(w, QKV_ERR_STRIDE, "mask_stride[3] = -1 is negative");
    w = masked(QKV_MASK_F32);
    w->d.mask = w->mask_bool + 1;
    forward(w, QKV_ERR_ARGUMENT, "mask is not aligned to its element, 4 bytes");
    w = masked(QKV_MASK_F32);
    w->d.mask = w->o;
    forward(w, QKV_ERR_ARGUMENT, "o, an output, overlaps mask");
}

static void AT01_AT07_pointers(void **state) {
    (void)state;
    world *w = fresh();
    forward_on(w, NULL, w->k, w->v, w->o, w->lse, QKV_ERR_ARGUMENT,
               "q is NULL, but has the shape [2][4][3][8]");
    forward_on(w, w->q, NULL, w->v, w->o, w->lse, QKV_ERR_ARGUMENT,
               "k is NULL, but has the shape [2][2][5][8]");
    forward_on(w, w->q, w->k, NULL, w->o, w->lse, QKV_ERR_ARGUMENT,
               "v is NULL, but has the shape [2][2][5][6]");
    forward_on(w, w->q, w->k, w->v, NULL, w->lse, QKV_ERR_ARGUMENT,
               "o is NULL, but has the shape [2][4][3][6]");
    forward_on(w, w->q, w->k, w->v, w->o, NULL, QKV_OK, "");
    forward_on(w, w->q, (char *)w->k + 1, w->v, w->o, NULL, QKV_ERR_ARGUMENT,
               "k is not aligned to its element, 4 bytes");
    forward_on(w, w->q, (void *)(UINTPTR_MAX - 99), w->v, w->o, NULL, QKV_ERR_STRIDE,
               "k spans 640 bytes, past the end of the address space");
    w->d.n_batch = 0;
    forward_on(w, NULL, NULL, NULL, NULL, NULL, QKV_OK, "");
    w = fresh();
    w->d.len_k = 0;
    forward_on(w, w->q, NULL, NULL, w->o, NULL, QKV_OK, "");
    w = fresh();
    w->d.head_dim = 0;
    forward_on(w, NULL, NULL, w->v, w->o, NULL, QKV_OK, "");
}

static void AT03_AT04_strides(void **state) {
    (void)state;
    REFUSED(w->d.q_stride[1] = -8, QKV_ERR_STRIDE, "q_stride[1] = -8 is negative");
    REFUSED(w->d.k_stride[0] = INT64_MAX, QKV_ERR_STRIDE,
            "k_stride[0] = 9223372036854775807 times 1 overflows the address space");
    REFUSED(w->d.v_stride[2] = INT64_MAX / 3, QKV_ERR_STRIDE,
            "v_stride[2] = 3074457345618258602 times 4 overflows the address space");
    ACCEPTED(w->d.k_stride[1] = 0); /* inputs repeat and overlap */
    ACCEPTED(w->d.v_stride[2] = 1);
    REFUSED(w->d.o_stride[2] = 5, QKV_ERR_STRIDE,
            "o_stride[2] = 5 is less than 6, the elements that it steps over: rows would overlap");
    REFUSED(w->d.o_stride[0] = 0, QKV_ERR_STRIDE,
            "o_stride[0] = 0 is less than 1, the elements that it steps over: rows would overlap");
    REFUSED(
        w->d.o_stride[1] = 17, QKV_ERR_STRIDE,
        "o_stride[1] = 17 is less than 18, the elements that it steps over: rows would overlap");
    REFUSED(
        w->d.lse_stride[2] = 0, QKV_ERR_STRIDE,
        "lse_stride[2] = 0 is less than 1, the elements that it steps over: rows would overlap");
    world *w = fresh(); /* [batch][token][head][channel] */
    w->d.o_stride[2] = H * DV;
    w->d.o_stride[1] = DV;
    forward(w, QKV_OK, "");
}

static void AT06_overlaps(void **state) {
    (void)state;
    world *w = fresh();
    forward_on(w, w->q, w->k, w->v, w->q, NULL, QKV_ERR_ARGUMENT, "o, an output, overlaps q");
    forward_on(w, w->q, w->k, w->v, w->k + 159, NULL, QKV_ERR_ARGUMENT, "o, an output, overlaps k");
    forward_on(w, w->q, w->k, w->v, w->o, w->o + 143, QKV_ERR_ARGUMENT,
               "o, an output, overlaps lse");
    forward_on(w, w->q, w->q, w->q, w->o, NULL, QKV_OK, "");
    w->grads.d_q = w->grads.d_k;
    backward(w, QKV_ERR_ARGUMENT, "d_q, an output, overlaps d_k");
    w = fresh();
    w->grads.d_v = w->d_o;
    backward(w, QKV_ERR_ARGUMENT, "d_v, an output, overlaps d_o");
    w = fresh();
    w->d.flags = QKV_SET_KV_LEN;
    w->d.kv_len = (const int64_t *)(void *)w->d_q;
    backward(w, QKV_ERR_ARGUMENT, "d_q, an output, overlaps kv_len");
}

/*
 * q, k, v, o as columns of one [token][16 * n] buffer: apart, though their address ranges overlap.
 */
static void AT06_packed_columns_are_apart(void **state) {
    (void)state;
    enum { HEADS = 2, HEAD = 8, HIDDEN = HEADS * HEAD, TOKENS = 5 };
    static float x[TOKENS][4 * HIDDEN];
    world *w = fresh();
    qkv_attention_desc_contiguous(&w->d, 1, HEADS, HEADS, TOKENS, TOKENS, HEAD, HEAD);
    int64_t *const stride[4] = { w->d.q_stride, w->d.k_stride, w->d.v_stride, w->d.o_stride };
    for (int i = 0; i < 4; i++) {
        stride[i][0] = TOKENS * 4 * HIDDEN;
        stride[i][1] = HEAD;
        stride[i][2] = 4 * HIDDEN;
    }
    float *const t = x[0];
    forward_on(w, t, t + HIDDEN, t + 2 * HIDDEN, t + 3 * HIDDEN, NULL, QKV_OK, "");
    forward_on(w, t, t + HIDDEN, t + 3 * HIDDEN, t + 2 * HIDDEN, NULL, QKV_OK, "");
    forward_on(w, t, t + HIDDEN, t + 3 * HIDDEN, t + 2 * HIDDEN + 1, NULL, QKV_ERR_ARGUMENT,
               "o, an output, overlaps v");
    forward_on(w, t, t + HIDDEN, t + 3 * HIDDEN, t + 2 * HIDDEN - 1, NULL, QKV_ERR_ARGUMENT,
               "o, an output, overlaps k");
}

static void AT01_AT06_merging(void **state) {
    (void)state;
    world *w = fresh();
    qkv_error error;
    const void *o_parts[2] = { w->d_o, w->o };
    const float *lse_parts[2] = { w->d_lse, w->lse };
    assert_int_equal(qkvi_problem_merge(&w->d, 2, o_parts, lse_parts, w->o, w->lse, &w->p, &error),
                     QKV_OK);
    says(qkvi_problem_merge(&w->d, 2, o_parts, lse_parts, w->o + 1, w->lse, &w->p, &error),
         QKV_ERR_ARGUMENT, &error, "o, an output, overlaps lse");
    says(qkvi_problem_merge(&w->d, 2, o_parts, lse_parts, w->d_o + 1, NULL, &w->p, &error),
         QKV_ERR_ARGUMENT, &error, "o, an output, overlaps o_parts[0]");
    says(qkvi_problem_merge(&w->d, 0, o_parts, lse_parts, w->o, w->lse, &w->p, &error),
         QKV_ERR_ARGUMENT, &error, "n_parts = 0 is less than 1");
    says(qkvi_problem_merge(&w->d, 1, NULL, lse_parts, w->o, w->lse, &w->p, &error),
         QKV_ERR_ARGUMENT, &error, "o_parts is NULL");
    o_parts[1] = NULL;
    says(qkvi_problem_merge(&w->d, 2, o_parts, lse_parts, w->o, w->lse, &w->p, &error),
         QKV_ERR_ARGUMENT, &error, "o_parts[1] is NULL, but has the shape [2][4][3][6]");
    lse_parts[0] = NULL;
    says(qkvi_problem_merge(&w->d, 2, o_parts, lse_parts, w->o, w->lse, &w->p, &error),
         QKV_ERR_ARGUMENT, &error, "lse_parts[0] is NULL, but has the shape [2][4][3][1]");
}

/* mask.h against the definition, for every small rule. */
static bool may_see(const qkvi_rules *r, int64_t i, int64_t j) {
    const int64_t p = i + r->offset;
    if (r->chunk && floor((double)p / (double)r->chunk) != floor((double)j / (double)r->chunk))
        return false;
    return j < r->n_keys && j >= p - r->left && j <= p + r->right && (j <= p || j < r->causal_end);
}

static void check_rules(const qkvi_rules *r) {
    enum { N = 6 };
    for (int64_t i0 = 0; i0 < N; i0++)
        for (int64_t i1 = i0 + 1; i1 <= N; i1++)
            for (int64_t j0 = 0; j0 < r->n_keys; j0++)
                for (int64_t j1 = j0 + 1; j1 <= r->n_keys; j1++) {
                    int seen = 0;
                    const qkvi_range keys = qkvi_keys_of_block(r, i0, i1);
                    const qkvi_range queries = qkvi_queries_of_block(r, j0, j1);
                    for (int64_t i = i0; i < i1; i++)
                        for (int64_t j = j0; j < j1; j++) {
                            const qkvi_range own = qkvi_keys_of(r, i);
                            const bool sees = may_see(r, i, j);
                            assert_int_equal(sees, j >= own.begin && j < own.end);
                            if (!sees) continue;
                            seen++;
                            assert_true(j >= keys.begin && j < keys.end);
                            assert_true(i >= r->n_queries ||
                                        (i >= queries.begin && i < queries.end));
                        }
                    const qkvi_sight want = seen == 0                       ? QKVI_SEE_NONE
                                            : seen == (i1 - i0) * (j1 - j0) ? QKVI_SEE_ALL
                                                                            : QKVI_SEE_SOME;
                    assert_int_equal(qkvi_sight_of(r, i0, i1, j0, j1), want);
                }
}

static void AT15_AT16_who_sees_whom(void **state) {
    (void)state;
    const int64_t windows[] = { 0, 1, 3, QKVI_NO_WINDOW }, causal_ends[] = { 0, 2, QKVI_NO_WINDOW };
    for (int64_t offset = -8; offset <= 8; offset++)
        for (int rule = 0; rule < 4 * 4 * 3 * 4; rule++)
            for (int64_t n_keys = 0; n_keys <= 5; n_keys++) {
                const qkvi_rules r = { .n_queries = 6,
                                       .n_keys = n_keys,
                                       .offset = offset,
                                       .left = windows[rule % 4],
                                       .right = windows[rule / 4 % 4],
                                       .causal_end = causal_ends[rule / 16 % 3],
                                       .chunk = rule / 48 };
                check_rules(&r);
            }
    const qkvi_rules far = {
        6, 5, QKVI_MAX_SIZE, QKVI_NO_WINDOW, QKVI_NO_WINDOW, QKVI_NO_WINDOW, 0
    };
    assert_int_equal(qkvi_sight_of(&far, 0, 6, 0, 5), QKVI_SEE_ALL);
    const qkvi_rules low = {
        6, 5, -QKVI_MAX_SIZE, QKVI_NO_WINDOW, QKVI_NO_WINDOW, QKVI_NO_WINDOW, 0
    };
    assert_int_equal(qkvi_sight_of(&low, 0, 6, 0, 5), QKVI_SEE_ALL);
}

static void prefixes_and_chunks(void **state) {
    (void)state;
    const uint32_t prefix = QKV_SET_PREFIX_LEN | QKV_SET_CAUSAL;
    REFUSED(w->d.flags = QKV_SET_PREFIX_LEN, QKV_ERR_ARGUMENT,
            "QKV_SET_PREFIX_LEN is set without QKV_SET_CAUSAL");
    REFUSED(w->d.flags = prefix, QKV_ERR_ARGUMENT,
            "prefix_len is NULL, but QKV_SET_PREFIX_LEN is set");
    REFUSED((w->d.flags = prefix, w->d.prefix_len = w->lengths, w->lengths[1] = -1), QKV_ERR_SHAPE,
            "prefix_len[1] = -1 is not in [0, 5]");
    REFUSED((w->d.flags = prefix, w->d.prefix_len = w->lengths, w->lengths[1] = 6), QKV_ERR_SHAPE,
            "prefix_len[1] = 6 is not in [0, 5]");
    ACCEPTED((w->d.flags = prefix, w->d.prefix_len = w->lengths, w->lengths[1] = 5));
    REFUSED((w->d.flags = QKV_SET_CHUNK, w->d.chunk = 0), QKV_ERR_ARGUMENT,
            "chunk = 0 is not in [1, 281474976710656]");
    REFUSED((w->d.flags = QKV_SET_CHUNK, w->d.chunk = INT64_MIN), QKV_ERR_ARGUMENT,
            "chunk = -9223372036854775808 is not in [1, 281474976710656]");
    REFUSED((w->d.flags = QKV_SET_CHUNK, w->d.chunk = INT64_MAX), QKV_ERR_ARGUMENT,
            "chunk = 9223372036854775807 is not in [1, 281474976710656]");
    ACCEPTED((w->d.flags = QKV_SET_CHUNK, w->d.chunk = QKVI_MAX_SIZE));
    ACCEPTED(w->d.chunk = -1); /* no flag */
}

static void distances(void **state) {
    (void)state;
    static const float numbers[4 * H];
    const uint32_t flag = QKV_SET_DISTANCE_BIAS;
#define OF(field, value)                                                                           \
    (w->d.flags = flag, w->d.distance_bias = numbers, w->d.distance_bias_stride = 4,               \
     w->d.distance_before = 1, w->d.distance_after = 2, w->field = value)
    REFUSED(w->d.flags = flag, QKV_ERR_ARGUMENT,
            "distance_bias is NULL, but QKV_SET_DISTANCE_BIAS is set");
    ACCEPTED(OF(d.distance_bias_stride, 0)); /* a row for all heads */
    ACCEPTED((OF(d.distance_bias, NULL), w->d.n_heads = w->d.n_kv_heads = 0));
    REFUSED(OF(d.distance_before, -1), QKV_ERR_SHAPE, "distance_before = -1 is negative");
    REFUSED(OF(d.distance_after, INT64_MIN), QKV_ERR_SHAPE,
            "distance_after = -9223372036854775808 is negative");
    REFUSED(OF(d.distance_after, QKVI_MAX_SIZE + 1), QKV_ERR_SHAPE,
            "distance_after = 281474976710657 is greater than 281474976710656");
    REFUSED(OF(d.distance_bias_stride, -4), QKV_ERR_STRIDE,
            "distance_bias_stride = -4 is negative");
    REFUSED(OF(d.distance_bias, w->lse), QKV_ERR_ARGUMENT,
            "lse, an output, overlaps distance_bias");
#undef OF
    world *w = fresh();
    static float gradient[4 * H];
    w->grads.d_distance_bias = gradient;
    backward(w, QKV_ERR_ARGUMENT, "d_distance_bias is set without QKV_SET_DISTANCE_BIAS");
    w->d.flags = flag;
    w->d.distance_bias = numbers;
    w->d.distance_after = 3;
    w->grads.d_distance_bias_stride = 3;
    backward(w, QKV_ERR_STRIDE,
             "d_distance_bias_stride[2] = 3 is less than 4, the elements that it steps over: rows "
             "would overlap");
    w->grads.d_distance_bias_stride = -1;
    backward(w, QKV_ERR_STRIDE, "d_distance_bias_stride = -1 is negative");
    w->grads.d_distance_bias_stride = 4;
    backward(w, QKV_OK, "");
}

static void segments_slopes_and_sinks(void **state) {
    (void)state;
    static const int32_t ids[B * LK + 1];
    static const float numbers[H + 1];
    REFUSED(w->d.flags = QKV_SET_SEGMENTS, QKV_ERR_ARGUMENT,
            "seg_q is NULL, but QKV_SET_SEGMENTS is set");
    REFUSED((w->d.flags = QKV_SET_SEGMENTS, w->d.seg_q = ids), QKV_ERR_ARGUMENT,
            "seg_k is NULL, but QKV_SET_SEGMENTS is set");
    REFUSED((w->d.flags = QKV_SET_SEGMENTS, w->d.seg_q = w->d.seg_k = ids, w->d.seg_k_stride = -1),
            QKV_ERR_STRIDE, "seg_k_stride[0] = -1 is negative");
    REFUSED((w->d.flags = QKV_SET_SEGMENTS, w->d.seg_q = ids,
             w->d.seg_k = (const int32_t *)((const char *)ids + 2)),
            QKV_ERR_ARGUMENT, "seg_k is not aligned to its element, 4 bytes");
    ACCEPTED(
        (w->d.flags = QKV_SET_SEGMENTS, w->d.seg_q = w->d.seg_k = ids, w->d.seg_k_stride = LK));
    REFUSED((w->d.flags = QKV_SET_SEGMENTS, w->d.seg_q = (const int32_t *)(const void *)w->o,
             w->d.seg_k = ids),
            QKV_ERR_ARGUMENT, "o, an output, overlaps seg_q");
    REFUSED(w->d.flags = QKV_SET_ALIBI, QKV_ERR_ARGUMENT,
            "alibi_slopes is NULL, but QKV_SET_ALIBI is set");
    REFUSED(w->d.flags = QKV_SET_DISTANCE_BIAS, QKV_ERR_ARGUMENT,
            "distance_bias is NULL, but QKV_SET_DISTANCE_BIAS is set");
    REFUSED(w->d.flags = QKV_SET_SINKS, QKV_ERR_ARGUMENT,
            "sinks is NULL, but QKV_SET_SINKS is set");
    REFUSED((w->d.flags = QKV_SET_SINKS, w->d.sinks = w->lse), QKV_ERR_ARGUMENT,
            "lse, an output, overlaps sinks");
    ACCEPTED(
        (w->d.flags = QKV_SET_ALIBI | QKV_SET_SINKS, w->d.alibi_slopes = w->d.sinks = numbers));
    world *w = fresh();
    static float d_sinks[H];
    w->grads.d_sinks = d_sinks;
    backward(w, QKV_ERR_ARGUMENT, "d_sinks is set without QKV_SET_SINKS");
    w->d.flags = QKV_SET_SINKS;
    w->d.sinks = d_sinks;
    backward(w, QKV_ERR_ARGUMENT, "d_sinks, an output, overlaps sinks");
    w->d.sinks = numbers;
    backward(w, QKV_OK, "");
}

static void bit_masks(void **state) {
    (void)state;
    world *w = masked(QKV_MASK_BITS);
    w->d.mask_stride[2] = 1;
    forward(w, QKV_OK, "");
    w->d.mask_stride[3] = 2;
    forward(w, QKV_ERR_STRIDE, "mask_stride[3] = 2 is not 1, the bits of a row are dense");
    w->d.mask_len_k = 1;
    forward(w, QKV_OK, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_and_chunks),
        cmocka_unit_test(distances),
        cmocka_unit_test(segments_slopes_and_sinks),
        cmocka_unit_test(bit_masks),
        cmocka_unit_test(a_right_problem_passes),
        cmocka_unit_test(versions),
        cmocka_unit_test(AT03_AT09_AT10_sizes),
        cmocka_unit_test(AT11_AT16_numbers),
        cmocka_unit_test(AT03_lengths),
        cmocka_unit_test(AT12_masks),
        cmocka_unit_test(AT01_AT07_pointers),
        cmocka_unit_test(AT03_AT04_strides),
        cmocka_unit_test(AT06_overlaps),
        cmocka_unit_test(AT06_packed_columns_are_apart),
        cmocka_unit_test(AT01_AT06_merging),
        cmocka_unit_test(AT15_AT16_who_sees_whom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
