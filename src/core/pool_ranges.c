/* Tasks in ranges, one for each thread: see pool.h. */
#include <stdatomic.h>

#include "core/pool.h"

enum { RANGES_MOST = 64 }; /* more threads share them */

typedef struct ranges {
    qkvi_task *task;
    void *argument;
    int n_tasks, n_ranges;
    atomic_int next[RANGES_MOST];
} ranges;

static int range_at(const ranges *r, int nth) {
    return (int)((int64_t)r->n_tasks * nth / r->n_ranges);
}

static void draw_from_ranges(void *argument, int slot) {
    ranges *const r = argument;
    for (int turn = 0; turn < r->n_ranges; turn++) {
        const int nth = (slot + turn) % r->n_ranges, end = range_at(r, nth + 1);
        for (int index; (index = atomic_fetch_add(&r->next[nth], 1)) < end;)
            r->task(r->argument, index);
    }
}

void qkvi_pool_run_ranges(qkvi_pool *pool, int n_tasks, qkvi_task *task, void *argument) {
    const int n_threads = qkvi_pool_threads(pool);
    ranges r = { .task = task, .argument = argument, .n_tasks = n_tasks };
    r.n_ranges = n_threads < RANGES_MOST ? n_threads : RANGES_MOST;
    for (int nth = 0; nth < r.n_ranges; nth++) atomic_init(&r.next[nth], range_at(&r, nth));
    qkvi_pool_run(pool, n_threads < n_tasks ? n_threads : n_tasks, draw_from_ranges, &r);
}
