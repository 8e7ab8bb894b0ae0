/*
 * Keys and values that go round. Of each rank they are one message, laid out as in chunks.h, its
 * runs one after the other. While a message is computed, it goes on, and the next one comes.
 *
 * Sums have their seams at multiples of 256 keys. A block of 256 with keys of several runs waits in
 * memory of its own until all of them have come, and is computed after the rest.
 *
 * A rank sends all keys of the sequence but those of the next rank.
 */
#ifndef QKVI_DIST_RING_KEYS_H
#define QKVI_DIST_RING_KEYS_H

#include "attn/mask.h"
#include "core/arena.h"
#include "dist/group.h"

typedef struct qkvi_ring {
    qkvi_group *group;
    const qkvi_problem *p; /* with the arrays of this rank */
    int n_runs;            /* of a rank: 1, or 2 in zigzag */
    int64_t row_bytes, most_rows;
    char *buffer[2];
    int n_requests;
    int64_t n_seams;
    int64_t *seams; /* [n_seams]: numbers of blocks of 256, ascending */
    char *seam_rows;
} qkvi_ring;

void qkvi_ring_init(qkvi_ring *ring, qkvi_group *group, const qkvi_problem *p, int n_runs);
void qkvi_ring_lay_out(qkvi_ring *ring, qkvi_cutter *cutter);

/* The n-th run of a rank, in a sequence cut at `first`. */
qkvi_range qkvi_ring_run(const qkvi_ring *ring, const int64_t *first, int rank, int n);

/* Packs this rank's keys. */
void qkvi_ring_start(qkvi_ring *ring);

/* Step 0 … size - 1: sends the keys of the step on, and receives those of the next. */
QKV_NODISCARD qkv_status qkvi_ring_begin_step(qkvi_ring *ring, int step);
QKV_NODISCARD qkv_status qkvi_ring_end_step(qkvi_ring *ring);

/*
 * Keys of the n-th run of a step: *p gets them. Returns whole blocks, at multiples of 256 or the
 * end of the sequence; the rest is put aside.
 */
qkvi_range qkvi_ring_take(qkvi_ring *ring, int step, int n, qkvi_problem *p);

/* After the last step: the seams from the n-th on that follow each other. Returns their keys. */
qkvi_range qkvi_ring_take_seams(const qkvi_ring *ring, int64_t *n, qkvi_problem *p);

/* A progress callback; user: the ring. A failure is found by the end of the step. */
void qkvi_ring_poll(void *user, int64_t done, int64_t total);

#endif
