/*
 * Arguments that no call may have (AT01, AT03, AT04, AT09, AT10, AT11): forward, backward, merge
 * and the two workspace queries each refuse them with the status and the text that are written
 * here, and write nothing. What descriptors mean is in test_attn_desc.c; addresses are in
 * test_attention_addresses_hostile.c.
 */
#include "attn/attention_world.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* AddressSanitizer would end the program at an allocation that it finds too large. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

/* ---- AT01: NULL ------------------------------------------------------------------------------ */

static void AT01_null_arrays_of_forward(void **state) {
    (void)state;
    const qkv_status no = QKV_ERR_ARGUMENT;
    REFUSE(COMPUTE, w->q = NULL, no, "q is NULL, but has the shape [2][4][3][8]");
    REFUSE(COMPUTE, w->k = NULL, no, "k is NULL, but has the shape [2][2][5][8]");
    REFUSE(COMPUTE, w->v = NULL, no, "v is NULL, but has the shape [2][2][5][6]");
    REFUSE(FORWARD | MERGE, w->o = NULL, no, "o is NULL, but has the shape [2][4][3][6]");
    ACCEPT(FORWARD | MERGE, w->lse = NULL);
}

static void AT01_null_arrays_of_backward(void **state) {
    (void)state;
    const qkv_status no = QKV_ERR_ARGUMENT;
    REFUSE(BACKWARD, w->saved_o = NULL, no, "o is NULL, but has the shape [2][4][3][6]");
    REFUSE(BACKWARD, w->saved_lse = NULL, no, "lse is NULL, but has the shape [2][4][3][1]");
    REFUSE(BACKWARD, w->g.d_o = NULL, no, "d_o is NULL, but has the shape [2][4][3][6]");
    REFUSE(BACKWARD, w->g.d_q = NULL, no, "d_q is NULL, but has the shape [2][4][3][8]");
    REFUSE(BACKWARD, w->g.d_k = NULL, no, "d_k is NULL, but has the shape [2][2][5][8]");
    REFUSE(BACKWARD, w->g.d_v = NULL, no, "d_v is NULL, but has the shape [2][2][5][6]");
    ACCEPT(BACKWARD, w->g.d_lse = NULL);
}

static void AT01_null_parts_of_merge(void **state) {
    (void)state;
    const qkv_status no = QKV_ERR_ARGUMENT;
    REFUSE(MERGE, w->o_parts_at = NULL, no, "o_parts is NULL");
    REFUSE(MERGE, w->lse_parts_at = NULL, no, "lse_parts is NULL");
    REFUSE(MERGE, w->o_parts[0] = NULL, no, "o_parts[0] is NULL, but has the shape [2][4][3][6]");
    REFUSE(MERGE, w->o_parts[1] = NULL, no, "o_parts[1] is NULL, but has the shape [2][4][3][6]");
    REFUSE(MERGE, w->lse_parts[0] = NULL, no,
           "lse_parts[0] is NULL, but has the shape [2][4][3][1]");
    REFUSE(MERGE, w->lse_parts[1] = NULL, no,
           "lse_parts[1] is NULL, but has the shape [2][4][3][1]");
    REFUSE(MERGE, w->n_parts = 0, no, "n_parts = 0 is less than 1");
    REFUSE(MERGE, w->n_parts = INT32_MIN, no, "n_parts = -2147483648 is less than 1");
}

