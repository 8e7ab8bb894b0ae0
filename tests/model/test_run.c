/*
 * Runs of a small model through the public interface: mistakes of a caller, weights of a head, and
 * the most likely words. tests/model/test_bert_golden.c compares numbers with transformers.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/ctx.h"
#include "model/arch/net.h"
#include "model/model_impl.h"
#include "model/run_impl.h"

enum { N_WORDS = 53, MAX_LEN = 23, N = 9 };

typedef struct fixture {
    qkv_ctx *ctx;
    qkv_model *model;
    qkv_run *run;
    qkv_encoding encoding;
    const qkv_encoding *inputs[1];
    int32_t ids[MAX_LEN + 1];
    uint8_t types[MAX_LEN + 1];
    qkv_error error;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    for (int i = 0; i <= MAX_LEN; i++) {
        f->ids[i] = 5 + 3 * i % 40;
        f->types[i] = i > 4;
    }
    f->encoding = (qkv_encoding){ .n = N, .ids = f->ids, .types = f->types };
    f->inputs[0] = &f->encoding;
    *state = f;
    if (qkv_ctx_create(NULL, &f->ctx, NULL) != QKV_OK) return -1;
    if (qkv_model_open(QKV_TEST_DATA "/golden/bert_old", NULL, &f->model, NULL) != QKV_OK)
        return -1;
    return qkv_model_run(f->ctx, f->model, 1, f->inputs, QKV_RUN_CAPTURE, NULL, &f->run, NULL);
}

static int teardown(void **state) {
    fixture *f = *state;
    qkv_run_free(f->run);
    qkv_model_free(f->model);
    qkv_ctx_free(f->ctx);
    free(f);
    return 0;
}

static void expect(fixture *f, qkv_status got, qkv_status wanted, const char *text) {
    if (got != wanted || strcmp(f->error.message, text) != 0)
        fail_msg("%s '%s', wanted %s '%s'", qkv_status_name(got), f->error.message,
                 qkv_status_name(wanted), text);
    f->error = (qkv_error){ 0 };
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void test_run_refuses(void **state) {
    fixture *f = *state;
    const qkv_encoding *const none[1] = { NULL };
    qkv_run *run = f->run;
    expect(f, qkv_model_run(f->ctx, f->model, 1, f->inputs, 0, NULL, NULL, &f->error),
           QKV_ERR_ARGUMENT, "run is NULL");
    expect(f, qkv_model_run(NULL, f->model, 1, f->inputs, 0, NULL, &run, &f->error),
           QKV_ERR_ARGUMENT, "ctx is NULL");
    assert_null(run); /* an output is NULL on every error */
    expect(f, qkv_model_run(f->ctx, NULL, 1, f->inputs, 0, NULL, &run, &f->error), QKV_ERR_ARGUMENT,
           "model is NULL");
    expect(f, qkv_model_run(f->ctx, f->model, 1, NULL, 0, NULL, &run, &f->error), QKV_ERR_ARGUMENT,
           "inputs is NULL");
    expect(f, qkv_model_run(f->ctx, f->model, 1, none, 0, NULL, &run, &f->error), QKV_ERR_ARGUMENT,
           "inputs[0] is NULL");
    expect(f, qkv_model_run(f->ctx, f->model, 1, f->inputs, 8, NULL, &run, &f->error),
           QKV_ERR_ARGUMENT, "flags = 0x8 has unknown bits");
    expect(f, qkv_model_run(f->ctx, f->model, 0, f->inputs, 0, NULL, &run, &f->error),
           QKV_ERR_SHAPE, "a batch of 0 inputs is not between 1 and 2^31 - 1");
    expect(f, qkv_model_run(f->ctx, f->model, -1, f->inputs, 0, NULL, &run, &f->error),
           QKV_ERR_SHAPE, "a batch of -1 inputs is not between 1 and 2^31 - 1");
    f->encoding.n = MAX_LEN + 1;
    expect(f, qkv_model_run(f->ctx, f->model, 1, f->inputs, 0, NULL, &run, &f->error),
           QKV_ERR_SHAPE, "input 0 has 24 tokens; the model takes 1 to 23");
    f->encoding.n = -5;
    expect(f, qkv_model_run(f->ctx, f->model, 1, f->inputs, 0, NULL, &run, &f->error),
           QKV_ERR_SHAPE, "input 0 has -5 tokens; the model takes 1 to 23");
    f->encoding.n = N;
    f->ids[2] = N_WORDS;
    expect(f, qkv_model_run(f->ctx, f->model, 1, f->inputs, 0, NULL, &run, &f->error),
           QKV_ERR_ARGUMENT, "token 2 has the id 53; the model has ids 0 to 52");
    assert_null(run);
}

