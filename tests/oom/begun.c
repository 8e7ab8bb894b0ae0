/* See begun.h: pthread_create of our libraries comes here by the linker's --wrap. */
#include "oom/begun.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST = 1024 }; /* threads that have not begun yet, at once */

typedef struct start {
    void *(*run)(void *);
    void *argument;
} start;

static start starts[MOST];
static atomic_uint n_made, n_begun;

static void *begin(void *argument) {
    const start *const at = argument;
    void *(*const run)(void *) = at->run;
    void *const own = at->argument;
    atomic_fetch_add(&n_begun, 1);
    return run(own);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *argument) {
    start *const at = &starts[atomic_fetch_add(&n_made, 1) % MOST];
    *at = (start){ run, argument };
    const int failed = __real_pthread_create(thread, attr, begin, at);
    if (failed) atomic_fetch_add(&n_begun, 1);
    return failed;
}

void oom_await_threads(void) {
    while (atomic_load(&n_begun) != atomic_load(&n_made)) sched_yield();
}
