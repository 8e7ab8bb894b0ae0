/* Calls qkv_attention_explain for tests, and checks that every text of the plan is there. */
#ifndef QKV_TESTS_EXPLAINED_H
#define QKV_TESTS_EXPLAINED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/qkv.h"

static qkv_attention_plan explain(qkv_ctx *ctx, const qkv_attention_desc *d, qkv_pass pass) {
    qkv_attention_plan plan = qkv_attention_plan_init();
    plan.pass = pass;
    if (qkv_attention_explain(ctx, d, &plan) != QKV_OK) fail_msg("%s", qkv_ctx_message(ctx));
    assert_int_equal(plan.struct_size, sizeof plan);
    assert_int_equal(plan.pass, pass);
    assert_ptr_equal(plan.isa, qkv_ctx_isa(ctx));
    static const char *const classes[] = {
        [QKV_CLASS_F32] = "f32", [QKV_CLASS_DP] = "dp", [QKV_CLASS_AMX] = "amx"
    };
    assert_in_range(plan.arithmetic_class, QKV_CLASS_F32, QKV_CLASS_AMX);
    assert_string_equal(plan.arithmetic, classes[plan.arithmetic_class]);
    if (pass == QKV_PASS_FORWARD && d->arithmetic != QKV_CLASS_AUTO)
        assert_int_equal(plan.arithmetic_class, d->arithmetic);
    const char *const reasons[] = {
        plan.kernel_reason,  plan.isa_reason,    plan.arithmetic_reason,
        plan.block_reason,   plan.thread_reason, plan.sharing_reason,
        plan.packing_reason, plan.skip_reason,   plan.workspace_reason
    };
    for (size_t n = 0; n < sizeof reasons / sizeof *reasons; n++)
        if (strcmp(plan.kernel, "none") != 0) assert_true(strlen(reasons[n]) > 8);
    for (size_t n = 0; n < sizeof reasons / sizeof *reasons; n++)
        assert_true(strlen(reasons[n]) < QKV_REASON_BYTES - 1); /* none is cut short */
    return plan;
}

#endif
