/*
 * The thread pool.
 *
 * A job is posted by storing its number of tasks in `left`. A thread that lowers `left` from l to l
 * − 1 owns task n_tasks − l, and only then reads the job's other fields: they cannot change before
 * that task is finished. Therefore the caller waits for tasks, never for threads; one that wakes
 * too late finds `left` at 0, or helps with the next job. `unfinished` counts down to the end of
 * the job.
 *
 * Sleep: a worker spins for a moment, then counts itself in `sleepers` and waits on a condition
 * until left > 0. The poster writes `left`, then reads `sleepers`; the worker does it the other way
 * round; both are sequentially consistent, so one of them sees the other. The caller's wait for the
 * last task is built the same way, with `caller_sleeps`. Each of these writes is an exchange: qemu
 * lets a plain store of AArch64 (STLR) pass a load behind it, and then both sleep for ever.
 *
 * Fork: `state` is generation << 1 | busy, and the generation of the process grows in every child.
 * A state of another generation, busy or not, was left behind by the parent: the call that replaces
 * it owns the pool alone and sets it up again.
 */
#include "core/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/fpstate.h"
#include "core/os.h"

enum {
    /*
     * About 500 µs of `pause`: longer than what threads wait for each other at the end of a large
     * product. One that went to sleep there costs more to wake (with 50 µs, two threads took 15 to
     * 20 % longer for BERT-base in bf16 under a hypervisor).
     */
    SPIN_ROUNDS = 20000,
    YIELD_EVERY = 100 /* rounds */
};

struct qkvi_pool {
    qkv_allocator allocator;
    qkv_executor executor;
    size_t pool_bytes;
    int n_threads, spin_rounds;
    atomic_int references;
    atomic_uint state;

    /* Owned by the call that made the state busy. */
    unsigned started_generation; /* of the threads below; 0: never started */
    int n_started;

    /* The job. */
    qkvi_task *task;
    void *argument;
    int n_tasks;
    _Alignas(64) atomic_int left;
    _Alignas(64) atomic_int unfinished;

    _Alignas(64) pthread_mutex_t mutex;
    pthread_cond_t work, finished;
    atomic_int sleepers, caller_sleeps;
    atomic_bool stop;
    pthread_t threads[];
};

static atomic_uint process_generation = 1;
static pthread_once_t generation_once = PTHREAD_ONCE_INIT;

static void count_generation(void) { atomic_fetch_add(&process_generation, 1); }
static void watch_forks(void) { qkvi_os_watch_forks(count_generation); }

/*
 * One round of waiting. Now and then the processor is offered to others: a worker that was woken on
 * the poster's own processor would otherwise spin in his way (on a loaded machine of two processors
 * an empty job took 55 µs; now 0.1).
 */