static void AT01_null_structs(void **state) {
    (void)state;
    REFUSE(EVERY, w->no_desc = true, QKV_ERR_ARGUMENT, "desc is NULL");
    REFUSE(BACKWARD, w->no_grads = true, QKV_ERR_ARGUMENT, "grads is NULL");
    REFUSE(QUERIES, w->bytes = NULL, QKV_ERR_ARGUMENT, "bytes is NULL");
    REFUSE(EVERY, (w->d.flags = QKV_SET_KV_LEN, w->d.kv_len = NULL), QKV_ERR_ARGUMENT,
           "kv_len is NULL, but QKV_SET_KV_LEN is set");
    REFUSE(EVERY, (w->d.flags = QKV_SET_Q_LEN, w->d.q_len = NULL), QKV_ERR_ARGUMENT,
           "q_len is NULL, but QKV_SET_Q_LEN is set");
    for (int type = QKV_MASK_BOOL; type <= QKV_MASK_F32; type++) {
        world *w = fresh_masked((qkv_mask_type)type);
        w->d.mask = NULL;
        refuse(w, COMPUTE, QKV_ERR_ARGUMENT, "mask is NULL, but has the shape [2][4][3][5]");
        accept(w, QUERIES); /* pointers do not matter there */
    }
}

static void AT01_null_context(void **state) {
    (void)state;
    qkv_ctx *const kept = world_ctx;
    world *w = fresh();
    static world before; /* too large for a stack */
    before = *w;
    world_ctx = NULL;
    for (int which = 1; which < EVERY; which *= 2)
        if (world_call(w, which) != QKV_ERR_ARGUMENT) fail_msg("%s", call_name(which));
    world_ctx = kept;
    assert_memory_equal(w, &before, sizeof before);
}

static void AT01_call_options_may_be_null(void **state) {
    (void)state;
    world *w = fresh();
    assert_int_equal(qkv_attention_forward(world_ctx, &w->d, w->q, w->k, w->v, w->o, w->lse, NULL),
                     QKV_OK);
    assert_int_equal(qkv_attention_backward(world_ctx, &w->d, w->q, w->k, w->v, w->saved_o,
                                            w->saved_lse, &w->g, NULL),
                     QKV_OK);
}

/* Pointers of arrays without elements are not looked at, whatever their strides. */
static void AT01_null_is_fine_without_elements(void **state) {
    (void)state;
    ACCEPT(COMPUTE, (w->d.len_k = 0, w->k = w->v = NULL, w->g.d_k = w->g.d_v = NULL));
    ACCEPT(COMPUTE, (w->d.n_heads = w->d.n_kv_heads = 0, w->q = w->k = w->v = NULL));
    ACCEPT(COMPUTE, (w->d.head_dim = 0, w->q = w->k = NULL, w->g.d_q = w->g.d_k = NULL));
    for (int size = 0; size < 3; size++) { /* o and its like are empty, too */
        world *w = fresh();
        if (size == 0) w->d.head_dim_v = 0;
        if (size == 1) w->d.len_q = 0;
        if (size == 2) w->d.n_batch = 0;
        w->o = NULL, w->saved_o = NULL, w->g.d_o = NULL;
        for (int n = 0; n < PARTS; n++) w->o_parts[n] = NULL;
        if (size == 0) w->v = NULL, w->g.d_v = NULL;
        if (size >= 1) {
            w->lse = NULL, w->saved_lse = NULL, w->g.d_q = NULL;
            for (int n = 0; n < PARTS; n++) w->lse_parts[n] = NULL;
        }
        if (size == 2) w->q = w->k = w->v = NULL, w->g.d_k = w->g.d_v = NULL;
        accept(w, EVERY);
    }
}

/* ---- AT03: negative sizes and strides -------------------------------------------------------- */

static int64_t *size_of(world *w, int n) {
    int64_t *const sizes[] = { &w->d.n_batch, &w->d.n_heads,  &w->d.n_kv_heads, &w->d.len_q,
                               &w->d.len_k,   &w->d.head_dim, &w->d.head_dim_v };
    return sizes[n];
}
static const char *const SIZES[] = { "n_batch", "n_heads",  "n_kv_heads", "len_q",
                                     "len_k",   "head_dim", "head_dim_v" };

