/*
 * The pool: every index once, concurrency, nesting, sharing, fork, no threads to be had,
 * floating-point state.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "core/alloc.h"
#include "core/pool.h"
#include "counting_allocator.h"
#include "fpmodes.h"
#include "sanitizers.h"

/* The program's own pthread_create comes before the C library's: it can be told to fail. */
static atomic_int creations_allowed = 1 << 20;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (atomic_fetch_sub(&creations_allowed, 1) <= 0) return EAGAIN;
    return real(thread, attributes, start, argument);
}

static qkv_allocator plain;

static qkvi_pool *make_pool(int n_threads) {
    qkvi_pool *pool = qkvi_pool_create(&plain, n_threads, NULL);
    assert_non_null(pool);
    assert_int_equal(qkvi_pool_threads(pool), n_threads);
    return pool;
}

enum { MAX_TASKS = 2000 };

static void count_index(void *argument, int index) {
    atomic_int *counts = argument;
    atomic_fetch_add(&counts[index], 1);
}

typedef void run_tasks(qkvi_pool *pool, int n_tasks, qkvi_task *task, void *argument);

/* True if a run of n_tasks calls every index exactly once. */
static bool calls_each_index_once(run_tasks *run, qkvi_pool *pool, int n_tasks) {
    static _Thread_local atomic_int counts[MAX_TASKS + 1];
    memset(counts, 0, sizeof counts);
    run(pool, n_tasks, count_index, counts);
    for (int i = 0; i < n_tasks; i++)
        if (counts[i] != 1) return false;
    return counts[n_tasks < 0 ? 0 : n_tasks] == 0;
}

static bool runs_each_index_once(qkvi_pool *pool, int n_tasks) {
    return calls_each_index_once(qkvi_pool_run, pool, n_tasks) &&
           calls_each_index_once(qkvi_pool_run_ranges, pool, n_tasks);
}

static void each_index_once(void **state) {
    (void)state;
    static const int sizes[] = { 0, 1, 2, 3, 7, 16, 17, 100, MAX_TASKS };
    for (int n_threads = 1; n_threads <= 16; n_threads++) {
        qkvi_pool *pool = make_pool(n_threads);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            assert_true(runs_each_index_once(pool, sizes[i]));
        qkvi_pool_release(pool);
    }
    assert_true(runs_each_index_once(NULL, 10));
    assert_true(runs_each_index_once(NULL, -3));
    assert_int_equal(qkvi_pool_threads(NULL), 1);
    qkvi_pool_release(NULL);
}

static void note_order(void *argument, int index) {
    int **next = argument;
    *(*next)++ = index;
}

/*
 * A thread goes from one end of its range to the other; more threads than ranges there may be, too.
 */
static void ranges_go_from_end_to_end(void **state) {
    (void)state;
    int order[MAX_TASKS], *next = order;
    qkvi_pool_run_ranges(NULL, MAX_TASKS, note_order, &next);
    assert_ptr_equal(next, order + MAX_TASKS);
    for (int i = 0; i < MAX_TASKS; i++) assert_int_equal(order[i], i);
    qkvi_pool *pool = make_pool(100);
    assert_true(runs_each_index_once(pool, 99));
    assert_true(runs_each_index_once(pool, MAX_TASKS));
    qkvi_pool_release(pool);
}

/*
 * Thousands of short jobs, with pauses on both sides of the time that a worker spins before it
 * sleeps.
 */
static void many_short_jobs(void **state) {
    (void)state;
    for (int n_threads = 2; n_threads <= 4; n_threads++) {
        qkvi_pool *pool = make_pool(n_threads);
        for (int i = 0; i < 3000; i++) {
            assert_true(runs_each_index_once(pool, 1 + i % 9));
            if (i % 100 == 0) usleep((useconds_t)(i % 300));
        }
        qkvi_pool_release(pool);
    }
}

static void meet(void *argument, int index) {
    (void)index;
    pthread_barrier_wait(argument);
}

/*
 * As many tasks as threads, each of which waits for all others: a pool that ran them one by one
 * would never return.
 */
static void tasks_run_at_the_same_time(void **state) {
    (void)state;
    for (int n_threads = 2; n_threads <= 16; n_threads += 7) {
        pthread_barrier_t barrier;
        pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
        qkvi_pool *pool = make_pool(n_threads);
        for (int i = 0; i < 20; i++) qkvi_pool_run(pool, n_threads, meet, &barrier);
        qkvi_pool_release(pool);
        pthread_barrier_destroy(&barrier);
    }
}

struct nest {
    qkvi_pool *pool;
    atomic_int n_right;
};

static void run_inside(void *argument, int index) {
    struct nest *nest = argument;
    (void)index;
    if (runs_each_index_once(nest->pool, 50)) atomic_fetch_add(&nest->n_right, 1);
}

static void AT22_nested_calls_are_serial(void **state) {
    (void)state;
    struct nest nest = { make_pool(4), 0 };
    qkvi_pool_run(nest.pool, 20, run_inside, &nest);
    assert_int_equal(nest.n_right, 20);
    qkvi_pool_release(nest.pool);
}

