/*
 * An attention descriptor. Hostile ones are refused, by the calls as by their workspace queries, in
 * clear words and without a touch of any array. What is accepted and small runs, forward, backward
 * and merge, on arrays and a workspace of exactly the promised sizes, on every instruction set and
 * on three threads: the bits are those of the first run, and nothing else is written.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/attention_case.h"

enum { MOST_WORK = 1 << 17, MOST_WORKSPACE = 8 << 20, MOST_HEADS = 64, MOST_CONTEXTS = 8 };

/* ---- Contexts: every instruction set alone, and the best with threads ------------------------ */

static qkv_ctx *contexts[MOST_CONTEXTS];
static int n_contexts;

static void add_context(const char *isa, int n_threads) {
    qkv_ctx_options options = QKV_CTX_OPTIONS_INIT;
    options.isa = isa;
    options.n_threads = n_threads;
    FUZZ_CHECK(n_contexts < MOST_CONTEXTS);
    FUZZ_CHECK(qkv_ctx_create(&options, &contexts[n_contexts++], NULL) == QKV_OK);
}

static void make_contexts(void) {
    int n = 0;
    for (; qkv_isa_name(n); n++) add_context(qkv_isa_name(n), 1);
    add_context(qkv_isa_name(n - 1), 3);
}

/* Whether a call on a context succeeded; a failure has a message. */
static bool accepted(const qkv_ctx *ctx, qkv_status status) {
    qkv_error error = { .status = status };
    strncpy(error.message, qkv_ctx_message(ctx), sizeof error.message - 1);
    return fuzz_accepted(status, &error);
}

/* ---- A run ----------------------------------------------------------------------------------- */

enum { Q, K, V, D_O, D_LSE, MASK, O, LSE, D_Q, D_K, D_V, MERGED_O, MERGED_LSE, N_ARRAYS };

typedef struct run {
    attention_array a[N_ARRAYS];
    qkv_status forward, backward, merge;
} run;

static bool plan_arrays(const attention_case *c, run *x) {
    const qkv_attention_desc *d = &c->desc;
    const qkv_attention_grads *g = &c->grads;
    const size_t f = sizeof(float);
    const int64_t b = d->n_batch, h = d->n_heads;
    const int64_t q[4] = { b, h, d->len_q, d->head_dim }, o[4] = { b, h, d->len_q, d->head_dim_v };
    const int64_t k[4] = { b, d->n_kv_heads, d->len_k, d->head_dim };
    const int64_t v[4] = { b, d->n_kv_heads, d->len_k, d->head_dim_v };
    const int64_t lse[4] = { b, h, d->len_q, 1 };
    const int64_t mask[4] = { b, h, d->len_q, d->mask_len_k > 1 ? d->mask_len_k : d->len_k };
    return attention_array_plan(q, d->q_stride, 1, f, &x->a[Q]) &&
           attention_array_plan(k, d->k_stride, 1, f, &x->a[K]) &&
           attention_array_plan(v, d->v_stride, 1, f, &x->a[V]) &&
           attention_array_plan(o, g->d_o_stride, 1, f, &x->a[D_O]) &&
           attention_array_plan(lse, d->lse_stride, 1, f, &x->a[D_LSE]) &&
           attention_array_plan(mask, d->mask_stride, d->mask_len_k == 1 ? 0 : d->mask_stride[3],
                                d->mask_type == QKV_MASK_BOOL ? 1 : f, &x->a[MASK]) &&
           attention_array_plan(o, d->o_stride, 1, f, &x->a[O]) &&
           attention_array_plan(lse, d->lse_stride, 1, f, &x->a[LSE]) &&
           attention_array_plan(o, d->o_stride, 1, f, &x->a[MERGED_O]) &&
           attention_array_plan(lse, d->lse_stride, 1, f, &x->a[MERGED_LSE]) &&
           attention_array_plan(q, g->d_q_stride, 1, f, &x->a[D_Q]) &&
           attention_array_plan(k, g->d_k_stride, 1, f, &x->a[D_K]) &&
           attention_array_plan(v, g->d_v_stride, 1, f, &x->a[D_V]);
}