static void AT03_negative_sizes(void **state) {
    (void)state;
    static const int64_t bad[] = { -1, -7, INT32_MIN, INT64_MIN };
    for (int n = 0; n < 7; n++)
        for (int b = 0; b < 4; b++) {
            char text[128];
            world *w = fresh();
            *size_of(w, n) = bad[b];
            snprintf(text, sizeof text, "%s = %" PRId64 " is negative", SIZES[n], bad[b]);
            refuse(w, EVERY, QKV_ERR_SHAPE, text);
        }
    world *w = fresh_masked(QKV_MASK_BOOL);
    w->d.mask_len_k = -1;
    refuse(w, EVERY, QKV_ERR_SHAPE, "mask_len_k = -1 is negative");
}

static void AT03_negative_lengths(void **state) {
    (void)state;
    for (int b = 0; b < B; b++) {
        char text[128];
        world *w = fresh();
        w->d.flags = QKV_SET_KV_LEN;
        w->d.kv_len = w->lengths;
        w->lengths[b] = -1;
        snprintf(text, sizeof text, "kv_len[%d] = -1 is not in [0, 5]", b);
        refuse(w, EVERY, QKV_ERR_SHAPE, text);
        w->lengths[b] = LK + 1;
        snprintf(text, sizeof text, "kv_len[%d] = 6 is not in [0, 5]", b);
        refuse(w, EVERY, QKV_ERR_SHAPE, text);
        w->d.flags = QKV_SET_Q_LEN;
        w->d.q_len = w->lengths;
        snprintf(text, sizeof text, "q_len[%d] = 6 is not in [0, 3]", b);
        refuse(w, EVERY, QKV_ERR_SHAPE, text);
        w->lengths[b] = INT64_MIN;
        snprintf(text, sizeof text, "q_len[%d] = -9223372036854775808 is not in [0, 3]", b);
        refuse(w, EVERY, QKV_ERR_SHAPE, text);
    }
}

/* Every array with the calls that look at its strides. A size is that of the dimension. */
typedef struct strided {
    const char *name;
    int calls;
    int64_t *stride;
    int n_strides;
    int64_t size[4];
} strided;

enum { ARRAYS = 10 };

static strided array_of(world *w, int n) {
    const int with_o = FORWARD | QUERIES;
    const strided arrays[ARRAYS] = {
        { "q", COMPUTE | QUERIES, w->d.q_stride, 3, { B, H, LQ, D } },
        { "k", COMPUTE | QUERIES, w->d.k_stride, 3, { B, G, LK, D } },
        { "v", COMPUTE | QUERIES, w->d.v_stride, 3, { B, G, LK, DV } },
        { "o", with_o | BACKWARD | MERGE, w->d.o_stride, 3, { B, H, LQ, DV } },
        { "lse", COMPUTE | MERGE, w->d.lse_stride, 3, { B, H, LQ, 1 } },
        { "d_o", BACKWARD, w->g.d_o_stride, 3, { B, H, LQ, DV } },
        { "d_q", BACKWARD, w->g.d_q_stride, 3, { B, H, LQ, D } },
        { "d_k", BACKWARD, w->g.d_k_stride, 3, { B, G, LK, D } },
        { "d_v", BACKWARD, w->g.d_v_stride, 3, { B, G, LK, DV } },
        { "mask", COMPUTE | QUERIES, w->d.mask_stride, 4, { B, H, LQ, LK } },
    };
    return arrays[n];
}

static world *fresh_for(int n) { return n == 9 ? fresh_masked(QKV_MASK_F32) : fresh(); }

static void AT03_negative_strides(void **state) {
    (void)state;
    static const int64_t bad[] = { -1, -8, INT64_MIN };
    for (int n = 0; n < ARRAYS; n++)
        for (int s = 0; s < array_of(fresh(), n).n_strides; s++)
            for (int b = 0; b < 3; b++) {
                char text[128];
                world *w = fresh_for(n);
                const strided a = array_of(w, n);
                a.stride[s] = bad[b];
                snprintf(text, sizeof text, "%s_stride[%d] = %" PRId64 " is negative", a.name, s,
                         bad[b]);
                refuse(w, a.calls, QKV_ERR_STRIDE, text);
            }
}

