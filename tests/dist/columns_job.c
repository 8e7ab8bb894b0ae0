/* See jobs.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dist/jobs.h"
#include "dist/ordered.h"

static qkv_ctx *context(const char *isa, int n_threads) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = isa;
    options.n_threads = n_threads;
    if (qkv_ctx_create(&options, &ctx, NULL) != QKV_OK) abort();
    return ctx;
}

/* ---- One process ----------------------------------------------------------------------------- */

/* What sequences in pieces are refused. */
static void forget_maps(qkv_attention_columns *c) {
    c->diagonal = c->tile_mass = c->tile_peak = NULL;
    c->diagonal_rows = c->tile_rows = NULL;
    c->n_empty_rows = c->n_nan_rows = NULL;
}

void columns_in_one_process(const check_case *c, const outputs *whole, columns_arrays *x) {
    qkv_ctx *const ctx = context("scalar", 1);
    forget_maps(&x->c);
    const qkv_status status =
        qkv_attention_columns_pass(ctx, &c->d, c->q.data, c->k.data, whole->lse.data, &x->c, NULL);
    if (status != QKV_OK) {
        fprintf(stderr, "%s\n%s\n", qkv_ctx_message(ctx), c->text);
        exit(1);
    }
    qkv_ctx_free(ctx);
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

qkv_attention_columns columns_piece_of(const columns_job *j, int rank, int64_t *counts) {
    const int64_t q = j->at.q[rank], k = j->at.k[rank];
    qkv_attention_columns c = j->x->c;
    forget_maps(&c);
    c.received += k * c.stride[2];
    c.largest += k * c.stride[2];
    c.entropy += k * c.stride[2];
    c.n_queries += k * c.stride[2];
    c.largest_query += k * c.stride[2];
    c.n_cells = counts;
    c.n_tiny = counts + j->c->d.n_batch * j->c->d.n_heads;
    if (c.row_weights) c.row_weights += q * c.row_weights_stride[2];
    return c;
}

static int key_differs(const columns_job *j, int64_t b, int64_t h, int64_t key) {
    const int64_t at = columns_key(&j->c->d, j->x, b, h, key);
    for (int n = 0; n < COLUMNS_OF_HEAD; n++) {
        const size_t bytes = columns_element(n), from = (size_t)at * bytes;
        if (memcmp((const char *)j->x->array[n].data + from,
                   (const char *)j->expected->array[n].data + from, bytes) != 0)
            return 1 + n;
    }
    return 0;
}

int columns_differ(const columns_job *j, int rank, const int64_t *counts) {
    const qkv_attention_desc *const d = &j->c->d;
    const int64_t *const n_queries = j->expected->array[COLUMNS_QUERIES].data;
    for (int64_t head = 0; head < d->n_batch * d->n_heads; head++) {
        const int64_t b = head / d->n_heads, h = head % d->n_heads;
        int64_t n_cells = 0;
        for (int64_t key = j->at.k[rank]; key < j->at.k[rank + 1]; key++) {
            const int differs = key_differs(j, b, h, key);
            n_cells += n_queries[columns_key(d, j->expected, b, h, key)];
            if (!differs) continue;
            fprintf(stderr,
                    "rank %d of %d: array %d of columns differs at [%" PRId64 "][%" PRId64
                    "][%" PRId64 "]\n%s\n",
                    rank, j->at.size, differs - 1, b, h, key, j->c->text);
            return 1;
        }
        if (counts[head] == n_cells) continue;
        fprintf(stderr,
                "rank %d of %d: %" PRId64 " cells of head %" PRId64 ", not %" PRId64 "\n%s\n", rank,
                j->at.size, counts[head], head, n_cells, j->c->text);
        return 1;
    }
    return 0;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

int columns_job_of_rank(qkvi_transport *t, void *user) {
    const columns_job *const j = user;
    const size_t n_heads = (size_t)(j->c->d.n_batch * j->c->d.n_heads);
    const piece p = piece_of(j->c, j->whole, &j->at, t->rank);
    int64_t *const counts = calloc(2 * n_heads + 1, sizeof *counts);
    qkvi_group *const group = qkvi_group_new(t);
    qkv_ctx *const ctx = context(j->isa, j->n_threads);
    if (!group || !counts) abort();
    const qkv_attention_columns columns = columns_piece_of(j, t->rank, counts);
    group->chunk_keys = j->chunk_keys;
    const qkv_status status = qkvi_ordered_columns(group, ctx, &p.d, &p.a, &columns);
    if (status != QKV_OK)
        fprintf(stderr, "rank %d: %s\n%s\n", t->rank, group->error.message, j->c->text);
    const int failed = status != QKV_OK || columns_differ(j, t->rank, counts);
    if (j->n_tiny)
        memcpy(j->n_tiny + (size_t)t->rank * n_heads, counts + n_heads, n_heads * sizeof *counts);
    free(counts);
    qkvi_group_free(group);
    qkv_ctx_free(ctx);
    return failed;
}
