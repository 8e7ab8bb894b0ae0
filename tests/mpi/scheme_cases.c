/*
 * Every scheme of forward: the bytes that it sends are those that it explains, and ulysses has the
 * bits of one process. See mpi_cases.h.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dist/ring.h"
#include "mpi_cases.h"

typedef struct caller {
    qkvmpi_group *group;
    qkv_ctx *ctx;
    const char *scheme;
    int number; /* in a plan; -1: auto */
} caller;

/* Explains the call, makes it, and compares the bytes. */
static qkv_status explained_forward(void *user, const qkv_attention_desc *d,
                                    const qkvi_dist_arrays *a) {
    const caller *const x = user;
    qkvmpi_options options = qkvmpi_options_init();
    qkvmpi_plan plan = qkvmpi_plan_init();
    options.scheme = x->scheme;
    const qkv_status explained = qkvmpi_attention_explain(x->group, x->ctx, d, &options, &plan);
    expect(explained == QKV_OK, qkvmpi_group_message(x->group));
    bytes_sent = 0;
    const qkv_status status =
        qkvmpi_attention_forward(x->group, x->ctx, d, a->q, a->k, a->v, a->o, a->lse, &options);
    for (int n = 0; n < QKVMPI_SCHEMES && explained == QKV_OK; n++) {
        const qkvmpi_scheme_cost *const cost = &plan.schemes[n];
        if (strcmp(cost->name, x->number < 0 ? plan.chosen : x->scheme) != 0) continue;
        expect(cost->possible == (status == QKV_OK), "a scheme is possible if it runs");
        expect(!cost->possible || cost->bytes_sent == bytes_sent, "not the bytes of the plan");
        expect(cost->bytes_sent <= cost->most_bytes, "no rank sends more than the most");
    }
    return status;
}

static void run_scheme(const check_case *c, qkvmpi_group *group, qkvi_scheme scheme, cuts at) {
    outputs whole = forward_in_one_process(c, NULL), x = outputs_new(c);
    const ring_job j = { .c = c, .x = &x, .whole = &whole, .at = at, .scheme = scheme };
    caller y = { group, new_context(), qkvi_scheme_name(scheme), (int)scheme };
    if (scheme == QKVI_SCHEME_AUTO) y.number = -1;
    const bool same = scheme != QKVI_SCHEME_RING && scheme != QKVI_SCHEME_ZIGZAG;
    const bool divides = c->d.n_kv_heads % n_ranks == 0;
    const qkv_status status = ring_call(&j, my_rank, explained_forward, &y);
    if (scheme == QKVI_SCHEME_ULYSSES && !divides)
        expect(status == QKV_ERR_SHAPE &&
                   strstr(qkvmpi_group_message(group), "is no multiple of the"),
               "heads cannot be shared out");
    else
        expect(succeeded(group, status, c), "a scheme failed");
    if (same && status == QKV_OK)
        expect(!piece_differs(c, &x, &whole, &at, my_rank), "other bits of a scheme");
    qkv_ctx_free(y.ctx);
    outputs_free(&whole);
    outputs_free(&x);
}

void run_schemes(qkvmpi_group *group) {
    rng r = { 0x5C4E };
    for (int n = 0; n < 4 * (QKVI_N_SCHEMES + 1); n++) {
        const qkvi_scheme scheme = (qkvi_scheme)(n % (QKVI_N_SCHEMES + 1));
        const bool zigzag = scheme == QKVI_SCHEME_ZIGZAG;
        const int64_t heads = n % 4 == 3 ? n_ranks + 1 : n_ranks;
        const recipe x = { .features = n % 2 ? 1u << FEATURE_CAUSAL | 1u << FEATURE_GQA
                                             : 1u << FEATURE_SEGMENTS | 1u << FEATURE_MASK_ADDED,
                           .type = n % 3 ? ELEMENT_F32 : ELEMENT_BF16,
                           .n_batch = 2,
                           .n_heads = heads * (1 + n % 2),
                           .n_kv_heads = heads,
                           .len_q = zigzag ? 20 * n_ranks : 90,
                           .len_k = zigzag ? 22 * n_ranks : 110,
                           .head_dim = 7,
                           .head_dim_v = 5 };
        check_case c;
        case_make_of(&c, &x, rng_next(&r));
        run_scheme(&c, group, scheme,
                   zigzag ? cuts_even(n_ranks, &c.d) : cuts_random(&r, n_ranks, &c.d));
        case_free(&c);
    }
}