static void fill_arrays(const attention_case *c, run *x) {
    for (int i = 0; i < N_ARRAYS; i++) {
        attention_array_alloc(&x->a[i], c->shift);
        if (i < O)
            attention_array_fill(&x->a[i], c->style, c->seed + (uint64_t)i);
        else
            attention_array_clear(&x->a[i], i < MERGED_O ? 0xa5 : 0x5a);
    }
}

static qkv_call_options with_workspace(size_t n_bytes) {
    qkv_call_options call = QKV_CALL_OPTIONS_INIT;
    FUZZ_CHECK(posix_memalign(&call.workspace, 64, n_bytes ? n_bytes : 1) == 0);
    call.workspace_bytes = n_bytes;
    memset(call.workspace, 0xff, n_bytes); /* nothing may be expected of it */
    return call;
}

static void compute(qkv_ctx *ctx, const attention_case *c, const size_t workspace[2], run *x) {
    qkv_attention_desc desc = c->desc;
    desc.mask = x->a[MASK].data;
    const float *const q = x->a[Q].data, *const k = x->a[K].data, *const v = x->a[V].data;
    float *const o = x->a[O].data, *const lse = x->a[LSE].data;
    qkv_call_options call = with_workspace(workspace[0]);
    x->forward = qkv_attention_forward(ctx, &desc, q, k, v, o, c->wants_lse ? lse : NULL, &call);
    free(call.workspace);
    x->backward = x->forward;
    if (!accepted(ctx, x->forward) || !c->wants_lse) return;
    qkv_attention_grads grads = c->grads;
    grads.d_o = x->a[D_O].data;
    grads.d_lse = c->wants_d_lse ? x->a[D_LSE].data : NULL;
    grads.d_q = x->a[D_Q].data;
    grads.d_k = x->a[D_K].data;
    grads.d_v = x->a[D_V].data;
    call = with_workspace(workspace[1]);
    x->backward = qkv_attention_backward(ctx, &desc, q, k, v, o, lse, &grads, &call);
    free(call.workspace);
    accepted(ctx, x->backward);
}

/* The output with itself, and what the caller had left in rows that it did not ask for. */
static void merge(qkv_ctx *ctx, const attention_case *c, run *x) {
    const void *const o[] = { x->a[O].data, x->a[O].data };
    const float *const lse[] = { x->a[LSE].data, x->a[LSE].data };
    x->merge =
        qkv_attention_merge(ctx, &c->desc, 2, o, lse, x->a[MERGED_O].data, x->a[MERGED_LSE].data);
    accepted(ctx, x->merge);
}

/* What a run wrote, and what it left alone. */
static void check_run(const attention_case *c, const run *x) {
    static const int64_t none[CASE_MOST_BATCHES];
    const int64_t *const rows = c->desc.flags & QKV_SET_Q_LEN ? c->q_len : NULL;
    const bool forward = x->forward == QKV_OK, backward = c->wants_lse && x->backward == QKV_OK;
    FUZZ_CHECK(forward || x->forward == QKV_ERR_STRIDE); /* of lse: no workspace depends on it */
    attention_array_check(&x->a[O], forward ? rows : none);
    attention_array_check(&x->a[LSE], forward && c->wants_lse ? rows : none);
    attention_array_check(&x->a[D_Q], backward ? rows : none);
    attention_array_check(&x->a[D_K], backward ? NULL : none);
    attention_array_check(&x->a[D_V], backward ? NULL : none);
    attention_array_check(&x->a[MERGED_O], x->merge == QKV_OK ? NULL : none);
    attention_array_check(&x->a[MERGED_LSE], x->merge == QKV_OK ? NULL : none);
}

static bool is_small(const qkv_attention_desc *d) {
    const int64_t heads = d->n_batch * d->n_heads; /* in range: validation passed */
    if (d->n_batch > CASE_MOST_BATCHES || heads > MOST_HEADS) return false;
    if (d->len_q > MOST_WORK || d->len_k > MOST_WORK) return false;
    return (double)heads * (double)(d->len_q + 1) * (double)(d->len_k + 1) *
               (double)(d->head_dim + d->head_dim_v + 1) <=
           MOST_WORK;
}

