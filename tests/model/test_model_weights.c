/*
 * Models whose weights are bf16 or int8: each class has the same bits on every instruction set
 * (with AMX or without, that is), on any number of threads and in any batch, and is about as far
 * from f32 as rounding to 8 bits takes it; how a model is opened so.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/model.h"

#define MODEL QKV_TEST_ROOT "/models/default"

enum { N_TOKENS = 9, N_BATCH = 2, MOST = 4096 };

typedef struct states {
    float hidden[MOST], logits[3 * MOST];
} states;

static int32_t ids[N_BATCH][N_TOKENS] = { { 2, 30, 41, 52, 63, 74, 85, 96, 3 },
                                          { 2, 33, 31, 30, 90, 3, 0, 0, 0 } };
static const int64_t lengths[N_BATCH] = { N_TOKENS, 6 };

static qkv_model *open_as(qkv_model_weights weights) {
    qkv_model_open_options options = qkv_model_open_options_init();
    qkv_model *model;
    qkv_error error;
    options.weights = weights;
    if (qkv_model_open(MODEL, &options, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    return model;
}

/* Of the first input, alone or with the other. */
static void compute(const qkv_model *model, const char *isa, int n_threads, int n_batch,
                    states *out) {
    qkv_ctx_options options = qkv_ctx_options_init();
    const qkv_model_info *const info = qkv_model_get_info(model);
    qkv_encoding inputs[N_BATCH];
    const qkv_encoding *list[N_BATCH];
    qkv_ctx *ctx;
    qkv_run *run;
    options.isa = isa;
    options.n_threads = n_threads;
    memset(out, 0, sizeof *out);
    for (int b = 0; b < N_BATCH; b++) {
        inputs[b] = (qkv_encoding){ .n = lengths[b], .ids = ids[b] };
        list[b] = &inputs[b];
    }
    assert_true(info->hidden * N_TOKENS <= MOST && info->vocab_size <= 3 * MOST);
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    assert_int_equal(qkv_model_run(ctx, model, n_batch, list, 0, NULL, &run, NULL), QKV_OK);
    memcpy(out->hidden, qkv_run_hidden(run, QKV_SELF, 0, info->n_layers),
           (size_t)(info->hidden * N_TOKENS) * sizeof(float));
    assert_int_equal(qkv_model_logits(ctx, model, run, QKV_HEAD_MASKED, 0, 4, out->logits, NULL),
                     QKV_OK);
    qkv_run_free(run);
    qkv_ctx_free(ctx);
}

static void same_bits_everywhere(void **state) {
    static states first, other;
    (void)state;
    for (int class = QKV_WEIGHTS_BF16_DP; class <= QKV_WEIGHTS_INT8; class ++) {
        qkv_model *const model = open_as((qkv_model_weights) class);
        const char *isa;
        assert_int_equal(qkv_model_get_info(model)->weights, class);
        compute(model, "scalar", 1, 1, &first);
        for (int i = 0; (isa = qkv_isa_name(i)); i++) {
            compute(model, isa, 1 + i, N_BATCH, &other);
            if (memcmp(&first, &other, sizeof first) != 0) fail_msg("%s, class %d", isa, class);
        }
        qkv_model_free(model);
    }
}

static void close_to_f32(void **state) {
    static states exact, rounded;
    qkv_model *const model = open_as(QKV_WEIGHTS_F32);
    (void)state;
    compute(model, NULL, 1, 1, &exact);
    for (int class = QKV_WEIGHTS_BF16_DP; class <= QKV_WEIGHTS_INT8; class ++) {
        qkv_model *const half = open_as((qkv_model_weights) class);
        double most = 0, sum = 0;
        compute(half, NULL, 1, 1, &rounded);
        for (int e = 0; e < MOST; e++) {
            most = fmax(most, fabs((double)exact.hidden[e]));
            sum = fmax(sum, fabs((double)exact.hidden[e] - (double)rounded.hidden[e]));
        }
        assert_true(sum > 0 && sum < 0.1 * most);
        qkv_model_free(half);
    }
    qkv_model_free(model);
}

