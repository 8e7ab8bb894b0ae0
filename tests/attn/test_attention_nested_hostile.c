/*
 * Calls from everywhere at once (AT22): many threads with contexts of their own, a pool or a host's
 * threads that they share, calls from inside a task, from inside the host's hook, from a progress
 * report; on stacks of 64 KiB. Each gives the right bits or a clean error.
 * Forks and exit handlers are in test_attention_process_hostile.c.
 */
#include "attn/attention_answer.h"

#include <pthread.h>
#include <stdatomic.h>

#include "attn/ctx.h"

enum { CALLERS = UNDER_SANITIZER ? 4 : 8, ROUNDS = UNDER_SANITIZER ? 1 : 2 };

static qkv_ctx *context_with(qkv_ctx_options options) {
    qkv_ctx *ctx = NULL;
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    return ctx;
}

static qkv_ctx_options options_for(const char *isa, int n_threads) {
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = isa;
    options.n_threads = n_threads;
    return options;
}

/* ---- Many threads ---------------------------------------------------------------------------- */

/* A thread that makes a context from its options and does the job some times. */
typedef struct caller {
    qkv_ctx_options options;
    int rounds;
    bool right;
} caller;

static void *call_often(void *argument) {
    caller *x = argument;
    qkv_ctx *ctx = NULL;
    x->right = qkv_ctx_create(&x->options, &ctx, NULL) == QKV_OK;
    for (int n = 0; n < x->rounds && x->right; n++) x->right = job_right(ctx, &answer);
    qkv_ctx_free(ctx);
    return NULL;
}

/* stack_bytes 0: the default. */
static void call_from_many(qkv_ctx_options options, int rounds, size_t stack_bytes) {
    pthread_t threads[CALLERS];
    caller callers[CALLERS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack_bytes) assert_int_equal(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
    for (int n = 0; n < CALLERS; n++) {
        callers[n] = (caller){ options, rounds, false };
        assert_int_equal(pthread_create(&threads[n], &attributes, call_often, &callers[n]), 0);
    }
    for (int n = 0; n < CALLERS; n++) pthread_join(threads[n], NULL);
    for (int n = 0; n < CALLERS; n++) assert_true(callers[n].right);
    pthread_attr_destroy(&attributes);
}

static void AT22_many_threads_with_own_contexts(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) {
        call_from_many(options_for(qkv_isa_name(n), 1), ROUNDS, 0);
        call_from_many(options_for(qkv_isa_name(n), 3), ROUNDS, 0);
    }
}

static void AT22_many_threads_share_a_pool(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) {
        qkv_ctx *maker = context_on(qkv_isa_name(n), 4);
        qkv_ctx_options options = options_for(qkv_isa_name(n), 0);
        options.share_pool = maker;
        call_from_many(options, ROUNDS, 0);
        assert_true(job_right(maker, &answer));
        qkv_ctx_free(maker);
    }
}

/* One context for all: a call that comes too late is refused, and its outputs are left alone. */
typedef struct crowd {
    qkv_ctx *ctx;
    atomic_int n_right, n_refused, n_wrong;
} crowd;

static void *push_in(void *argument) {
    crowd *x = argument;
    job j = job_new(), untouched = job_new();
    job_clear(&untouched);
    for (int n = 0; n < 20; n++) {
        job_clear(&j);
        const qkv_status status =
            qkv_attention_forward(x->ctx, &j.p.d, j.p.q, j.p.k, j.p.v, j.p.o, j.p.lse, NULL);
        const size_t bytes = (size_t)n_o(&j.p) * sizeof(float);
        if (status == QKV_OK && memcmp(j.p.o, answer.p.o, bytes) == 0)
            atomic_fetch_add(&x->n_right, 1);
        else if (status == QKV_ERR_BUSY && job_same(&j, &untouched))
            atomic_fetch_add(&x->n_refused, 1);
        else
            atomic_fetch_add(&x->n_wrong, 1);
    }
    job_free(&j);
    job_free(&untouched);
    return NULL;
}