/* ---- AT04: products that overflow ------------------------------------------------------------ */

/* Each stride alone times its size overflows, first 64 bits, then the address space. */
static void AT04_stride_times_size(void **state) {
    (void)state;
    for (int n = 0; n < ARRAYS; n++)
        for (int s = 0; s < array_of(fresh(), n).n_strides; s++)
            for (int much = 0; much < 2; much++) {
                char text[160];
                world *w = fresh_for(n);
                const strided a = array_of(w, n);
                const int64_t steps = a.size[s] - 1;
                a.stride[s] = much ? INT64_MAX : (INT64_MAX / 8) / steps + 1;
                snprintf(text, sizeof text,
                         "%s_stride[%d] = %" PRId64 " times %" PRId64
                         " overflows the address space",
                         a.name, s, a.stride[s], steps);
                refuse(w, a.calls, QKV_ERR_STRIDE, text);
            }
}

/* No stride is too large, but their sum is. */
static void AT04_sums_of_strides(void **state) {
    (void)state;
    const int64_t third = INT64_MAX / 24;
    REFUSE(
        COMPUTE | QUERIES,
        (w->d.q_stride[0] = 2 * third, w->d.q_stride[1] = third / 3, w->d.q_stride[2] = third / 2),
        QKV_ERR_STRIDE, "q_stride[0] = 768614336404564650 times 1 overflows the address space");
}

static void AT04_sizes(void **state) {
    (void)state;
    const int64_t most = (int64_t)1 << 48;
    for (int n = 0; n < 7; n++) {
        char text[160];
        const int64_t limit = n >= 5 ? 65536 : most;
        world *w = fresh();
        *size_of(w, n) = limit + 1;
        snprintf(text, sizeof text, "%s = %" PRId64 " is greater than %" PRId64, SIZES[n],
                 limit + 1, limit);
        refuse(w, EVERY, QKV_ERR_SHAPE, text);
    }
    REFUSE(EVERY, w->d.len_q = w->d.n_batch = most, QKV_ERR_SHAPE,
           "n_batch * n_heads * len_q = 281474976710656 * 4 * 281474976710656 is greater than "
           "1152921504606846976");
    REFUSE(EVERY, w->d.len_k = w->d.n_batch = most, QKV_ERR_SHAPE,
           "n_batch * n_kv_heads * len_k = 281474976710656 * 2 * 281474976710656 is greater than "
           "1152921504606846976");
    REFUSE(EVERY, (w->d.len_q = 0, w->d.n_batch = w->d.n_heads = most), QKV_ERR_SHAPE,
           "n_batch * n_heads * len_q = 281474976710656 * 281474976710656 * 0 is greater than "
           "1152921504606846976");
}

/* The largest sizes beside a 0: nothing to do, and no product on the way overflows. */
static void AT04_huge_sizes_beside_a_zero(void **state) {
    (void)state;
    const int64_t most = (int64_t)1 << 48;
    const int64_t sizes[][2] = { { 0, most }, { 16, 0 }, { most, 0 } }; /* batches, heads */
    for (int n = 0; n < 3; n++) {
        world *w = fresh();
        qkv_attention_desc_contiguous(&w->d, sizes[n][0], sizes[n][1], sizes[n][1] / 4, most, most,
                                      65536, 65536);
        qkv_attention_grads_contiguous(&w->g, &w->d);
        w->q = w->k = w->v = w->saved_o = NULL;
        w->saved_lse = NULL;
        w->o = NULL;
        w->lse = NULL;
        for (int part = 0; part < PARTS; part++) w->o_parts[part] = w->lse_parts[part] = NULL;
        accept(w, MERGE);
        for (int a = 0; a < 3; a++) w->d.q_stride[a] = w->d.k_stride[a] = w->d.v_stride[a] = 0;
        for (int a = 0; a < 3; a++) w->d.o_stride[a] = w->d.lse_stride[a] = 0;
        qkv_attention_grads_contiguous(&w->g, &w->d);
        accept(w, MERGE | FORWARD | BACKWARD | QUERIES);
        w->d.q_stride[2] = INT64_MAX; /* leads nowhere */
        accept(w, MERGE | FORWARD | BACKWARD | QUERIES);
        w->d.flags |= QKV_SET_BLOCK_MASK; /* without a list */
        w->d.block_len = 32;
        w->d.block_offsets = NULL;
        w->d.block_offsets_stride[0] = w->d.block_offsets_stride[1] = 1;
        accept(w, FORWARD | BACKWARD | QUERIES);
    }
}

