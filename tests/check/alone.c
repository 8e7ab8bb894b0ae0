/*
 * A batch alone: one of the batches of a case, or one of its packed sequences, as a call of its own
 * has the same bits, forward and backward. Sums over batches (d_sinks, d_mask, d_distance_bias) are
 * left out.
 */
#include <inttypes.h>
#include <string.h>

#include "check/check.h"

static const char letters[] = "olqkv"; /* in the order of outputs */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* An input of the case, from the first row of batch b on. */
static void shift(const check_case *c, char which, guarded *g, const int64_t stride[3], int64_t b) {
    const size_t bytes = element_bytes(output_element(&c->d, which));
    if (g->data)
        g->data = (char *)g->data + layout_place(&c->d, which, stride, b, 0, 0) * (int64_t)bytes;
}

/* The rules of batch b, as those of batch 0 of a call. */
static void rules_alone(const check_case *c, check_case *one, int64_t b) {
    const qkv_attention_desc *const d = &c->d;
    qkv_attention_desc *const o = &one->d;
    const int64_t mask_step = b * d->mask_stride[0];
    const size_t mask_bytes = outputs_mask_bytes(d);
    o->n_batch = 1;
    o->len_q = layout_rows(d, 'q', b);
    o->len_k = layout_rows(d, 'k', b);
    o->flags &= ~(uint32_t)QKV_SET_CU_SEQLENS;
    one->kv_len[0] = c->kv_len[b];
    one->q_len[0] = c->q_len[b];
    one->q_offsets[0] = c->q_offsets[b];
    one->prefix_len[0] = least(c->prefix_len[b], o->len_k);
    o->kv_len = one->kv_len;
    o->q_len = one->q_len;
    o->prefix_len = one->prefix_len;
    if (d->q_offsets) o->q_offsets = one->q_offsets;
    if (d->mask_len_k > 1) o->mask_len_k = least(d->mask_len_k, o->len_k);
    if (d->mask) o->mask = (const char *)d->mask + mask_step * (int64_t)mask_bytes;
    if (d->seg_q) o->seg_q = d->seg_q + b * d->seg_q_stride;
    if (d->seg_k) o->seg_k = d->seg_k + b * d->seg_k_stride;
    if (d->block_offsets) o->block_offsets = d->block_offsets + b * d->block_offsets_stride[0];
}

static void case_alone(const check_case *c, check_case *one, int64_t b) {
    *one = *c;
    one->wants_d_mask = one->wants_d_distance = false;
    shift(c, 'q', &one->q, c->d.q_stride, b);
    shift(c, 'k', &one->k, c->d.k_stride, b);
    shift(c, 'v', &one->v, c->d.v_stride, b);
    shift(c, 'o', &one->d_o, c->d_o_stride, b);
    shift(c, 'l', &one->d_lse, c->d.lse_stride, b);
    rules_alone(c, one, b);
}

static void compare_batch(const check_case *c, const outputs *x, int64_t b, const check_case *one,
                          const outputs *y, check_report *report) {
    const int64_t *const stride[] = { c->d.o_stride, c->d.lse_stride, c->d_q_stride, c->d_k_stride,
                                      c->d_v_stride };
    for (int n = 0; n < 5; n++) {
        int64_t size[4];
        layout_shape(&one->d, letters[n], size);
        const int64_t rows = layout_of_keys(letters[n]) ? size[2] : layout_queries(&one->d, 0);
        report->compared += rows && size[1] && size[3];
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = 0; i < rows; i++)
                compare_elements(c, n, x, layout_place(&c->d, letters[n], stride[n], b, h, i), y,
                                 layout_place(&one->d, letters[n], stride[n], 0, h, i), size[3],
                                 "a batch alone", report);
    }
}

void check_alone(const check_case *c, const check_setup *s, const outputs *all, rng *r,
                 check_report *report) {
    const qkv_attention_desc *const d = &c->d;
    check_case one;
    outputs x;
    if (d->n_batch < 2) return;
    /* Lists of blocks are for the greatest length; dropout depends on the number of the batch. */
    if (d->flags & QKV_SET_BLOCK_MASK && d->flags & QKV_SET_CU_SEQLENS) return;
    const int64_t b = d->flags & QKV_SET_DROPOUT ? 0 : rng_between(r, 0, d->n_batch - 1);
    case_alone(c, &one, b);
    if (!check_call(&one, s, &x, report)) return;
    compare_batch(c, all, b, &one, &x, report);
    outputs_free(&x);
}
