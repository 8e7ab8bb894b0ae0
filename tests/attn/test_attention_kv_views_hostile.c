/*
 * Invalid views of stored keys and values (AT20 and others): each is refused with the status and
 * the message written here, and nothing is written. Pages of keys that no query sees may be
 * missing.
 */
#include <stdio.h>
#include <string.h>

#include <qkv/kv.h>

#include "attn/attention_problem.h"

enum { B = 2, H = 4, G = 2, LQ = 2, LK = 40, D = 8, DV = 6, PAGE = 16, PAGES = 8, TABLE = 3 };

typedef struct world {
    problem p;
    float *k, *v; /* of the pages */
    int32_t pages[B * TABLE];
    int64_t first[B], kv_len[B];
    qkv_kv_view view;
} world;

static qkv_ctx *ctx;
static world w;

static void dense(void) {
    qkv_kv_view_contiguous(&w.view, &w.p.d, QKV_F32);
    w.view.k = w.p.k;
    w.view.v = w.p.v;
}

static void paged(void) {
    dense();
    w.view.k = w.k;
    w.view.v = w.v;
    w.view.k_stride[0] = G * PAGE * D;
    w.view.k_stride[1] = PAGE * D;
    w.view.v_stride[0] = G * PAGE * DV;
    w.view.v_stride[1] = PAGE * DV;
    w.view.page_len = PAGE;
    w.view.n_pages = PAGES;
    w.view.pages = w.pages;
    w.view.pages_stride = TABLE;
    for (int n = 0; n < B * TABLE; n++) w.pages[n] = n + 1;
}

static int fresh(void **state) {
    (void)state;
    rng r = { 5 };
    ctx = context_on(NULL, 2);
    w.p = problem_new(&r, B, H, G, LQ, LK, D, DV);
    w.k = normals(&r, PAGES * G * PAGE * D);
    w.v = normals(&r, PAGES * G * PAGE * DV);
    dense();
    return 0;
}

static int stale(void **state) {
    (void)state;
    problem_free(&w.p);
    free(w.k);
    free(w.v);
    qkv_ctx_free(ctx);
    return 0;
}

static qkv_status call(void) {
    for (int64_t n = 0; n < n_o(&w.p); n++) w.p.o[n] = 7;
    return qkv_attention_decode(ctx, &w.p.d, w.p.q, &w.view, w.p.o, w.p.lse, NULL);
}

static void refuse(qkv_status status, const char *text) {
    assert_int_equal(call(), status);
    assert_string_equal(qkv_ctx_message(ctx), text);
    for (int64_t n = 0; n < n_o(&w.p); n++) assert_true(w.p.o[n] == 7);
}

static void accept(void) {
    if (call() != QKV_OK) fail_msg("%s", qkv_ctx_message(ctx));
}

