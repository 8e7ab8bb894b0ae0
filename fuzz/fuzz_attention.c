/*
 * An attention descriptor. Hostile ones are refused, by the calls as by their workspace queries, in
 * clear words and without a touch of any array. What is accepted and small runs, forward, backward,
 * merge, decode over a view of any kind, and the pass over columns, on arrays and a workspace of
 * exactly the promised sizes, on every instruction set and on three threads: the bits are those of
 * the first run, and nothing else is written.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/attention_run.h"

enum { MOST_WORK = 1 << 17, MOST_HEADS = 64, MOST_CONTEXTS = 8 };

/* ---- Contexts: every instruction set alone, and the best with threads ------------------------ */

static qkv_ctx *contexts[MOST_CONTEXTS];
static int n_contexts;

static void add_context(const char *isa, int n_threads) {
    qkv_ctx_options options = qkv_ctx_options_init();
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

/* ---- What is accepted ------------------------------------------------------------------------ */

static bool is_small(const qkv_attention_desc *d) {
    const int64_t heads = d->n_batch * d->n_heads; /* in range: validation passed */
    if (d->n_batch > CASE_MOST_BATCHES || heads > MOST_HEADS) return false;
    if (d->len_q > MOST_WORK || d->len_k > MOST_WORK) return false;
    return (double)heads * (double)(d->len_q + 1) * (double)(d->len_k + 1) *
               (double)(d->head_dim + d->head_dim_v + 1) <=
           MOST_WORK;
}

static void run_everywhere(const attention_case *c) {
    attention_run first, other;
    if (!attention_run_on(contexts[0], c, &first)) return;
    for (int n = 1; n < n_contexts; n++) {
        if (!attention_run_on(contexts[n], c, &other)) continue;
        attention_run_compare(&other, &first);
        attention_run_free(&other);
    }
    attention_run_free(&first);
}

/* ---- What is refused ------------------------------------------------------------------------- */

/*
 * Places that must not be touched, for a descriptor that the query refused. Where the query ran out
 * of address space, a call may find first that the huge arrays overlap.
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
    FUZZ_CHECK(!attention_accepted(ctx, status));
    FUZZ_CHECK(status == expected || expected == QKV_ERR_MEMORY);
    /* Rows of o: backward only reads them. */
    if (strstr(qkv_ctx_message(ctx), "rows would overlap")) return;
    status =
        qkv_attention_backward(ctx, desc, at, at + 16, at + 32, at + 48, at + 56, &grads, NULL);
    FUZZ_CHECK(!attention_accepted(ctx, status));
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
    static const _Alignas(8) uint8_t somewhere[64];
    static attention_case c;
    size_t workspace;
    if (!n_contexts) make_contexts();
    attention_case_read(bytes, n_bytes, &c);
    c.desc.mask = somewhere;
    c.desc.alibi_slopes = c.desc.sinks = (const float *)(const void *)somewhere;
    c.desc.seg_q = c.desc.seg_k = (const int32_t *)(const void *)somewhere;
    qkv_attention_desc *const desc = as_claimed(&c);
    const qkv_status status = qkv_attention_workspace(contexts[0], desc, &workspace);
    const bool good = attention_accepted(contexts[0], status);
    if (!good) refuse(&c, desc, status);
    /* What lies behind was all zeros, if it is good, and what it does not have counts as zero. */
    if (c.desc.struct_size < sizeof c.desc)
        memset((char *)&c.desc + c.desc.struct_size, 0, sizeof c.desc - c.desc.struct_size);
    c.desc.struct_size = sizeof c.desc;
    if (good && is_small(&c.desc)) run_everywhere(&c);
    free(desc);
    return 0;
}
