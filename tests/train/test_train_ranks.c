/*
 * A training run that ranks share, as threads of one process: the bytes of one process for any
 * number of ranks and threads, stopped and resumed on other numbers of ranks; and what fails on one
 * rank fails on all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "thread_ranks.h"
#include "tiny_run.h"

enum { KINDS = 3, SLICES = 5 };

/* ---- Ranks as threads ------------------------------------------------------------------------ */

typedef struct member {
    qkv_train_options options;
    qkv_ranks ranks;
    qkv_status status;
    qkv_error error;
    int n_threads;
} member;

static void *run_member(void *argument) {
    member *const m = argument;
    qkv_ctx *const ctx = make_ctx(NULL, m->n_threads);
    m->status = qkv_train(ctx, &m->options, &m->error);
    qkv_ctx_free(ctx);
    return NULL;
}

static thread_ranks the_world;
static member members[MOST_THREAD_RANKS];

static void make_world(const qkv_train_options *options, int size, int n_threads) {
    thread_ranks_begin(&the_world, size);
    for (int r = 0; r < size; r++) {
        member *const m = &members[r];
        *m = (member){ .options = *options, .n_threads = n_threads };
        m->ranks = thread_ranks_of(&the_world, r);
        m->options.ranks = &m->ranks;
    }
}

static void run_world(void) { thread_ranks_run(&the_world, run_member, members, sizeof *members); }

static void expect_all(qkv_status status, const char *says) {
    for (int r = 0; r < the_world.size; r++) {
        const member *const m = &members[r];
        if (m->status != status || (says && !strstr(m->error.message, says)))
            fail_msg("rank %d of %d: %s \"%s\", expected %s \"%s\"", r, the_world.size,
                     qkv_status_name(m->status), m->error.message, qkv_status_name(status),
                     says ? says : "");
    }
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static qkv_train_options run_of(int kind) {
    qkv_train_options options = small_run();
    options.kind = (qkv_model_kind)kind;
    options.vocab_size = 280;
    options.hidden = 8;
    options.intermediate = 12;
    options.n_steps = 4;
    options.batch = 7;
    options.accumulate = 2;
    options.dropout = 0.2;
    options.n_slices = SLICES;
    return options;
}

static void test_bytes(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const qkv_train_options options = run_of(kind);
        const result expected = whole_run(&options);
        for (int size = 1; size <= MOST_THREAD_RANKS; size++)
            for (int shares = 0; shares < 2; shares++) {
                make_world(&options, size, 1 + size % 2);
                for (int r = 0; r < size; r++) members[r].options.share_moments = shares;
                run_world();
                expect_all(QKV_OK, NULL);
                expect_same(take_result(), &expected, "ranks");
            }
        free_result(&expected);
    }
}

/* One rank is told to stop after each step: all stop, and others go on, one of them alone. */
static void test_resumed(void **state) {
    (void)state;
    const int raised = 1;
    qkv_train_options options = run_of(QKV_MODEL_ENCODER);
    const result expected = whole_run(&options);
    for (int step = 1; step <= 3; step++) {
        make_world(&options, 1 + step, 1);
        for (int r = 0; r <= step; r++) members[r].options.share_moments = step % 2;
        members[step].options.cancel = &raised;
        run_world();
        expect_all(QKV_ERR_CANCELLED, "was stopped after step");
        assert_true(exists("checkpoint.safetensors"));
        options.resume = out_path;
    }
    qkv_ctx *const ctx = make_ctx(NULL, 2);
    train(ctx, &options);
    make_world(&options, 3, 1); /* all is done: nothing is computed */
    run_world();
    expect_all(QKV_OK, NULL);
    qkv_ctx_free(ctx);
    expect_same(take_result(), &expected, "resumed");
    free_result(&expected);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void test_faults(void **state) {
    (void)state;
    const qkv_train_options options = run_of(QKV_MODEL_ENCODER);
    make_world(&options, 3, 1);
    members[1].options.text = "/nowhere/text";
    run_world();
    expect_all(QKV_ERR_IO, "rank 1: /nowhere/text: cannot open");
    make_world(&options, 3, 1);
    members[2].options.seed++;
    run_world();
    expect_all(QKV_ERR_ARGUMENT, "rank 2 has other options, files or bf16 than rank 0");
    make_world(&options, 3, 1);
    members[1].options.share_moments = 1;
    run_world();
    expect_all(QKV_ERR_ARGUMENT, "rank 1 has other options, files or bf16 than rank 0");
    make_world(&options, 2, 1);
    for (int r = 0; r < 2; r++) members[r].options.out = "/nowhere/at/all";
    run_world();
    expect_all(QKV_ERR_IO, "rank 0: cannot make the folder to write");
    for (int call = 1; call < 30; call++) {
        make_world(&options, 2, 1);
        for (int r = 0; r < 2; r++) members[r].options.share_moments = call % 2;
        the_world.breaks_at = call;
        run_world();
        expect_all(QKV_ERR_IO, "cannot exchange bytes with the others");
    }
    clear_out();
}

static void refused(qkv_train_options options, qkv_ranks ranks, const char *says) {
    qkv_error error = { QKV_OK, "" };
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    options.ranks = &ranks;
    const qkv_status status = qkv_train(ctx, &options, &error);
    if (status != QKV_ERR_ARGUMENT || !strstr(error.message, says))
        fail_msg("%s \"%s\", expected \"%s\"", qkv_status_name(status), error.message, says);
    qkv_ctx_free(ctx);
}

static void test_refused(void **state) {
    (void)state;
    qkv_ranks ranks = qkv_ranks_init();
    const qkv_train_options options = run_of(QKV_MODEL_ENCODER);
    refused(options, ranks, "rank 0 is none of 0");
    ranks.n_ranks = 2;
    refused(options, ranks, "exchange of qkv_ranks is NULL");
    ranks.exchange = thread_ranks_exchange;
    ranks.rank = 2;
    refused(options, ranks, "rank 2 is none of 2");
    ranks.rank = -1;
    refused(options, ranks, "rank -1 is none of 2");
    ranks.rank = 0;
    ranks.n_ranks = SLICES + 1;
    refused(options, ranks, "n_slices = 5 is less than the 6 ranks: each needs a slice");
    ranks.n_ranks = 2;
    qkv_train_options shares = options;
    shares.share_moments = 2;
    refused(shares, ranks, "share_moments = 2 is not between 0 and 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
