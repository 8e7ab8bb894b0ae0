/* The expected results of a job, for all tests of a file. bounded.c ends a test that hangs. */
#ifndef QKV_TESTS_ATTENTION_ANSWER_H
#define QKV_TESTS_ATTENTION_ANSWER_H

#include "attn/attention_job.h"

static job answer;

static inline int make_answer(void **state) {
    (void)state;
    answer = job_answer();
    return 0;
}

static inline int free_answer(void **state) {
    (void)state;
    job_free(&answer);
    return 0;
}

/* isa NULL: the best. */
static inline qkv_ctx *context_sharing(const char *isa, qkv_ctx *maker) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = isa;
    options.share_pool = maker;
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    return ctx;
}

#endif
