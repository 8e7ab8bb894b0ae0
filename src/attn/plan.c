/* See plan.h. None of these choices changes a bit of the result. */
#include "attn/plan.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "attn/mask.h"
#include "attn/small.h"
#include "attn/stats.h"
#include "kernels/table.h"

enum {
    HEADS_PER_THREAD = 4,  /* from so many on, sharing out whole heads is balanced well enough */
    PARTS_PER_THREAD = 8,  /* packed sequences: no thread takes more than such a part of it alone */
    THREAD_WORK = 1 << 20, /* products that are worth a thread: 10 us; waking one takes 5 us */
    SHORT_BLOCK = 24,      /* rows: whole tiles of 12, 8 and 6 */
    MANY_BLOCKS = 64,      /* a thread: from so many on, one more or less makes no difference */
    MOST_CHANNELS = 1 << 11 /* of o_sum with a full query block; beyond, fewer rows: 768 KiB */
};

void qkvi_split_scale(float scale, float *factor, float *rest) {
    const float magnitude = fabsf(scale), in_log2 = magnitude * 1.44269504f;
    float x = 1;
    if (scale == 0)
        x = 0; /* scores are 0, or NaN where q or k is not finite */
    else if (in_log2 > FLT_MAX)
        x = 0x1p2f;
    else if (in_log2 < FLT_MIN)
        x = 0x1p-64f;
    *factor = copysignf(x, scale);
    *rest = scale == 0 ? 1 : magnitude / x;
}

static int choose_threads(const qkvi_problem *p, int n_threads) {
    const double work = qkvi_pairs(p) * (double)(p->head_dim + p->head_dim_v);
    const double worth = 1 + work / THREAD_WORK;
    return worth < n_threads ? (int)worth : n_threads;
}

static int64_t count_query_blocks(const qkvi_problem *p, const qkvi_forward_plan *plan) {
    int64_t n = 0;
    if (p->n_heads == 0)
        return 0; /* the other sizes may be so great that their product overflows */
    if (!p->cu_q) return p->n_batch * qkvi_forward_blocks(plan, p->len_q);
    for (int64_t b = 0; b < p->n_batch; b++) n += qkvi_forward_blocks(plan, qkvi_len_q(p, b));
    return n;
}

/*
 * Where threads share out the blocks of a few heads, the first blocks, which are drawn last, are
 * short, and as many as even out who had one block more before: 43 blocks of 96 (L = 4,096) would
 * leave one of two threads idle for 2 % of the time.
 */
static void shorten_blocks(const qkvi_problem *p, qkvi_forward_plan *plan) {
    const int64_t n_heads = qkvi_min_i64(plan->n_heads, plan->n_packs) * p->heads_per_kv;
    const int64_t n_blocks = qkvi_ceil_div(p->len_q, plan->query_block);
    if (n_heads == 0 || plan->query_block < SHORT_BLOCK ||
        n_heads * n_blocks >= (int64_t)MANY_BLOCKS * plan->n_threads)
        return;
    const int64_t rows = qkvi_ceil_div((int64_t)plan->query_block * plan->n_threads, n_heads);
    plan->short_block = SHORT_BLOCK;
    plan->n_short = (int)qkvi_ceil_div(rows, SHORT_BLOCK);
}

void qkvi_copy_queries(const qkvi_problem *p, const qkvi_kernels *kernels, const qkvi_copied_q *how,
                       const void *q, int64_t n, void *to) {
    if (how->element_bytes == 4) {
        kernels->rows->load[p->dtype](q, p->q_stride[2], n, p->head_dim, to, how->row);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint16_t *const row = (uint16_t *)to + i * how->row;
        memcpy(row, (const uint16_t *)q + i * p->q_stride[2], (size_t)p->head_dim * sizeof *row);
        memset(row + p->head_dim, 0, (size_t)(how->row - p->head_dim) * sizeof *row);
    }
}

