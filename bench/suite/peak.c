/*
 * See peak.h. Threads run the loops of peak_loops.c side by side, in windows of about a
 * millisecond.
 */
#include "suite/peak.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/os.h"

enum {
    ROUNDS = 200000,         /* of the chains: about a millisecond */
    TILES = 30000,           /* of products of tiles */
    WINDOW_BYTES = 32 << 20, /* of reading */
    CHUNK_BYTES = 1024       /* threads read multiples of it */
};

struct worker {
    pthread_t thread;
    const struct peak *peak;
    int index;
    double seconds, rate;   /* rate: of the best window */
    double amount, elapsed; /* of all windows */
    volatile float sink;
    volatile uint64_t sum;
};

double peak_seconds(int n_threads) {
    struct timespec now;
    if (n_threads > 1) return qkvi_os_seconds();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *peak_name(enum peak_kind kind) {
    return kind == PEAK_READ ? "read" : peak_loop(kind).name;
}

bool peak_open(struct peak *peak, enum peak_kind kind, int n_threads, size_t bytes) {
    const size_t step = (size_t)n_threads * CHUNK_BYTES;
    *peak = (struct peak){ .kind = kind, .n_threads = n_threads, .loop = peak_loop(kind) };
    if (kind != PEAK_READ) return true;
    peak->bytes = (bytes + step - 1) / step * step;
    peak->memory = qkvi_os_aligned(64, peak->bytes);
    if (peak->memory) memset(peak->memory, 1, peak->bytes);
    return peak->memory;
}

void peak_close(struct peak *peak) {
    qkvi_os_aligned_free(peak->memory);
    peak->memory = NULL;
}

/* Reads the worker's part of the array as often as makes a window; returns bytes. */
static double read_window(struct worker *worker) {
    const size_t part = worker->peak->bytes / (size_t)worker->peak->n_threads;
    const char *from = worker->peak->memory + (size_t)worker->index * part;
    const size_t times = (WINDOW_BYTES + part - 1) / part;
    for (size_t i = 0; i < times; i++) worker->sum += peak_read(from, part);
    return (double)times * (double)part;
}

/* Does the work of a window; returns how much it was. */
static double window(struct worker *worker) {
    const struct peak *const peak = worker->peak;
    if (peak->kind == PEAK_READ) return read_window(worker);
    const int64_t rounds = peak->kind == PEAK_AMX ? TILES : ROUNDS;
    worker->sink = peak->loop.run(rounds);
    return (double)rounds * peak->loop.operations;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    const int n_threads = worker->peak->n_threads;
    const double end = qkvi_os_seconds() + worker->seconds;
    while (qkvi_os_seconds() < end) {
        const double start = peak_seconds(n_threads), amount = window(worker);
        const double elapsed = peak_seconds(n_threads) - start;
        if (!(elapsed > 0)) continue; /* a clock that ticks */
        const double rate = amount / elapsed / 1e9;
        if (rate > worker->rate) worker->rate = rate;
        worker->amount += amount;
        worker->elapsed += elapsed;
    }
    return NULL;
}

/*
 * Threads share the memory: the best window of one is that in which another did not read. Their
 * average is what they get together.
 */
static double rate_of(const struct peak *peak, const struct worker *worker) {
    if (peak->kind != PEAK_READ || peak->n_threads == 1) return worker->rate;
    return worker->elapsed > 0 ? worker->amount / worker->elapsed / 1e9 : 0;
}

double peak_measure(const struct peak *peak, double seconds) {
    if (!peak_name(peak->kind)) return 0;
    struct worker *workers = calloc((size_t)peak->n_threads, sizeof *workers);
    double rate = 0;
    int started = 1;
    if (!workers) return 0;
    for (int i = 0; i < peak->n_threads; i++)
        workers[i] = (struct worker){ .peak = peak, .index = i, .seconds = seconds };
    while (started < peak->n_threads &&
           pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
        started++;
    work(&workers[0]);
    for (int i = 1; i < started; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < started; i++) rate += rate_of(peak, &workers[i]);
    free(workers);
    return rate;
}
