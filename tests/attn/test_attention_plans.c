/*
 * qkv_attention_explain of some problems with known plans, of empty and of huge problems, and what
 * it refuses.
 */
#include <stdio.h>
#include <string.h>

#include "explained.h"
#include "qkv/kv.h"

/* ---- By hand --------------------------------------------------------------------------------- */

static qkv_ctx *context(int n_threads) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = n_threads;
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    return ctx;
}

static void known_problems(void **state) {
    (void)state;
    qkv_ctx *ctx = context(4);
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 12, 12, 11, 11, 64, 64); /* a sentence */
    qkv_attention_plan plan = explain(ctx, &d, QKV_PASS_FORWARD);
    assert_string_equal(plan.kernel, "attend_small");
    assert_string_equal(plan.arithmetic, "f32");
    assert_int_equal(plan.arithmetic_class, QKV_CLASS_F32);
    assert_int_equal(plan.small_heads, 12);
    assert_int_equal(plan.n_threads, 1);
    const float slopes[12] = { 0 };
    d.flags = QKV_SET_ALIBI;
    d.alibi_slopes = slopes;
    plan = explain(ctx, &d, QKV_PASS_FORWARD);
    assert_string_equal(plan.kernel, "attend_block");
    assert_string_equal(plan.kernel_reason, "attend_small cannot do ALiBi");

    qkv_attention_desc_contiguous(&d, 1, 9, 9, 4096, 4096, 64, 64); /* heads left over */
    d.flags = QKV_SET_CAUSAL;
    plan = explain(ctx, &d, QKV_PASS_FORWARD);
    assert_int_equal(plan.n_threads, 4);
    assert_int_equal(plan.own_heads + plan.shared_heads, 9);
    const int64_t pieces = plan.pieces_full + plan.pieces_partial + plan.pieces_hidden;
    assert_true(plan.pieces_hidden > pieces * 48 / 100 && plan.pieces_hidden < pieces / 2);
    assert_true(plan.pieces_partial < pieces / 100);
    plan = explain(ctx, &d, QKV_PASS_BACKWARD);
    assert_string_equal(plan.kernel, "attend_bwd");
    assert_int_equal(plan.pieces_hidden, 9 * (16 * 15)); /* 32 x 16 blocks of 128 x 256 */
    assert_int_equal(plan.pieces_partial, 9 * 32);
    qkv_ctx_free(ctx);
}

/* Gradients have the class of forward where it has some and o is of its type; decode has none. */
static void classes_of_passes(void **state) {
    (void)state;
    static const struct {
        qkv_class of;
        qkv_dtype o;
        qkv_pass pass;
        const char *class, *reason;
    } rows[] = {
        { QKV_CLASS_DP, QKV_BF16, QKV_PASS_FORWARD, "dp", "asked for" },
        { QKV_CLASS_DP, QKV_BF16, QKV_PASS_BACKWARD, "dp", "asked for" },
        { QKV_CLASS_DP, QKV_F32, QKV_PASS_FORWARD, "dp", "asked for" },
        { QKV_CLASS_DP, QKV_F32, QKV_PASS_BACKWARD, "f32", "class dp needs o of bf16 here" },
        { QKV_CLASS_DP, QKV_BF16, QKV_PASS_DECODE, "f32", "class dp is not for decode" },
        { QKV_CLASS_AMX, QKV_BF16, QKV_PASS_BACKWARD, "f32", "class amx is for forward alone" },
        { QKV_CLASS_F32, QKV_BF16, QKV_PASS_BACKWARD, "f32", "which is exact" },
    };
    qkv_ctx *ctx = context(1);
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        qkv_attention_desc d;
        qkv_attention_desc_contiguous(&d, 1, 2, 2, 40, 40, 32, 32);
        d.dtype = QKV_BF16;
        d.flags = QKV_SET_O_DTYPE;
        d.o_dtype = rows[n].o;
        d.arithmetic = rows[n].of;
        const qkv_attention_plan plan = explain(ctx, &d, rows[n].pass);
        assert_string_equal(plan.arithmetic, rows[n].class);
        if (!strstr(plan.arithmetic_reason, rows[n].reason))
            fail_msg("\"%s\" lacks \"%s\"", plan.arithmetic_reason, rows[n].reason);
    }
    qkv_ctx_free(ctx);
}

/* ---- What is refused, and what is huge ------------------------------------------------------- */

static void refuse(qkv_ctx *ctx, const qkv_attention_desc *d, qkv_attention_plan *plan,
                   qkv_status status, const char *text) {
    qkv_attention_plan before;
    if (plan) before = *plan;
    assert_int_equal(qkv_attention_explain(ctx, d, plan), status);
    assert_string_equal(qkv_ctx_message(ctx), text);
    if (plan) assert_memory_equal(&before, plan, sizeof before);
}

