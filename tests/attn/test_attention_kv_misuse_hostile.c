/*
 * AT20: misuse of a cache of keys and values. Each call is refused with the status and the message
 * written here, and the cache is unchanged.
 */
#include <stdio.h>
#include <string.h>

#include <qkv/kv.h>

#include "attn/attention_problem.h"

enum { S = 3, G = 2, D = 8, DV = 6, PAGE = 16, PAGES = 4, MOST = 64 };

static qkv_ctx *ctx;
static qkv_kv_cache *cache;
static float k[G * MOST * D], v[G * MOST * DV];

static qkv_kv_cache_options sizes(void) {
    qkv_kv_cache_options o = qkv_kv_cache_options_init();
    o.n_sequences = S;
    o.n_kv_heads = G;
    o.head_dim = D;
    o.head_dim_v = DV;
    o.page_len = PAGE;
    o.n_pages = PAGES;
    return o;
}

static void make(int64_t ring_len) {
    qkv_kv_cache_options o = sizes();
    o.ring_len = ring_len;
    qkv_kv_cache_free(cache);
    assert_int_equal(qkv_kv_cache_create(ctx, &o, &cache), QKV_OK);
}

static int fresh(void **state) {
    (void)state;
    ctx = context_on(NULL, 1);
    make(0);
    return 0;
}

static int stale(void **state) {
    (void)state;
    qkv_kv_cache_free(cache);
    cache = NULL;
    qkv_ctx_free(ctx);
    return 0;
}

static qkv_status append(int64_t s, int64_t n) {
    return qkv_kv_cache_append(ctx, cache, s, n, QKV_F32, k, NULL, v, NULL);
}

static void refused(qkv_status status, qkv_status expected, const char *text) {
    assert_string_equal(qkv_ctx_message(ctx), text);
    assert_int_equal(status, expected);
}

static void refuse_sizes(qkv_kv_cache_options o, qkv_status expected, const char *text) {
    qkv_kv_cache *made = cache;
    refused(qkv_kv_cache_create(ctx, &o, &made), expected, text);
    assert_null(made);
}

static void sizes_that_lie(void **state) {
    (void)state;
    qkv_kv_cache_options o = sizes();
    o.n_sequences = 0;
    refuse_sizes(o, QKV_ERR_SHAPE, "n_sequences = 0 is not in [1, 2147483647]");
    o = sizes();
    o.n_kv_heads = -1;
    refuse_sizes(o, QKV_ERR_SHAPE, "n_kv_heads = -1 is not in [1, 1048576]");
    o = sizes();
    o.head_dim_v = 65537;
    refuse_sizes(o, QKV_ERR_SHAPE, "head_dim_v = 65537 is not in [0, 65536]");
    o = sizes();
    o.page_len = 40;
    refuse_sizes(o, QKV_ERR_SHAPE, "page_len = 40 is not a multiple of 16");
    o = sizes();
    o.ring_len = 24;
    refuse_sizes(o, QKV_ERR_SHAPE, "ring_len = 24 is not a multiple of page_len = 16");
    o.ring_len = 80;
    refuse_sizes(o, QKV_ERR_SHAPE, "ring_len = 80 is not in [0, 64]");
    o = sizes();
    o.max_len = 65;
    refuse_sizes(o, QKV_ERR_SHAPE, "max_len = 65 is not in [1, 64]");
    o = sizes();
    o.dtype = (qkv_dtype)4;
    refuse_sizes(o, QKV_ERR_DTYPE, "dtype = 4 is none of QKV_F32, QKV_BF16, QKV_F16, QKV_I8");
    o = sizes();
    o.head_dim = 65536;
    o.n_kv_heads = 1 << 20;
    o.page_len = 1 << 20;
    o.n_pages = INT32_MAX;
    refuse_sizes(o, QKV_ERR_MEMORY, "the cache does not fit the address space");
    qkv_kv_cache *none;
    assert_int_equal(qkv_kv_cache_create(ctx, NULL, &none), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_kv_cache_create(ctx, &o, NULL), QKV_ERR_ARGUMENT);
    qkv_kv_cache_free(NULL);
}

