/*
 * Shapes of cases: sizes, packed sequences, strides with gaps and repeats.
 */
#include <string.h>

#include "check/cases.h"

/* Lengths of sequences, one in four of them empty, and where each begins. */
static guarded starts_new(rng *r, const check_case *c, int64_t most, const int64_t *like) {
    guarded g = guarded_new((size_t)(c->d.n_batch + 1) * sizeof(int64_t), c->at_end);
    int64_t *const starts = g.data;
    starts[0] = 0;
    for (int64_t b = 0; b < c->d.n_batch; b++) {
        int64_t length = rng_chance(r, 25) ? most : rng_between(r, 0, most);
        if (rng_chance(r, 10)) length = 0;
        if (like && like[b + 1] - like[b] <= most) length = like[b + 1] - like[b];
        starts[b + 1] = starts[b] + length;
    }
    return g;
}

void case_shape(rng *r, check_case *c, const recipe *x) {
    qkv_attention_desc *const d = &c->d;
    qkv_attention_desc_contiguous(d, x->n_batch, x->n_heads, x->n_kv_heads, x->len_q, x->len_k,
                                  x->head_dim, x->head_dim_v);
    d->dtype = (qkv_dtype)check_types[x->type].type;
    d->arithmetic = check_types[x->type].arithmetic;
    if (x->o_f32) {
        d->flags |= QKV_SET_O_DTYPE;
        d->o_dtype = QKV_F32;
    }
    if (!recipe_has(x, FEATURE_VARLEN)) return;
    d->flags |= QKV_SET_CU_SEQLENS;
    c->cu_q = starts_new(r, c, d->len_q, NULL);
    c->cu_k = starts_new(r, c, d->len_k, rng_chance(r, 50) ? c->cu_q.data : NULL);
    d->cu_seqlens_q = c->cu_q.data;
    d->cu_seqlens_k = c->cu_k.data;
}

/*
 * Batch, head and token in a random order, rows with a gap; an input may repeat along a dimension.
 */
static void random_strides(rng *r, const int64_t size[4], bool input, int64_t stride[3]) {
    static const int order[][3] = { { 2, 1, 0 }, { 2, 1, 0 }, { 1, 2, 0 }, { 1, 0, 2 } };
    const int *const o = order[rng_between(r, 0, 3)];
    int64_t step = size[3] + (rng_chance(r, 50) ? rng_between(r, 0, 7) : 0);
    for (int n = 0; n < 3; n++) {
        if (step == 0) step = 1;
        stride[o[n]] = step;
        step = step * size[o[n]] + (rng_chance(r, 30) ? rng_between(r, 0, 9) : 0);
    }
    if (input && rng_chance(r, 6)) stride[rng_between(r, 0, 2)] = 0;
}

void case_strides(rng *r, check_case *c) {
    qkv_attention_desc *const d = &c->d;
    const struct {
        char which;
        bool input;
        int64_t *stride;
    } list[] = { { 'q', true, d->q_stride },    { 'k', true, d->k_stride },
                 { 'v', true, d->v_stride },    { 'o', false, d->o_stride },
                 { 'l', false, d->lse_stride }, { 'o', true, c->d_o_stride },
                 { 'q', false, c->d_q_stride }, { 'k', false, c->d_k_stride },
                 { 'v', false, c->d_v_stride } };
    for (size_t n = 0; n < sizeof list / sizeof *list; n++) {
        int64_t size[4];
        layout_storage(d, list[n].which, size);
        random_strides(r, size, list[n].input, list[n].stride);
        if (d->flags & QKV_SET_CU_SEQLENS) list[n].stride[0] = 0;
    }
}
