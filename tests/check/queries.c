/*
 * Queries alone: some of the queries of a case as a call of its own have the same bits, wherever
 * they begin, so whatever tiles and blocks they fall into.
 */
#include "check/check.h"

/* An input of the case, from row `first` on. */
static void shift(const check_case *c, char which, guarded *g, const int64_t stride[3],
                  int64_t first) {
    const int64_t bytes = (int64_t)element_bytes(output_element(&c->d, which));
    if (g->data) g->data = (char *)g->data + stride[2] * first * bytes;
}

static int64_t offset_of(const check_case *c, int64_t b) {
    if (!(c->d.flags & QKV_SET_Q_OFFSET)) return 0;
    return c->d.q_offsets ? c->d.q_offsets[b] : c->d.q_offset;
}

/* Only from 0 on: what a query gets depends on its number, or its offset would leave its range. */
static bool must_begin(const check_case *c) {
    bool must = c->d.flags & QKV_SET_DROPOUT;
    for (int64_t b = 0; b < c->d.n_batch; b++)
        must |= offset_of(c, b) > (INT64_C(1) << 48) - c->d.len_q;
    return must;
}

/* The rules of queries from `first` on. */
static void rules_from(const check_case *c, int64_t first, check_case *some) {
    const qkv_attention_desc *const d = &c->d;
    qkv_attention_desc *const o = &some->d;
    const int64_t mask_at = first * d->mask_stride[2] * (int64_t)outputs_mask_bytes(d);
    for (int64_t b = 0; b < d->n_batch; b++) {
        const int64_t left = layout_queries(d, b) - first;
        some->q_len[b] = left < 0 ? 0 : left < o->len_q ? left : o->len_q;
        some->q_offsets[b] = offset_of(c, b) + first;
    }
    o->flags |= QKV_SET_Q_OFFSET;
    o->q_offsets = some->q_offsets;
    o->q_len = some->q_len;
    if (d->mask) o->mask = (const char *)d->mask + mask_at;
    if (d->seg_q) o->seg_q = d->seg_q + first;
    if (d->block_offsets) o->block_offsets = d->block_offsets + first / d->block_len;
}

bool case_of_queries(const check_case *c, rng *r, int64_t *first, check_case *some) {
    const qkv_attention_desc *const d = &c->d;
    if (d->len_q < 2 || d->n_batch > CASE_MAX_BATCH) return false;
    if (d->flags & QKV_SET_CU_SEQLENS) return false; /* one alone is: alone.c */
    *first = rng_chance(r, 25) ? 0 : rng_between(r, 0, d->len_q - 1);
    if (must_begin(c)) *first = 0;
    if (d->flags & QKV_SET_BLOCK_MASK) *first -= *first % d->block_len;
    *some = *c;
    some->wants_d_mask = some->wants_d_distance = false;
    some->d.len_q = rng_between(r, 1, d->len_q - *first);
    shift(c, 'q', &some->q, d->q_stride, *first);
    shift(c, 'o', &some->d_o, c->d_o_stride, *first);
    shift(c, 'l', &some->d_lse, d->lse_stride, *first);
    rules_from(c, *first, some);
    return true;
}

void compare_queries(const check_case *c, const outputs *all, int64_t first, const check_case *some,
                     const outputs *x, check_report *report) {
    static const char letters[] = "olq"; /* in the order of outputs */
    const int64_t *const stride[] = { c->d.o_stride, c->d.lse_stride, c->d_q_stride };
    for (int n = 0; n < 3 && outputs_at(x, n)->map; n++) {
        int64_t size[4];
        layout_shape(&some->d, letters[n], size);
        report->compared++;
        for (int64_t b = 0; b < size[0]; b++)
            for (int64_t h = 0; h < size[1]; h++)
                for (int64_t i = 0; i < layout_queries(&some->d, b); i++)
                    compare_elements(c, n, all,
                                     layout_place(&c->d, letters[n], stride[n], b, h, first + i), x,
                                     layout_place(&some->d, letters[n], stride[n], b, h, i),
                                     size[3], "queries alone", report);
    }
}

void check_queries(const check_case *c, const check_setup *s, const outputs *all, rng *r,
                   check_report *report) {
    check_case some;
    outputs x;
    int64_t first;
    if (!case_of_queries(c, r, &first, &some) || !check_call(&some, s, &x, report)) return;
    compare_queries(c, all, first, &some, &x, report);
    outputs_free(&x);
}
