/*
 * The 93 node tests of ONNX for Attention (tools/onnx_cases.py made the file and describes it), on
 * every instruction set, by ONNX's own rule |x - y| <= atol + rtol |y| with rtol 1e-3 and atol
 * 1e-7, 2^-6 for bfloat16, where errors of the expected data, which numpy computed in bfloat16, are
 * up to 0.95 %. Each case is also compared with the exact result, within the bound of the header.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "make_ctx.h"
#include "onnx/onnx_reference.h"

enum { N_CASES = 93, N_OUTPUTS = 4 };

typedef struct test_case {
    char name[97];
    qkv_onnx_attention_node node;
    qkv_onnx_tensor outputs[N_OUTPUTS]; /* expected */
} test_case;

static struct {
    char *data;
    size_t at, size;
    test_case cases[N_CASES];
} file;

static const void *take(size_t bytes) {
    assert_true(bytes <= file.size - file.at);
    const void *p = file.data + file.at;
    file.at += (bytes + 7) / 8 * 8;
    return p;
}

static int64_t take_int(void) { return *(const int64_t *)take(8); }
static double take_double(void) { return *(const double *)take(8); }

static qkv_onnx_tensor take_tensor(void) {
    qkv_onnx_tensor t = { .type = (qkv_onnx_type)take_int() };
    t.rank = (int)take_int();
    for (int n = 0; n < 4; n++) t.dims[n] = take_int();
    if (t.type) t.data = take((size_t)onnx_count(&t) * onnx_bytes(t.type));
    return t;
}

static void take_case(test_case *c) {
    qkv_onnx_attention_node *n = &c->node;
    *n = qkv_onnx_attention_node_init();
    memcpy(c->name, take(96), 96);
    n->opset = (int)take_int();
    n->flags = (uint32_t)take_int();
    int64_t *const integers[] = { &n->is_causal,         &n->q_num_heads,
                                  &n->kv_num_heads,      &n->qk_matmul_output_mode,
                                  &n->softmax_precision, &n->left_window_size,
                                  &n->right_window_size };
    for (int k = 0; k < 7; k++) *integers[k] = take_int();
    n->scale = (float)take_double();
    n->softcap = (float)take_double();
    qkv_onnx_tensor *const inputs[] = {
        &n->Q, &n->K, &n->V, &n->attn_mask, &n->past_key, &n->past_value, &n->nonpad_kv_seqlen
    };
    for (int k = 0; k < 7; k++) *inputs[k] = take_tensor();
    for (int k = 0; k < N_OUTPUTS; k++) c->outputs[k] = take_tensor();
}

static int read_cases(void **state) {
    FILE *stream = fopen(QKV_TEST_DATA "/onnx/onnx_cases.bin", "rb");
    (void)state;
    assert_non_null(stream);
    fseek(stream, 0, SEEK_END);
    file.size = (size_t)ftell(stream);
    rewind(stream);
    file.data = malloc(file.size);
    assert_non_null(file.data);
    assert_int_equal(fread(file.data, 1, file.size, stream), file.size);
    fclose(stream);
    assert_memory_equal(take(8), "QKVONNX1", 8);
    print_message("%s\n", (const char *)take(64));
    assert_int_equal(take_int(), N_CASES);
    for (int n = 0; n < N_CASES; n++) take_case(&file.cases[n]);
    assert_int_equal(file.at, file.size);
    return 0;
}

static int free_cases(void **state) {
    (void)state;
    free(file.data);
    return 0;
}

/* ---- A case ---------------------------------------------------------------------------------- */

/* Outputs as the library shapes them, with memory for those that the case has. */
static void run(const test_case *c, qkv_ctx *ctx, void *got[N_OUTPUTS]) {
    qkv_onnx_attention_outputs out = qkv_onnx_attention_outputs_init();
    qkv_error error;
    if (qkv_onnx_attention_shapes(&c->node, &out, &error) != QKV_OK)
        fail_msg("%s: %s", c->name, error.message);
    const qkv_onnx_tensor *const shapes[] = { &out.Y, &out.present_key, &out.present_value,
                                              &out.qk_matmul_output };
    for (int n = 0; n < N_OUTPUTS; n++) {
        const qkv_onnx_tensor *t = &c->outputs[n];
        got[n] = NULL;
        if (!t->type) continue;
        assert_int_equal(shapes[n]->type, t->type);
        assert_int_equal(shapes[n]->rank, t->rank);
        assert_memory_equal(shapes[n]->dims, t->dims, sizeof t->dims);
        const size_t bytes = (size_t)onnx_count(t) * onnx_bytes(t->type);
        got[n] = malloc(bytes + 1);
        assert_non_null(got[n]);
        memset(got[n], 0xA5, bytes);
    }
    if (qkv_onnx_attention(ctx, &c->node, got[0], got[1], got[2], got[3], NULL) != QKV_OK)
        fail_msg("%s: %s", c->name, qkv_ctx_message(ctx));
}