/* Legal sizes, inputs that repeat, and a workspace beyond any memory. */
static void AT04_workspaces_that_do_not_fit(void **state) {
    (void)state;
    enum { ROW = 65536 };
    char text[128];
    float *const v = calloc(2 * ROW, sizeof *v), *const o = v + ROW;
    world *huge = fresh();
    assert_non_null(v);
    huge->d.n_batch = huge->d.n_heads = huge->d.n_kv_heads = huge->d.len_q = 1;
    huge->d.len_k = (int64_t)1 << 48;
    huge->d.head_dim_v = ROW;
    for (int n = 0; n < 3; n++) huge->d.k_stride[n] = huge->d.v_stride[n] = 0;
    for (int n = 0; n < 3; n++) huge->d.o_stride[n] = ROW;
    huge->v = v;
    huge->o = o;
    refuse(huge, FORWARD | FORWARD_BYTES, QKV_ERR_MEMORY,
           "the workspace does not fit the address space");
    huge->d.head_dim_v = 64;
    accept(huge, FORWARD_BYTES); /* the formula has an answer */
    snprintf(text, sizeof text, "no memory for %zu bytes of workspace", huge->out.bytes);
    refuse(huge, FORWARD, QKV_ERR_MEMORY, text);
    for (int c = 0; c < ROW; c++) assert_true(o[c] == 0);
    free(v);
    ACCEPT(COMPUTE, (void)w); /* the context has survived it */
}

/* Rows of outputs that would lie on each other. */
static void AT04_outputs_without_room(void **state) {
    (void)state;
    static const int outputs[] = { 3, 4, 6, 7, 8 };
    for (int n = 0; n < 5; n++)
        for (int s = 0; s < 3; s++) {
            world *w = fresh();
            const strided a = array_of(w, outputs[n]);
            char text[160];
            a.stride[s] = 0;
            snprintf(text, sizeof text,
                     "%s_stride[%d] = 0 is less than 1, the elements that it steps over: rows "
                     "would overlap",
                     a.name, s);
            const int written = outputs[n] < 5 ? a.calls & ~(BACKWARD | BACKWARD_BYTES) : a.calls;
            refuse(w, written, QKV_ERR_STRIDE, text);
        }
}

/* ---- AT09, AT10, AT11 ------------------------------------------------------------------------ */

static void AT09_heads_that_do_not_divide(void **state) {
    (void)state;
    REFUSE(EVERY, w->d.n_kv_heads = 3, QKV_ERR_SHAPE,
           "n_heads = 4 is not a multiple of n_kv_heads = 3");
    REFUSE(EVERY, w->d.n_kv_heads = 8, QKV_ERR_SHAPE,
           "n_heads = 4 is not a multiple of n_kv_heads = 8");
    REFUSE(EVERY, w->d.n_kv_heads = 0, QKV_ERR_SHAPE,
           "n_heads = 4 is not a multiple of n_kv_heads = 0");
}

