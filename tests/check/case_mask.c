/*
 * Explicit masks of cases: any type, broadcast along any dimension, shorter than the keys, with
 * rows that are open, closed or mixed. The gradient of one that is added has its own strides.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "check/cases.h"
#include "check/rules.h"

static const bool gradients_of_masks = true; /* in the library? */

static bool bits_of(const qkv_attention_desc *d) { return d->mask_type == QKV_MASK_BITS; }

static void mask_type(rng *r, check_case *c, const recipe *x) {
    static const qkv_mask_type added[] = { QKV_MASK_F32, QKV_MASK_BF16, QKV_MASK_F16 };
    const int n_added = added_masks_of_16_bits ? 3 : 1;
    c->d.flags |= QKV_SET_MASK;
    c->d.mask_type = recipe_has(x, FEATURE_MASK_BOOL)   ? QKV_MASK_BOOL
                     : recipe_has(x, FEATURE_MASK_BITS) ? QKV_MASK_BITS
                                                        : added[rng_between(r, 0, n_added - 1)];
}

/* The mask's own size: 1 where it broadcasts. Its strides; the number of its elements. */
static int64_t mask_shape(rng *r, check_case *c, int64_t size[4]) {
    qkv_attention_desc *const d = &c->d;
    const bool bits = bits_of(d);
    const int64_t whole[4] = { d->n_batch, d->n_heads, d->len_q, d->len_k };
    memcpy(size, whole, sizeof whole);
    if (d->len_k > 1 && rng_chance(r, 20)) d->mask_len_k = rng_between(r, 1, d->len_k);
    if (d->mask_len_k) size[3] = d->mask_len_k;
    if (rng_chance(r, 8)) size[3] = d->mask_len_k = 1;
    if (bits) size[3] = (size[3] + 7) / 8;
    for (int n = 0; n < 3; n++)
        if (rng_chance(r, 30)) size[n] = size[n] ? 1 : 0;
    int64_t step = !bits && rng_chance(r, 15) ? 2 : 1;
    for (int n = 3; n >= 0; n--) {
        d->mask_stride[n] = size[n] == 1 && !(bits && n == 3) ? 0 : step;
        step = step * size[n] + rng_between(r, 0, 2);
    }
    int64_t last = 1;
    for (int n = 0; n < 4; n++) last += (size[n] - 1) * d->mask_stride[n];
    return size[0] && size[1] && size[2] && size[3] ? last : 0;
}

static void mask_values(rng *r, check_case *c, int64_t n_elems) {
    const elem_type type = c->d.mask_type == QKV_MASK_BF16  ? ELEMENT_BF16
                           : c->d.mask_type == QKV_MASK_F16 ? ELEMENT_F16
                                                            : ELEMENT_F32;
    const bool added = rule_adds(&c->d);
    c->mask = guarded_new((size_t)n_elems * (added ? element_bytes(type) : 1), c->at_end);
    const int open = (int)rng_between(r, 0, 9);
    const int percent = open == 0 ? 0 : open == 1 ? 2 : open == 2 ? 100 : 70;
    /* a number, or hidden */
    const double low = rng_chance(r, 15) ? (type == ELEMENT_F16 ? -65504 : -0x1.FEp127) : -INFINITY;
    for (int64_t n = 0; n < n_elems; n++) {
        const bool sees = rng_chance(r, percent);
        if (added)
            element_set(c->mask.data, type, n, sees ? (double)rng_normal(r) * 3 : low);
        else
            ((unsigned char *)c->mask.data)[n] = sees ? (unsigned char)rng_between(r, 1, 255) : 0;
    }
}

/* Sums where the mask repeats, mostly, and now and then elsewhere. */
static void gradient_strides(rng *r, check_case *c, const int64_t mask_size[4]) {
    int64_t size[4], step = rng_chance(r, 15) ? 2 : 1;
    layout_mask(&c->d, size);
    for (int n = 3; n >= 0; n--) {
        const bool sums = rng_chance(r, mask_size[n] == 1 ? 70 : 10);
        c->d_mask_stride[n] = sums ? 0 : step;
        step = sums ? step : step * (size[n] ? size[n] : 1) + rng_between(r, 0, 2);
    }
}

void case_mask(rng *r, check_case *c, const recipe *x) {
    int64_t size[4];
    if (!(x->features >> FEATURE_MASK_BOOL & 7)) return;
    mask_type(r, c, x);
    const int64_t n_elems = mask_shape(r, c, size);
    mask_values(r, c, n_elems);
    c->d.mask = c->mask.data;
    if (!rule_adds(&c->d)) return;
    c->wants_d_mask = gradients_of_masks && rng_chance(r, 70);
    gradient_strides(r, c, size);
}
