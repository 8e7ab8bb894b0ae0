/*
 * Threads: a small pool that runs the same function for every index of a range.
 *
 * Who runs which index is left to chance, so a task may not depend on it: results are a function of
 * the index alone. A task that needs scratch memory is one of n = qkvi_pool_threads(pool) tasks,
 * owns slot `index` of the scratch, and draws its pieces of work from an atomic counter.
 *
 * The threads start at the first call that has more than one task. A call from inside a task, or
 * while another thread is inside a call on the same (shared) pool, runs all its tasks on the
 * caller. If threads cannot be made there are fewer of them, down to none. After fork, the child's
 * pool starts threads of its own when it next needs them; a child may not return from a task that
 * was running when it was made. Every task runs with the default floating-point state.
 */
#ifndef QKVI_CORE_POOL_H
#define QKVI_CORE_POOL_H

#include <qkv/qkv.h>

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

enum { QKVI_POOL_MAX_THREADS = 1024 };

typedef struct qkvi_pool qkvi_pool;
typedef void qkvi_task(void *argument, int index);

/*
 * A pool of n_threads, the caller's included, with one reference; or, if executor->parallel_for is
 * set, one that hands its tasks to the host. NULL when there is no memory. allocator (complete, see
 * alloc.h) must outlive the pool.
 */
qkvi_pool *qkvi_pool_create(const qkv_allocator *allocator, int n_threads,
                            const qkv_executor *executor);
qkvi_pool *qkvi_pool_retain(qkvi_pool *pool);
/* Gives a reference back; the last one ends the threads. NULL is allowed. */
void qkvi_pool_release(qkvi_pool *pool);

/* How many tasks may run at once; 1 for NULL. */
int qkvi_pool_threads(const qkvi_pool *pool);

/*
 * Calls task(argument, index) for every index in [0, n_tasks), and returns when all are done. pool
 * may be NULL: serial.
 */
void qkvi_pool_run(qkvi_pool *pool, int n_tasks, qkvi_task *task, void *argument);

#pragma GCC visibility pop

/*
 * qkvi_pool_run where a thread best goes on with the task behind its last one, as with memory that
 * is read from end to end: each thread begins with a range of tasks of its own, and then helps the
 * others.
 */
void qkvi_pool_run_ranges(qkvi_pool *pool, int n_tasks, qkvi_task *task, void *argument);

#endif