static void AT10_types_and_dimensions(void **state) {
    (void)state;
    static const char *const none = "dtype = %d is none of QKV_F32, QKV_BF16, QKV_F16";
    static const int types[] = { 3, 4, 7, -1, INT32_MIN, INT32_MAX };
    for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
        char text[160];
        snprintf(text, sizeof text, none, types[n]);
        REFUSE(EVERY, w->d.dtype = (qkv_dtype)types[n], QKV_ERR_DTYPE, text);
        snprintf(text, sizeof text, "o_dtype = %d is neither QKV_F32 nor dtype = 0", types[n]);
        REFUSE(EVERY, (w->d.flags = QKV_SET_O_DTYPE, w->d.o_dtype = (qkv_dtype)types[n]),
               QKV_ERR_DTYPE, text);
        ACCEPT(EVERY, w->d.o_dtype = (qkv_dtype)types[n]); /* no flag */
        if (types[n] == QKV_CLASS_AMX) continue;
        snprintf(text, sizeof text,
                 "arithmetic = %d is none of QKV_CLASS_AUTO, QKV_CLASS_F32, QKV_CLASS_DP, "
                 "QKV_CLASS_AMX",
                 types[n]);
        REFUSE(EVERY, w->d.arithmetic = (qkv_class)types[n], QKV_ERR_ARGUMENT, text);
    }
    REFUSE(EVERY, (w->d.flags = QKV_SET_O_DTYPE, w->d.dtype = QKV_BF16, w->d.o_dtype = QKV_F16),
           QKV_ERR_DTYPE, "o_dtype = 2 is neither QKV_F32 nor dtype = 1");
    REFUSE(EVERY, (w->d.flags = QKV_SET_O_DTYPE, w->d.o_dtype = QKV_BF16), QKV_ERR_DTYPE,
           "o_dtype = 1 is neither QKV_F32 nor dtype = 0");
    REFUSE(EVERY, w->d.arithmetic = QKV_CLASS_DP, QKV_ERR_UNSUPPORTED,
           "arithmetic = QKV_CLASS_DP needs dtype = QKV_BF16, not 0");
    REFUSE(EVERY, (w->d.arithmetic = QKV_CLASS_DP, w->d.dtype = QKV_F16), QKV_ERR_UNSUPPORTED,
           "arithmetic = QKV_CLASS_DP needs dtype = QKV_BF16, not 2");
    REFUSE(EVERY, w->d.arithmetic = QKV_CLASS_AMX, QKV_ERR_UNSUPPORTED,
           "arithmetic = QKV_CLASS_AMX needs dtype = QKV_BF16, not 0");
    ACCEPT(EVERY, (w->d.arithmetic = QKV_CLASS_AMX, w->d.dtype = QKV_BF16));
    ACCEPT(EVERY, w->d.arithmetic = QKV_CLASS_F32);
    for (int type = QKV_BF16; type <= QKV_F16; type++) {
        ACCEPT(EVERY, w->d.dtype = (qkv_dtype)type);
        ACCEPT(EVERY, (w->d.flags = QKV_SET_O_DTYPE, w->d.dtype = (qkv_dtype)type));
    }
    REFUSE(EVERY, w->d.head_dim = 65537, QKV_ERR_SHAPE, "head_dim = 65537 is greater than 65536");
    REFUSE(EVERY, w->d.head_dim_v = 65537, QKV_ERR_SHAPE,
           "head_dim_v = 65537 is greater than 65536");
    world *w = fresh_masked(QKV_MASK_NONE);
    refuse(w, EVERY, QKV_ERR_DTYPE,
           "mask_type = 0 is none of QKV_MASK_BOOL, QKV_MASK_F32, QKV_MASK_BITS, "
           "QKV_MASK_BF16, QKV_MASK_F16");
    w = fresh_masked((qkv_mask_type)6);
    refuse(w, EVERY, QKV_ERR_DTYPE,
           "mask_type = 6 is none of QKV_MASK_BOOL, QKV_MASK_F32, QKV_MASK_BITS, "
           "QKV_MASK_BF16, QKV_MASK_F16");
    accept((w = fresh(), w->d.head_dim_v = 1, w), EVERY);
}

