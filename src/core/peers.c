/* See peers.h. */
#include "core/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/ints.h"
#include "core/options.h"
#include "core/pool.h"

qkv_status qkvi_peers_read(const qkv_ranks **ranks, qkv_ranks *copy, qkv_error *error) {
    if (!*ranks) return QKV_OK;
    QKV_TRY(qkvi_options_read(copy, sizeof *copy, *ranks, "qkv_ranks", error));
    *ranks = copy;
    if (copy->n_ranks < 1 || copy->rank < 0 || copy->rank >= copy->n_ranks)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "rank %d is none of %d", copy->rank,
                              copy->n_ranks);
    if (copy->n_ranks > 1 && !copy->exchange)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "exchange of qkv_ranks is NULL");
    return QKV_OK;
}

qkvi_peers qkvi_peers_of(const qkv_ranks *ranks, qkvi_pool *pool) {
    qkvi_peers made = { .pool = pool, .size = 1 };
    if (!ranks || ranks->n_ranks == 1) return made;
    made.of = ranks;
    made.rank = ranks->rank;
    made.size = ranks->n_ranks;
    return made;
}

qkv_status qkvi_peers_begin(qkvi_peers *ranks, qkv_error *error) {
    const size_t size = (size_t)ranks->size;
    if (!ranks->of) return QKV_OK;
    bool whole = true;
    ranks->first = qkvi_calloc_array(size + 1, sizeof *ranks->first);
    ranks->records = qkvi_calloc_array(size, sizeof *ranks->records);
    for (int i = 0; i < 2; i++) {
        ranks->at[i] = qkvi_calloc_array(size, sizeof *ranks->at[i]);
        ranks->bytes[i] = qkvi_calloc_array(size, sizeof *ranks->bytes[i]);
        whole = whole && ranks->at[i] && ranks->bytes[i];
    }
    if (whole && ranks->first && ranks->records) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the ranks");
}

size_t qkvi_peers_first(const qkvi_peers *ranks) {
    return ranks->of ? ranks->first[ranks->rank] : 0;
}

size_t qkvi_peers_n_own(const qkvi_peers *ranks) {
    return ranks->of ? ranks->first[ranks->rank + 1] - ranks->first[ranks->rank] : ranks->n;
}

qkv_status qkvi_peers_make(qkvi_peers *ranks, size_t n, qkv_error *error) {
    const size_t size = (size_t)ranks->size;
    ranks->n = n;
    if (!ranks->of) return QKV_OK;
    for (size_t r = 0; r <= size; r++)
        ranks->first[r] = n / size * r + (r < n % size ? r : n % size);
    ranks->parts = qkvi_malloc_array(size * qkvi_peers_n_own(ranks) + 1, sizeof *ranks->parts);
    return ranks->parts ? QKV_OK
                        : qkvi_error_set(error, QKV_ERR_MEMORY,
                                         "no memory for the gradients of other ranks");
}

void qkvi_peers_free(qkvi_peers *ranks) {
    free(ranks->first);
    free(ranks->parts);
    for (int i = 0; i < 2; i++) {
        free(ranks->at[i]);
        free(ranks->bytes[i]);
    }
    if (ranks->of) free(ranks->records);
    memset(ranks, 0, sizeof *ranks);
}

qkv_status qkvi_peers_exchange(qkvi_peers *ranks, const void *send, void *receive,
                               qkv_error *error) {
    const qkv_ranks *const of = ranks->of;
    for (int i = 0; i < 2; i++) ranks->at[i][ranks->rank] = ranks->bytes[i][ranks->rank] = 0;
    if (of->exchange(of->user, send, ranks->at[0], ranks->bytes[0], receive, ranks->at[1],
                     ranks->bytes[1]) == 0)
        return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_IO, "rank %d: cannot exchange bytes with the others",
                          ranks->rank);
}

/* ---- Agreement ------------------------------------------------------------------------------- */

static qkv_status gather_records(qkvi_peers *ranks, qkv_error *error) {
    ranks->records[ranks->rank] = ranks->own;
    for (int r = 0; r < ranks->size; r++) {
        ranks->at[0][r] = 0;
        ranks->at[1][r] = (size_t)r * sizeof ranks->own;
        ranks->bytes[0][r] = ranks->bytes[1][r] = sizeof ranks->own;
    }
    return qkvi_peers_exchange(ranks, &ranks->own, ranks->records, error);
}

