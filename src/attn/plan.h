/*
 * The forward pass before it runs: blocks, threads, workspace. A pure function of the problem and
 * the number of threads.
 *
 * Workspace, in bytes (docs/numerics.md), pieces rounded up to 64: for each thread a scratch and
 * the sums of o, rows (V + 16) 4; for each of min(threads, n_batch n_kv_heads) packed heads, with L
 * = len_k rounded up to 256,
 * 4 L (head_dim + V) + L / 256; V = head_dim_v rounded up to 32. For q of 16 bits, a thread has
 * rows of (head_dim rounded up to 16, and 16) 4 more. In class dp it has not, and a packed head has
 * 2 L (head_dim rounded up to 2, and V) + L / 256. In class amx that is head_dim rounded up to 32,
 * and a thread has rows, a multiple of 16, of as many times 2.
 */
#ifndef QKVI_ATTN_PLAN_H
#define QKVI_ATTN_PLAN_H

#include <math.h>

#include "attn/ctx.h"
#include "attn/sequence.h"
#include "core/arena.h"
#include "kernels/attend_stats.h"

/* How products are computed: in the class that was asked for, or for bf16 the fastest here. */
static inline qkvi_arithmetic qkvi_arithmetic_of(const qkvi_problem *p, const qkv_ctx *ctx) {
    const bool is_auto = p->arithmetic == QKV_CLASS_AUTO && p->dtype != QKV_BF16;
    return is_auto ? QKVI_CLASS_F32 : ctx->class_of[p->arithmetic];
}

/* That of forward, if it has gradients, and o is of its type; else f32. */
static inline qkvi_arithmetic qkvi_backward_arithmetic_of(const qkvi_problem *p,
                                                          const qkv_ctx *ctx) {
    const qkvi_arithmetic class = qkvi_arithmetic_of(p, ctx);
    const bool here = !qkvi_classes[class].forward_only && p->o_dtype == qkvi_classes[class].type;
    return here ? class : QKVI_CLASS_F32;
}

/* Where queries are not read as they lie: the class reads another type, or whole steps of them. */
typedef struct qkvi_copied_q {
    bool copied;
    int64_t row; /* elements from one to the next */
    int64_t element_bytes;
    int64_t rows; /* there is a multiple of so many */
} qkvi_copied_q;

static inline qkvi_copied_q qkvi_copied_q_of(const qkvi_problem *p, qkvi_arithmetic class) {
    const qkvi_class_row *const c = &qkvi_classes[class];
    if (c->q_rows)
        return (qkvi_copied_q){ true, qkvi_round_up(p->head_dim, c->step), 2, c->q_rows };
    if (c->type == p->dtype) return (qkvi_copied_q){ false, 0, 0, 1 };
    return (qkvi_copied_q){ true, qkvi_round_up(p->head_dim, 16) + 16, 4, 1 };
}

/* n queries from q on become rows of `to`. */
void qkvi_copy_queries(const qkvi_problem *p, const struct qkvi_kernels *kernels,
                       const qkvi_copied_q *how, const void *q, int64_t n, void *to);

/* K and V of one head, ready for the kernel (kernels/attend.h). */
typedef struct qkvi_packed {
    uint32_t *k, *v; /* words */
    bool *v_finite;  /* [key block] */
    int64_t head;    /* which it is */
} qkvi_packed;

/* What belongs to one thread. */
typedef struct qkvi_forward_slot {
    qkvi_attend_scratch *scratch;
    float *o_sum;

    void *q; /* [query_block][copied_q.row], or NULL */
} qkvi_forward_slot;

typedef struct qkvi_forward_plan {
    int n_threads;
    int64_t n_heads; /* key/value heads of all batches */
    /*
     * The first heads, each one thread's work, unless its sequence has more pairs of query and key
     * than most_pairs; of the others all threads share every one.
     */
    int64_t n_private;
    double most_pairs;
    int n_packs;            /* heads that are packed at the same time */
    int64_t n_query_blocks; /* of a head, in all batches */
    int64_t n_key_blocks;   /* of a head, in a batch of len_k */
    int query_block;        /* rows; of the first n_short blocks of a head short_block */
    int n_short, short_block;
    int64_t o_sum_row;
    qkvi_arithmetic class;
    qkvi_copied_q copied_q;
    int64_t k_depth, v_depth; /* words of a key in packed K and V */
    /*
     * scale = k_factor * scale, with k_factor put into K by packing: the sign, and what keeps scale
     * log2 e normal.
     */
    float k_factor, scale;
    const char *small_unfit; /* NULL: heads of sentences may take the kernel for them: small.h */

    qkvi_packed *packs;       /* [n_packs] */
    qkvi_forward_slot *slots; /* [n_threads] */
    qkvi_stats_space *stats;  /* [n_threads]; NULL: no statistics */
} qkvi_forward_plan;

/* scale = factor * rest, such that rest is positive and rest log2 e normal. */
void qkvi_split_scale(float scale, float *factor, float *rest);

/* Floats of a row of o's sums; a power of two would put all rows into one set of L1. */
static inline int64_t qkvi_o_sum_row(const qkvi_problem *p) {
    return qkvi_round_up(p->head_dim_v, QKVI_PANEL) + 16;
}

/* Is there anything to write? */
static inline bool qkvi_forward_works(const qkvi_problem *p, bool lse) {
    return qkvi_rows_q(p) > 0 && p->heads_per_kv > 0 && (p->head_dim_v > 0 || lse || p->has_stats);
}

void qkvi_forward_plan_make(const qkvi_problem *problem, int n_threads, qkvi_arithmetic class,
                            qkvi_forward_plan *plan);

/* The first row of a block of queries: of block n, where n blocks end. */
static inline int64_t qkvi_forward_row(const qkvi_forward_plan *plan, int64_t block) {
    const int64_t n = qkvi_min_i64(block, plan->n_short);
    return n * plan->short_block + (block - n) * plan->query_block;
}

/* Blocks of so many rows. */
static inline int64_t qkvi_forward_blocks(const qkvi_forward_plan *plan, int64_t rows) {
    const int64_t in_short = qkvi_min_i64(rows, (int64_t)plan->n_short * plan->short_block);
    return qkvi_ceil_div(in_short, plan->short_block) +
           qkvi_ceil_div(rows - in_short, plan->query_block);
}

/* Do all threads share this head? */
static inline bool qkvi_forward_shared(const qkvi_problem *p, const qkvi_forward_plan *plan,
                                       int64_t head) {
    if (head >= plan->n_private || plan->most_pairs == INFINITY) return head >= plan->n_private;
    const int64_t b = head / p->n_kv_heads;
    return (double)qkvi_len_q(p, b) * (double)qkvi_len_k(p, b) > plan->most_pairs;
}

/* Cuts packs and slots; see core/arena.h. */
void qkvi_forward_lay_out(const qkvi_problem *problem, qkvi_cutter *cutter,
                          qkvi_forward_plan *plan);

#endif
