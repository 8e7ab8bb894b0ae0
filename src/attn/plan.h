/*
 * What is decided before the forward pass runs: the class of arithmetic, the blocks, which heads
 * threads share, and the workspace. It follows from the problem, the number of threads and the
 * class; it changes no bit of the result. forward.c and forward_head.c carry it out.
 *
 * docs/numerics.md, Workspace, has the bytes of each class; plan.c lays them out.
 */
#ifndef QKVI_ATTN_PLAN_H
#define QKVI_ATTN_PLAN_H

#include <math.h>

#include "attn/ctx.h"
#include "attn/sequence.h"
#include "core/arena.h"
#include "core/cpu.h"
#include "kernels/attend_stats.h"

/*
 * The class that was asked for. If none was: f32, or for bf16 the fastest of this processor, which
 * class_of[QKV_CLASS_AUTO] is.
 */
static inline qkvi_arithmetic qkvi_arithmetic_of(const qkvi_problem *p, const qkv_ctx *ctx) {
    const bool is_f32 = p->arithmetic == QKV_CLASS_AUTO && p->dtype != QKV_BF16;
    return is_f32 ? QKVI_CLASS_F32 : ctx->class_of[p->arithmetic];
}

/* The class of forward, if that class has gradients and o has its type; else f32. */
static inline qkvi_arithmetic qkvi_backward_arithmetic_of(const qkvi_problem *p,
                                                          const qkv_ctx *ctx) {
    const qkvi_arithmetic class = qkvi_arithmetic_of(p, ctx);
    const bool same = !qkvi_classes[class].forward_only && p->o_dtype == qkvi_classes[class].type;
    return same ? class : QKVI_CLASS_F32;
}

/*
 * How the queries of a block are copied before they are used: converted to the type of the class,
 * padded with zeros to whole steps of its products, or because of where they lie. Not copied: they
 * are read from q.
 */
typedef struct qkvi_copied_q {
    bool copied;
    int64_t row; /* elements from one row to the next */
    int64_t element_bytes;
    int64_t rows; /* the number of rows is rounded up to a multiple of it */
} qkvi_copied_q;

/*
 * Tokens that lie a multiple of 4 KiB apart (32 heads of 64 in bf16) share sets of the first-level
 * cache. On Zen 4, L 512, read where they lie 161 GFLOP/s and not 181, in f32 92 and not 97.
 */
static inline bool qkvi_queries_meet(const qkvi_problem *p) {
    return p->len_q > 1 && qkvi_rows_meet(p->q_stride[2], qkvi_dtype_bytes(p->dtype));
}

static inline qkvi_copied_q qkvi_copied_q_of(const qkvi_problem *p, qkvi_arithmetic class) {
    const qkvi_class_row *const c = &qkvi_classes[class];
    if (c->q_rows)
        return (qkvi_copied_q){ true, qkvi_round_up(p->head_dim, c->step), 2, c->q_rows };
    if (c->type == p->dtype && !qkvi_queries_meet(p)) return (qkvi_copied_q){ false, 0, 0, 1 };
    if (c->type == QKV_BF16)
        return (qkvi_copied_q){ true, qkvi_round_up(p->head_dim, c->step) + 32, 2, 1 };
    return (qkvi_copied_q){ true, qkvi_round_up(p->head_dim, 16) + 16, 4, 1 };
}

/* Copies n queries from q on into rows of `to`. */
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
     * The first n_private heads are the work of one thread each. The queries of all other heads are
     * shared by all threads, and so are those of a head of a packed sequence with more than
     * most_pairs pairs of query and key (INFINITY: of none).
     */
    int64_t n_private;
    double most_pairs;
    int n_packs;            /* heads whose packed K and V exist at the same time */
    int64_t n_query_blocks; /* of one query head, summed over batches */
    int64_t n_key_blocks;   /* of one head with len_k keys */
    /*
     * Rows of a block. The first n_short blocks of a head have short_block rows instead, so that
     * threads that share a head end at about the same time.
     */
    int query_block;
    int n_short, short_block;
    int64_t o_sum_row;
    qkvi_arithmetic class;
    qkvi_copied_q copied_q;
    int64_t k_depth, v_depth; /* words of a key in packed K and V */
    /*
     * The problem's scale is k_factor * scale, and scale * log2 e a normal float. Packing
     * multiplies K by k_factor: 1, or where that needs it 4 or 2^-64, with the sign; 0 for a scale
     * of 0.
     */
    float k_factor, scale;
    /* NULL: heads of at most 16 x 16 take the kernel of small.h. Otherwise why they do not. */
    const char *small_unfit;

    qkvi_packed *packs;       /* [n_packs] */
    qkvi_forward_slot *slots; /* [n_threads] */
    qkvi_stats_space *stats;  /* [n_threads]; NULL: no statistics */
} qkvi_forward_plan;

/* scale = factor * rest, such that rest is positive and rest * log2 e a normal float. */
void qkvi_split_scale(float scale, float *factor, float *rest);

/*
 * Floats from one row of o's sums to the next. Without the 16, rows of a power of two would fall
 * into the same sets of the first-level cache.
 */
static inline int64_t qkvi_o_sum_row(const qkvi_problem *p) {
    return qkvi_round_up(p->head_dim_v, QKVI_PANEL) + 16;
}

/* Is there anything to write? */
static inline bool qkvi_forward_works(const qkvi_problem *p, bool lse) {
    return qkvi_rows_q(p) > 0 && p->heads_per_kv > 0 && (p->head_dim_v > 0 || lse || p->has_stats);
}

void qkvi_forward_plan_make(const qkvi_problem *problem, int n_threads, qkvi_arithmetic class,
                            qkvi_forward_plan *plan);

/* The first row of a block of queries; of the block after the last one, the number of rows. */
static inline int64_t qkvi_forward_row(const qkvi_forward_plan *plan, int64_t block) {
    const int64_t n = qkvi_min_i64(block, plan->n_short);
    return n * plan->short_block + (block - n) * plan->query_block;
}

/* How many blocks so many rows make. */
static inline int64_t qkvi_forward_blocks(const qkvi_forward_plan *plan, int64_t rows) {
    const int64_t in_short = qkvi_min_i64(rows, (int64_t)plan->n_short * plan->short_block);
    return qkvi_ceil_div(in_short, plan->short_block) +
           qkvi_ceil_div(rows - in_short, plan->query_block);
}

/* Do all threads share this head? */
static inline bool qkvi_forward_shared(const qkvi_problem *p, const qkvi_forward_plan *plan,
                                       int64_t head) {
    if (head >= plan->n_private) return true;
    if (plan->most_pairs == INFINITY) return false;
    const int64_t b = head / p->n_kv_heads;
    return (double)qkvi_len_q(p, b) * (double)qkvi_len_k(p, b) > plan->most_pairs;
}

/* Lays packs, slots and statistics out in the workspace, or only counts it: core/arena.h. */
void qkvi_forward_lay_out(const qkvi_problem *problem, qkvi_cutter *cutter,
                          qkvi_forward_plan *plan);

#endif
