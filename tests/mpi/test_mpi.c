/*
 * Attention over MPI, to be run by mpiexec with any number of ranks: the bits of one process, the
 * bytes that the formula says, long messages, faults. Every rank makes the same cases.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/jobs.h"
#include "dist/ring.h"
#include "mpi/mpi_group.h"

static int failures, n_ranks, my_rank;

static void expect(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "rank %d of %d: %s\n", my_rank, n_ranks, what);
    failures++;
}

/* ---- What is sent ---------------------------------------------------------------------------- */

static int64_t bytes_sent; /* by this rank as a root of a broadcast, or in messages */

static int64_t bytes_of(int count, MPI_Datatype type) {
    int size = 0;
    MPI_Type_size(type, &size);
    return (int64_t)count * size;
}

/* Interposed: MPI says that every function has a second name, PMPI. */
int MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request) {
    if (root == my_rank) bytes_sent += bytes_of(count, type);
    return PMPI_Ibcast(data, count, type, root, comm, request);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
    bytes_sent += bytes_of(count, type);
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* ---- Cases ----------------------------------------------------------------------------------- */

/* Ends when all are done: a rank that fails must not leave others waiting. */
static void run_case(const check_case *c, qkvmpi_group *group, cuts at) {
    const qkv_attention_desc *const d = &c->d;
    outputs whole = forward_in_one_process(c, NULL), x = outputs_new(c);
    const piece p = piece_of(c, &x, &at, my_rank);
    qkv_ctx *ctx = NULL;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) abort();
    bytes_sent = 0;
    const qkv_status status =
        qkvmpi_attention_forward(group, ctx, &p.d, p.a.q, p.a.k, p.a.v, p.a.o, p.a.lse, NULL);
    if (status != QKV_OK) fprintf(stderr, "%s\n%s\n", qkvmpi_group_message(group), c->text);
    expect(status == QKV_OK, "attention failed");
    expect(status != QKV_OK || !piece_differs(c, &x, &whole, &at, my_rank), "other bits");
    const int64_t element = d->dtype == QKV_F32 ? 4 : 2;
    const int64_t expected =
        d->n_batch * d->n_kv_heads * p.d.len_k * (d->head_dim + d->head_dim_v) * element;
    expect(bytes_sent == expected, "not the bytes of the formula");
    qkv_ctx_destroy(ctx);
    outputs_free(&whole);
    outputs_free(&x);
}

static void run_backward(const check_case *c, qkvmpi_group *group, cuts at);

static void run_pairs(qkvmpi_group *group, uint64_t seed, int every) {
    rng r = { seed };
    for (int n = 0; n < PAIRS * COLUMNS; n += every) {
        const pair p = pair_of(n / COLUMNS);
        const int column = n % COLUMNS;
        check_case c;
        if (!pair_exists(p, column) || check_columns[column].decode || p.a == FEATURE_VARLEN ||
            p.b == FEATURE_VARLEN)
            continue;
        const recipe x = pair_recipe(p, column, (int)rng_between(&r, 0, PAIR_SIZES - 1), &r);
        case_make_of(&c, &x, rng_next(&r));
        group->of->chunk_keys = 256 * rng_between(&r, 0, 2);
        run_case(&c, group, cuts_random(&r, n_ranks, &c.d));
        if (n / every % 3 == 0) run_backward(&c, group, cuts_random(&r, n_ranks, &c.d));
        case_free(&c);
    }
}

/* ---- Backward -------------------------------------------------------------------------------- */

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

static void run_backward(const check_case *c, qkvmpi_group *group, cuts at) {
    outputs whole = both_in_one_process(c), x = outputs_new(c);
    const backward_job j = { .c = c, .x = &x, .whole = &whole, .at = at };
    const piece p = piece_of(c, &whole, &at, my_rank);
    float *const d_sinks = calloc((size_t)c->d.n_heads + 1, sizeof *d_sinks);
    const qkv_attention_grads grads = grads_piece_of(&j, my_rank, d_sinks);
    qkv_ctx *ctx = NULL;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK || !d_sinks) abort();
    bytes_sent = 0;
    const qkv_status status =
        qkvmpi_attention_backward(group, ctx, &p.d, p.a.q, p.a.k, p.a.v, p.a.o, p.a.lse, &grads);
    if (status != QKV_OK) fprintf(stderr, "%s\n%s\n", qkvmpi_group_message(group), c->text);
    expect(status == QKV_OK, "backward failed");
    expect(status != QKV_OK || !grads_differ(&j, my_rank, d_sinks), "other bits of gradients");
    if (!(c->d.flags & QKV_SET_MASK))
        expect(bytes_sent == backward_bytes(&p.d, &c->d), "backward: not the bytes of the formula");
    free(d_sinks);
    qkv_ctx_destroy(ctx);
    outputs_free(&whole);
    outputs_free(&x);
}