static void *run_from_another_thread(void *argument) {
    struct nest *nest = argument;
    for (int i = 0; i < 300; i++) run_inside(nest, 0);
    qkvi_pool_release(nest->pool);
    return NULL;
}

/* The last owner ends the threads, whichever made the pool. */
static void AT22_a_pool_is_shared(void **state) {
    (void)state;
    enum { N_CALLERS = 4 };
    struct nest nest = { make_pool(3), 0 };
    pthread_t callers[N_CALLERS];
    for (int i = 0; i < N_CALLERS; i++) {
        qkvi_pool_retain(nest.pool);
        assert_int_equal(pthread_create(&callers[i], NULL, run_from_another_thread, &nest), 0);
    }
    qkvi_pool_release(nest.pool);
    for (int i = 0; i < N_CALLERS; i++) pthread_join(callers[i], NULL);
    assert_int_equal(nest.n_right, 300 * N_CALLERS);
}

static void AT23_fewer_threads_than_wanted(void **state) {
    (void)state;
    for (int n_allowed = 0; n_allowed < 4; n_allowed++) {
        qkvi_pool *pool = make_pool(8);
        atomic_store(&creations_allowed, n_allowed);
        assert_true(runs_each_index_once(pool, 100));
        const int n_left = atomic_load(&creations_allowed);
        atomic_store(&creations_allowed, 1 << 20);
        assert_int_equal(n_left, -1); /* all that were allowed, and one refusal */
        assert_true(runs_each_index_once(pool, 100));
        assert_int_equal(creations_allowed, 1 << 20); /* not tried again */
        qkvi_pool_release(pool);
    }
}

/* ---- Fork ------------------------------------------------------------------------------------ */

/*
 * ThreadSanitizer dies of a second thread at a stack that its parent process has used ("dup thread
 * with used id").
 */
static void skip_where_children_have_no_threads(void) {
    if (UNDER_TSAN) skip();
}

static void expect_child_exits_with_0(pid_t child) {
    int status = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/*
 * In a child: serial at worst, but right; and its tasks run at the same time, so it has threads of
 * its own.
 */
_Noreturn static void check_in_child(qkvi_pool *pool) {
    bool ok = runs_each_index_once(pool, 100);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 3);
    qkvi_pool_run(pool, 3, meet, &barrier);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(runs_each_index_once(pool, 100) ? 0 : 1);
    int status = -1;
    ok = ok && waitpid(grandchild, &status, 0) == grandchild && status == 0;
    qkvi_pool_release(pool);
    _exit(ok ? 0 : 1);
}

static void AT22_a_child_makes_its_own_threads(void **state) {
    (void)state;
    skip_where_children_have_no_threads();
    for (int run_before = 0; run_before <= 1; run_before++) {
        qkvi_pool *pool = make_pool(3);
        if (run_before) assert_true(runs_each_index_once(pool, 100));
        const pid_t child = fork();
        if (child == 0) check_in_child(pool);
        assert_true(runs_each_index_once(pool, 100));
        expect_child_exits_with_0(child);
        assert_true(runs_each_index_once(pool, 100));
        qkvi_pool_release(pool);
    }
}

static void AT22_a_child_may_just_release(void **state) {
    (void)state;
    qkvi_pool *pool = make_pool(3);
    assert_true(runs_each_index_once(pool, 100));
    const pid_t child = fork();
    if (child == 0) {
        qkvi_pool_release(pool); /* must not wait for threads that it does not have */
        _exit(0);
    }
    expect_child_exits_with_0(child);
    qkvi_pool_release(pool);
}

struct gate {
    qkvi_pool *pool;
    atomic_int inside;
    atomic_bool open;
};

static void wait_at_gate(void *argument, int index) {
    struct gate *gate = argument;
    (void)index;
    atomic_fetch_add(&gate->inside, 1);
    while (!atomic_load(&gate->open)) usleep(100);
}

static void *run_gate(void *argument) {
    struct gate *gate = argument;
    qkvi_pool_run(gate->pool, 2, wait_at_gate, gate);
    return NULL;
}

/*
 * Another thread is inside a call at the moment of the fork, so the child finds a pool that
 * stays busy.
 */
static void AT22_a_fork_while_busy(void **state) {
    (void)state;
    skip_where_children_have_no_threads();
    struct gate gate = { make_pool(3), 0, false };
    pthread_t caller;
    assert_int_equal(pthread_create(&caller, NULL, run_gate, &gate), 0);
    while (atomic_load(&gate.inside) == 0) usleep(100);
    const pid_t child = fork();
    if (child == 0) check_in_child(gate.pool);
    expect_child_exits_with_0(child);
    atomic_store(&gate.open, true);
    pthread_join(caller, NULL);
    qkvi_pool_release(gate.pool);
}

/* ---- What the host has set ------------------------------------------------------------------- */

