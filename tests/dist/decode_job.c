/* See jobs.h. */
#include <stdio.h>
#include <stdlib.h>

#include "dist/decode.h"
#include "dist/jobs.h"

static qkv_ctx *context(const char *isa, int n_threads) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = isa;
    options.n_threads = n_threads;
    if (qkv_ctx_create(&options, &ctx, NULL) != QKV_OK) abort();
    return ctx;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* Where pages end, if there are any; at multiples of a split now and then. */
static int64_t round_cut(rng *r, const kv_stored *kv, int64_t at, int64_t len) {
    int64_t to = kv->view.page_len ? kv->view.page_len : 1;
    if (!kv->view.page_len && rng_chance(r, 30)) to = 1024;
    const int64_t down = at / to * to;
    return at == len ? len : down;
}

cuts decode_cuts(rng *r, const stored_case *x, int size, kv_stored *kv) {
    const int64_t len = x->c.d.len_k;
    cuts at = cuts_random(r, size, &x->c.d);
    *kv = x->layout == LAYOUT_PAGES ? x->kv : stored_contiguous(&x->c, &x->kv);
    for (int rank = 1; rank < size; rank++) {
        at.k[rank] = round_cut(r, kv, at.k[rank], len);
        if (at.k[rank] < at.k[rank - 1]) at.k[rank] = at.k[rank - 1];
    }
    return at;
}

static const void *shifted(const void *x, int64_t elements, int64_t bytes) {
    return x ? (const char *)x + elements * bytes : NULL;
}

qkv_kv_view decode_piece_of(const decode_job *j, int rank) {
    const int64_t first = j->at.k[rank];
    qkv_kv_view v = j->kv->view;
    const int64_t bytes = (int64_t)element_bytes((elem_type)v.dtype);
    if (v.page_len) {
        v.pages += j->at.k[rank + 1] > first ? first / v.page_len : 0;
        return v;
    }
    if (j->at.k[rank + 1] == first) return v;
    v.k = shifted(v.k, first * v.k_stride[2], bytes);
    v.v = shifted(v.v, first * v.v_stride[2], bytes);
    v.k_scale = shifted(v.k_scale, first * v.k_scale_stride[2], sizeof(float));
    v.v_scale = shifted(v.v_scale, first * v.v_scale_stride[2], sizeof(float));
    return v;
}

qkv_attention_desc decode_desc_of(const decode_job *j, int rank) {
    qkv_attention_desc d = j->x->c.d;
    d.len_k = j->at.k[rank + 1] - j->at.k[rank];
    return d;
}

int decode_differs(const decode_job *j, const outputs *x, int rank) {
    if (j->scheme == QKVI_SCHEME_TREE) {
        check_report report = { .failures = 0 };
        compare_forward(&j->x->c, x, &report);
        if (report.failures)
            fprintf(stderr, "rank %d: %s\n%s\n", rank, report.message, j->x->c.text);
        return report.failures > 0;
    }
    cuts all = { .size = j->at.size };
    all.q[rank] = 0;
    all.q[rank + 1] = j->x->c.d.len_q;
    return piece_differs(&j->x->c, x, j->whole, &all, rank);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void ask(qkv_attention_desc *d, stats_arrays *stats) {
    d->flags |= QKV_SET_STATS;
    d->stats = &stats->s;
}

int decode_job_of_rank(qkvi_transport *t, void *user) {
    const decode_job *const j = user;
    const check_case *const c = &j->x->c;
    qkv_attention_desc d = decode_desc_of(j, t->rank);
    stats_arrays stats = { .n_empty = { .map = NULL } };
    const qkv_kv_view view = decode_piece_of(j, t->rank);
    outputs x = outputs_new(c);
    const qkvi_dist_arrays a = { .q = c->q.data, .o = x.o.data, .lse = x.lse.data };
    qkvi_group *const group = qkvi_group_new(t);
    qkv_ctx *const ctx = context(j->isa, j->n_threads);
    if (!group) abort();
    if (j->stats) {
        stats = stats_arrays_new(&c->d, j->stats_seed, false);
        ask(&d, &stats);
    }
    const qkv_status status = qkvi_decode_by(group, ctx, j->scheme, NULL, &d, &view, &a);
    int failed = status != QKV_OK;
    if (failed) fprintf(stderr, "rank %d: %s\n%s\n", t->rank, group->error.message, c->text);
    if (!failed) failed = decode_differs(j, &x, t->rank);
    if (j->stats) {
        const int array = stats_difference(&stats, j->stats);
        if (!failed && array >= 0) {
            fprintf(stderr, "rank %d: array %d of statistics differs\n%s\n", t->rank, array,
                    c->text);
            failed = 1;
        }
        stats_arrays_free(&stats);
    }
    const char *const spoilt = outputs_spoilt(c, &x);
    if (spoilt) {
        fprintf(stderr, "rank %d: %s was written outside of its rows\n%s\n", t->rank, spoilt,
                c->text);
        failed = 1;
    }
    outputs_free(&x);
    qkvi_group_free(group);
    qkv_ctx_free(ctx);
    return failed;
}

outputs decode_in_one_process(const stored_case *x, stats_arrays *stats) {
    const check_case *const c = &x->c;
    qkv_attention_desc d = c->d;
    outputs y = outputs_new(c);
    qkv_ctx *const ctx = context("scalar", 1);
    if (stats) ask(&d, stats);
    const qkv_status status =
        qkv_attention_decode(ctx, &d, c->q.data, &x->kv.view, y.o.data, y.lse.data, NULL);
    if (status != QKV_OK) {
        fprintf(stderr, "%s\n%s\n", qkv_ctx_message(ctx), c->text);
        exit(1);
    }
    qkv_ctx_free(ctx);
    return y;
}