/* ---- Rings ----------------------------------------------------------------------------------- */

typedef struct caller {
    qkvmpi_group *group;
    qkv_ctx *ctx;
    const qkvmpi_options *options;
} caller;

static qkv_status forward(void *user, const qkv_attention_desc *d, const qkvi_dist_arrays *a) {
    const caller *const x = user;
    return qkvmpi_attention_forward(x->group, x->ctx, d, a->q, a->k, a->v, a->o, a->lse,
                                    x->options);
}

/* Rows of this rank alone are written, so they are put together by sums of bytes over zeros. */
static void join(void *data, size_t bytes) {
    MPI_Allreduce(MPI_IN_PLACE, data, (int)bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}

static void run_ring(const check_case *c, qkvmpi_group *group, qkvi_scheme scheme, cuts at) {
    qkvmpi_options options = qkvmpi_options_init();
    outputs x = outputs_new(c);
    check_report report = { .failures = 0 };
    const ring_job j = { .c = c, .x = &x, .at = at, .scheme = scheme };
    caller y = { group, NULL, &options };
    options.scheme = scheme == QKVI_SCHEME_RING ? "ring" : "zigzag";
    if (qkv_ctx_create(NULL, &y.ctx, NULL) != QKV_OK) abort();
    const size_t o_bytes = (size_t)(c->d.len_q * 4 * 40) * 4, lse_bytes = (size_t)c->d.len_q * 16;
    memset(x.o.data, 0, o_bytes);
    memset(x.lse.data, 0, lse_bytes);
    bytes_sent = 0;
    const qkv_status status = ring_call(&j, my_rank, forward, &y);
    if (status != QKV_OK) fprintf(stderr, "%s\n%s\n", qkvmpi_group_message(group), c->text);
    expect(status == QKV_OK, "a ring failed");
    const int next = (my_rank + 1) % n_ranks;
    const int64_t kept = at.k[next + 1] - at.k[next];
    expect(bytes_sent == 2 * (c->d.len_k - kept) * (24 + 40) * 4,
           "a ring: not the bytes of the formula");
    join(x.o.data, o_bytes);
    join(x.lse.data, lse_bytes);
    compare_forward(c, &x, &report);
    if (report.failures) fprintf(stderr, "%s\n", report.message);
    expect(report.failures == 0, "a ring is not within the bounds");
    qkv_ctx_destroy(y.ctx);
    outputs_free(&x);
}

static void run_rings(qkvmpi_group *group) {
    rng r = { 0x2198 };
    for (int n = 0; n < 8; n++) {
        qkv_attention_desc d;
        check_case c;
        const int64_t len = n % 2 ? 2 * n_ranks * (50 + n) : 512 * n_ranks;
        qkv_attention_desc_contiguous(&d, 1, 4, 2, len, len, 24, 40);
        if (n % 3) d.flags |= QKV_SET_CAUSAL;
        case_dense(&c, &d, rng_next(&r), false);
        case_seal(&c);
        if (n < 4)
            run_ring(&c, group, QKVI_SCHEME_RING, cuts_random(&r, n_ranks, &d));
        else
            run_ring(&c, group, QKVI_SCHEME_ZIGZAG, cuts_even(n_ranks, &d));
        case_free(&c);
    }
}

/* What options refuse is the same error on all ranks, though one rank alone gave them. */
static void check_ring_options(qkvmpi_group *group) {
    float x[8] = { 0 }, o[8];
    qkv_attention_desc d;
    qkv_ctx *ctx = NULL;
    qkvmpi_options options = qkvmpi_options_init();
    const bool last = my_rank == n_ranks - 1;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) abort();
    qkv_attention_desc_contiguous(&d, 1, 1, 1, 2, 2, 4, 4);
    if (last) options.scheme = "spiral";
    expect(qkvmpi_attention_forward(group, ctx, &d, x, x, x, o, NULL, &options) ==
                   QKV_ERR_ARGUMENT &&
               strstr(qkvmpi_group_message(group), "scheme is \"spiral\""),
           "there is no such scheme");
    options.scheme = last ? "ring" : "zigzag";
    expect(n_ranks == 1 || (qkvmpi_attention_forward(group, ctx, &d, x, x, x, o, NULL, &options) ==
                                QKV_ERR_ARGUMENT &&
                            strstr(qkvmpi_group_message(group), "the scheme of rank")),
           "ranks have one scheme");
    options.scheme = "zigzag";
    d.len_k = last ? 1 : 2;
    expect(qkvmpi_attention_forward(group, ctx, &d, x, x, x, o, NULL, &options) == QKV_ERR_SHAPE &&
               strstr(qkvmpi_group_message(group), "len_k = 1 on rank"),
           "pieces of zigzag have one even length");
    qkv_ctx_destroy(ctx);
}

/* ---- Decode ---------------------------------------------------------------------------------- */

