/* Sums of columns: see mpi_cases.h. */
#include <stdlib.h>

#include "mpi_cases.h"

/*
 * Without explicit masks: of each query and head q, lse, and the weight of the row, if there are
 * any.
 */
static int64_t columns_bytes(const qkv_attention_desc *d, bool weighs) {
    const int64_t element = d->dtype == QKV_F32 ? 4 : 2;
    const int64_t query = round_up(d->head_dim * element, 4) + (weighs ? 8 : 4);
    const int64_t segments =
        d->flags & QKV_SET_SEGMENTS ? 4 * d->n_batch * (d->n_heads / d->n_kv_heads) : 0;
    return d->len_q * (d->n_batch * d->n_heads * query + segments);
}

void run_columns(const check_case *c, qkvmpi_group *group, cuts at, uint64_t seed) {
    outputs whole = forward_in_one_process(c, NULL);
    columns_arrays expected = columns_arrays_new(&c->d, seed, false);
    columns_arrays x = columns_arrays_new(&c->d, seed, false);
    const columns_job j = { .c = c, .whole = &whole, .x = &x, .expected = &expected, .at = at };
    const piece p = piece_of(c, &whole, &at, my_rank);
    int64_t *const counts = calloc((size_t)(2 * c->d.n_batch * c->d.n_heads) + 1, sizeof *counts);
    qkv_ctx *const ctx = new_context();
    if (!counts) abort();
    columns_in_one_process(c, &whole, &expected);
    const qkv_attention_columns columns = columns_piece_of(&j, my_rank, counts);
    bytes_sent = 0;
    const qkv_status status =
        qkvmpi_attention_columns_pass(group, ctx, &p.d, p.a.q, p.a.k, p.a.lse, &columns);
    expect(succeeded(group, status, c), "columns failed");
    expect(status != QKV_OK || !columns_differ(&j, my_rank, counts), "other bits of columns");
    if (!(c->d.flags & QKV_SET_MASK))
        expect(bytes_sent == columns_bytes(&p.d, columns.row_weights != NULL),
               "columns: not the bytes of the formula");
    free(counts);
    qkv_ctx_free(ctx);
    columns_arrays_free(&expected);
    columns_arrays_free(&x);
    outputs_free(&whole);
}
