/*
 * Decode over ranks: which rank computes which split of 1,024 keys, and the keys of a split with a
 * seam, whose keys are on several ranks.
 *
 * A split belongs to the rank that has the first of its keys that some query may see. Its sums
 * cannot be divided, so other ranks that have keys of it send these to its owner, as they are
 * stored:
 *
 *     rows    [key][n_batch][n_kv_heads][k: head_dim, v: head_dim_v]
 *     scales  [key][n_batch][n_kv_heads][k, v]      floats, for QKV_I8
 *
 * If pieces begin at multiples of 1,024, there is no seam, and nothing is sent.
 */
#ifndef QKVI_DIST_SEAMS_H
#define QKVI_DIST_SEAMS_H

#include "attn/kv_view.h"
#include "attn/mask.h"
#include "core/arena.h"
#include "dist/group.h"

typedef struct qkvi_seams {
    qkvi_group *group;
    const qkvi_problem *p;
    const qkvi_kv *kv; /* of this rank */
    qkvi_range keys;   /* of the sequence: all that some query may see */
    int64_t from, to;  /* the splits of this rank */
    bool has_seam;     /* the last of them has keys on other ranks */
    int64_t row_bytes; /* of a key */
    int64_t n_scales;  /* of a key */
    char *rows;        /* all keys of that split, in order */
    char *sent;        /* keys that this rank sends */
    float *scales, *sent_scales;
    int n_requests;
} qkvi_seams;

void qkvi_seams_init(qkvi_seams *seams, qkvi_group *group, const qkvi_problem *problem,
                     const qkvi_kv *kv);
void qkvi_seams_lay_out(qkvi_seams *seams, qkvi_cutter *cutter);

/* The splits of a rank; an empty range if it has none. */
qkvi_range qkvi_seams_of(const qkvi_seams *seams, int rank);

QKV_NODISCARD qkv_status qkvi_seams_start(qkvi_seams *seams);
/* Waits; then sets kv to the keys of this rank's split with a seam, if it has one. */
QKV_NODISCARD qkv_status qkvi_seams_end(qkvi_seams *seams, qkvi_kv *kv);

/* A progress callback; user: the seams. qkvi_seams_end reports a failure. */
void qkvi_seams_poll(void *user, int64_t done, int64_t total);

#endif