/* What a capture has is what was multiplied: q and k in bf16; weights of a row are 1 together. */
static void captures_are_what_was_computed_with(void **state) {
    (void)state;
    for (int class = QKV_WEIGHTS_BF16_DP; class <= QKV_WEIGHTS_BF16_AMX; class ++) {
        qkv_model *const model = open_as((qkv_model_weights) class);
        const qkv_encoding input = { .n = N_TOKENS, .ids = ids[0] }, *const list[] = { &input };
        float weights[N_TOKENS * N_TOKENS];
        qkv_capture capture = qkv_capture_init();
        qkv_run *run;
        qkv_ctx *ctx;
        assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
        assert_int_equal(qkv_model_run(ctx, model, 1, list, QKV_RUN_CAPTURE, NULL, &run, NULL),
                         QKV_OK);
        for (int layer = 0; layer < qkv_model_get_info(model)->n_layers; layer++) {
            assert_int_equal(qkv_run_capture(run, QKV_SELF, 0, layer, &capture, NULL), QKV_OK);
            for (int64_t e = 0; e < capture.n_heads * N_TOKENS * capture.head_dim; e++) {
                uint32_t q, k;
                memcpy(&q, capture.q + e, sizeof q);
                memcpy(&k, capture.k + e, sizeof k);
                assert_int_equal((q | k) & 0xFFFF, 0);
            }
            for (int head = 0; head < capture.n_heads; head++) {
                assert_int_equal(qkv_run_weights(run, QKV_SELF, 0, layer, head, weights, NULL),
                                 QKV_OK);
                for (int i = 0; i < N_TOKENS; i++) {
                    double sum = 0;
                    for (int j = 0; j < N_TOKENS; j++) sum += (double)weights[i * N_TOKENS + j];
                    assert_true(fabs(sum - 1) < 1e-5);
                }
            }
        }
        qkv_run_free(run);
        qkv_ctx_free(ctx);
        qkv_model_free(model);
    }
}

static void how_it_is_opened(void **state) {
    static states with, without;
    qkv_model_open_options options = qkv_model_open_options_init();
    qkv_model *model;
    qkv_error error;
    (void)state;
    assert_int_equal(qkv_model_open(MODEL, NULL, &model, NULL), QKV_OK);
    assert_int_equal(qkv_model_get_info(model)->weights, QKV_WEIGHTS_F32);
    compute(model, NULL, 1, 1, &without);
    qkv_model_free(model);
    assert_int_equal(qkv_model_open(MODEL, NULL, &model, NULL), QKV_OK);
    compute(model, NULL, 1, 1, &with);
    assert_memory_equal(&with, &without, sizeof with);
    qkv_model_free(model);

    model = open_as(QKV_WEIGHTS_BF16); /* what is fast here */
    const qkv_model_weights became = qkv_model_get_info(model)->weights;
    assert_true(became == QKV_WEIGHTS_BF16_DP || became == QKV_WEIGHTS_BF16_AMX);
    qkv_model_free(model);

    model = open_as(QKV_WEIGHTS_F32);
    const int64_t all = qkv_model_get_info(model)->weights_bytes;
    qkv_model_free(model);
    model = open_as(QKV_WEIGHTS_INT8);
    assert_int_equal(qkv_model_get_info(model)->weights, QKV_WEIGHTS_INT8);
    assert_true(qkv_model_get_info(model)->weights_bytes < all / 2);
    qkv_model_free(model);

    options.weights = (qkv_model_weights)7;
    model = (qkv_model *)&options;
    assert_int_equal(qkv_model_open(MODEL, &options, &model, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "weights = 7 is no qkv_model_weights");
    assert_null(model);
    struct {
        qkv_model_open_options known;
        int64_t later;
    } newer = { qkv_model_open_options_init(), 1 };
    newer.known.struct_size = 3;
    assert_int_equal(qkv_model_open(MODEL, &newer.known, &model, NULL), QKV_ERR_ARGUMENT);
    newer.known.struct_size = sizeof newer;
    assert_int_equal(qkv_model_open(MODEL, &newer.known, &model, NULL), QKV_ERR_VERSION);
    assert_int_equal(qkv_model_open(NULL, NULL, &model, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_model_open(MODEL, NULL, NULL, NULL), QKV_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bits_everywhere),
                                        cmocka_unit_test(close_to_f32),
                                        cmocka_unit_test(captures_are_what_was_computed_with),
                                        cmocka_unit_test(how_it_is_opened) };
    return cmocka_run_group_tests_name("weights", tests, NULL, NULL);
}
