/* Rings, and what options say: see mpi_cases.h. */
#include <stdio.h>
#include <string.h>

#include "dist/ring.h"
#include "mpi_cases.h"

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
    y.ctx = new_context();
    const size_t o_bytes = (size_t)(c->d.len_q * 4 * 40) * 4, lse_bytes = (size_t)c->d.len_q * 16;
    memset(x.o.data, 0, o_bytes);
    memset(x.lse.data, 0, lse_bytes);
    bytes_sent = 0;
    const qkv_status status = ring_call(&j, my_rank, forward, &y);
    expect(succeeded(group, status, c), "a ring failed");
    const int next = (my_rank + 1) % n_ranks;
    const int64_t kept = at.k[next + 1] - at.k[next];
    expect(bytes_sent == 2 * (c->d.len_k - kept) * (24 + 40) * 4,
           "a ring: not the bytes of the formula");
    join(x.o.data, o_bytes);
    join(x.lse.data, lse_bytes);
    compare_forward(c, &x, &report);
    if (report.failures) fprintf(stderr, "%s\n", report.message);
    expect(report.failures == 0, "a ring is not within the bounds");
    qkv_ctx_free(y.ctx);
    outputs_free(&x);
}

void run_rings(qkvmpi_group *group) {
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
void refuse_options(qkvmpi_group *group) {
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
    qkv_ctx_free(ctx);
}