static void AT22_many_threads_on_one_context(void **state) {
    (void)state;
    pthread_t threads[CALLERS];
    crowd x = { .ctx = context_on(NULL, 2) };
    for (int n = 0; n < CALLERS; n++)
        assert_int_equal(pthread_create(&threads[n], NULL, push_in, &x), 0);
    for (int n = 0; n < CALLERS; n++) pthread_join(threads[n], NULL);
    assert_int_equal(x.n_wrong, 0);
    assert_int_equal(x.n_right + x.n_refused, 20 * CALLERS);
    assert_true(x.n_right > 0);
    qkv_ctx_free(x.ctx);
}

/* ---- Small stacks ---------------------------------------------------------------------------- */

enum {
    SMALL_STACK = UNDER_SANITIZER ? 1 << 20 : 64 << 10
}; /* its frames are several times as large */

static void AT22_small_stacks(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++)
        for (int threads = 1; threads <= 2; threads++)
            call_from_many(options_for(qkv_isa_name(n), threads), 1, SMALL_STACK);
}

/* The pool's own threads get the process's default: here it is small, too. */
static void AT22_small_stacks_by_default(void **state) {
    (void)state;
    pthread_attr_t before, small;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, SMALL_STACK);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    for (int n = 0; qkv_isa_name(n); n++) {
        qkv_ctx *ctx = context_on(qkv_isa_name(n), 8);
        assert_true(job_right(ctx, &answer));
        qkv_ctx_free(ctx);
    }
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    pthread_attr_destroy(&before);
    pthread_attr_destroy(&small);
}

/* ---- The host's hook ------------------------------------------------------------------------- */

/*
 * A host that calls back into the library: before it runs the tasks, after each of them, or both.
 * `own` is the context whose tasks they are, `other` a context of the same host.
 */
typedef struct host {
    qkv_ctx *own, *other, *pooled;
    atomic_int depth, n_busy, n_wrong, n_nested;
} host;

static void call_back(host *x) {
    size_t bytes;
    if (qkv_attention_workspace(x->own, &answer.p.d, &bytes) == QKV_ERR_BUSY)
        atomic_fetch_add(&x->n_busy, 1);
    else
        atomic_fetch_add(&x->n_wrong, 1);
    if (atomic_fetch_add(&x->depth, 1) == 0) { /* the first only: the others would wait for it */
        if (!job_right(x->other, &answer)) atomic_fetch_add(&x->n_wrong, 1);
        if (!job_right(x->pooled, &answer)) atomic_fetch_add(&x->n_wrong, 1);
        atomic_fetch_add(&x->n_nested, 1);
    }
    atomic_fetch_sub(&x->depth, 1);
}

typedef struct hosted {
    host *host;
    void (*task)(void *, int);
    void *argument;
    int index;
} hosted;

static void *run_hosted(void *argument) {
    hosted *x = argument;
    x->task(x->argument, x->index);
    call_back(x->host);
    return NULL;
}

static void nesting_host(void *user, int n_tasks, void (*task)(void *, int), void *argument) {
    enum { MOST = 8 };
    host *x = user;
    pthread_t threads[MOST];
    hosted tasks[MOST];
    if (atomic_load(&x->depth) == 0) call_back(x);
    for (int n = 0; n < n_tasks; n++) {
        tasks[n] = (hosted){ x, task, argument, n };
        if (atomic_load(&x->depth) > 0) /* inside a nested call: one after the other */
            task(argument, n);
        else if (pthread_create(&threads[n], NULL, run_hosted, &tasks[n]) != 0)
            abort();
        else
            continue;
        tasks[n].host = NULL;
    }
    for (int n = 0; n < n_tasks; n++)
        if (tasks[n].host) pthread_join(threads[n], NULL);
}

