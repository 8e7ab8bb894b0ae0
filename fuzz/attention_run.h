/*
 * One case on one context: its arrays, of exactly the promised sizes, what the calls said, and what
 * they wrote.
 */
#ifndef QKV_FUZZ_ATTENTION_RUN_H
#define QKV_FUZZ_ATTENTION_RUN_H

#include "fuzz/attention_case.h"
#include "fuzz/attention_columns.h"

enum {
    Q,
    K,
    V,
    D_O,
    D_LSE,
    MASK,
    SLOPES,
    SINKS,
    SEG_Q,
    SEG_K,
    VIEW_K, /* what decode reads */
    VIEW_V,
    K_SCALE,
    V_SCALE,
    PAGES,
    FIRST, /* and outputs: */
    O,
    LSE,
    D_Q,
    D_K,
    D_V,
    D_SINKS,
    D_MASK,
    MERGED_O,
    MERGED_LSE,
    DECODED_O,
    DECODED_LSE,
    N_ARRAYS
};

typedef struct attention_run {
    attention_array a[N_ARRAYS];
    qkv_status forward, backward, merge, decode;
    bool decodes; /* the view is not too large */
    attention_columns columns;
    bool has_columns; /* they are not too large */
} attention_run;

/* Whether a call on a context succeeded; a failure has a message. */
bool attention_accepted(const qkv_ctx *ctx, qkv_status status);

/* Call options with a workspace of so many bytes, full of ones; the caller frees it. */
qkv_call_options attention_with_workspace(size_t n_bytes);

/*
 * Forward, backward, merge, decode and columns, and a check of what was written and what was left
 * alone; false, without arrays, if the problem is too large for this context.
 */
bool attention_run_on(qkv_ctx *ctx, const attention_case *c, attention_run *x);
void attention_run_free(attention_run *x);
/* The same statuses and the same bits. */
void attention_run_compare(const attention_run *x, const attention_run *y);

#endif
