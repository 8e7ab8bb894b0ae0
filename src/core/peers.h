/**
 * Ranks that share a work: what they agree on, and the sum of their gradients in the order of
 * slices. Of one rank, nothing moves and nothing fails.
 *
 * No rank leaves before the others know: a failure becomes that of all at the next agreement. Only
 * a failure of what carries the bytes does not: QKV_ERR_IO, after which the others may wait for
 * ever.
 */
#ifndef QKVI_CORE_PEERS_H
#define QKVI_CORE_PEERS_H

#include "core/pool.h"
#include "qkv/ranks.h"

enum { QKVI_PEER_VALUES = 2 };

/** What a rank tells the others. */
typedef struct qkvi_peer_record {
    double values[QKVI_PEER_VALUES];
    uint64_t hash;
    int64_t status;
    qkv_error error;
} qkvi_peer_record;

typedef struct qkvi_peers {
    const qkv_ranks *of; /* NULL: one */
    qkvi_pool *pool;
    int rank, size;
    size_t n;      /* elements of a gradient; rank r sums first[r] … first[r + 1] - 1 */
    size_t *first; /* [size + 1] */
    size_t *at[2], *bytes[2];  /* [size] of what is sent, and of what is received */
    float *parts;              /* [size][elements of this rank] what the others sent */
    qkvi_peer_record *records; /* [size] of the last agreement */
    qkvi_peer_record own;      /* records, of one */
} qkvi_peers;

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/** Checks *ranks, nullable, and copies it to *copy, which *ranks becomes. ARGUMENT. */
qkv_status qkvi_peers_read(const qkv_ranks **ranks, qkv_ranks *copy, qkv_error *error);
/** Of ranks, which may be NULL; it must stay. */
qkvi_peers qkvi_peers_of(const qkv_ranks *ranks, qkvi_pool *pool);
/** What an agreement needs. MEMORY. */
qkv_status qkvi_peers_begin(qkvi_peers *ranks, qkv_error *error);
/** What sums of gradients of n elements need. MEMORY. */
qkv_status qkvi_peers_make(qkvi_peers *ranks, size_t n, qkv_error *error);
void qkvi_peers_free(qkvi_peers *ranks);

/** The first element that this rank sums, and how many: all, of one rank. */
size_t qkvi_peers_first(const qkvi_peers *ranks);
size_t qkvi_peers_n_own(const qkvi_peers *ranks);

/**
 * status and error are this rank's so far; both become those of the lowest rank that failed, with
 * its number before the message. Fills ranks->records with the values of all; values may be NULL.
 */
qkv_status qkvi_peers_agree(qkvi_peers *ranks, qkv_status status, const double *values,
                            qkv_error *error);
/** ARGUMENT, naming the first rank whose hash is not that of rank 0, and what it is of. */
qkv_status qkvi_peers_compare(qkvi_peers *ranks, const char *what, uint64_t hash, qkv_error *error);

/**
 * Exchanges bytes: at[0] and bytes[0] say what goes from `send` to each rank, at[1] and bytes[1]
 * what comes to `receive`. This rank's own are not read, and become 0. All ranks call it; IO.
 */
qkv_status qkvi_peers_exchange(qkvi_peers *ranks, const void *send, void *receive,
                               qkv_error *error);

/** Adds grads of the ranks 0 … n - 1, in their order, to this rank's elements of sum. */
qkv_status qkvi_peers_add(qkvi_peers *ranks, int n, const float *grads, float *sum,
                          qkv_error *error);
/**
 * Gives each rank's items of an array, first[rank] to first[rank + 1] - 1 of `bytes` each, to all.
 */
qkv_status qkvi_peers_spread(qkvi_peers *ranks, void *array, size_t bytes, qkv_error *error);
/** Gives each rank's elements of an array to all. */
qkv_status qkvi_peers_share(qkvi_peers *ranks, float *array, qkv_error *error);

#pragma GCC visibility pop

#endif
