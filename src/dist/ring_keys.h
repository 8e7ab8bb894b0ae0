/*
 * Keys and values that are passed on from rank to rank (ring.h). Those of a rank are one message,
 * packed as in chunks.h, its runs one after the other. While a rank computes with a message, it
 * sends it on and receives the next one.
 *
 * Sums are made of blocks of 256 keys. A block with keys of several runs, a seam, is collected in
 * memory of its own, and computed after all other blocks.
 *
 * A rank sends all keys of the sequence except those of the next rank.
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
    int64_t *seams;  /* [n_seams]: indices of blocks of 256, ascending */
    char *seam_rows; /* the packed keys of these blocks */
} qkvi_ring;

void qkvi_ring_init(qkvi_ring *ring, qkvi_group *group, const qkvi_problem *p, int n_runs);
void qkvi_ring_lay_out(qkvi_ring *ring, qkvi_cutter *cutter);

/* The n-th run of a rank, in a sequence cut at `first`. */
qkvi_range qkvi_ring_run(const qkvi_ring *ring, const int64_t *first, int rank, int n);

/* Packs this rank's keys. */
void qkvi_ring_start(qkvi_ring *ring);

/* Step 0 … size - 1: sends the keys of this step on, and receives those of the next one. */
QKV_NODISCARD qkv_status qkvi_ring_begin_step(qkvi_ring *ring, int step);
QKV_NODISCARD qkv_status qkvi_ring_end_step(qkvi_ring *ring);

/*
 * Sets *p to the keys of the n-th run of a step. Returns the range of its whole blocks of 256; keys
 * of seams are copied to seam_rows.
 */
qkvi_range qkvi_ring_take(qkvi_ring *ring, int step, int n, qkvi_problem *p);

/*
 * After the last step: sets *p to consecutive seams from the *n-th on, moves *n behind them, and
 * returns their keys.
 */
qkvi_range qkvi_ring_take_seams(const qkvi_ring *ring, int64_t *n, qkvi_problem *p);

/* A progress callback; user: the ring. qkvi_ring_end_step reports a failure. */
void qkvi_ring_poll(void *user, int64_t done, int64_t total);

#endif