static void test_busy_context_is_refused(void **state) {
    fixture *f = *state;
    qkv_run *run;
    assert_int_equal(qkvi_ctx_begin(f->ctx), QKV_OK);
    expect(f, qkv_model_run(f->ctx, f->model, 1, f->inputs, 0, NULL, &run, &f->error), QKV_ERR_BUSY,
           "the context is inside another call");
    assert_int_equal(qkvi_ctx_end(f->ctx, QKV_OK), QKV_OK);
}

static void test_looking_refuses(void **state) {
    fixture *f = *state;
    float x[N * N], logits[N_WORDS];
    qkv_capture capture = qkv_capture_init();
    qkv_candidate candidate;
    expect(f, qkv_run_capture(f->run, QKV_SELF, 1, 0, &capture, &f->error), QKV_ERR_ARGUMENT,
           "b = 1 is not between 0 and 0");
    expect(f, qkv_run_capture(f->run, QKV_SELF, 0, 2, &capture, &f->error), QKV_ERR_ARGUMENT,
           "layer = 2 is not between 0 and 1");
    expect(f, qkv_run_capture(f->run, QKV_SELF, 0, -1, &capture, &f->error), QKV_ERR_ARGUMENT,
           "layer = -1 is not between 0 and 1");
    expect(f, qkv_run_capture(f->run, QKV_SELF, 0, 0, NULL, &f->error), QKV_ERR_ARGUMENT,
           "capture is NULL");
    expect(f, qkv_run_weights(f->run, QKV_SELF, 0, 0, 2, x, &f->error), QKV_ERR_ARGUMENT,
           "head = 2 is not between 0 and 1");
    expect(f, qkv_run_weights(f->run, QKV_SELF, 0, 0, 0, NULL, &f->error), QKV_ERR_ARGUMENT,
           "weights is NULL");
    expect(f, qkv_model_logits(f->ctx, f->model, f->run, QKV_HEAD_MASKED, 0, N, logits, &f->error),
           QKV_ERR_ARGUMENT, "position = 9 is not between 0 and 8");
    expect(f, qkv_model_logits(f->ctx, f->model, f->run, QKV_HEAD_MASKED, 0, 0, NULL, &f->error),
           QKV_ERR_ARGUMENT, "logits is NULL");
    expect(f, qkv_model_nsp(f->ctx, f->model, f->run, -1, logits, &f->error), QKV_ERR_ARGUMENT,
           "b = -1 is not between 0 and 0");
    expect(f,
           qkv_model_candidates(f->ctx, f->model, f->run, QKV_HEAD_MASKED, 0, 0, 0, &candidate,
                                sizeof(qkv_candidate), &f->error),
           QKV_ERR_ARGUMENT, "n_candidates = 0 is not between 1 and vocab_size = 53");
    expect(f,
           qkv_model_candidates(f->ctx, f->model, f->run, QKV_HEAD_MASKED, 0, 0, 54, &candidate,
                                sizeof(qkv_candidate), &f->error),
           QKV_ERR_ARGUMENT, "n_candidates = 54 is not between 1 and vocab_size = 53");
    expect(f,
           qkv_model_candidates(f->ctx, f->model, f->run, QKV_HEAD_MASKED, 0, 0, 1, NULL,
                                sizeof(qkv_candidate), &f->error),
           QKV_ERR_ARGUMENT, "candidates is NULL");
    qkv_model *other = NULL;
    assert_int_equal(qkv_model_open(QKV_TEST_DATA "/golden/bert_new", NULL, &other, NULL), QKV_OK);
    expect(f, qkv_model_logits(f->ctx, other, f->run, QKV_HEAD_MASKED, 0, 0, logits, &f->error),
           QKV_ERR_ARGUMENT, "the run is one of another model");
    qkv_model_free(other);
    assert_null(qkv_run_hidden(f->run, QKV_SELF, 0, 3));
    assert_null(qkv_run_hidden(f->run, QKV_SELF, 0, -1));
    assert_null(qkv_run_hidden(f->run, QKV_SELF, 1, 2));
    assert_null(qkv_run_hidden(NULL, QKV_SELF, 0, 2));
    assert_non_null(qkv_run_hidden(f->run, QKV_SELF, 0, 2));
    qkv_run_free(NULL);
}

