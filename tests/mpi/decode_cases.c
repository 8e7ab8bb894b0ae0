/* Decode: see mpi_cases.h. */
#include "mpi_cases.h"

static void run_decode(const stored_case *x, qkvmpi_group *group, const kv_stored *kv, cuts at,
                       qkvi_scheme scheme) {
    const check_case *const c = &x->c;
    outputs whole = decode_in_one_process(x, NULL), y = outputs_new(c);
    const decode_job j = { .x = x, .kv = kv, .whole = &whole, .at = at, .scheme = scheme };
    qkvmpi_options options = qkvmpi_options_init();
    options.scheme = scheme == QKVI_SCHEME_TREE ? "tree" : NULL;
    const qkv_attention_desc d = decode_desc_of(&j, my_rank);
    const qkv_kv_view view = decode_piece_of(&j, my_rank);
    qkv_ctx *const ctx = new_context();
    bytes_sent = 0;
    const qkv_status status =
        qkvmpi_attention_decode(group, ctx, &d, c->q.data, &view, y.o.data, y.lse.data, &options);
    expect(succeeded(group, status, c), "decode failed");
    expect(status != QKV_OK || !decode_differs(&j, &y, my_rank), "other results of decode");
    qkv_ctx_free(ctx);
    outputs_free(&whole);
    outputs_free(&y);
}

void run_decode_pairs(qkvmpi_group *group, uint64_t seed, int every) {
    rng r = { seed };
    for (int n = 0; n < PAIRS * COLUMNS; n += every) {
        const pair p = pair_of(n / COLUMNS);
        const int column = n % COLUMNS;
        stored_case x;
        kv_stored kv;
        if (!check_columns[column].decode || !pair_exists(p, column)) continue;
        const recipe y = pair_recipe(p, column, (int)rng_between(&r, 0, PAIR_SIZES - 1), &r);
        stored_case_make_of(&x, &y, check_columns[column].stored, rng_next(&r));
        const cuts at = decode_cuts(&r, &x, n_ranks, &kv);
        run_decode(&x, group, &kv, at, n / every % 2 ? QKVI_SCHEME_TREE : QKVI_SCHEME_ORDERED);
        if (kv.k.map != x.kv.k.map) stored_free(&kv);
        stored_case_free(&x);
    }
}

/*
 * By both schemes each rank with splits sends sums once, to one rank or to all. Keys of a split
 * that begins on another rank are sent to it.
 */
static int64_t decode_bytes(const qkv_attention_desc *d, const cuts *at, int64_t key_bytes) {
    const int64_t rows = d->n_heads / d->n_kv_heads * d->len_q; /* at most 32 */
    const int64_t sums =
        d->n_batch * d->n_kv_heads * (320 + 4 * rows * round_up(d->head_dim_v, 16));
    const int64_t from = at->k[my_rank], to = at->k[my_rank + 1], first = round_up(from, 1024);
    if (from == to || n_ranks == 1) return 0;
    return ((to < first ? to : first) - from) * key_bytes + (first < to ? sums : 0);
}

void check_decode_bytes(qkvmpi_group *group) {
    static const elem_type types[] = { ELEMENT_F32, ELEMENT_BF16, ELEMENT_I8 };
    rng r = { 0xB17E };
    for (int n = 0; n < 9; n++) {
        const elem_type type = types[n % 3];
        const recipe y = { .features = 1u << FEATURE_GQA,
                           .n_batch = 2,
                           .n_heads = 6,
                           .n_kv_heads = 2,
                           .len_q = 1 + n % 2,
                           .len_k = 1500 * n,
                           .head_dim = 16,
                           .head_dim_v = 24 };
        stored_case x;
        do stored_case_make_of(&x, &y, type, rng_next(&r));
        while (x.layout != LAYOUT_CONTIGUOUS && (stored_case_free(&x), true));
        cuts at = cuts_even(n_ranks, &x.c.d);
        for (int rank = 0; n < 5 && rank < n_ranks; rank++) at.k[rank] = at.k[rank] / 1024 * 1024;
        run_decode(&x, group, &x.kv, at, n % 4 ? QKVI_SCHEME_TREE : QKVI_SCHEME_ORDERED);
        const int64_t element = (int64_t)element_bytes(type);
        const int64_t key = 4 * ((16 + 24) * element + (type == ELEMENT_I8 ? 8 : 0));
        expect(bytes_sent == decode_bytes(&x.c.d, &at, key),
               "decode: not the bytes of the formula");
        stored_case_free(&x);
    }
}
