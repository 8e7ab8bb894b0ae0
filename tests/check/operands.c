/*
 * Arrays of any type and layout as dense doubles. See oracle_row.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "check/elements.h"
#include "check/layout.h"
#include "check/oracle_row.h"

void *oracle_zeros(int64_t n, size_t size) {
    void *p = calloc((size_t)(n > 0 ? n : 1), size);
    if (!p) {
        fputs("oracle: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

int64_t oracle_row_q(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i) {
    return (b * d->n_heads + h) * d->len_q + i;
}

int64_t oracle_row_k(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t j) {
    const int64_t g = h / (d->n_heads / d->n_kv_heads);
    return (b * d->n_kv_heads + g) * d->len_k + j;
}

static double *dense(const qkv_attention_desc *d, char which, const void *x, elem_type type,
                     const int64_t stride[3]) {
    int64_t size[4];
    if (!x) return NULL;
    layout_shape(d, which, size);
    double *const y = oracle_zeros(size[0] * size[1] * size[2] * size[3], sizeof *y);
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = 0; i < layout_rows(d, which, b); i++) {
                const int64_t from = layout_place(d, which, stride, b, h, i);
                double *const to = y + ((b * size[1] + h) * size[2] + i) * size[3];
                for (int64_t c = 0; c < size[3]; c++) to[c] = element_get(x, type, from + c);
            }
    return y;
}

static double *keys(const qkv_attention_desc *d, char which, const void *x, const double *given,
                    const int64_t stride[3]) {
    int64_t size[4];
    if (!given) return dense(d, which, x, (elem_type)d->dtype, stride);
    layout_shape(d, which, size);
    const int64_t n = size[0] * size[1] * size[2] * size[3];
    double *const y = oracle_zeros(n, sizeof *y);
    for (int64_t at = 0; at < n; at++) y[at] = given[at];
    return y;
}

operands operands_new(const qkv_attention_desc *d, const oracle_inputs *in) {
    const elem_type type = (elem_type)d->dtype, o_type = element_of_o(d);
    return (operands){ .q = dense(d, 'q', in->q, type, d->q_stride),
                       .k = keys(d, 'k', in->k, in->k_dense, d->k_stride),
                       .v = keys(d, 'v', in->v, in->v_dense, d->v_stride),
                       .d_o = dense(d, 'o', in->d_o, o_type, in->d_o_stride),
                       .d_lse = dense(d, 'l', in->d_lse, ELEMENT_F32, d->lse_stride),
                       .o = dense(d, 'o', in->o, o_type, d->o_stride),
                       .lse = dense(d, 'l', in->lse, ELEMENT_F32, d->lse_stride) };
}

void operands_free(operands *x) {
    free(x->q);
    free(x->k);
    free(x->v);
    free(x->d_o);
    free(x->d_lse);
    free(x->o);
    free(x->lse);
}

void for_each_row(const qkv_attention_desc *d, const operands *x, row_function *function,
                  void *argument) {
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t h = 0; h < d->n_heads; h++)
            for (int64_t i = 0; i < layout_queries(d, b); i++) function(d, x, b, h, i, argument);
}