static void AT11_scales(void **state) {
    (void)state;
    static const float good[] = {
        0, -0.0f, 1, -1, 1e-30f, FLT_TRUE_MIN, -FLT_TRUE_MIN, FLT_MIN, FLT_MAX, -FLT_MAX
    };
    for (size_t n = 0; n < sizeof good / sizeof *good; n++)
        ACCEPT(EVERY, (w->d.flags = QKV_SET_SCALE, w->d.scale = good[n]));
    ACCEPT(EVERY, w->d.scale = NAN); /* the flag decides, not the value */
    REFUSE(EVERY, (w->d.flags = QKV_SET_SCALE, w->d.scale = NAN), QKV_ERR_ARGUMENT,
           "scale = nan is not finite");
    REFUSE(EVERY, (w->d.flags = QKV_SET_SCALE, w->d.scale = INFINITY), QKV_ERR_ARGUMENT,
           "scale = inf is not finite");
    REFUSE(EVERY, (w->d.flags = QKV_SET_SCALE, w->d.scale = -INFINITY), QKV_ERR_ARGUMENT,
           "scale = -inf is not finite");
    static const float caps[] = { 0, -0.0f, -1, INFINITY, NAN };
    static const char *const texts[] = { "0", "-0", "-1", "inf", "nan" };
    for (int n = 0; n < 5; n++) {
        char text[80];
        snprintf(text, sizeof text, "softcap = %s is not a finite number above 0", texts[n]);
        REFUSE(EVERY, (w->d.flags = QKV_SET_SOFTCAP, w->d.softcap = caps[n]), QKV_ERR_ARGUMENT,
               text);
    }
    ACCEPT(EVERY, (w->d.flags = QKV_SET_SOFTCAP, w->d.softcap = FLT_TRUE_MIN));
    ACCEPT(EVERY, (w->d.flags = QKV_SET_SOFTCAP, w->d.softcap = FLT_MAX));
}

static void AT17_dropout_out_of_range(void **state) {
    (void)state;
    static const float shares[] = { -FLT_TRUE_MIN, -1,       1 + FLT_EPSILON, 2,
                                    FLT_MAX,       INFINITY, -INFINITY,       NAN };
    for (size_t n = 0; n < sizeof shares / sizeof *shares; n++) {
        char text[160];
        snprintf(text, sizeof text, "dropout = %g is not in [0, 1]", (double)shares[n]);
        REFUSE(EVERY, (w->d.flags = QKV_SET_DROPOUT, w->d.dropout = shares[n]), QKV_ERR_ARGUMENT,
               text);
        ACCEPT(EVERY, w->d.dropout = shares[n]); /* no flag */
    }
    for (int n = 0; n <= 4; n++)
        ACCEPT(EVERY, (w->d.flags = QKV_SET_DROPOUT, w->d.dropout = (float)n / 4,
                       w->d.dropout_seed = UINT64_MAX));
    ACCEPT(EVERY, (w->d.flags = QKV_SET_DROPOUT, w->d.dropout = -0.0f));
}

/* ---- AT15, AT16: places ---------------------------------------------------------------------- */

static void AT15_offsets_out_of_range(void **state) {
    (void)state;
    const int64_t most = (int64_t)1 << 48;
    for (int sign = -1; sign <= 1; sign += 2) {
        char text[160];
        ACCEPT(EVERY,
               (w->d.flags = QKV_SET_Q_OFFSET | QKV_SET_CAUSAL, w->d.q_offset = sign * most));
        snprintf(text, sizeof text,
                 "q_offset = %" PRId64 " is not in [-281474976710656, 281474976710656]",
                 sign * (most + 1));
        REFUSE(EVERY, (w->d.flags = QKV_SET_Q_OFFSET, w->d.q_offset = sign * (most + 1)),
               QKV_ERR_SHAPE, text);
        world *w = fresh();
        w->d.flags = QKV_SET_Q_OFFSET;
        w->d.q_offsets = w->lengths;
        w->lengths[1] = sign * (most + 1);
        snprintf(text, sizeof text,
                 "q_offsets[1] = %" PRId64 " is not in [-281474976710656, 281474976710656]",
                 sign * (most + 1));
        refuse(w, EVERY, QKV_ERR_SHAPE, text);
    }
}