static void AT20_append_past_capacity(void **state) {
    (void)state;
    assert_int_equal(append(0, 33), QKV_OK); /* three pages of four */
    refused(append(1, 17), QKV_ERR_SHAPE, "n = 17 needs 2 more pages, but 1 of 4 are free");
    assert_int_equal(qkv_kv_cache_len(cache, 1), 0);
    assert_int_equal(qkv_kv_cache_free_pages(cache), 1);
    assert_int_equal(append(1, 16), QKV_OK);
    assert_int_equal(append(0, 15), QKV_OK);
    refused(append(0, 1), QKV_ERR_SHAPE, "n = 1 needs 1 more pages, but 0 of 4 are free");
    refused(append(0, 17), QKV_ERR_SHAPE, "n = 17 after 48 tokens is more than max_len = 64");
    refused(append(0, INT64_MAX), QKV_ERR_SHAPE,
            "n = 9223372036854775807 is not in [0, 281474976710656]");
    refused(append(0, -1), QKV_ERR_SHAPE, "n = -1 is not in [0, 281474976710656]");
    assert_int_equal(append(0, 0), QKV_OK);
    assert_int_equal(qkv_kv_cache_len(cache, 0), 48);
}

/* A fork costs nothing until it writes; then it needs a page for the copy. */
static void AT20_copies_need_pages(void **state) {
    (void)state;
    assert_int_equal(append(0, 40), QKV_OK);
    assert_int_equal(qkv_kv_cache_fork(ctx, cache, 0, 1), QKV_OK);
    assert_int_equal(qkv_kv_cache_fork(ctx, cache, 0, 2), QKV_OK);
    assert_int_equal(qkv_kv_cache_free_pages(cache), 1);
    assert_int_equal(append(1, 1), QKV_OK);
    refused(append(2, 1), QKV_ERR_SHAPE, "n = 1 needs 1 more pages, but 0 of 4 are free");
    assert_int_equal(qkv_kv_cache_truncate(ctx, cache, 1, 0), QKV_OK);
    assert_int_equal(append(2, 1), QKV_OK);
    refused(qkv_kv_cache_fork(ctx, cache, 0, 2), QKV_ERR_ARGUMENT, "to = 2 is not empty");
    refused(qkv_kv_cache_fork(ctx, cache, 0, 3), QKV_ERR_ARGUMENT, "to = 3 is not in [0, 3)");
    refused(qkv_kv_cache_fork(ctx, cache, 1, 1), QKV_ERR_ARGUMENT, "to = 1 is not empty");
}

static void AT20_rewind(void **state) {
    (void)state;
    assert_int_equal(append(0, 40), QKV_OK);
    refused(qkv_kv_cache_truncate(ctx, cache, 0, 41), QKV_ERR_SHAPE,
            "len = 41 is not in [0, 40], the sequence's length");
    refused(qkv_kv_cache_truncate(ctx, cache, 0, -1), QKV_ERR_SHAPE,
            "len = -1 is not in [0, 40], the sequence's length");
    assert_int_equal(qkv_kv_cache_truncate(ctx, cache, 0, 16), QKV_OK);
    assert_int_equal(qkv_kv_cache_free_pages(cache), 3);
    make(32);
    assert_int_equal(append(0, 30), QKV_OK);
    assert_int_equal(append(0, 30), QKV_OK);
    refused(qkv_kv_cache_truncate(ctx, cache, 0, 27), QKV_ERR_SHAPE,
            "len = 27 is less than 28, the first token that the ring still has");
    assert_int_equal(qkv_kv_cache_truncate(ctx, cache, 0, 28), QKV_OK);
    assert_int_equal(qkv_kv_cache_free_pages(cache), 4);
    assert_int_equal(append(0, 1), QKV_OK);
    assert_int_equal(qkv_kv_cache_truncate(ctx, cache, 0, 0), QKV_OK);
}

/* Positions of a ring go on to 2^48, or to what max_len says. */
static void AT20_position_wrap(void **state) {
    (void)state;
    qkv_kv_cache_options o = sizes();
    o.ring_len = 32;
    o.max_len = 1000;
    qkv_kv_cache_free(cache);
    assert_int_equal(qkv_kv_cache_create(ctx, &o, &cache), QKV_OK);
    refused(append(0, 33), QKV_ERR_SHAPE, "n = 33 is greater than ring_len = 32");
    for (int n = 0; n < 31; n++) assert_int_equal(append(0, 32), QKV_OK);
    assert_int_equal(append(0, 8), QKV_OK);
    refused(append(0, 1), QKV_ERR_SHAPE, "n = 1 after 1000 tokens is more than max_len = 1000");
    assert_int_equal(qkv_kv_cache_len(cache, 0), 1000);
    o.max_len = ((int64_t)1 << 48) + 1;
    refuse_sizes(o, QKV_ERR_SHAPE, "max_len = 281474976710657 is not in [1, 281474976710656]");
}

