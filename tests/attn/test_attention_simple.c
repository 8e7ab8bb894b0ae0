/*
 * qkv_attention, the one call for dense arrays; and descriptors of older headers, which were
 * shorter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"
#include "qkv/kv.h"

enum { B = 2, H = 3, LQ = 33, LK = 70, D = 16 };

static float q[B * H * LQ * D], k[B * H * LK * D], v[B * H * LK * D];
static float o[B * H * LQ * D], expected[B * H * LQ * D];
static qkv_ctx *ctx;

static int begin(void **state) {
    (void)state;
    rng r = { 3 };
    for (size_t i = 0; i < sizeof q / sizeof *q; i++) q[i] = rng_normal(&r);
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        k[i] = rng_normal(&r);
        v[i] = rng_normal(&r);
    }
    return qkv_ctx_create(NULL, &ctx, NULL);
}

static int end(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

static qkv_attention_desc dense(uint32_t flags) {
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, B, H, H, LQ, LK, D, D);
    d.flags = flags;
    return d;
}

static void the_call_has_the_bits_of_forward(void **state) {
    (void)state;
    for (int causal = 0; causal <= 1; causal++) {
        const qkv_attention_desc d = dense(causal ? QKV_SET_CAUSAL : 0);
        assert_int_equal(qkv_attention_forward(ctx, &d, q, k, v, expected, NULL, NULL), QKV_OK);
        memset(o, 0xFF, sizeof o);
        assert_int_equal(
            qkv_attention(ctx, B, H, LQ, LK, D, causal ? QKV_CAUSAL : QKV_FULL, q, k, v, o),
            QKV_OK);
        assert_memory_equal(o, expected, sizeof o);
    }
}

static void the_call_names_what_is_wrong(void **state) {
    (void)state;
    assert_int_equal(qkv_attention(ctx, B, H, LQ, LK, D, (qkv_visibility)2, q, k, v, o),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(qkv_ctx_message(ctx), "visibility = 2 is no qkv_visibility");
    assert_int_equal(qkv_attention(ctx, B, -1, LQ, LK, D, QKV_FULL, q, k, v, o), QKV_ERR_SHAPE);
    assert_non_null(strstr(qkv_ctx_message(ctx), "n_heads = -1"));
}

/* What a caller's older header did not have reads as 0, whatever lies behind his struct. */
static void descriptors_of_any_older_size(void **state) {
    (void)state;
    const qkv_attention_desc d = dense(QKV_SET_CAUSAL);
    assert_int_equal(qkv_attention_forward(ctx, &d, q, k, v, expected, NULL, NULL), QKV_OK);
    const size_t least = offsetof(qkv_attention_desc, lse_stride) + sizeof d.lse_stride;
    for (size_t size = least; size <= sizeof d; size += 4) {
        qkv_attention_desc older;
        memset(&older, 0xA5, sizeof older);
        memcpy(&older, &d, size);
        older.struct_size = size;
        memset(o, 0xFF, sizeof o);
        assert_int_equal(qkv_attention_forward(ctx, &older, q, k, v, o, NULL, NULL), QKV_OK);
        assert_memory_equal(o, expected, sizeof o);
    }
}

/* A function that fills a struct leaves the bytes behind struct_size alone. */
static void structs_of_any_older_size_are_filled(void **state) {
    (void)state;
    const qkv_attention_desc d = dense(0);
    qkv_attention_plan whole = qkv_attention_plan_init();
    assert_int_equal(qkv_attention_explain(ctx, &d, &whole), QKV_OK);
    for (size_t size = 16; size < sizeof whole; size += 24) {
        struct {
            qkv_attention_plan plan;
            char more[8];
        } x;
        memset(&x, 0, sizeof x);
        memset((char *)&x + size, 0xA5, sizeof x - size);
        x.plan.struct_size = size;
        assert_int_equal(qkv_attention_explain(ctx, &d, &x.plan), QKV_OK);
        assert_memory_equal((char *)&x + sizeof size, (char *)&whole + sizeof size,
                            size - sizeof size);
        for (size_t i = size; i < sizeof x; i++) assert_int_equal(((uint8_t *)&x)[i], 0xA5);
    }
    union {
        qkv_attention_desc d;
        uint8_t bytes[sizeof(qkv_attention_desc)];
    } filled;
    memset(&filled, 0xA5, sizeof filled);
    filled.d.struct_size = offsetof(qkv_attention_desc, q_stride);
    qkv_attention_desc_fill(&filled.d, B, H, H, LQ, LK, D, D);
    assert_int_equal(filled.d.len_k, LK);
    assert_int_equal(filled.bytes[filled.d.struct_size], 0xA5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_call_has_the_bits_of_forward),
        cmocka_unit_test(the_call_names_what_is_wrong),
        cmocka_unit_test(descriptors_of_any_older_size),
        cmocka_unit_test(structs_of_any_older_size_are_filled),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