static void spin_pause(int round) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` is nothing on most of them */
#endif
    if (round % YIELD_EVERY == YIELD_EVERY - 1) qkvi_os_yield();
}

/* ---- Running tasks --------------------------------------------------------------------------- */

static void finish_one(qkvi_pool *pool) {
    if (atomic_fetch_sub(&pool->unfinished, 1) != 1) return;
    if (!atomic_load(&pool->caller_sleeps)) return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_signal(&pool->finished);
    pthread_mutex_unlock(&pool->mutex);
}

/* Runs tasks of the current job, if any, until none is left to take. */
static void drain(qkvi_pool *pool) {
    int left = atomic_load(&pool->left);
    while (left > 0) {
        if (!atomic_compare_exchange_weak(&pool->left, &left, left - 1)) continue;
        pool->task(pool->argument, pool->n_tasks - left);
        finish_one(pool);
        left = atomic_load(&pool->left);
    }
}

static void run_serial(int n_tasks, qkvi_task *task, void *argument) {
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    for (int index = 0; index < n_tasks; index++) task(argument, index);
    qkvi_fpstate_leave(saved);
}

/* ---- Workers --------------------------------------------------------------------------------- */

static bool must_wake(qkvi_pool *pool) {
    return atomic_load(&pool->left) > 0 || atomic_load(&pool->stop);
}

static void await_work(qkvi_pool *pool) {
    for (int round = 0; round < pool->spin_rounds; round++) {
        if (must_wake(pool)) return;
        spin_pause(round);
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!must_wake(pool)) pthread_cond_wait(&pool->work, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument) {
    qkvi_pool *pool = argument;
    qkvi_fpstate_enter(); /* a new thread inherits its maker's */
    while (!atomic_load(&pool->stop)) {
        drain(pool);
        await_work(pool);
    }
    return NULL;
}

/* Makes the threads, once in each process. Signals are the host's: our threads take none. */
static void start_threads(qkvi_pool *pool, unsigned generation) {
    if (pool->started_generation == generation) return;
    pool->started_generation = generation;
    pool->n_started = 0;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->finished, NULL);
    atomic_store(&pool->left, 0);
    atomic_store(&pool->sleepers, 0);
    atomic_store(&pool->caller_sleeps, 0);

    qkvi_os_signals signals;
    qkvi_os_hold_signals(&signals);
    while (pool->n_started < pool->n_threads - 1 &&
           pthread_create(&pool->threads[pool->n_started], NULL, worker_main, pool) == 0)
        pool->n_started++;
    qkvi_os_let_signals(&signals);
}

static void stop_threads(qkvi_pool *pool) {
    if (pool->started_generation != atomic_load(&process_generation)) return; /* not our threads */
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->n_started; i++) pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
}

/* ---- A job ----------------------------------------------------------------------------------- */

static void wake_workers(qkvi_pool *pool, int n_wanted) {
    if (atomic_load(&pool->sleepers) == 0) return;
    pthread_mutex_lock(&pool->mutex);
    if (n_wanted < atomic_load(&pool->sleepers))
        for (int i = 0; i < n_wanted; i++) pthread_cond_signal(&pool->work);
    else
        pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

static void await_end(qkvi_pool *pool) {
    for (int round = 0; round < pool->spin_rounds; round++) {
        if (atomic_load(&pool->unfinished) == 0) return;
        spin_pause(round);
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_exchange(&pool->caller_sleeps, 1);
    while (atomic_load(&pool->unfinished) != 0) pthread_cond_wait(&pool->finished, &pool->mutex);
    atomic_store(&pool->caller_sleeps, 0);
    pthread_mutex_unlock(&pool->mutex);
}

static void run_on_threads(qkvi_pool *pool, int n_tasks, qkvi_task *task, void *argument) {
    pool->task = task;
    pool->argument = argument;
    pool->n_tasks = n_tasks;
    atomic_store(&pool->unfinished, n_tasks);
    atomic_exchange(&pool->left, n_tasks); /* from here on the workers see the job */
    wake_workers(pool, n_tasks - 1);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    drain(pool);
    qkvi_fpstate_leave(saved);
    await_end(pool);
}

/* The host's threads may hold any floating-point state: each task sets its own. */
struct hosted_job {
    qkvi_task *task;
    void *argument;
};

static void hosted_task(void *argument, int index) {
    const struct hosted_job *job = argument;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    job->task(job->argument, index);
    qkvi_fpstate_leave(saved);
}

void qkvi_pool_run(qkvi_pool *pool, int n_tasks, qkvi_task *task, void *argument) {
    if (!pool || pool->n_threads == 1 || n_tasks <= 1) {
        run_serial(n_tasks, task, argument);
        return;
    }
    if (pool->executor.parallel_for) {
        struct hosted_job job = { task, argument };
        pool->executor.parallel_for(pool->executor.user, n_tasks, hosted_task, &job);
        return;
    }
    const unsigned generation = atomic_load(&process_generation);
    unsigned state = atomic_load(&pool->state);
    const bool busy = state == (generation << 1 | 1);
    if (busy || !atomic_compare_exchange_strong(&pool->state, &state, generation << 1 | 1)) {
        run_serial(n_tasks, task, argument);
        return;
    }
    start_threads(pool, generation);
    if (pool->n_started > 0)
        run_on_threads(pool, n_tasks, task, argument);
    else
        run_serial(n_tasks, task, argument);
    atomic_store(&pool->state, generation << 1);
}

/* ---- Life ------------------------------------------------------------------------------------ */

qkvi_pool *qkvi_pool_create(const qkv_allocator *allocator, int n_threads,
                            const qkv_executor *executor) {
    const bool hosted = executor && executor->parallel_for;
    const size_t n_own = hosted ? 0 : (size_t)n_threads - 1;
    const size_t pool_bytes = sizeof(qkvi_pool) + n_own * sizeof(pthread_t);
    qkvi_pool *pool = qkvi_alloc(allocator, pool_bytes);
    if (!pool) return NULL;
    *pool =
        (qkvi_pool){ .allocator = *allocator, .pool_bytes = pool_bytes, .n_threads = n_threads };
    if (hosted) pool->executor = *executor;
    if (n_threads <= qkvi_cpu_count())
        pool->spin_rounds = SPIN_ROUNDS; /* else it robs the others */
    atomic_init(&pool->references, 1);
    pthread_once(&generation_once, watch_forks);
    return pool;
}

qkvi_pool *qkvi_pool_retain(qkvi_pool *pool) {
    atomic_fetch_add(&pool->references, 1);
    return pool;
}

void qkvi_pool_release(qkvi_pool *pool) {
    if (!pool || atomic_fetch_sub(&pool->references, 1) != 1) return;
    stop_threads(pool);
    const qkv_allocator allocator = pool->allocator;
    qkvi_release(&allocator, pool, pool->pool_bytes);
}

int qkvi_pool_threads(const qkvi_pool *pool) { return pool ? pool->n_threads : 1; }

/* ---- Tasks in ranges, one for each thread ---------------------------------------------------- */

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