struct host {
    pthread_barrier_t barrier;
    pthread_t caller;
    atomic_int n_wrong_state, n_open_signals;
};

static void look_around(void *argument, int index) {
    struct host *host = argument;
    (void)index;
    if (qkvi_fpstate_get() != QKVI_FPSTATE_DEFAULT) atomic_fetch_add(&host->n_wrong_state, 1);
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    if (!pthread_equal(pthread_self(), host->caller) && !sigismember(&set, SIGUSR1))
        atomic_fetch_add(&host->n_open_signals, 1);
    pthread_barrier_wait(&host->barrier);
}

static void with_host_state(qkvi_pool *pool, int n_tasks) {
    struct host host = { .caller = pthread_self() };
    pthread_barrier_init(&host.barrier, NULL, (unsigned)n_tasks);
    const qkvi_fpstate before = qkvi_fpstate_get();
    const qkvi_fpstate odd = fpmode_set(7); /* to zero, flushes to zero, all flags raised */
    qkvi_pool_run(pool, n_tasks, look_around, &host);
    const qkvi_fpstate after = qkvi_fpstate_get();
    qkvi_fpstate_set(before);
    assert_int_equal(after, odd);
    assert_int_equal(host.n_wrong_state, 0);
    assert_int_equal(host.n_open_signals, 0);
    pthread_barrier_destroy(&host.barrier);
}

static void AT21_floating_point_state_and_signals_are_the_hosts(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        qkvi_pool *pool = make_pool(n_threads);
        for (int i = 0; i < 3; i++) with_host_state(pool, n_threads);
        qkvi_pool_release(pool);
    }
}

/*
 * A host that runs each task on a thread of its own, the last first, with the smallest stack that
 * we promise to need.
 */
struct hosted {
    void (*task)(void *, int);
    void *argument;
    int index;
};

static void *hosted_main(void *argument) {
    struct hosted *hosted = argument;
    fpmode_set(4);
    hosted->task(hosted->argument, hosted->index);
    return NULL;
}

static void parallel_for(void *user, int n_tasks, void (*task)(void *argument, int index),
                         void *argument) {
    enum { STACK_BYTES = 64 << 10, MAX_HOSTED = 8 };
    struct hosted hosted[MAX_HOSTED];
    pthread_t threads[MAX_HOSTED];
    pthread_attr_t attributes;
    ++*(int *)user;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = n_tasks - 1; i >= 0; i--) {
        hosted[i] = (struct hosted){ task, argument, i };
        assert_int_equal(pthread_create(&threads[i], &attributes, hosted_main, &hosted[i]), 0);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (int i = 0; i < n_tasks; i++) pthread_join(threads[i], NULL);
    pthread_attr_destroy(&attributes);
}

static void AT22_a_host_lends_its_threads(void **state) {
    (void)state;
    int n_calls = 0;
    const qkv_executor executor = { parallel_for, 6, &n_calls };
    qkvi_pool *pool = qkvi_pool_create(&plain, 6, &executor);
    assert_int_equal(qkvi_pool_threads(pool), 6);
    atomic_store(&creations_allowed, 6 + 6);
    assert_true(calls_each_index_once(qkvi_pool_run, pool, 6));
    with_host_state(pool, 6);
    assert_int_equal(creations_allowed, 0); /* we made none ourselves */
    atomic_store(&creations_allowed, 1 << 20);
    assert_int_equal(n_calls, 2);
    assert_true(runs_each_index_once(pool, 1)); /* one task is not worth a call */
    assert_int_equal(n_calls, 2);
    qkvi_pool_release(pool);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void allocates_once(void **state) {
    (void)state;
    counting_allocator counter = { 0 };
    const qkv_allocator counting = counting_allocator_of(&counter);
    qkvi_pool *pool = qkvi_pool_create(&counting, 3, NULL);
    for (int i = 0; i < 10; i++) assert_true(runs_each_index_once(pool, 10));
    assert_int_equal(counter.n_calls, 1);
    qkvi_pool_release(pool);
    assert_int_equal(counter.n_alive, 0);
    counter.fail_at = 2;
    assert_null(qkvi_pool_create(&counting, 3, NULL));
}

int main(void) {
    plain = qkvi_allocator_resolve((qkv_allocator){ 0 });
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_index_once),
        cmocka_unit_test(ranges_go_from_end_to_end),
        cmocka_unit_test(many_short_jobs),
        cmocka_unit_test(tasks_run_at_the_same_time),
        cmocka_unit_test(AT22_nested_calls_are_serial),
        cmocka_unit_test(AT22_a_pool_is_shared),
        cmocka_unit_test(AT23_fewer_threads_than_wanted),
        cmocka_unit_test(AT22_a_child_makes_its_own_threads),
        cmocka_unit_test(AT22_a_child_may_just_release),
        cmocka_unit_test(AT22_a_fork_while_busy),
        cmocka_unit_test(AT21_floating_point_state_and_signals_are_the_hosts),
        cmocka_unit_test(AT22_a_host_lends_its_threads),
        cmocka_unit_test(allocates_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
