/*
 * The gradient of a distance bias: see backward_mask.h. A piece is a row of the output, a head's or
 * the sum of all, which one thread fills.
 *
 * All queries and keys at one distance share an element, so that a block of derivatives of scores
 * is summed along its diagonals first, then diagonals that share the first or last element, then
 * blocks.
 */
#include <string.h>

#include "attn/backward_mask.h"

enum { DIAGONALS = QKVI_BWD_QUERIES + QKVI_BWD_KEYS - 1 };

typedef struct distance_pass {
    const qkvi_problem *p;
    const qkvi_grads *g;
    const qkvi_kernels *kernels;
    const qkvi_bwd_slot *slots;
    qkvi_watch *watch;
    int64_t n_pieces;
    atomic_llong next;
} distance_pass;

int64_t qkvi_backward_distance_pieces(const qkvi_grads *g) {
    return g->d_distance_bias ? g->d_distance_rows : 0;
}

/* diagonal[t]: of the keys j = t + i - (n - 1), a chain over the queries i. */
static void sum_diagonals(const float *d_s, int64_t n, int64_t n_keys, float diagonal[DIAGONALS]) {
    memset(diagonal, 0, DIAGONALS * sizeof *diagonal);
    for (int64_t i = 0; i < n; i++) {
        const float *const row = d_s + i * QKVI_BWD_DS_ROW;
        float *const from = diagonal + (n - 1 - i);
        for (int64_t j = 0; j < n_keys; j++) from[j] += row[j];
    }
}

/* The block's diagonals, the first of them at `distance`, to their elements of the row. */
static void add_diagonals(const qkvi_problem *p, const float *diagonal, int64_t n_diagonals,
                          int64_t distance, float *row) {
    const int64_t last = qkvi_distances(p) - 1;
    for (int64_t t = 0, first = distance + p->distance_before; t < n_diagonals;) {
        const int64_t at = qkvi_min_i64(qkvi_max_i64(first + t, 0), last);
        float sum = diagonal[t];
        for (t++; t < n_diagonals && (first + t <= at || at == last); t++) sum += diagonal[t];
        row[at] += sum;
    }
}

static void add_block(const distance_pass *x, const qkvi_bwd_slot *s, qkvi_bwd_piece *packed,
                      int64_t b, int64_t h, int64_t query, int64_t key, float *row) {
    float diagonal[DIAGONALS];
    int64_t n, n_keys;
    if (!qkvi_bwd_scores(x->p, x->g, x->kernels, s, packed, b, h, query, key, false, false, &n,
                         &n_keys))
        return;
    const int64_t last_query = query * QKVI_BWD_QUERIES + n - 1 + qkvi_position(x->p, b);
    sum_diagonals(s->d_s, n, n_keys, diagonal);
    add_diagonals(x->p, diagonal, n + n_keys - 1, key * QKVI_BWD_KEYS - last_query, row);
}

static void run_piece(const distance_pass *x, const qkvi_bwd_slot *s, qkvi_bwd_piece *packed,
                      int64_t index) {
    const qkvi_problem *p = x->p;
    const bool one = x->g->d_distance_rows == 1;
    const qkvi_range heads = { one ? 0 : index, one ? p->n_heads : index + 1 };
    const int64_t n_query = qkvi_ceil_div(p->len_q, QKVI_BWD_QUERIES);
    const int64_t n_key = qkvi_ceil_div(p->mask_len_k, QKVI_BWD_KEYS);
    float *const row = x->g->d_distance_bias + index * x->g->d_distance_bias_stride;
    memset(row, 0, (size_t)qkvi_distances(p) * sizeof *row);
    if (p->len_q == 0 || p->mask_len_k == 0) return; /* batches may be 2^48 then */
    for (int64_t b = 0; b < p->n_batch; b++)
        for (int64_t h = heads.begin; h < heads.end; h++)
            for (int64_t i = 0; i < n_query; i++)
                for (int64_t j = 0; j < n_key; j++) {
                    if (qkvi_watch_cancelled(x->watch)) return;
                    add_block(x, s, packed, b, h, i, j, row);
                }
}

static void run_task(void *argument, int index) {
    distance_pass *x = argument;
    qkvi_bwd_piece packed = { .b = -1 };
    while (!qkvi_watch_cancelled(x->watch)) {
        const int64_t piece = atomic_fetch_add(&x->next, 1);
        if (piece >= x->n_pieces) return;
        run_piece(x, &x->slots[index], &packed, piece);
        qkvi_watch_done_one(x->watch);
    }
}

void qkvi_backward_distance(qkvi_pool *pool, const qkvi_problem *p, const qkvi_grads *g,
                            const qkvi_kernels *kernels, int n_slots, const qkvi_bwd_slot *slots,
                            qkvi_watch *watch) {
    distance_pass x = { .p = p, .g = g, .kernels = kernels, .slots = slots, .watch = watch };
    x.n_pieces = qkvi_backward_distance_pieces(g);
    if (x.n_pieces > 0) qkvi_pool_run(pool, n_slots, run_task, &x);
}