void qkvi_forward_plan_make(const qkvi_problem *p, int n_threads, qkvi_arithmetic class,
                            qkvi_forward_plan *plan) {
    const int64_t dim_v = qkvi_round_up(p->head_dim_v, QKVI_PANEL);
    const int64_t threads = choose_threads(p, n_threads), n_heads = p->n_batch * p->n_kv_heads;
    *plan = (qkvi_forward_plan){
        .n_threads = (int)threads,
        .n_heads = n_heads,
        .n_packs = (int)qkvi_min_i64(threads, n_heads),
        .query_block = QKVI_QUERY_BLOCK,
        .short_block = QKVI_QUERY_BLOCK,
        .o_sum_row = qkvi_o_sum_row(p),
        .class = class,
        .copied_q = qkvi_copied_q_of(p, class),
        .k_depth = qkvi_key_words(class, p->head_dim),
        .v_depth = dim_v / qkvi_classes[class].per_word,
    };
    if (dim_v > MOST_CHANNELS)
        plan->query_block =
            (int)qkvi_max_i64(QKVI_QUERY_BLOCK * MOST_CHANNELS / dim_v / 12 * 12, 12);
    plan->most_pairs = INFINITY;
    if (p->cu_q && threads > 1) {
        plan->n_private = plan->n_heads;
        plan->most_pairs =
            qkvi_pairs(p) / (double)p->heads_per_kv / (double)threads / PARTS_PER_THREAD;
    } else if (threads == 1 || plan->n_heads >= HEADS_PER_THREAD * threads) {
        plan->n_private = plan->n_heads / threads * threads;
    } else if (!p->block_len) {
        shorten_blocks(p, plan);
    }
    if (p->block_len) /* so that 32 rows have one list */
        plan->query_block = (int)qkvi_max_i64(32, plan->query_block / 32 * 32);
    plan->n_query_blocks = count_query_blocks(p, plan);
    plan->n_key_blocks = qkvi_ceil_div(p->len_k, QKVI_KEY_BLOCK);
    qkvi_split_scale(p->scale, &plan->k_factor, &plan->scale);
    plan->small_unfit = qkvi_small_unfit(p, plan);
}

static void lay_out_pack(qkvi_cutter *cutter, const qkvi_forward_plan *plan, qkvi_packed *pack) {
    const int64_t n_keys = plan->n_key_blocks * QKVI_KEY_BLOCK;
    pack->k = qkvi_cut(cutter, n_keys, (size_t)plan->k_depth * sizeof *pack->k);
    pack->v = qkvi_cut(cutter, n_keys, (size_t)plan->v_depth * sizeof *pack->v);
    pack->v_finite = qkvi_cut(cutter, plan->n_key_blocks, sizeof(bool));
}

void qkvi_forward_lay_out(const qkvi_problem *p, qkvi_cutter *cutter, qkvi_forward_plan *plan) {
    qkvi_packed pack;
    qkvi_forward_slot slot;
    const qkvi_copied_q *const q = &plan->copied_q;
    plan->packs = qkvi_cut(cutter, plan->n_packs, sizeof *plan->packs);
    plan->slots = qkvi_cut(cutter, plan->n_threads, sizeof *plan->slots);
    for (int n = 0; n < plan->n_packs; n++)
        lay_out_pack(cutter, plan, plan->packs ? &plan->packs[n] : &pack);
    for (int n = 0; n < plan->n_threads; n++) {
        qkvi_forward_slot *to = plan->slots ? &plan->slots[n] : &slot;
        to->scratch = qkvi_cut(cutter, 1, sizeof *to->scratch);
        to->o_sum =
            qkvi_cut(cutter, plan->query_block, (size_t)plan->o_sum_row * sizeof *to->o_sum);
        to->q = q->copied ? qkvi_cut(cutter, qkvi_round_up(plan->query_block, q->rows),
                                     (size_t)(q->row * q->element_bytes))
                          : NULL;
    }
    if (p->has_stats) plan->stats = qkvi_stats_lay_out(p, cutter, plan->n_threads);
}