static void refusals(void **state) {
    (void)state;
    char text[200];
    qkv_ctx *ctx = context(2);
    qkv_attention_desc d;
    qkv_attention_plan plan = qkv_attention_plan_init();
    qkv_attention_desc_contiguous(&d, 1, 2, 2, 5, 5, 8, 8);
    assert_int_equal(qkv_attention_explain(NULL, &d, &plan), QKV_ERR_ARGUMENT);
    refuse(ctx, &d, NULL, QKV_ERR_ARGUMENT, "plan is NULL");
    refuse(ctx, NULL, &plan, QKV_ERR_ARGUMENT, "desc is NULL");
    plan.pass = (qkv_pass)7;
    refuse(ctx, &d, &plan, QKV_ERR_ARGUMENT, "plan.pass = 7 is no qkv_pass");
    plan.pass = QKV_PASS_FORWARD;
    plan.struct_size = 8;
    snprintf(text, sizeof text,
             "plan.struct_size = 8 is less than 12; fill the struct by its _init()");
    refuse(ctx, &d, &plan, QKV_ERR_ARGUMENT, text);
    plan.struct_size = sizeof plan;
    d.n_kv_heads = 3;
    refuse(ctx, &d, &plan, QKV_ERR_SHAPE, "n_heads = 2 is not a multiple of n_kv_heads = 3");
    qkv_ctx_free(ctx);
}

/* A program that was compiled with a later version's header. */
static void larger_structs(void **state) {
    (void)state;
    qkv_ctx *ctx = context(2);
    qkv_attention_desc d;
    struct {
        qkv_attention_plan plan;
        unsigned char later[64];
    } given = { .plan = qkv_attention_plan_init() };
    qkv_attention_desc_contiguous(&d, 1, 2, 2, 5, 5, 8, 8);
    given.plan.struct_size = sizeof given;
    assert_int_equal(qkv_attention_explain(ctx, &d, &given.plan), QKV_OK);
    assert_int_equal(given.plan.struct_size, sizeof given);
    for (size_t n = 0; n < sizeof given.later; n++) assert_int_equal(given.later[n], 0);
    given.later[3] = 1;
    assert_int_equal(qkv_attention_explain(ctx, &d, &given.plan), QKV_ERR_VERSION);
    qkv_ctx_free(ctx);
}

static void nothing_to_compute(void **state) {
    (void)state;
    qkv_ctx *ctx = context(2);
    qkv_attention_desc d;
    const int64_t none[][5] = { { 0, 2, 5, 5, 8 }, { 2, 0, 5, 5, 8 }, { 2, 2, 0, 0, 8 } };
    for (size_t n = 0; n < sizeof none / sizeof *none; n++)
        for (int pass = 0; pass < 3; pass++) {
            qkv_attention_desc_contiguous(&d, none[n][0], none[n][1], none[n][1], none[n][2],
                                          none[n][3], none[n][4], none[n][4]);
            const qkv_attention_plan plan = explain(ctx, &d, (qkv_pass)pass);
            assert_string_equal(plan.kernel, "none");
            assert_int_equal(plan.n_tasks + plan.pieces_full + plan.pieces_partial, 0);
        }
    qkv_ctx_free(ctx);
}

/* Sizes near the limits answer at once. */
static void huge_problems(void **state) {
    (void)state;
    const int64_t most = INT64_C(1) << 48;
    const int64_t sizes[][4] = { { 1, 1, most, most }, { most, 1, 4096, 4096 },
                                 { 1, most, 4096, 1 }, { 1, 1, 1, most },
                                 { 1, 1, most, 1 },    { most, 1, 1, 1 } };
    qkv_ctx *ctx = context(2);
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        for (int pass = 0; pass < 3; pass++) {
            qkv_attention_desc d;
            qkv_attention_plan plan = qkv_attention_plan_init();
            size_t bytes;
            const int64_t *s = sizes[n];
            qkv_attention_desc_contiguous(&d, s[0], s[1], s[1], s[2], s[3], 16, 32);
            d.flags = QKV_SET_CAUSAL;
            plan.pass = (qkv_pass)pass;
            const qkv_status status = qkv_attention_explain(ctx, &d, &plan);
            assert_int_equal(status, pass == 0   ? qkv_attention_workspace(ctx, &d, &bytes)
                                     : pass == 1 ? qkv_attention_backward_workspace(ctx, &d, &bytes)
                                                 : qkv_attention_decode_workspace(ctx, &d, &bytes));
            if (status != QKV_OK) continue;
            assert_int_equal(plan.workspace_bytes, bytes);
            assert_true(plan.pieces_full >= -1 && plan.pieces_hidden >= -1);
        }
    qkv_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_problems),     cmocka_unit_test(classes_of_passes),
        cmocka_unit_test(refusals),           cmocka_unit_test(larger_structs),
        cmocka_unit_test(nothing_to_compute), cmocka_unit_test(huge_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
