/* See jobs.h. */
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

int forward_job_of_rank(qkvi_transport *t, void *user) {
    const forward_job *const j = user;
    const piece p = piece_of(j->c, j->x, &j->at, t->rank);
    qkvi_group *const group = qkvi_group_new(t);
    qkv_ctx *const ctx = context(j->isa, j->n_threads);
    if (!group) abort();
    group->chunk_keys = j->chunk_keys;
    const qkv_status status = qkvi_ordered_forward(group, ctx, &p.d, &p.a);
    if (status != QKV_OK)
        fprintf(stderr, "rank %d: %s\n%s\n", t->rank, group->error.message, j->c->text);
    qkvi_group_free(group);
    qkv_ctx_destroy(ctx);
    return status != QKV_OK || piece_differs(j->c, j->x, j->whole, &j->at, t->rank);
}

outputs forward_in_one_process(const check_case *c) {
    outputs x = outputs_new(c);
    qkv_ctx *const ctx = context("scalar", 1);
    const qkv_status status = qkv_attention_forward(ctx, &c->d, c->q.data, c->k.data, c->v.data,
                                                    x.o.data, x.lse.data, NULL);
    if (status != QKV_OK) {
        fprintf(stderr, "%s\n%s\n", qkv_ctx_message(ctx), c->text);
        exit(1);
    }
    qkv_ctx_destroy(ctx);
    return x;
}
