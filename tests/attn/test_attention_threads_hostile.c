/*
 * Threads that cannot be made (AT23): the n-th pthread_create fails, for every n, alone or with all
 * after it. Calls run with the threads that there are, or serially, with the same bits; nothing
 * leaks, no thread stays behind, and later calls still work. The pool alone is in
 * tests/core/test_core_pool.c.
 */
#include "attn/attention_answer.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "counting_allocator.h"
#include "sanitizers.h"

/* ---- pthread_create that fails on demand ----------------------------------------------------- */

static atomic_int n_creations, fail_from = 1 << 20, fail_until = 1 << 20;
static int errors[] = { EAGAIN, EPERM, ENOMEM };
static int error_now;

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*start)(void *), void *argument) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    const int n = atomic_fetch_add(&n_creations, 1) + 1;
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (n >= atomic_load(&fail_from) && n < atomic_load(&fail_until)) return error_now;
    return real(thread, attributes, start, argument);
}

/* The n-th from now fails, and if all is set those after it. */
static void arm(int n, bool all) {
    atomic_store(&n_creations, 0);
    atomic_store(&fail_from, n);
    atomic_store(&fail_until, all ? 1 << 20 : n + 1);
    error_now = errors[n % 3];
}

static void disarm(void) { arm(1 << 20, true); }

/* ---- The cases ------------------------------------------------------------------------------- */

/* A thread that has been joined may be seen for a moment longer. */
static int threads_now(void) {
    int n = 0;
    if (UNDER_TSAN) return 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));) n += entry->d_name[0] != '.';
    closedir(tasks);
    return n;
}

static void no_more_threads_than(int n_before) {
    while (threads_now() > n_before) usleep(2000);
}

static void one_failure(const char *isa, int n_threads, int n, bool all, bool shared) {
    counting_allocator counter = { 0 };
    qkv_ctx *ctx = NULL, *sharer = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    const int n_before = threads_now();
    options.isa = isa;
    options.n_threads = n_threads;
    options.allocator = counting_allocator_of(&counter);
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    options.share_pool = ctx;
    assert_int_equal(qkv_ctx_create(&options, &sharer, NULL), QKV_OK);
    assert_int_equal(threads_now(), n_before); /* none before the first parallel call */
    arm(n, all);
    assert_true(job_right(shared ? sharer : ctx, &answer));
    const int asked = atomic_load(&n_creations);
    assert_int_equal(asked, n < n_threads ? n : n_threads - 1);
    if (!UNDER_TSAN)
        assert_int_equal(threads_now(), n_before + (n < n_threads ? n - 1 : n_threads - 1));
    assert_true(job_right(shared ? ctx : sharer, &answer)); /* still failing */
    disarm();
    for (int turn = 0; turn < 3; turn++) assert_true(job_right(turn % 2 ? sharer : ctx, &answer));
    assert_int_equal(atomic_load(&n_creations), 0); /* a process tries once */
    qkv_ctx_free(shared ? ctx : sharer);
    assert_true(job_right(shared ? sharer : ctx, &answer));
    qkv_ctx_free(shared ? sharer : ctx);
    assert_int_equal(counter.n_alive, 0);
    assert_int_equal(counter.bytes_alive, 0);
    no_more_threads_than(n_before);
}

static void AT23_the_nth_creation_fails(void **state) {
    (void)state;
    if (UNDER_TSAN) skip(); /* it makes a thread of its own */
    static const int n_threads[] = { 2, 3, UNDER_SANITIZER ? 4 : 8 };
    for (int i = 0; qkv_isa_name(i); i++)
        for (int t = 0; t < 3; t++)
            for (int n = 1; n <= n_threads[t]; n++)
                one_failure(qkv_isa_name(i), n_threads[t], n, n % 2, n % 3 == 0);
}

/* A new context tries again, and has all of its threads. */
static void AT23_a_new_context_tries_again(void **state) {
    (void)state;
    const int n_before = threads_now();
    qkv_ctx *poor = context_on(NULL, 4);
    arm(1, true);
    assert_true(job_right(poor, &answer));
    assert_int_equal(threads_now(), n_before);
    disarm();
    qkv_ctx *rich = context_on(NULL, 4);
    assert_true(job_right(rich, &answer) && job_right(poor, &answer));
    if (!UNDER_TSAN) assert_int_equal(threads_now(), n_before + 3);
    qkv_ctx_free(rich);
    qkv_ctx_free(poor);
    no_more_threads_than(n_before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT23_the_nth_creation_fails),
        cmocka_unit_test(AT23_a_new_context_tries_again),
    };
    return cmocka_run_group_tests(tests, make_answer, free_answer);
}