static qkv_status take_failure(qkvi_peer_record *from, int rank, qkv_error *error) {
    from->error.message[sizeof from->error.message - 1] = '\0';
    return qkvi_error_set(error, (qkv_status)from->status, "rank %d: %.900s", rank,
                          from->error.message);
}

qkv_status qkvi_peers_agree(qkvi_peers *ranks, qkv_status status, const double *values,
                            qkv_error *error) {
    ranks->own = (qkvi_peer_record){ .status = status, .hash = ranks->own.hash };
    for (int v = 0; values && v < QKVI_PEER_VALUES; v++) ranks->own.values[v] = values[v];
    if (status != QKV_OK && error) ranks->own.error = *error;
    if (!ranks->of) {
        ranks->records = &ranks->own;
        return status;
    }
    QKV_TRY(gather_records(ranks, error));
    for (int r = 0; r < ranks->size; r++)
        if (ranks->records[r].status != QKV_OK) return take_failure(&ranks->records[r], r, error);
    return QKV_OK;
}

qkv_status qkvi_peers_compare(qkvi_peers *ranks, const char *what, uint64_t hash,
                              qkv_error *error) {
    ranks->own.hash = hash;
    QKV_TRY(qkvi_peers_agree(ranks, QKV_OK, NULL, error));
    for (int r = 1; r < ranks->size; r++)
        if (ranks->records[r].hash != ranks->records[0].hash)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "rank %d has %s than rank 0", r, what);
    return QKV_OK;
}

/* ---- Gradients ------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 16 };

typedef struct sum_job {
    const float *from;
    float *sum;
    size_t n;
} sum_job;

static void sum_chunk(void *argument, int index) {
    const sum_job *const j = argument;
    const size_t begin = (size_t)index * CHUNK, left = j->n - begin;
    const size_t end = begin + (left < CHUNK ? left : CHUNK);
    for (size_t i = begin; i < end; i++) j->sum[i] += j->from[i];
}

static void add(const qkvi_peers *ranks, const float *from, float *sum, size_t n) {
    sum_job job = { from, sum, n };
    qkvi_pool_run(ranks->pool, (int)((n + CHUNK - 1) / CHUNK), sum_chunk, &job);
}

qkv_status qkvi_peers_add(qkvi_peers *ranks, int n, const float *grads, float *sum,
                          qkv_error *error) {
    if (!ranks->of) {
        add(ranks, grads, sum, ranks->n);
        return QKV_OK;
    }
    const size_t *const first = ranks->first, own = qkvi_peers_n_own(ranks),
                        at = first[ranks->rank];
    const bool sends = ranks->rank < n;
    for (int r = 0; r < ranks->size; r++) {
        ranks->at[0][r] = first[r] * sizeof(float);
        ranks->bytes[0][r] = sends ? (first[r + 1] - first[r]) * sizeof(float) : 0;
        ranks->at[1][r] = (size_t)r * own * sizeof(float);
        ranks->bytes[1][r] = r < n ? own * sizeof(float) : 0;
    }
    QKV_TRY(qkvi_peers_exchange(ranks, grads, ranks->parts, error));
    for (int r = 0; r < n; r++)
        add(ranks, r == ranks->rank ? grads + at : ranks->parts + (size_t)r * own, sum + at, own);
    return QKV_OK;
}

qkv_status qkvi_peers_spread(qkvi_peers *ranks, void *array, size_t bytes, qkv_error *error) {
    if (!ranks->of) return QKV_OK;
    const size_t *const first = ranks->first, own = qkvi_peers_n_own(ranks);
    for (int r = 0; r < ranks->size; r++) {
        ranks->at[0][r] = first[ranks->rank] * bytes;
        ranks->bytes[0][r] = own * bytes;
        ranks->at[1][r] = first[r] * bytes;
        ranks->bytes[1][r] = (first[r + 1] - first[r]) * bytes;
    }
    return qkvi_peers_exchange(ranks, array, array, error);
}

qkv_status qkvi_peers_share(qkvi_peers *ranks, float *array, qkv_error *error) {
    return qkvi_peers_spread(ranks, array, sizeof *array, error);
}
