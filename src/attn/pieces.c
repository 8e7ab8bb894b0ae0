/*
 * How many pieces of the scores are computed, by position alone, and which heads are short. A batch
 * is counted once if all are alike; a row of pieces is counted in one step from the keys of its
 * first and last query, since the ends of what queries see never fall (mask.h).
 */
#include "attn/explain.h"

/* Rows of pieces that are counted one by one, and pieces that are counted at all. */
static const double MOST_ROWS = 1 << 22, MOST_PIECES = 0x1p62;

static bool batches_alike(const qkvi_problem *p) {
    return !p->kv_len && !p->q_len && !p->q_offsets && !p->prefix_len && !p->cu_q;
}

/* Key/value heads of batch b that one thread does alone. */
static int64_t own_heads_of(const qkvi_problem *p, const qkvi_forward_plan *plan, int64_t b) {
    const int64_t first = b * p->n_kv_heads;
    if (qkvi_forward_shared(p, plan, first)) return 0;
    return qkvi_min_i64(plan->n_private - first, p->n_kv_heads);
}

/* Those of them that attend_small takes. */
static int64_t small_heads_of(const qkvi_problem *p, const qkvi_forward_plan *plan, int64_t b) {
    if (!plan || plan->small_unfit || p->n_kv_heads == 0) return 0;
    const qkvi_rules rules = qkvi_rules_of(p, b);
    return qkvi_small_rules(&rules) ? own_heads_of(p, plan, b) : 0;
}

int64_t qkvi_own_heads(const qkvi_problem *p, const qkvi_forward_plan *plan) {
    if (!p->cu_q || p->n_kv_heads == 0) return plan->n_private;
    int64_t n = 0;
    for (int64_t b = 0; b < p->n_batch; b++) n += own_heads_of(p, plan, b);
    return n;
}

int64_t qkvi_forward_tasks(const qkvi_problem *p, const qkvi_forward_plan *plan) {
    int64_t own = plan->n_private, blocks = 0; /* of the heads that all share */
    if (!p->cu_q) blocks = (plan->n_heads - own) * qkvi_forward_blocks(plan, p->len_q);
    for (int64_t b = 0; p->cu_q && p->n_kv_heads && b < p->n_batch; b++) {
        const int64_t shared = p->n_kv_heads - own_heads_of(p, plan, b);
        own -= shared;
        blocks += shared * qkvi_forward_blocks(plan, qkvi_len_q(p, b));
    }
    return own + blocks * p->heads_per_kv;
}

int64_t qkvi_small_heads(const qkvi_problem *p, const qkvi_forward_plan *plan) {
    if (p->n_batch == 0 || p->n_kv_heads == 0) return 0;
    if (batches_alike(p)) return small_heads_of(p, plan, 0) ? plan->n_private : 0;
    int64_t n = 0;
    for (int64_t b = 0; b < p->n_batch; b++) n += small_heads_of(p, plan, b);
    return n;
}

/* Queries [i0, i1) against all pieces of the keys. */
static void count_row(const qkvi_rules *r, int64_t i0, int64_t i1, int keys, bool ragged,
                      qkvi_piece_counts *pieces) {
    const qkvi_range any = qkvi_keys_of_block(r, i0, i1);
    if (any.begin == any.end) return;
    const int64_t seen = qkvi_ceil_div(any.end, keys) - any.begin / keys;
    int64_t all_end = qkvi_keys_of(r, i0).end;
    if (ragged && all_end == r->n_keys) all_end = qkvi_round_up(all_end, keys);
    const int64_t all_begin = qkvi_keys_of(r, i1 - 1).begin;
    const int64_t full = qkvi_max_i64(0, all_end / keys - qkvi_ceil_div(all_begin, keys));
    pieces->full += full;
    pieces->partial += seen - full;
}