static void AT16_windows_out_of_range(void **state) {
    (void)state;
    REFUSE(EVERY, (w->d.flags = QKV_SET_WINDOW, w->d.window_left = -2), QKV_ERR_ARGUMENT,
           "window_left = -2 is less than -1 (unbounded)");
    REFUSE(EVERY, (w->d.flags = QKV_SET_WINDOW, w->d.window_right = INT64_MIN), QKV_ERR_ARGUMENT,
           "window_right = -9223372036854775808 is less than -1 (unbounded)");
    ACCEPT(EVERY, (w->d.flags = QKV_SET_WINDOW, w->d.window_left = w->d.window_right = INT64_MAX));
    ACCEPT(EVERY, w->d.window_left = INT64_MIN); /* no flag */
}

static void versions_and_flags(void **state) {
    (void)state;
    REFUSE(EVERY, w->d.flags = 1u << 19 | QKV_SET_CAUSAL, QKV_ERR_VERSION,
           "flags = 0x80004 has the unknown bits 0x80000");
    REFUSE(EVERY, w->d.flags = 1u << 31, QKV_ERR_VERSION,
           "flags = 0x80000000 has the unknown bits 0x80000000");
    world *w = fresh();
    char text[160];
    w->d.struct_size = 0;
    snprintf(text, sizeof text,
             "desc.struct_size = 0 is less than 12; fill the struct by its _init()");
    refuse(w, EVERY, QKV_ERR_ARGUMENT, text);
    w = fresh();
    w->g.struct_size = 0;
    snprintf(text, sizeof text,
             "grads.struct_size = 0 is less than 12; fill the struct by its _init()");
    refuse(w, BACKWARD, QKV_ERR_ARGUMENT, text);
    w = fresh();
    w->call.struct_size = 0;
    snprintf(text, sizeof text,
             "call.struct_size = 0 is less than 12; fill the struct by its _init()");
    refuse(w, COMPUTE, QKV_ERR_ARGUMENT, text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT01_null_arrays_of_forward),
        cmocka_unit_test(AT01_null_arrays_of_backward),
        cmocka_unit_test(AT01_null_parts_of_merge),
        cmocka_unit_test(AT01_null_structs),
        cmocka_unit_test(AT01_null_context),
        cmocka_unit_test(AT01_call_options_may_be_null),
        cmocka_unit_test(AT01_null_is_fine_without_elements),
        cmocka_unit_test(AT03_negative_sizes),
        cmocka_unit_test(AT03_negative_lengths),
        cmocka_unit_test(AT03_negative_strides),
        cmocka_unit_test(AT04_stride_times_size),
        cmocka_unit_test(AT04_sums_of_strides),
        cmocka_unit_test(AT04_sizes),
        cmocka_unit_test(AT04_huge_sizes_beside_a_zero),
        cmocka_unit_test(AT04_workspaces_that_do_not_fit),
        cmocka_unit_test(AT04_outputs_without_room),
        cmocka_unit_test(AT09_heads_that_do_not_divide),
        cmocka_unit_test(AT10_types_and_dimensions),
        cmocka_unit_test(AT11_scales),
        cmocka_unit_test(AT15_offsets_out_of_range),
        cmocka_unit_test(AT16_windows_out_of_range),
        cmocka_unit_test(AT17_dropout_out_of_range),
        cmocka_unit_test(versions_and_flags),
    };
    return cmocka_run_group_tests(tests, make_world_ctx, destroy_world_ctx);
}