/* The largest share of ONNX's tolerance. */
static double share_of_tolerance(const qkv_onnx_tensor *expected, const void *got) {
    const double rtol = expected->type == QKV_ONNX_BFLOAT16 ? 0x1p-6 : 1e-3;
    qkv_onnx_tensor mine = *expected;
    double worst = 0;
    mine.data = got;
    for (int64_t n = 0; n < onnx_count(expected); n++) {
        const double x = onnx_get(&mine, n), y = onnx_get(expected, n);
        if (x == y || (isnan(x) && isnan(y))) continue;
        const double share = fabs(x - y) / (1e-7 + rtol * fabs(y));
        worst = isfinite(x) && isfinite(y) ? fmax(worst, share) : INFINITY;
    }
    return worst;
}

/* The largest share of the header's bound, of Y and qk_matmul_output. */
static double share_of_bound(const test_case *c, void *const got[N_OUTPUTS]) {
    onnx_expected e = onnx_reference(&c->node);
    double worst = 0;
    const bool forward = onnx_by_forward(&c->node);
    qkv_onnx_tensor y = c->outputs[0], qk = c->outputs[3];
    y.data = got[0], qk.data = got[3];
    for (int64_t n = 0; n < e.n_y; n++)
        worst = fmax(worst, onnx_share(y.type, onnx_get(&y, n), e.y[n],
                                       forward ? e.y_forward[n] : e.y_loop[n]));
    for (int64_t n = 0; qk.type && n < e.n_qk; n++)
        worst = fmax(worst, onnx_share(qk.type, onnx_get(&qk, n), e.qk[n], e.qk_loop[n]));
    onnx_expected_free(&e);
    return worst;
}

static void all_cases_on(const char *isa, qkv_class arithmetic, bool prints) {
    qkv_ctx *ctx = make_ctx(isa, 2);
    int n_within = 0, n_bf16 = 0;
    double worst = 0, worst_bound = 0;
    for (int n = 0; n < N_CASES; n++) {
        test_case c = file.cases[n];
        void *got[N_OUTPUTS];
        double share = 0;
        c.node.arithmetic = arithmetic;
        run(&c, ctx, got);
        for (int k = 0; k < N_OUTPUTS; k++)
            if (got[k]) share = fmax(share, share_of_tolerance(&c.outputs[k], got[k]));
        /* The classes that round weights to bfloat16 have another bound, which others test. */
        const bool exact = c.node.Q.type != QKV_ONNX_BFLOAT16 || arithmetic == QKV_CLASS_F32;
        const double bound = exact ? share_of_bound(&c, got) : 0;
        if (prints)
            print_message("%-58s %.3g of rtol %.3g, %.3f of the bound\n", c.name, share,
                          c.outputs[0].type == QKV_ONNX_BFLOAT16 ? 0x1p-6 : 1e-3, bound);
        if (share > 1) fail_msg("%s on %s: %g of ONNX's tolerance", c.name, isa, share);
        if (bound > 1) fail_msg("%s on %s: %g of the bound", c.name, isa, bound);
        n_within++;
        n_bf16 += c.node.Q.type == QKV_ONNX_BFLOAT16;
        worst = fmax(worst, share);
        worst_bound = fmax(worst_bound, bound);
        for (int k = 0; k < N_OUTPUTS; k++) free(got[k]);
    }
    print_message(
        "%s: %d of %d cases within ONNX's tolerance, at most %.3f of it; %.3f of the bound\n", isa,
        n_within, N_CASES, worst, worst_bound);
    assert_int_equal(n_bf16, 5);
    qkv_ctx_free(ctx);
}

static void cases_hold_on_every_instruction_set(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) all_cases_on(qkv_isa_name(n), QKV_CLASS_F32, n == 0);
}

static void cases_hold_in_the_class_of_the_processor(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) all_cases_on(qkv_isa_name(n), QKV_CLASS_AUTO, false);
}

/*
 * The loop in double computes what forward computes: the cases once more, by softmax_precision 11.
 */
static void cases_hold_in_double(void **state) {
    (void)state;
    for (int n = 0; n < N_CASES; n++) file.cases[n].node.softmax_precision = QKV_ONNX_DOUBLE;
    all_cases_on(qkv_isa_name(0), QKV_CLASS_F32, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_hold_on_every_instruction_set),
        cmocka_unit_test(cases_hold_in_the_class_of_the_processor),
        cmocka_unit_test(cases_hold_in_double),
    };
    return cmocka_run_group_tests(tests, read_cases, free_cases);
}