/* Of one head of batch b. */
static qkvi_piece_counts pieces_of_batch(const qkvi_problem *p, int64_t b, int block, int rows,
                                         int keys, bool ragged) {
    const qkvi_rules r = qkvi_rules_of(p, b);
    qkvi_piece_counts pieces = { 0, 0, 0 };
    int64_t n_rows = 0;
    const int64_t len_q = qkvi_len_q(p, b), n_keys = qkvi_ceil_div(qkvi_len_k(p, b), keys);
    for (int64_t i0 = 0; i0 < len_q; i0 += block)
        for (int64_t i = i0; i < i0 + block && i < len_q; i += rows, n_rows++) {
            const int64_t last = qkvi_min_i64(i + rows, i0 + block);
            if (i < r.n_queries)
                count_row(&r, i, qkvi_min_i64(last, r.n_queries), keys, ragged, &pieces);
        }
    pieces.hidden = n_rows * n_keys - pieces.full - pieces.partial;
    return pieces;
}

qkvi_piece_counts qkvi_pieces_of(const qkvi_problem *p, const qkvi_forward_plan *small, int block,
                                 int rows, int keys, bool ragged) {
    const bool alike = batches_alike(p);
    const int64_t n_batches = alike ? qkvi_min_i64(p->n_batch, 1) : p->n_batch;
    const double length = (double)qkvi_rows_q(p) * (double)(p->cu_q ? 1 : n_batches);
    const double n_rows = length / rows + length / block + (double)n_batches;
    const double n_heads = (double)(alike ? p->n_batch * p->n_heads : p->n_heads);
    if (n_rows > MOST_ROWS || n_rows * n_heads * ((double)p->len_k / keys + 1) > MOST_PIECES)
        return (qkvi_piece_counts){ -1, -1, -1 };
    qkvi_piece_counts all = { 0, 0, 0 };
    for (int64_t b = 0; b < n_batches; b++) {
        int64_t heads = p->n_kv_heads - small_heads_of(p, small, b);
        if (alike) heads = p->n_batch * p->n_kv_heads - (small ? qkvi_small_heads(p, small) : 0);
        if (heads == 0) continue;
        const qkvi_piece_counts one = pieces_of_batch(p, b, block, rows, keys, ragged);
        all.full += one.full * heads * p->heads_per_kv;
        all.partial += one.partial * heads * p->heads_per_kv;
        all.hidden += one.hidden * heads * p->heads_per_kv;
    }
    return all;
}

/* Rows of a block are all heads of some queries, the first and the last of them perhaps in part. */
static qkvi_piece_counts decode_pieces_of_head(const qkvi_problem *p, const qkvi_decode_plan *plan,
                                               int64_t b) {
    const qkvi_rules r = qkvi_rules_of(p, b);
    const int64_t rows = r.n_queries * p->heads_per_kv, heads = p->heads_per_kv;
    qkvi_piece_counts pieces = { 0, 0, 0 };
    for (int64_t row = 0; row < rows; row += plan->n_rows) {
        const int64_t end = qkvi_min_i64(row + plan->n_rows, rows);
        count_row(&r, row / heads, qkvi_ceil_div(end, heads), QKVI_DECODE_SPLIT, true, &pieces);
    }
    pieces.hidden = plan->n_row_blocks * qkvi_ceil_div(p->len_k, QKVI_DECODE_SPLIT) - pieces.full -
                    pieces.partial;
    return pieces;
}

qkvi_piece_counts qkvi_decode_pieces_of(const qkvi_problem *p, const qkvi_decode_plan *plan) {
    const int64_t n_batches = batches_alike(p) ? 1 : p->n_batch;
    const double n_rows = (double)plan->n_row_blocks * (double)n_batches;
    const double n = (double)plan->n_units * ((double)p->len_k / QKVI_DECODE_SPLIT + 1);
    if (n_rows > MOST_ROWS || n > MOST_PIECES) return (qkvi_piece_counts){ -1, -1, -1 };
    const int64_t times = batches_alike(p) ? p->n_batch * p->n_kv_heads : p->n_kv_heads;
    qkvi_piece_counts all = { 0, 0, 0 };
    for (int64_t b = 0; plan->n_units > 0 && b < n_batches; b++) {
        const qkvi_piece_counts one = decode_pieces_of_head(p, plan, b);
        all.full += one.full * times;
        all.partial += one.partial * times;
        all.hidden += one.hidden * times;
    }
    return all;
}