static void run_decode(const stored_case *x, qkvmpi_group *group, const kv_stored *kv, cuts at) {
    const check_case *const c = &x->c;
    outputs whole = decode_in_one_process(x, NULL), y = outputs_new(c);
    const decode_job j = { .x = x, .kv = kv, .whole = &whole, .at = at };
    const qkv_attention_desc d = decode_desc_of(&j, my_rank);
    const qkv_kv_view view = decode_piece_of(&j, my_rank);
    qkv_ctx *ctx = NULL;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) abort();
    bytes_sent = 0;
    const qkv_status status =
        qkvmpi_attention_decode(group, ctx, &d, c->q.data, &view, y.o.data, y.lse.data);
    if (status != QKV_OK) fprintf(stderr, "%s\n%s\n", qkvmpi_group_message(group), c->text);
    expect(status == QKV_OK, "decode failed");
    expect(status != QKV_OK || !decode_differs(&j, &y, my_rank), "other bits of decode");
    qkv_ctx_destroy(ctx);
    outputs_free(&whole);
    outputs_free(&y);
}

static void run_decode_pairs(qkvmpi_group *group, uint64_t seed, int every) {
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
        run_decode(&x, group, &kv, at);
        if (kv.k.map != x.kv.k.map) stored_free(&kv);
        stored_case_free(&x);
    }
}

/* Sums go on, or to all; keys of a split that begins on another rank are sent to it. */
static int64_t decode_bytes(const qkv_attention_desc *d, const cuts *at, int64_t key_bytes) {
    const int64_t rows = d->n_heads / d->n_kv_heads * d->len_q; /* at most 32 */
    const int64_t sums =
        d->n_batch * d->n_kv_heads * (320 + 4 * rows * round_up(d->head_dim_v, 16));
    const int64_t from = at->k[my_rank], to = at->k[my_rank + 1], first = round_up(from, 1024);
    if (from == to || n_ranks == 1) return 0;
    return ((to < first ? to : first) - from) * key_bytes + (first < to ? sums : 0);
}

static void check_decode_bytes(qkvmpi_group *group) {
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
        run_decode(&x, group, &x.kv, at);
        const int64_t element = (int64_t)element_bytes(type);
        const int64_t key = 4 * ((16 + 24) * element + (type == ELEMENT_I8 ? 8 : 0));
        expect(bytes_sent == decode_bytes(&x.c.d, &at, key),
               "decode: not the bytes of the formula");
        stored_case_free(&x);
    }
}

static void check_faults(qkvmpi_group *group) {
    qkv_error error;
    expect(n_ranks == 1 || fault_job_of_rank(&group->mpi.base, NULL) == 0, "a fault differs");
    qkvmpi_group *none = group;
    expect(qkvmpi_group_create(MPI_COMM_NULL, &none, &error) == QKV_ERR_ARGUMENT && !none &&
               strcmp(error.message, "comm is MPI_COMM_NULL") == 0,
           "MPI_COMM_NULL is no communicator");
    expect(qkvmpi_attention_forward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
                   QKV_ERR_ARGUMENT &&
               qkvmpi_attention_backward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
                   QKV_ERR_ARGUMENT &&
               qkvmpi_attention_decode(NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
                   QKV_ERR_ARGUMENT,
           "NULL is no group");
    expect(qkvmpi_group_rank(group) == my_rank && qkvmpi_group_size(group) == n_ranks,
           "rank and size are those of the communicator");
}

static void check_before_init(void) {
    qkvmpi_group *group;
    expect(qkvmpi_group_create(MPI_COMM_WORLD, NULL, NULL) == QKV_ERR_ARGUMENT,
           "a group needs a place");
    qkvmpi_group_destroy(NULL);
    expect(qkvmpi_group_message(NULL)[0] == '\0' && qkvmpi_group_rank(NULL) == -1 &&
               qkvmpi_group_size(NULL) == 0,
           "NULL is no group");
    expect(qkvmpi_group_create(MPI_COMM_WORLD, &group, NULL) == QKV_ERR_UNSUPPORTED,
           "before MPI_Init there are no groups");
}

int main(int argc, char **argv) {
    qkvmpi_group *group = NULL;
    qkv_error error = { QKV_OK, "" };
    int level, all = 0;
    check_before_init();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (qkvmpi_group_create(MPI_COMM_WORLD, &group, &error) != QKV_OK) {
        fprintf(stderr, "%s\n", error.message);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    run_pairs(group, 0xC0FFEE, 3);
    run_decode_pairs(group, 0xDEC0FFEE, 3);
    check_decode_bytes(group);
    run_rings(group);
    if (qkvi_mpi_cut_at(&group->mpi, 100, 64, &error) != QKV_OK) abort();
    run_pairs(group, 0xB10C, 11);
    run_decode_pairs(group, 0xDECB10C, 11);
    run_rings(group);
    check_ring_options(group);
    check_faults(group);
    qkvmpi_group_destroy(group);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
