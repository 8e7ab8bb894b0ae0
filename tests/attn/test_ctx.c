/*
 * Contexts: defaults, options, environment, failing memory, sharing of threads, the bracket of a
 * call.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/ctx.h"
#include "core/cpu.h"
#include "counting_allocator.h"
#include "fpmodes.h"
#include "kernels/table.h"

static qkv_error error;

static qkv_status create(const qkv_ctx_options *options, qkv_ctx **ctx) {
    *ctx = (qkv_ctx *)&error; /* must become NULL or a context */
    memset(&error, 0, sizeof error);
    return qkv_ctx_create(options, ctx, &error);
}

static void expect_refusal(const qkv_ctx_options *options, qkv_status status, const char *text) {
    qkv_ctx *ctx;
    assert_int_equal(create(options, &ctx), status);
    assert_null(ctx);
    assert_int_equal(error.status, status);
    if (!strstr(error.message, text)) fail_msg("\"%s\" does not say \"%s\"", error.message, text);
    assert_int_equal(qkv_ctx_create(options, &ctx, NULL), status);
}

static int clean_environment(void **state) {
    (void)state;
    return unsetenv("QKV_ISA") || unsetenv("QKV_NUM_THREADS");
}

static void defaults(void **state) {
    (void)state;
    qkv_ctx *ctx;
    const qkv_ctx_options options = qkv_ctx_options_init();
    const qkv_ctx_options *both[] = { NULL, &options };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(create(both[i], &ctx), QKV_OK);
        assert_string_equal(qkv_ctx_isa(ctx), qkvi_kernels_best()->name);
        assert_int_equal(qkv_ctx_threads(ctx), qkvi_cpu_count());
        assert_string_equal(qkv_ctx_message(ctx), "");
        qkv_ctx_free(ctx);
    }
    qkv_ctx_free(NULL);
    assert_string_equal(qkv_ctx_message(NULL), "");
    assert_int_equal(qkv_ctx_create(NULL, NULL, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "ctx is NULL");
}

static void every_isa_by_name(void **state) {
    (void)state;
    const char *name;
    int n_isas = 0;
    assert_string_equal(qkv_isa_name(0), "scalar");
    for (; (name = qkv_isa_name(n_isas)); n_isas++) {
        qkv_ctx *ctx;
        qkv_ctx_options options = qkv_ctx_options_init();
        options.isa = name;
        setenv("QKV_ISA", "no such thing", 1); /* the option wins, unread */
        assert_int_equal(create(&options, &ctx), QKV_OK);
        assert_string_equal(qkv_ctx_isa(ctx), name);
        qkv_ctx_free(ctx);
        setenv("QKV_ISA", name, 1);
        assert_int_equal(create(NULL, &ctx), QKV_OK);
        assert_string_equal(qkv_ctx_isa(ctx), name);
        qkv_ctx_free(ctx);
    }
    assert_string_equal(qkv_isa_name(n_isas - 1), qkvi_kernels_best()->name);
    assert_null(qkv_isa_name(n_isas + 1));
    assert_null(qkv_isa_name(-1));
}

static void unknown_isas(void **state) {
    (void)state;
    qkv_ctx *ctx;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = "sse9\x1b[2J";
    expect_refusal(&options, QKV_ERR_ARGUMENT, "isa = \"sse9\\x1b[2J\" is not an instruction set");
    assert_non_null(strstr(error.message, "those are: scalar"));
    options.isa = "AVX2"; /* names are exact */
    expect_refusal(&options, QKV_ERR_ARGUMENT, "AVX2");
    setenv("QKV_ISA", "altivec", 1);
    expect_refusal(NULL, QKV_ERR_ARGUMENT, "QKV_ISA = \"altivec\"");
    setenv("QKV_ISA", "", 1); /* empty is unset */
    assert_int_equal(create(NULL, &ctx), QKV_OK);
    qkv_ctx_free(ctx);
}