static void missing_parts(void **state) {
    (void)state;
    assert_int_equal(qkv_attention_decode(ctx, &w.p.d, w.p.q, NULL, w.p.o, NULL, NULL),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(qkv_ctx_message(ctx), "view is NULL");
    w.view.struct_size = 8;
    assert_int_equal(call(), QKV_ERR_ARGUMENT);
    dense();
    w.view.k = NULL;
    refuse(QKV_ERR_ARGUMENT, "view.k is NULL, but has the shape [2][2][40][8]");
    dense();
    w.view.v = (const char *)w.p.v + 1;
    refuse(QKV_ERR_ARGUMENT, "view.v is not aligned to its element, 4 bytes");
    paged();
    w.view.pages = NULL;
    refuse(QKV_ERR_ARGUMENT, "view.pages is NULL, but has the shape [2][1][1][3]");
    dense();
    w.view.dtype = (qkv_dtype)77;
    assert_int_equal(call(), QKV_ERR_DTYPE);
    dense();
    accept();
}

static void strides_that_lie(void **state) {
    (void)state;
    w.view.k_stride[2] = -8;
    refuse(QKV_ERR_STRIDE, "view.k_stride[2] = -8 is negative");
    dense();
    w.view.v_stride[1] = INT64_MAX;
    refuse(QKV_ERR_STRIDE,
           "view.v_stride[1] = 9223372036854775807 times 1 overflows the address space");
    dense();
    w.view.k_stride[0] = w.view.k_stride[1] = w.view.k_stride[2] = 0; /* one row for all */
    accept();
    paged();
    w.view.pages_stride = -1;
    refuse(QKV_ERR_STRIDE, "view.pages_stride[0] = -1 is negative");
    paged();
    w.view.pages_stride = 0;
    accept();
}

static void lengths_that_lie(void **state) {
    (void)state;
    paged();
    w.view.page_len = 24;
    refuse(QKV_ERR_SHAPE, "view.page_len = 24 is not a multiple of 16 in [0, 281474976710656]");
    w.view.page_len = -16;
    refuse(QKV_ERR_SHAPE, "view.page_len = -16 is not a multiple of 16 in [0, 281474976710656]");
    w.view.page_len = INT64_MIN;
    assert_int_equal(call(), QKV_ERR_SHAPE);
    w.view.page_len = (int64_t)1 << 60;
    assert_int_equal(call(), QKV_ERR_SHAPE);
    paged();
    w.view.n_pages = -1;
    refuse(QKV_ERR_SHAPE, "view.n_pages = -1 is not in [0, 2147483647]");
    paged();
    w.view.ring_len = 8;
    refuse(QKV_ERR_SHAPE, "view.ring_len = 8 is not a multiple of 16 in [0, 281474976710656]");
    w.view.page_len = 32;
    w.view.ring_len = 48;
    refuse(QKV_ERR_SHAPE, "view.ring_len = 48 is not a multiple of 32 in [0, 281474976710656]");
}

/* AT20: pages out of range are refused before anything is read, unless no query reads them. */
static void AT20_pages_out_of_range(void **state) {
    (void)state;
    static const int32_t bad[] = { -1, PAGES, INT32_MAX, INT32_MIN };
    char text[128];
    for (int n = 0; n < 4; n++)
        for (int at = 0; at < B * TABLE; at++) {
            paged();
            w.pages[at] = bad[n];
            snprintf(text, sizeof text, "view.pages[%d][%d] = %d is not in [0, 8)", at / TABLE,
                     at % TABLE, (int)bad[n]);
            refuse(QKV_ERR_SHAPE, text);
        }
    paged();
    w.kv_len[0] = 16;
    w.kv_len[1] = 0;
    w.p.d.flags = QKV_SET_KV_LEN;
    w.p.d.kv_len = w.kv_len;
    for (int n = 1; n < B * TABLE; n++) w.pages[n] = -1;
    accept();
    w.kv_len[0] = 17;
    refuse(QKV_ERR_SHAPE, "view.pages[0][1] = -1 is not in [0, 8)");
    w.view.n_pages = 0;
    assert_int_equal(call(), QKV_ERR_SHAPE);
}

/* AT20: the same page twice is legal for reading. */
static void AT20_pages_twice(void **state) {
    (void)state;
    paged();
    for (int n = 0; n < B * TABLE; n++) w.pages[n] = 3;
    accept();
}

static void AT20_what_a_ring_has_lost(void **state) {
    (void)state;
    w.view.ring_len = 32;
    w.view.k_stride[1] = 32 * D;
    w.view.v_stride[1] = 32 * DV;
    refuse(QKV_ERR_SHAPE, "batch 0 may see key 0, but its first one in the ring is 8");
    w.p.d.flags = QKV_SET_CAUSAL | QKV_SET_WINDOW | QKV_SET_Q_OFFSET;
    w.p.d.q_offset = LK - LQ;
    w.p.d.window_left = 31;
    refuse(QKV_ERR_SHAPE, "batch 0 may see key 7, but its first one in the ring is 8");
    w.p.d.window_left = 30;
    accept();
    w.first[0] = w.first[1] = 9;
    w.view.first = w.first;
    refuse(QKV_ERR_SHAPE, "batch 0 may see key 8, but its first one in the ring is 9");
    w.view.first = NULL;
    dense();
    w.view.first = w.first;
    w.p.d.flags = 0;
    refuse(QKV_ERR_SHAPE, "batch 0 may see key 0, but its first one that is there is 9");
}

static void outputs_over_keys(void **state) {
    (void)state;
    float *const o = w.p.o;
    w.p.o = w.p.k;
    assert_int_equal(qkv_attention_decode(ctx, &w.p.d, w.p.q, &w.view, w.p.k, NULL, NULL),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(qkv_ctx_message(ctx), "o, an output, overlaps view.k");
    w.p.o = o;
}

static void what_decode_has_not(void **state) {
    (void)state;
    w.p.d.flags = QKV_SET_DROPOUT;
    refuse(QKV_ERR_UNSUPPORTED, "QKV_SET_DROPOUT: decode has no dropout");
}

/* Sizes that no memory has: an error, at once. */
static void huge_sizes(void **state) {
    (void)state;
    size_t bytes = 0;
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, 1, (int64_t)1 << 48, 1, 1);
    assert_int_equal(qkv_attention_decode_workspace(ctx, &d, &bytes), QKV_OK);
    assert_int_equal(qkv_attention_decode_workspace(ctx, &d, NULL), QKV_ERR_ARGUMENT);
    qkv_attention_desc_contiguous(&d, 0, (int64_t)1 << 48, 1, (int64_t)1 << 48, 1 << 20, 1, 1);
    assert_int_equal(qkv_attention_decode_workspace(ctx, &d, &bytes), QKV_OK);
    qkv_attention_desc_contiguous(&d, 1 << 10, 1 << 10, 1, 1 << 20, 1 << 20, 65536, 65536);
    assert_int_equal(qkv_attention_decode_workspace(ctx, &d, &bytes), QKV_OK);
    d.k_stride[2] = -1; /* not used */
    assert_int_equal(qkv_attention_decode_workspace(ctx, &d, &bytes), QKV_OK);
}

/* As many batches as there can be, without a head or without a channel: nothing to do, at once. */
static void huge_batches_of_nothing(void **state) {
    (void)state;
    for (int n_heads = 0; n_heads < 2; n_heads++) {
        qkv_attention_desc d;
        qkv_kv_view view;
        qkv_attention_desc_contiguous(&d, (int64_t)1 << 48, n_heads, n_heads, 1, 1, 0, 0);
        qkv_kv_view_contiguous(&view, &d, QKV_F32);
        assert_int_equal(qkv_attention_decode(ctx, &d, NULL, &view, NULL, NULL, NULL), QKV_OK);
    }
}

/* A cancelled call says so; a workspace of the queried size is enough, a byte less is not. */
static void calls(void **state) {
    (void)state;
    const int raised = 1;
    size_t bytes = 0;
    qkv_call_options options = qkv_call_options_init();
    options.cancel = &raised;
    assert_int_equal(qkv_attention_decode(ctx, &w.p.d, w.p.q, &w.view, w.p.o, NULL, &options),
                     QKV_ERR_CANCELLED);
    options.cancel = NULL;
    assert_int_equal(qkv_attention_decode_workspace(ctx, &w.p.d, &bytes), QKV_OK);
    options.workspace = aligned_alloc(64, bytes);
    assert_non_null(options.workspace);
    options.workspace_bytes = bytes;
    assert_int_equal(qkv_attention_decode(ctx, &w.p.d, w.p.q, &w.view, w.p.o, NULL, &options),
                     QKV_OK);
    options.workspace_bytes = bytes - 1;
    assert_int_equal(qkv_attention_decode(ctx, &w.p.d, w.p.q, &w.view, w.p.o, NULL, &options),
                     QKV_ERR_ARGUMENT);
    free(options.workspace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(missing_parts, fresh, stale),
        cmocka_unit_test_setup_teardown(strides_that_lie, fresh, stale),
        cmocka_unit_test_setup_teardown(lengths_that_lie, fresh, stale),
        cmocka_unit_test_setup_teardown(AT20_pages_out_of_range, fresh, stale),
        cmocka_unit_test_setup_teardown(AT20_pages_twice, fresh, stale),
        cmocka_unit_test_setup_teardown(AT20_what_a_ring_has_lost, fresh, stale),
        cmocka_unit_test_setup_teardown(outputs_over_keys, fresh, stale),
        cmocka_unit_test_setup_teardown(what_decode_has_not, fresh, stale),
        cmocka_unit_test_setup_teardown(huge_sizes, fresh, stale),
        cmocka_unit_test_setup_teardown(huge_batches_of_nothing, fresh, stale),
        cmocka_unit_test_setup_teardown(calls, fresh, stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