/* ---- Weights --------------------------------------------------------------------------------- */

static void test_weights_are_softmax_of_the_capture(void **state) {
    fixture *f = *state;
    qkv_capture c = qkv_capture_init();
    float weights[N * N];
    for (int64_t layer = 0; layer < 2; layer++) {
        for (int64_t h = 0; h < 2; h++) {
            assert_int_equal(qkv_run_capture(f->run, QKV_SELF, 0, layer, &c, NULL), QKV_OK);
            assert_int_equal(qkv_run_weights(f->run, QKV_SELF, 0, layer, h, weights, NULL), QKV_OK);
            assert_int_equal(c.n, N);
            for (int64_t i = 0; i < N; i++) {
                double p[N], total = 0;
                for (int64_t j = 0; j < N; j++) {
                    double score = 0;
                    for (int64_t e = 0; e < c.head_dim; e++)
                        score += (double)c.q[(h * N + i) * c.head_dim + e] *
                                 (double)c.k[(h * N + j) * c.head_dim + e];
                    p[j] = exp(score / sqrt((double)c.head_dim));
                    total += p[j];
                }
                assert_true(fabs((double)c.lse[h * N + i] - log(total)) < 1e-5);
                for (int64_t j = 0; j < N; j++)
                    assert_true(fabs((double)weights[i * N + j] - p[j] / total) < 1e-6);
                float rows[2 * N]; /* one row, or two, have the bits of all */
                const int64_t n_rows = i + 1 < N ? 1 + i % 2 : 1;
                assert_int_equal(
                    qkvi_run_weight_rows(f->run, QKV_SELF, 0, layer, h, i, n_rows, rows, NULL),
                    QKV_OK);
                assert_memory_equal(rows, weights + i * N, (size_t)(n_rows * N) * sizeof *rows);
            }
        }
    }
}

/* ---- Candidates ------------------------------------------------------------------------------ */

static void test_candidates_are_sorted_and_sum_to_one(void **state) {
    fixture *f = *state;
    qkv_candidate all[N_WORDS], few[5];
    float logits[N_WORDS];
    double sum = 0, total = 0;
    assert_int_equal(
        qkv_model_logits(f->ctx, f->model, f->run, QKV_HEAD_MASKED, 0, 3, logits, NULL), QKV_OK);
    assert_int_equal(qkv_model_candidates(f->ctx, f->model, f->run, QKV_HEAD_MASKED, 0, 3, N_WORDS,
                                          all, sizeof(qkv_candidate), NULL),
                     QKV_OK);
    assert_int_equal(qkv_model_candidates(f->ctx, f->model, f->run, QKV_HEAD_MASKED, 0, 3, 5, few,
                                          sizeof(qkv_candidate), NULL),
                     QKV_OK);
    for (int i = 0; i < N_WORDS; i++) total += exp((double)logits[i]);
    for (int i = 0; i < N_WORDS; i++) {
        sum += (double)all[i].probability;
        assert_true(i == 0 || logits[all[i].id] <= logits[all[i - 1].id]);
        assert_true(fabs((double)all[i].probability - exp((double)logits[all[i].id]) / total) <
                    1e-6);
    }
    assert_true(fabs(sum - 1) < 1e-5);
    assert_memory_equal(few, all, sizeof few);
}

static void test_ties_go_to_the_smaller_id(void **state) {
    fixture *f = *state;
    qkv_candidate best[4];
    qkvi_linear *decoder = &f->model->net->decoder;
    memset(decoder->forward, 0,
           qkvi_gemm_packed_elems(decoder->n_in, decoder->n_out) * sizeof *decoder->forward);
    for (int64_t i = 0; i < decoder->n_out; i++) decoder->bias[i] = i == 7 || i == 30 ? 1 : 0;
    assert_int_equal(qkv_model_candidates(f->ctx, f->model, f->run, QKV_HEAD_MASKED, 0, 3, 4, best,
                                          sizeof(qkv_candidate), NULL),
                     QKV_OK);
    const int32_t wanted[4] = { 7, 30, 0, 1 };
    for (int i = 0; i < 4; i++) assert_int_equal(best[i].id, wanted[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_run_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_busy_context_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_looking_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_weights_are_softmax_of_the_capture, setup, teardown),
        cmocka_unit_test_setup_teardown(test_candidates_are_sorted_and_sum_to_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ties_go_to_the_smaller_id, setup, teardown),
    };
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
