/*
 * See backward_mask.h. A piece is a block of at most 128 queries and 256 keys of the output, which
 * one thread fills: all that is summed into it it computes anew, in the written order, so that the
 * pieces need nothing from each other.
 */
#include "attn/backward_mask.h"

typedef struct mask_pass {
    const qkvi_problem *p;
    const qkvi_grads *g;
    const qkvi_kernels *kernels;
    const qkvi_bwd_slot *slots;
    qkvi_watch *watch;
    int64_t n_pieces;
    atomic_llong next;
} mask_pass;

/* Blocks of the output: of queries, of keys. */
static int64_t blocks(const qkvi_grads *g, int dimension, int64_t block) {
    return qkvi_ceil_div(g->d_mask_size[dimension], block);
}

int64_t qkvi_backward_mask_pieces(const qkvi_grads *g) {
    if (!g->d_mask) return 0;
    return g->d_mask_size[0] * g->d_mask_size[1] * blocks(g, 2, QKVI_BWD_QUERIES) *
           blocks(g, 3, QKVI_BWD_KEYS);
}

/* What is summed into element `at` of a dimension of the output: itself, or all of n. */
static qkvi_range summed(const qkvi_grads *g, int dimension, int64_t at, int64_t n) {
    return g->d_mask_size[dimension] == 1 ? (qkvi_range){ 0, n } : (qkvi_range){ at, at + 1 };
}

/* A block of the output. */
typedef struct place {
    int64_t b, h, query, key; /* the last two: numbers of blocks */
    float *out;               /* its first element */
    int64_t n_queries, n_keys;
} place;

/* Queries first: neighbours share their keys, which a thread then need not pack again. */
static place place_at(const mask_pass *x, int64_t index) {
    const qkvi_grads *g = x->g;
    const int64_t *size = g->d_mask_size, *stride = g->d_mask_stride;
    const int64_t n_query = blocks(g, 2, QKVI_BWD_QUERIES), n_key = blocks(g, 3, QKVI_BWD_KEYS);
    place at = { .query = index % n_query, .key = index / n_query % n_key };
    index /= n_query * n_key;
    at.h = index % size[1];
    at.b = index / size[1];
    const int64_t i = at.query * QKVI_BWD_QUERIES, j = at.key * QKVI_BWD_KEYS;
    at.out = g->d_mask + at.b * stride[0] + at.h * stride[1] + i * stride[2] + j * stride[3];
    at.n_queries = qkvi_min_i64(QKVI_BWD_QUERIES, size[2] - i);
    at.n_keys = qkvi_min_i64(QKVI_BWD_KEYS, size[3] - j);
    return at;
}

static void clear(const place *at, const int64_t stride[4]) {
    for (int64_t i = 0; i < at->n_queries; i++)
        for (int64_t j = 0; j < at->n_keys; j++) at->out[i * stride[2] + j * stride[3]] = 0;
}

/* The first n_queries rows and n_keys columns of d_s. */
static void add(const place *at, const int64_t stride[4], const float *d_s, int64_t n_queries,
                int64_t n_keys) {
    for (int64_t i = 0; i < n_queries; i++)
        for (int64_t j = 0; j < n_keys; j++)
            at->out[i * stride[2] + j * stride[3]] += d_s[i * QKVI_BWD_DS_ROW + j];
}

/* What block `query` of queries of head h and block `key` of keys add to a place. */
static void add_block(const mask_pass *x, const place *at, const qkvi_bwd_slot *s,
                      qkvi_bwd_piece *packed, int64_t b, int64_t h, int64_t query, int64_t key) {
    const bool sum_queries = x->g->d_mask_size[2] == 1, sum_keys = x->g->d_mask_size[3] == 1;
    int64_t n, n_keys;
    if (qkvi_bwd_scores(x->p, x->g, x->kernels, s, packed, b, h, query, key, sum_queries, sum_keys,
                        &n, &n_keys))
        add(at, x->g->d_mask_stride, s->d_s, sum_queries ? 1 : n, sum_keys ? 1 : n_keys);
}

static void run_piece(const mask_pass *x, const qkvi_bwd_slot *s, qkvi_bwd_piece *packed,
                      int64_t index) {
    const qkvi_problem *p = x->p;
    const place at = place_at(x, index);
    const qkvi_range batches = summed(x->g, 0, at.b, p->n_batch);
    const qkvi_range heads = summed(x->g, 1, at.h, p->n_heads);
    const qkvi_range queries = summed(x->g, 2, at.query, qkvi_ceil_div(p->len_q, QKVI_BWD_QUERIES));
    const qkvi_range keys = summed(x->g, 3, at.key, qkvi_ceil_div(p->mask_len_k, QKVI_BWD_KEYS));
    clear(&at, x->g->d_mask_stride);
    for (int64_t b = batches.begin; b < batches.end; b++)
        for (int64_t h = heads.begin; h < heads.end; h++)
            for (int64_t i = queries.begin; i < queries.end; i++)
                for (int64_t j = keys.begin; j < keys.end; j++) {
                    if (qkvi_watch_cancelled(x->watch)) return;
                    add_block(x, &at, s, packed, b, h, i, j);
                }
}

static void run_task(void *argument, int index) {
    mask_pass *x = argument;
    qkvi_bwd_piece packed = { .b = -1 };
    while (!qkvi_watch_cancelled(x->watch)) {
        const int64_t piece = atomic_fetch_add(&x->next, 1);
        if (piece >= x->n_pieces) return;
        run_piece(x, &x->slots[index], &packed, piece);
        qkvi_watch_done_one(x->watch);
    }
}

void qkvi_backward_mask(qkvi_pool *pool, const qkvi_problem *p, const qkvi_grads *g,
                        const qkvi_kernels *kernels, int n_slots, const qkvi_bwd_slot *slots,
                        qkvi_watch *watch) {
    mask_pass x = { .p = p, .g = g, .kernels = kernels, .slots = slots, .watch = watch };
    x.n_pieces = qkvi_backward_mask_pieces(g);
    if (x.n_pieces > 0) qkvi_pool_run(pool, n_slots, run_task, &x);
}
