/*
 * Ranks of qkv/ranks.h that are threads of one process, for tests that include it after cmocka. The
 * sizes of each message must be those that its receiver expects.
 */
#ifndef QKV_TESTS_THREAD_RANKS_H
#define QKV_TESTS_THREAD_RANKS_H

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "qkv/ranks.h"

enum { MOST_THREAD_RANKS = 5 };

struct thread_ranks;

typedef struct thread_rank {
    struct thread_ranks *of;
    int rank;
    bool differs; /* a message had another size than its receiver expected */
} thread_rank;

typedef struct thread_ranks {
    pthread_barrier_t barrier;
    int size, n_calls, breaks_at; /* the call of exchange that fails on every rank; 0: none */
    const char *send[MOST_THREAD_RANKS];
    const size_t *send_at[MOST_THREAD_RANKS], *send_bytes[MOST_THREAD_RANKS];
    thread_rank ranks[MOST_THREAD_RANKS];
} thread_ranks;

static inline int thread_ranks_exchange(void *user, const void *send, const size_t *send_at,
                                        const size_t *send_bytes, void *receive,
                                        const size_t *receive_at, const size_t *receive_bytes) {
    thread_rank *const own = user;
    thread_ranks *const w = own->of;
    const int me = own->rank;
    w->send[me] = send;
    w->send_at[me] = send_at;
    w->send_bytes[me] = send_bytes;
    if (me == 0) w->n_calls++;
    pthread_barrier_wait(&w->barrier);
    const bool breaks = w->n_calls == w->breaks_at;
    own->differs |= send_bytes[me] != 0 || receive_bytes[me] != 0;
    for (int r = 0; r < w->size; r++) {
        own->differs |= w->send_bytes[r][me] != receive_bytes[r];
        if (receive_bytes[r] > 0)
            memcpy((char *)receive + receive_at[r], w->send[r] + w->send_at[r][me],
                   receive_bytes[r]);
    }
    pthread_barrier_wait(&w->barrier);
    return breaks;
}

static inline void thread_ranks_begin(thread_ranks *w, int size) {
    *w = (thread_ranks){ .size = size };
    pthread_barrier_init(&w->barrier, NULL, (unsigned)size);
    for (int r = 0; r < size; r++) w->ranks[r] = (thread_rank){ .of = w, .rank = r };
}

/* What the calls of a rank get. */
static inline qkv_ranks thread_ranks_of(thread_ranks *w, int rank) {
    qkv_ranks ranks = qkv_ranks_init();
    ranks.rank = rank;
    ranks.n_ranks = w->size;
    ranks.user = &w->ranks[rank];
    ranks.exchange = thread_ranks_exchange;
    return ranks;
}

/* Calls run on a thread for each rank, with its element of `members`, of so many bytes each. */
static inline void thread_ranks_run(thread_ranks *w, void *(*run)(void *member), void *members,
                                    size_t bytes) {
    pthread_t threads[MOST_THREAD_RANKS];
    for (int r = 0; r < w->size; r++)
        assert_int_equal(
            pthread_create(&threads[r], NULL, run, (char *)members + (size_t)r * bytes), 0);
    for (int r = 0; r < w->size; r++) pthread_join(threads[r], NULL);
    for (int r = 0; r < w->size; r++) assert_false(w->ranks[r].differs);
    pthread_barrier_destroy(&w->barrier);
}

#endif