static void sequences_and_arrays(void **state) {
    (void)state;
    const int64_t stride[2] = { -1, D }, *len = NULL;
    qkv_kv_view view;
    refused(append(S, 1), QKV_ERR_ARGUMENT, "sequence = 3 is not in [0, 3)");
    refused(append(-1, 1), QKV_ERR_ARGUMENT, "sequence = -1 is not in [0, 3)");
    refused(qkv_kv_cache_append(ctx, NULL, 0, 1, QKV_F32, k, NULL, v, NULL), QKV_ERR_ARGUMENT,
            "cache is NULL");
    refused(qkv_kv_cache_append(ctx, cache, 0, 1, QKV_F32, NULL, NULL, v, NULL), QKV_ERR_ARGUMENT,
            "k is NULL, but has the shape [1][2][1][8]");
    refused(qkv_kv_cache_append(ctx, cache, 0, 1, QKV_F32, k, stride, v, NULL), QKV_ERR_STRIDE,
            "k_stride[1] = -1 is negative");
    refused(qkv_kv_cache_append(ctx, cache, 0, 1, QKV_I8, k, NULL, v, NULL), QKV_ERR_DTYPE,
            "dtype = 3 is none of QKV_F32, QKV_BF16, QKV_F16");
    refused(qkv_kv_cache_view(ctx, cache, 0, 4, &view, &len), QKV_ERR_SHAPE,
            "n_sequences = 4 is not in [1, 3]");
    refused(qkv_kv_cache_view(ctx, cache, 3, 1, &view, &len), QKV_ERR_ARGUMENT,
            "first_sequence = 3 is not in [0, 3)");
    refused(qkv_kv_cache_view(ctx, cache, 0, 1, NULL, &len), QKV_ERR_ARGUMENT, "view is NULL");
    assert_int_equal(qkv_kv_cache_len(cache, -1), -1);
    assert_int_equal(qkv_kv_cache_len(NULL, 0), -1);
    assert_int_equal(qkv_kv_cache_free_pages(cache), PAGES);
}

/* Who asks for more keys than there are pages is told so, and reads nothing. */
static void more_keys_than_pages(void **state) {
    (void)state;
    const int64_t *len = NULL;
    float q[D] = { 0 }, o[DV];
    qkv_kv_view view;
    qkv_attention_desc d;
    assert_int_equal(append(0, 40), QKV_OK);
    assert_int_equal(qkv_kv_cache_view(ctx, cache, 0, 1, &view, &len), QKV_OK);
    qkv_attention_desc_contiguous(&d, 1, G, G, 1, 1000, D, DV);
    d.q_stride[1] = d.o_stride[1] = 0;
    d.n_heads = d.n_kv_heads = 1;
    refused(qkv_attention_decode(ctx, &d, q, &view, o, NULL, NULL), QKV_ERR_SHAPE,
            "view.pages[0][3] = -1 is not in [0, 4)");
    assert_int_equal(append(0, 24), QKV_OK);
    refused(qkv_attention_decode(ctx, &d, q, &view, o, NULL, NULL), QKV_ERR_SHAPE,
            "batch 0 may see key 999, beyond the 4 pages of its row");
    d.flags = QKV_SET_KV_LEN;
    d.kv_len = len;
    assert_int_equal(qkv_attention_decode(ctx, &d, q, &view, o, NULL, NULL), QKV_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sizes_that_lie, fresh, stale),
        cmocka_unit_test_setup_teardown(AT20_append_past_capacity, fresh, stale),
        cmocka_unit_test_setup_teardown(AT20_copies_need_pages, fresh, stale),
        cmocka_unit_test_setup_teardown(AT20_rewind, fresh, stale),
        cmocka_unit_test_setup_teardown(AT20_position_wrap, fresh, stale),
        cmocka_unit_test_setup_teardown(sequences_and_arrays, fresh, stale),
        cmocka_unit_test_setup_teardown(more_keys_than_pages, fresh, stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
