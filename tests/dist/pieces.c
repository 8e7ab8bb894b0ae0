/* See pieces.h. */
#include "dist/pieces.h"

#include <inttypes.h>
#include <stdio.h>

static void cut(rng *r, int size, int64_t n, int64_t *at) {
    at[0] = 0;
    for (int rank = 1; rank < size; rank++) at[rank] = rng_between(r, 0, n);
    at[size] = n;
    for (int a = 1; a < size; a++)
        for (int b = a; b > 1 && at[b] < at[b - 1]; b--) {
            const int64_t x = at[b];
            at[b] = at[b - 1];
            at[b - 1] = x;
        }
}

cuts cuts_random(rng *r, int size, const qkv_attention_desc *d) {
    cuts c = { .size = size };
    cut(r, size, d->len_q, c.q);
    cut(r, size, d->len_k, c.k);
    return c;
}

cuts cuts_even(int size, const qkv_attention_desc *d) {
    cuts c = { .size = size };
    for (int rank = 0; rank <= size; rank++) {
        c.q[rank] = d->len_q * rank / size;
        c.k[rank] = d->len_k * rank / size;
    }
    return c;
}

static void *from(const check_case *c, char which, const guarded *g, const int64_t stride[3],
                  int64_t first) {
    const int64_t bytes = (int64_t)element_bytes(output_element(&c->d, which));
    return (char *)g->data + stride[2] * first * bytes;
}

piece piece_of(const check_case *c, const outputs *x, const cuts *at, int rank) {
    const qkv_attention_desc *const d = &c->d;
    const int64_t q = at->q[rank], k = at->k[rank];
    piece p = { .d = *d };
    p.d.len_q = at->q[rank + 1] - q;
    p.d.len_k = at->k[rank + 1] - k;
    if (d->mask)
        p.d.mask = (const char *)d->mask + q * d->mask_stride[2] * (int64_t)outputs_mask_bytes(d);
    if (d->seg_q) p.d.seg_q = d->seg_q + q;
    p.a.q = from(c, 'q', &c->q, d->q_stride, q);
    p.a.k = from(c, 'k', &c->k, d->k_stride, k);
    p.a.v = from(c, 'v', &c->v, d->v_stride, k);
    p.a.o = from(c, 'o', &x->o, d->o_stride, q);
    p.a.lse = from(c, 'l', &x->lse, d->lse_stride, q);
    return p;
}

int piece_differs(const check_case *c, const outputs *x, const outputs *whole, const cuts *at,
                  int rank) {
    static const char letters[] = "ol";
    const int64_t *const stride[] = { c->d.o_stride, c->d.lse_stride };
    for (int n = 0; n < 2; n++) {
        const elem_type type = outputs_element(&c->d, n);
        const int64_t bytes = (int64_t)element_bytes(type);
        const char *const a = outputs_at(x, n)->data, *const b = outputs_at(whole, n)->data;
        int64_t size[4];
        layout_shape(&c->d, letters[n], size);
        for (int64_t batch = 0; batch < size[0]; batch++)
            for (int64_t h = 0; h < size[1]; h++)
                for (int64_t i = at->q[rank];
                     i < at->q[rank + 1] && i < layout_queries(&c->d, batch); i++) {
                    const int64_t row =
                        bytes * layout_place(&c->d, letters[n], stride[n], batch, h, i);
                    const int64_t e = first_difference_of(type, a + row, b + row, (size_t)size[3]);
                    if (e < 0) continue;
                    fprintf(stderr,
                            "rank %d of %d: %c[%" PRId64 "][%" PRId64 "][%" PRId64 "][%" PRId64
                            "] is %.9g, in one process %.9g\n%s\n",
                            rank, at->size, letters[n], batch, h, i, e,
                            element_get(a + row, type, e), element_get(b + row, type, e), c->text);
                    return 1;
                }
    }
    return 0;
}