static void numbers_of_threads(void **state) {
    (void)state;
    qkv_ctx *ctx;
    qkv_ctx_options options = qkv_ctx_options_init();
    setenv("QKV_NUM_THREADS", "3", 1);
    for (int n = 0; n <= 16; n++) {
        options.n_threads = n;
        assert_int_equal(create(&options, &ctx), QKV_OK);
        assert_int_equal(qkv_ctx_threads(ctx), n ? n : 3);
        qkv_ctx_free(ctx);
    }
    static const char *const wrong[] = { "0",  "-1", "1025", "two", "2 ",
                                         " 2", "2x", "+2",   "0x2", "99999999999999999999" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("QKV_NUM_THREADS", wrong[i], 1);
        expect_refusal(NULL, QKV_ERR_ARGUMENT, "QKV_NUM_THREADS = ");
    }
    unsetenv("QKV_NUM_THREADS");
    options.n_threads = -1;
    expect_refusal(&options, QKV_ERR_ARGUMENT, "n_threads = -1");
    options.n_threads = 1025;
    expect_refusal(&options, QKV_ERR_ARGUMENT, "n_threads = 1025");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void AT24_all_memory_comes_from_the_allocator(void **state) {
    (void)state;
    counting_allocator counter = { 0 };
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 3;
    options.allocator = counting_allocator_of(&counter);
    int n_failures = 0;
    for (counter.fail_at = 1; create(&options, &ctx) != QKV_OK; counter.fail_at++) {
        assert_int_equal(error.status, QKV_ERR_MEMORY);
        assert_null(ctx);
        assert_int_equal(counter.n_alive, 0);
        counter.n_calls = 0;
        n_failures++;
    }
    counter.fail_at = 0;
    assert_true(n_failures >= 2);
    assert_true(counter.n_alive > 0);

    void *workspace = NULL, *again = NULL;
    assert_int_equal(qkvi_ctx_begin(ctx), QKV_OK);
    assert_int_equal(qkvi_ctx_workspace(ctx, NULL, 10000, &workspace), QKV_OK);
    const int64_t n_calls = counter.n_calls;
    assert_int_equal(qkvi_ctx_workspace(ctx, NULL, 9000, &again), QKV_OK);
    assert_ptr_equal(workspace, again);
    assert_int_equal(counter.n_calls, n_calls); /* grown once, then steady */
    counter.fail_at = n_calls + 1;
    assert_int_equal(qkvi_ctx_end(ctx, qkvi_ctx_workspace(ctx, NULL, 20000, &again)),
                     QKV_ERR_MEMORY);
    assert_non_null(strstr(qkv_ctx_message(ctx), "20000 bytes"));
    qkv_ctx_free(ctx);
    assert_int_equal(counter.n_alive, 0);
    assert_int_equal(counter.bytes_alive, 0);

    options.allocator.release = NULL;
    expect_refusal(&options, QKV_ERR_ARGUMENT, "allocator.release is NULL");
    options.allocator = (qkv_allocator){ NULL, counting_release, &counter };
    expect_refusal(&options, QKV_ERR_ARGUMENT, "allocator.alloc is NULL");
}

static void workspace_of_the_caller(void **state) {
    (void)state;
    _Alignas(64) static char mine[256];
    qkv_ctx *ctx;
    assert_int_equal(create(NULL, &ctx), QKV_OK);
    qkv_call_options call = qkv_call_options_init();
    void *workspace = NULL;
    call.workspace = mine;
    call.workspace_bytes = 128;
    assert_int_equal(qkvi_ctx_begin(ctx), QKV_OK);
    assert_int_equal(qkvi_ctx_workspace(ctx, &call, 128, &workspace), QKV_OK);
    assert_ptr_equal(workspace, mine);
    assert_int_equal(qkvi_ctx_workspace(ctx, &call, 129, &workspace), QKV_ERR_ARGUMENT);
    assert_string_equal(qkv_ctx_message(ctx),
                        "workspace_bytes = 128 is less than the 129 that this call needs");
    call.workspace = mine + 32;
    assert_int_equal(qkvi_ctx_workspace(ctx, &call, 64, &workspace), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(qkv_ctx_message(ctx), "is not aligned to 64"));
    assert_int_equal(qkvi_ctx_end(ctx, QKV_OK), QKV_OK);
    qkv_ctx_free(ctx);
}

/* ---- Options of other versions --------------------------------------------------------------- */

static void newer_options(void **state) {
    (void)state;
    struct {
        qkv_ctx_options known;
        long more[4];
    } newer = { qkv_ctx_options_init(), { 0 } };
    qkv_ctx *ctx;
    newer.known.struct_size = sizeof newer;
    newer.known.n_threads = 2;
    assert_int_equal(create(&newer.known, &ctx), QKV_OK);
    assert_int_equal(qkv_ctx_threads(ctx), 2);
    qkv_ctx_free(ctx);
    newer.more[3] = 1;
    expect_refusal(&newer.known, QKV_ERR_VERSION, "qkv_ctx_options.struct_size");
    newer.known.struct_size = 0;
    expect_refusal(&newer.known, QKV_ERR_ARGUMENT, "qkv_ctx_options.struct_size = 0");
}

/* ---- Sharing --------------------------------------------------------------------------------- */

static void note_index(void *argument, int index) { ((int *)argument)[index]++; }

static void a_shared_pool_outlives_its_maker(void **state) {
    (void)state;
    qkv_ctx *maker, *sharer;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 4;
    assert_int_equal(create(&options, &maker), QKV_OK);
    options = qkv_ctx_options_init();
    options.share_pool = maker;
    assert_int_equal(create(&options, &sharer), QKV_OK);
    assert_int_equal(qkv_ctx_threads(sharer), 4);
    assert_ptr_equal(sharer->pool, maker->pool);
    qkv_ctx_free(maker);
    int counts[100] = { 0 };
    qkvi_pool_run(sharer->pool, 100, note_index, counts);
    for (int i = 0; i < 100; i++) assert_int_equal(counts[i], 1);
    qkv_ctx_free(sharer);
}

static void one_after_the_other(void *user, int n_tasks, void (*task)(void *, int),
                                void *argument) {
    *(int *)user += n_tasks;
    for (int i = n_tasks - 1; i >= 0; i--) task(argument, i);
}

static void the_hosts_threads(void **state) {
    (void)state;
    qkv_ctx *ctx;
    int n_tasks = 0, counts[7] = { 0 };
    qkv_ctx_options options = qkv_ctx_options_init();
    options.executor = (qkv_executor){ one_after_the_other, 5, &n_tasks };
    assert_int_equal(create(&options, &ctx), QKV_OK);
    assert_int_equal(qkv_ctx_threads(ctx), 5);
    qkvi_pool_run(ctx->pool, 7, note_index, counts);
    assert_int_equal(n_tasks, 7);
    for (int i = 0; i < 7; i++) assert_int_equal(counts[i], 1);
    qkv_ctx_free(ctx);
    options.n_threads = -1; /* ignored */
    assert_int_equal(create(&options, &ctx), QKV_OK);
    assert_int_equal(qkv_ctx_threads(ctx), 5);
    qkv_ctx_free(ctx);
    options.executor.n_threads = 0;
    expect_refusal(&options, QKV_ERR_ARGUMENT, "executor.n_threads = 0");
}

/* ---- The bracket ----------------------------------------------------------------------------- */

static void AT22_one_call_at_a_time(void **state) {
    (void)state;
    qkv_ctx *ctx;
    assert_int_equal(qkvi_ctx_begin(NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(create(NULL, &ctx), QKV_OK);
    assert_int_equal(qkvi_ctx_begin(ctx), QKV_OK);
    assert_int_equal(qkvi_ctx_fail(ctx, QKV_ERR_SHAPE, "len_q = %d", -1), QKV_ERR_SHAPE);
    assert_int_equal(qkvi_ctx_begin(ctx), QKV_ERR_BUSY);
    assert_string_equal(qkv_ctx_message(ctx), "len_q = -1"); /* not touched by the second call */
    assert_int_equal(qkvi_ctx_end(ctx, QKV_ERR_SHAPE), QKV_ERR_SHAPE);
    assert_string_equal(qkv_ctx_message(ctx), "len_q = -1");
    assert_int_equal(qkvi_ctx_begin(ctx), QKV_OK);
    assert_string_equal(qkv_ctx_message(ctx), "");
    assert_int_equal(qkvi_ctx_end(ctx, QKV_ERR_IO), QKV_ERR_IO);
    assert_string_equal(qkv_ctx_message(ctx), "QKV_ERR_IO"); /* better than nothing */
    assert_int_equal(qkvi_ctx_begin(ctx), QKV_OK);
    assert_int_equal(qkvi_ctx_end(ctx, QKV_OK), QKV_OK);
    assert_string_equal(qkv_ctx_message(ctx), "");
    qkv_ctx_free(ctx);
}

static void AT21_floating_point_state_is_restored(void **state) {
    (void)state;
    qkv_ctx *ctx;
    assert_int_equal(create(NULL, &ctx), QKV_OK);
    const qkvi_fpstate before = qkvi_fpstate_get();
    const qkvi_fpstate odd = fpmode_set(5); /* not to nearest, flushes to zero, all flags */
    const qkv_status begun = qkvi_ctx_begin(ctx);
    const qkvi_fpstate inside = qkvi_fpstate_get();
    const qkv_status ended = qkvi_ctx_end(ctx, QKV_OK);
    const qkvi_fpstate after = qkvi_fpstate_get();
    qkvi_fpstate_set(before);
    assert_int_equal(begun, QKV_OK);
    assert_int_equal(ended, QKV_OK);
    assert_int_equal(inside, QKVI_FPSTATE_DEFAULT);
    assert_int_equal(after, odd);
    qkv_ctx_free(ctx);
}

struct contest {
    qkv_ctx *ctx;
    int n_won; /* not atomic: the context is the lock */
    _Atomic int n_refused;
};

static void *contend(void *argument) {
    struct contest *contest = argument;
    for (int i = 0; i < 20000; i++) {
        const qkv_status status = qkvi_ctx_begin(contest->ctx);
        if (status == QKV_OK) {
            contest->n_won++;
            if (qkvi_ctx_end(contest->ctx, QKV_OK) != QKV_OK) return argument;
        } else if (status == QKV_ERR_BUSY) {
            contest->n_refused++;
        }
    }
    return NULL;
}

static void AT22_only_one_of_many_callers_is_inside(void **state) {
    (void)state;
    enum { N_CALLERS = 4 };
    struct contest contest = { 0 };
    pthread_t callers[N_CALLERS];
    assert_int_equal(create(NULL, &contest.ctx), QKV_OK);
    for (int i = 0; i < N_CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, contend, &contest), 0);
    for (int i = 0; i < N_CALLERS; i++) {
        void *failed = &contest;
        assert_int_equal(pthread_join(callers[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(contest.n_won + contest.n_refused, 20000 * N_CALLERS);
    qkv_ctx_free(contest.ctx);
}

#define TEST(name) cmocka_unit_test_setup(name, clean_environment)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(defaults),
        TEST(every_isa_by_name),
        TEST(unknown_isas),
        TEST(numbers_of_threads),
        TEST(AT24_all_memory_comes_from_the_allocator),
        TEST(workspace_of_the_caller),
        TEST(newer_options),
        TEST(a_shared_pool_outlives_its_maker),
        TEST(the_hosts_threads),
        TEST(AT22_one_call_at_a_time),
        TEST(AT21_floating_point_state_is_restored),
        TEST(AT22_only_one_of_many_callers_is_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