/* ---- What a plan says ------------------------------------------------------------------------ */

/* Pieces of one length under a causal mask: docs/scale.md has the formulas. */
void check_plan(qkvmpi_group *group) {
    const int64_t n = 64, all = n * n_ranks;
    qkv_attention_desc d;
    qkvmpi_options options = qkvmpi_options_init();
    qkvmpi_plan plan = qkvmpi_plan_init();
    qkv_ctx *const ctx = new_context();
    qkv_attention_desc_contiguous(&d, 1, 2 * n_ranks, n_ranks, n, n, 16, 16);
    d.flags |= QKV_SET_CAUSAL;
    options.flops_per_second = 1e9;
    options.bytes_per_second = 1e6;
    options.seconds_per_message = 1e-3;
    expect(qkvmpi_attention_explain(group, ctx, &d, &options, &plan) == QKV_OK, "no plan");
    const double triangle = (double)all * (double)(all + 1) / 2;
    const double last = (double)n * (double)(all - n) + (double)n * (double)(n + 1) / 2;
    const double per_pair = 2 * 32 * (double)d.n_heads;
    for (int s = 0; s < QKVMPI_SCHEMES; s++) {
        const qkvmpi_scheme_cost *const cost = &plan.schemes[s];
        const double pairs = s < 2 ? last : triangle / n_ranks;
        expect(fabs(cost->operations - per_pair * pairs) < 1, "not the work of the formula");
        expect(fabs(cost->imbalance - (pairs * n_ranks / triangle - 1)) < 1e-9,
               "not the imbalance of the formula");
        expect(fabs(cost->compute_seconds - cost->operations / 1e9) < 1e-9, "not the seconds");
        expect(cost->possible && cost->reason[0] && plan.reason[0], "a plan has reasons");
    }
    expect(n_ranks > 1 || strcmp(plan.chosen, "ordered") == 0, "one rank has nothing to share");
    if (my_rank == n_ranks - 1) options.bytes_per_second = 2e6;
    expect(n_ranks == 1 ||
               (qkvmpi_attention_explain(group, ctx, &d, &options, &plan) == QKV_ERR_ARGUMENT &&
                strstr(qkvmpi_group_message(group), "bytes_per_second of rank")),
           "ranks have one model");
    options.bytes_per_second = my_rank == n_ranks - 1 ? -1 : 2e6;
    expect(qkvmpi_attention_explain(group, ctx, &d, &options, &plan) == QKV_ERR_ARGUMENT &&
               strstr(qkvmpi_group_message(group), "bytes_per_second = -1 is not"),
           "a rate is not negative");
    expect(qkvmpi_attention_explain(group, ctx, &d, NULL, NULL) == QKV_ERR_ARGUMENT &&
               strstr(qkvmpi_group_message(group), "plan is NULL"),
           "a plan has a place");
    qkv_ctx_free(ctx);
}

void check_rates(qkvmpi_group *group) {
    qkvmpi_options options = qkvmpi_options_init();
    qkvmpi_plan plan = qkvmpi_plan_init();
    qkv_attention_desc d;
    qkv_ctx *const ctx = new_context();
    options.scheme = "auto";
    expect(qkvmpi_measure(group, ctx, QKV_F32, &options) == QKV_OK, "rates are not measured");
    expect(options.flops_per_second > 1e6 && options.flops_per_second < 1e15,
           "no computer computes so fast or slowly");
    expect((options.bytes_per_second > 0) == (n_ranks > 1) &&
               (options.seconds_per_message > 0) == (n_ranks > 1),
           "messages have rates if there are any");
    expect(strcmp(options.scheme, "auto") == 0, "the scheme stays");
    qkv_attention_desc_contiguous(&d, 1, 8, 8, 64, 64, 16, 16);
    expect(qkvmpi_attention_explain(group, ctx, &d, &options, &plan) == QKV_OK &&
               plan.flops_per_second == options.flops_per_second,
           "all ranks have the same rates");
    qkvmpi_options *const given = my_rank == n_ranks - 1 ? NULL : &options;
    expect(qkvmpi_measure(group, ctx, QKV_F32, given) == QKV_ERR_ARGUMENT &&
               strstr(qkvmpi_group_message(group), "options is NULL"),
           "rates have a place");
    expect(qkvmpi_measure(group, ctx, (qkv_dtype)99, &options) == QKV_ERR_DTYPE &&
               strstr(qkvmpi_group_message(group), "dtype = 99"),
           "no such type");
    qkv_ctx_free(ctx);
}
