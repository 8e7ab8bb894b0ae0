/* Gradients: see mpi_cases.h. */
#include <stdlib.h>

#include "mpi_cases.h"

/* Without explicit masks: keys as in forward; of each query and head q, d_o, lse and delta. */
static int64_t backward_bytes(const qkv_attention_desc *d, const qkv_attention_desc *whole) {
    const int64_t element = d->dtype == QKV_F32 ? 4 : 2;
    const int64_t o_element = output_element(whole, 'o') == ELEMENT_F32 ? 4 : 2;
    const int64_t keys =
        d->n_batch * d->n_kv_heads * d->len_k * (d->head_dim + d->head_dim_v) * element;
    const int64_t query =
        round_up(d->head_dim * element, 4) + round_up(d->head_dim_v * o_element, 4) + 8;
    const int64_t segments =
        d->flags & QKV_SET_SEGMENTS ? 4 * d->n_batch * (d->n_heads / d->n_kv_heads) : 0;
    return keys + d->len_q * (d->n_batch * d->n_heads * query + segments);
}

void run_backward(const check_case *c, qkvmpi_group *group, cuts at) {
    outputs whole = both_in_one_process(c), x = outputs_new(c);
    const backward_job j = { .c = c, .x = &x, .whole = &whole, .at = at };
    const piece p = piece_of(c, &whole, &at, my_rank);
    float *const d_sinks = calloc((size_t)c->d.n_heads + 1, sizeof *d_sinks);
    const qkv_attention_grads grads = grads_piece_of(&j, my_rank, d_sinks);
    qkv_ctx *const ctx = new_context();
    if (!d_sinks) abort();
    bytes_sent = 0;
    const qkv_status status =
        qkvmpi_attention_backward(group, ctx, &p.d, p.a.q, p.a.k, p.a.v, p.a.o, p.a.lse, &grads);
    expect(succeeded(group, status, c), "backward failed");
    expect(status != QKV_OK || !grads_differ(&j, my_rank, d_sinks), "other bits of gradients");
    if (!(c->d.flags & QKV_SET_MASK))
        expect(bytes_sent == backward_bytes(&p.d, &c->d), "backward: not the bytes of the formula");
    free(d_sinks);
    qkv_ctx_free(ctx);
    outputs_free(&whole);
    outputs_free(&x);
}