static void free_arrays(run *x) {
    for (int i = 0; i < N_ARRAYS; i++) attention_array_free(&x->a[i]);
}

/* One context; false if the problem is too large for it. */
static bool run_on(qkv_ctx *ctx, const attention_case *c, run *x) {
    size_t workspace[2];
    memset(x, 0, sizeof *x);
    FUZZ_CHECK(qkv_attention_workspace(ctx, &c->desc, &workspace[0]) == QKV_OK);
    FUZZ_CHECK(qkv_attention_backward_workspace(ctx, &c->desc, &workspace[1]) == QKV_OK);
    if (workspace[0] > MOST_WORKSPACE || workspace[1] > MOST_WORKSPACE || !plan_arrays(c, x))
        return false;
    fill_arrays(c, x);
    compute(ctx, c, workspace, x);
    merge(ctx, c, x);
    check_run(c, x);
    return true;
}

static void run_everywhere(const attention_case *c) {
    run first, other;
    if (!run_on(contexts[0], c, &first)) return;
    for (int n = 1; n < n_contexts; n++) {
        if (!run_on(contexts[n], c, &other)) continue;
        FUZZ_CHECK(other.forward == first.forward && other.backward == first.backward);
        FUZZ_CHECK(other.merge == first.merge);
        for (int i = O; i < N_ARRAYS; i++)
            FUZZ_CHECK(attention_array_same(&other.a[i], &first.a[i]));
        free_arrays(&other);
    }
    free_arrays(&first);
}

/* ---- What is refused ------------------------------------------------------------------------- */

/*
 * Places that nobody may touch, for a descriptor that the query refused. Where the query ran out of
 * address space, a call may find first that the huge arrays overlap.
 */
static void refuse(const attention_case *c, const qkv_attention_desc *desc, qkv_status expected) {
    static _Alignas(64) float places[8 * 16];
    qkv_attention_grads grads = c->grads;
    qkv_ctx *const ctx = contexts[0];
    float *const at = places;
    grads.d_o = at + 64;
    grads.d_q = at + 80;
    grads.d_k = at + 96;
    grads.d_v = at + 112;
    qkv_status status = qkv_attention_forward(ctx, desc, at, at + 16, at + 32, at + 48, NULL, NULL);
    FUZZ_CHECK(!accepted(ctx, status));
    FUZZ_CHECK(status == expected || expected == QKV_ERR_MEMORY);
    /* Rows of o: backward only reads them. */
    if (strstr(qkv_ctx_message(ctx), "rows would overlap")) return;
    status =
        qkv_attention_backward(ctx, desc, at, at + 16, at + 32, at + 48, at + 56, &grads, NULL);
    FUZZ_CHECK(!accepted(ctx, status));
}

/* The descriptor in as many bytes as it claims to have. */
static qkv_attention_desc *as_claimed(const attention_case *c) {
    const size_t most = sizeof c->desc + 4096, claimed = c->desc.struct_size;
    const size_t n = claimed < 8 ? 8 : claimed > most ? most : claimed;
    uint8_t *const bytes = fuzz_alloc(n);
    memset(bytes, 0, n);
    memcpy(bytes, &c->desc, n < sizeof c->desc ? n : sizeof c->desc);
    if (n > sizeof c->desc && c->seed & 2) bytes[n - 1] = 1;
    return (qkv_attention_desc *)(void *)bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static const uint8_t somewhere[64];
    attention_case c;
    size_t workspace;
    if (!n_contexts) make_contexts();
    attention_case_read(bytes, n_bytes, &c);
    c.desc.mask = somewhere;
    qkv_attention_desc *const desc = as_claimed(&c);
    const qkv_status status = qkv_attention_workspace(contexts[0], desc, &workspace);
    const bool good = accepted(contexts[0], status);
    if (!good) refuse(&c, desc, status);
    c.desc.struct_size = sizeof c.desc; /* what lies behind was all zeros, if it is good */
    if (good && is_small(&c.desc)) run_everywhere(&c);
    free(desc);
    return 0;
}