static void AT22_calls_from_inside_the_executor(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) {
        host x = { .depth = 0 };
        qkv_ctx_options options = options_for(qkv_isa_name(n), 0);
        options.executor = (qkv_executor){ nesting_host, 4, &x };
        x.own = context_with(options);
        x.other = context_with(options);
        x.pooled = context_on(qkv_isa_name(n), 3);
        assert_true(job_right(x.own, &answer));
        assert_int_equal(x.n_wrong, 0);
        assert_true(x.n_busy >= 3 && x.n_nested >= 3);
        qkv_ctx_free(x.own);
        qkv_ctx_free(x.other);
        qkv_ctx_free(x.pooled);
    }
}

/* ---- Recursion ------------------------------------------------------------------------------- */

/* A task of the pool makes calls on a context that shares the pool: they are serial, and right. */
typedef struct nest {
    qkv_ctx *contexts[4];
    atomic_int n_right;
} nest;

static void call_in_task(void *argument, int index) {
    nest *x = argument;
    if (job_right(x->contexts[index], &answer)) atomic_fetch_add(&x->n_right, 1);
}

static void AT22_calls_from_a_task_of_the_pool(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) {
        nest x = { .n_right = 0 };
        qkv_ctx *maker = context_on(qkv_isa_name(n), 4);
        for (int c = 0; c < 4; c++) x.contexts[c] = context_sharing(qkv_isa_name(n), maker);
        qkvi_pool_run(maker->pool, 4, call_in_task, &x);
        assert_int_equal(x.n_right, 4);
        for (int c = 0; c < 4; c++) qkv_ctx_free(x.contexts[c]);
        assert_true(job_right(maker, &answer));
        qkv_ctx_free(maker);
    }
}

/* A progress report makes calls: on its own context they are refused, on others they are done. */
typedef struct reporter {
    qkv_ctx *own, *sharer;
    int n_calls;
    bool right;
} reporter;

static void call_in_report(void *user, int64_t done, int64_t total) {
    reporter *x = user;
    size_t bytes;
    (void)done, (void)total;
    if (x->n_calls++ % 8 != 0) return;
    x->right &= qkv_attention_workspace(x->own, &answer.p.d, &bytes) == QKV_ERR_BUSY;
    x->right &= job_right(x->sharer, &answer);
}

static void AT22_calls_from_a_progress_report(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++)
        for (int threads = 1; threads <= 4; threads += 3) {
            reporter x = { .own = context_on(qkv_isa_name(n), threads), .right = true };
            x.sharer = context_sharing(qkv_isa_name(n), x.own);
            qkv_call_options call = qkv_call_options_init();
            call.progress = call_in_report;
            call.progress_user = &x;
            job j = job_new();
            const qkv_attention_grads g = grads_of(&j.p);
            const problem *p = &j.p;
            assert_int_equal(
                qkv_attention_forward(x.own, &p->d, p->q, p->k, p->v, p->o, p->lse, &call), QKV_OK);
            assert_int_equal(
                qkv_attention_backward(x.own, &p->d, p->q, p->k, p->v, p->o, p->lse, &g, &call),
                QKV_OK);
            assert_memory_equal(p->o, answer.p.o, (size_t)n_o(p) * sizeof(float));
            assert_memory_equal(p->d_q, answer.p.d_q, (size_t)n_q(p) * sizeof(float));
            assert_true(x.right && (x.n_calls > 0 || threads > 1));
            qkv_ctx_free(x.sharer);
            qkv_ctx_free(x.own);
            job_free(&j);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT22_many_threads_with_own_contexts),
        cmocka_unit_test(AT22_many_threads_share_a_pool),
        cmocka_unit_test(AT22_many_threads_on_one_context),
        cmocka_unit_test(AT22_small_stacks),
        cmocka_unit_test(AT22_small_stacks_by_default),
        cmocka_unit_test(AT22_calls_from_inside_the_executor),
        cmocka_unit_test(AT22_calls_from_a_task_of_the_pool),
        cmocka_unit_test(AT22_calls_from_a_progress_report),
    };
    return cmocka_run_group_tests(tests, make_answer, free_answer);
}
