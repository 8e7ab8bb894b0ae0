/* Scheme ordered of forward: see mpi_cases.h. */
#include "mpi_cases.h"

/* Ends when all are done: a rank that fails must not leave others waiting. */
static void run_case(const check_case *c, qkvmpi_group *group, cuts at) {
    const qkv_attention_desc *const d = &c->d;
    outputs whole = forward_in_one_process(c, NULL), x = outputs_new(c);
    const piece p = piece_of(c, &x, &at, my_rank);
    qkv_ctx *const ctx = new_context();
    bytes_sent = 0;
    const qkv_status status =
        qkvmpi_attention_forward(group, ctx, &p.d, p.a.q, p.a.k, p.a.v, p.a.o, p.a.lse, NULL);
    expect(succeeded(group, status, c), "attention failed");
    expect(status != QKV_OK || !piece_differs(c, &x, &whole, &at, my_rank), "other bits");
    const int64_t element = d->dtype == QKV_F32 ? 4 : 2;
    const int64_t expected =
        d->n_batch * d->n_kv_heads * p.d.len_k * (d->head_dim + d->head_dim_v) * element;
    expect(bytes_sent == expected, "not the bytes of the formula");
    qkv_ctx_free(ctx);
    outputs_free(&whole);
    outputs_free(&x);
}

void run_pairs(qkvmpi_group *group, uint64_t seed, int every) {
    rng r = { seed };
    for (int n = 0; n < PAIRS * COLUMNS; n += every) {
        const pair p = pair_of(n / COLUMNS);
        const int column = n % COLUMNS;
        check_case c;
        if (!has_pieces(n)) continue;
        const recipe x = pair_recipe(p, column, (int)rng_between(&r, 0, PAIR_SIZES - 1), &r);
        case_make_of(&c, &x, rng_next(&r));
        group->of->chunk_keys = 256 * rng_between(&r, 0, 2);
        run_case(&c, group, cuts_random(&r, n_ranks, &c.d));
        if (n / every % 3 == 0) run_backward(&c, group, cuts_random(&r, n_ranks, &c.d));
        if (n / every % 3 == 1) run_columns(&c, group, cuts_random(&r, n_ranks, &c.d), r.state);
        case_free(&c);
    }
}
