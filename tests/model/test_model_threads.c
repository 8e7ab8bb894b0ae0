/*
 * One model shared by many threads, each with a context of its own: tokenizing, running, embedding
 * and predicting at the same time give every thread the bits that it gets alone. Under
 * ThreadSanitizer this is also the test that an open model is only read.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/model.h"

enum { N_THREADS = 6, N_ROUNDS = 12, N_BEST = 5, MOST = 128 };

/* All that a thread learns from the model about its text. */
typedef struct answer {
    float vector[MOST], weights[32 * 32];
    qkv_candidate best[N_BEST];
} answer;

typedef struct worker {
    const qkv_model *model;
    char text[64];
    answer first;
    int n_different, n_failed;
} worker;

/* Counts failures: cmocka's checks are for one thread. */
static int ask(qkv_ctx *ctx, const worker *w, answer *a) {
    qkv_encoding *tokens = NULL;
    qkv_run *run = NULL;
    qkv_error error;
    memset(a, 0, sizeof *a);
    const qkv_tokenizer *tokenizer = qkv_model_tokenizer(w->model, QKV_SOURCE);
    int failed =
        qkv_tokenizer_encode(tokenizer, w->text, strlen(w->text), NULL, 0, &tokens, &error);
    const qkv_encoding *const inputs[] = { tokens };
    failed = failed ||
             qkv_model_run(ctx, w->model, 1, inputs, QKV_RUN_CAPTURE, NULL, &run, &error) ||
             qkv_model_embed(ctx, w->model, 1, inputs, NULL, a->vector, &error) ||
             qkv_run_weights(run, QKV_SELF, 0, 2, 1, a->weights, &error) ||
             qkv_model_candidates(ctx, w->model, run, QKV_HEAD_MASKED, 0, 2, N_BEST, a->best,
                                  sizeof(qkv_candidate), &error);
    qkv_run_free(run);
    qkv_encoding_free(tokens);
    return failed;
}

static void *work(void *argument) {
    worker *w = argument;
    qkv_ctx *ctx = NULL;
    answer a;
    w->n_failed += qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK;
    for (int round = 0; round < N_ROUNDS; round++) {
        w->n_failed += ask(ctx, w, &a);
        w->n_different += memcmp(&a, &w->first, sizeof a) != 0;
    }
    qkv_ctx_free(ctx);
    return NULL;
}

static void test_threads_share_a_model(void **state) {
    (void)state;
    static worker workers[N_THREADS];
    pthread_t threads[N_THREADS];
    qkv_model *model;
    qkv_ctx *ctx;
    assert_int_equal(qkv_model_open(QKV_TEST_ROOT "/models/default", NULL, &model, NULL), QKV_OK);
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    for (int t = 0; t < N_THREADS; t++) {
        workers[t] = (worker){ .model = model };
        snprintf(workers[t].text, sizeof workers[t].text, "The %s[MASK] was in the house %d.",
                 t % 2 ? "old " : "", t);
        assert_int_equal(ask(ctx, &workers[t], &workers[t].first), 0);
    }
    qkv_ctx_free(ctx);
    for (int t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
    for (int t = 0; t < N_THREADS; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < N_THREADS; t++) {
        assert_int_equal(workers[t].n_failed, 0);
        assert_int_equal(workers[t].n_different, 0);
    }
    qkv_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads_share_a_model) };
    return cmocka_run_group_tests_name("model threads", tests, NULL, NULL);
}
