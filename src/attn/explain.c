/* See explain.h. */
#include "attn/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attn/forward.h"
#include "attn/kv_view.h"
#include "attn/piece.h"
#include "attn/problem.h"
#include "attn/seen.h"
#include "core/options.h"
#include "kernels/attend_bwd.h"

static void say(char text[QKV_REASON_BYTES], const char *format, ...) QKVI_PRINTF(2, 3);
static void say(char text[QKV_REASON_BYTES], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, QKV_REASON_BYTES, format, arguments);
    va_end(arguments);
}

static const char *plural(int64_t n) { return n == 1 ? "" : "s"; }

/* ---- What both passes have ------------------------------------------------------------------- */

/* of: the class of the pass; unless: what the class of forward lacks for it. */
static void explain_class(const qkv_ctx *ctx, const qkvi_problem *p, qkvi_arithmetic of,
                          const char *unless, qkv_attention_plan *out) {
    const qkvi_class_row *const class = &qkvi_classes[qkvi_arithmetic_of(p, ctx)];
    const qkvi_class_row *const taken = &qkvi_classes[of];
    const bool here = taken == class;
    out->arithmetic = taken->name;
    out->arithmetic_class = taken->given;
    if (taken->how)
        say(out->arithmetic_reason, "%s: %s",
            p->arithmetic ? "asked for" : "this processor is fast at it", taken->how);
    else if (p->dtype == QKV_F32)
        say(out->arithmetic_reason,
            "q, k, v are f32: f32 multiply-adds, each in its written order");
    else
        say(out->arithmetic_reason,
            "q, k, v of 16 bits become f32 on the way, which is exact%s%s%s",
            here ? "" : "; class ", here ? "" : class->name, here ? "" : unless);
}

static void explain_class_of_backward(const qkv_ctx *ctx, const qkvi_problem *p,
                                      qkv_attention_plan *out) {
    const bool forward_only = qkvi_classes[qkvi_arithmetic_of(p, ctx)].forward_only;
    explain_class(ctx, p, qkvi_backward_arithmetic_of(p, ctx),
                  forward_only ? " is for forward alone" : " needs o of bf16 here", out);
}

static void explain_isa(const qkv_ctx *ctx, qkv_attention_plan *out) {
    out->isa = ctx->kernels->name;
    if (ctx->kernels == qkvi_kernels_best())
        say(out->isa_reason, "the best that this build has and this processor can run");
    else
        say(out->isa_reason, "asked for: this build and processor have a better one");
}

static void explain_pieces(const qkvi_problem *p, qkvi_piece_counts pieces,
                           qkv_attention_plan *out) {
    out->pieces_full = pieces.full;
    out->pieces_partial = pieces.partial;
    out->pieces_hidden = pieces.hidden;
    if (pieces.full < 0)
        say(out->skip_reason, "too many queries and keys to count");
    else if (qkvi_hides(p))
        say(out->skip_reason, "positions decide; %s%s%s may hide more, found out while computing",
            p->block_len ? "the list of blocks" : "",
            p->block_len && (p->mask_type || p->seg_k) ? ", " : "",
            p->seg_k       ? p->mask_type ? "mask and segments" : "segments"
            : p->mask_type ? "the mask"
                           : "");
    else
        say(out->skip_reason, "positions alone decide who sees whom");
}

static void explain_nothing(qkv_attention_plan *out) {
    out->kernel = "none";
    out->n_threads = 0;
    out->n_tasks = out->own_heads = out->shared_heads = out->small_heads = 0;
    out->pieces_full = out->pieces_partial = out->pieces_hidden = 0;
    say(out->kernel_reason, "there is nothing to compute: some size is 0");
}

/* ---- Forward --------------------------------------------------------------------------------- */

static void explain_forward_kernel(const qkvi_forward_plan *plan, qkv_attention_plan *out) {
    const int64_t small = out->small_heads, n = plan->n_heads;
    out->kernel = small == 0   ? "attend_block"
                  : small == n ? "attend_small"
                               : "attend_small, attend_block";
    if (plan->small_unfit)
        say(out->kernel_reason, "attend_small cannot do %s", plan->small_unfit);
    else if (small == 0)
        say(out->kernel_reason,
            "attend_small is for heads of 1 to %d queries and keys from key 0 on%s", QKVI_SMALL,
            plan->n_private == 0 ? " that one thread does alone" : "");
    else
        say(out->kernel_reason,
            "%" PRId64 " of %" PRId64
            " head%s: at most %d queries and keys; attend_block again if a row "
            "is not finite",
            small, n, plural(n), QKVI_SMALL);
}

static void explain_forward_blocks(const qkvi_problem *p, const qkvi_forward_plan *plan, int rows,
                                   qkv_attention_plan *out) {
    out->query_block = plan->query_block;
    out->key_block = QKVI_KEY_BLOCK;
    out->tile_rows = out->skip_rows = rows;
    out->tile_keys = out->skip_keys = QKVI_PANEL;
    if (plan->query_block < QKVI_QUERY_BLOCK)
        say(out->block_reason,
            "fewer queries than %d, so that their sums of %" PRId64 " channels stay in the cache",
            QKVI_QUERY_BLOCK, p->head_dim_v);
    else
        say(out->block_reason,
            "scores of a block, %zu KiB, stay in the cache; the key block is part of the "
            "written order",
            (size_t)QKVI_QUERY_BLOCK * QKVI_SCORE_ROW * sizeof(float) / 1024);
}

static void explain_forward_threads(const qkv_ctx *ctx, const qkvi_problem *p,
                                    const qkvi_forward_plan *plan, qkv_attention_plan *out) {
    const int there = qkvi_pool_threads(ctx->pool);
    out->n_threads = plan->n_threads;
    out->own_heads = qkvi_own_heads(p, plan);
    out->shared_heads = plan->n_heads - out->own_heads;
    if (plan->n_threads < there)
        say(out->thread_reason, "of %d: more would cost more to wake than they would do", there);
    else
        say(out->thread_reason, "all that the context has");
    if (plan->n_threads == 1)
        say(out->sharing_reason, "one thread does one head after the other");
    else if (out->own_heads == 0)
        say(out->sharing_reason,
            "few heads: all threads pack each, then draw its query blocks, the "
            "last first");
    else if (out->shared_heads == 0)
        say(out->sharing_reason, "each thread draws whole heads, packs and attends");
    else
        say(out->sharing_reason,
            "each thread draws whole heads; the %" PRId64 " %s are shared by all",
            out->shared_heads, p->cu_q ? "of long sequences" : "left over");
}

static void explain_forward_packing(const qkvi_problem *p, const qkvi_forward_plan *plan,
                                    qkv_attention_plan *out) {
    const int64_t n_keys = plan->n_key_blocks * QKVI_KEY_BLOCK;
    out->packed_heads = plan->n_packs;
    if (plan->n_packs > 0) /* then it is part of a workspace that fits; without heads it may not */
        out->packed_bytes = (size_t)(n_keys * (plan->k_depth + plan->v_depth)) * sizeof(float);
    if (out->small_heads == plan->n_heads)
        say(out->packing_reason, "attend_small reads K and V where they are");
    else if (p->heads_per_kv > 1)
        say(out->packing_reason,
            "packed once, read by %" PRId64 " query heads and all query blocks", p->heads_per_kv);
    else
        say(out->packing_reason, "packed once, read by all query blocks");
    say(out->workspace_reason, "%d packed head%s, and scores and sums of %d thread%s",
        plan->n_packs, plural(plan->n_packs), plan->n_threads, plural(plan->n_threads));
}

static qkv_status explain_forward(qkv_ctx *ctx, const qkvi_problem *p, qkv_attention_plan *out) {
    qkvi_forward_plan plan;
    const int rows = ctx->kernels->mr;
    QKV_TRY(qkvi_forward_plan_of(ctx, p, &plan, &out->workspace_bytes));
    out->small_heads = qkvi_small_heads(p, &plan);
    explain_isa(ctx, out);
    explain_class(ctx, p, qkvi_arithmetic_of(p, ctx), "", out);
    explain_forward_kernel(&plan, out);
    explain_forward_blocks(p, &plan, rows, out);
    explain_forward_threads(ctx, p, &plan, out);
    explain_forward_packing(p, &plan, out);
    out->n_tasks = qkvi_forward_tasks(p, &plan);
    if (!qkvi_forward_works(p, true) || plan.n_heads == 0) {
        explain_nothing(out);
        return QKV_OK;
    }
    explain_pieces(p, qkvi_pieces_of(p, &plan, plan.query_block, rows, QKVI_PANEL, false), out);
    return QKV_OK;
}

/* ---- Backward -------------------------------------------------------------------------------- */

static qkv_status explain_backward(qkv_ctx *ctx, const qkvi_problem *p, qkv_attention_plan *out) {
    qkvi_backward_plan plan;
    const int there = qkvi_pool_threads(ctx->pool);
    const int64_t dims = 2 * qkvi_round_up(p->head_dim, QKVI_BWD_PANEL) +
                         qkvi_round_up(p->head_dim_v, QKVI_BWD_PANEL);
    QKV_TRY(qkvi_backward_plan_of(ctx, p, &plan));
    explain_isa(ctx, out);
    explain_class_of_backward(ctx, p, out);
    out->kernel = "attend_bwd";
    say(out->kernel_reason, "the only one there is: one pass over key blocks, five products");
    out->n_threads = plan.n_threads;
    if (plan.n_threads == there)
        say(out->thread_reason, "all that the context has");
    else if (plan.serial)
        say(out->thread_reason, "of %d: waking another costs more than it brings", there);
    else
        say(out->thread_reason, "of %d: there are no more blocks of keys", there);
    out->query_block = out->skip_rows = QKVI_BWD_QUERIES;
    out->key_block = out->skip_keys = QKVI_BWD_KEYS;
    out->tile_rows = ctx->kernels->mr;
    out->tile_keys = QKVI_BWD_PANEL;
    say(out->block_reason, "the query block is part of the written order; both fit the cache");
    out->shared_heads = p->n_batch * p->n_kv_heads;
    out->n_tasks = plan.n_pieces;
    say(out->sharing_reason,
        "threads draw blocks of keys, in order; dQ is handed from one to the next");
    out->packed_bytes = (size_t)(QKVI_BWD_KEYS * dims) * sizeof(float);
    say(out->packing_reason, "each thread packs one block of %d keys at a time", QKVI_BWD_KEYS);
    out->workspace_bytes = plan.bytes;
    say(out->workspace_reason, "packed blocks and sums of %d thread%s%s", plan.n_threads,
        plural(plan.n_threads),
        p->len_k > QKVI_BWD_KEYS ? ", and a counter for each query block" : "");
    if (plan.n_pieces == 0)
        explain_nothing(out);
    else
        explain_pieces(
            p, qkvi_pieces_of(p, NULL, QKVI_BWD_QUERIES, QKVI_BWD_QUERIES, QKVI_BWD_KEYS, true),
            out);
    return QKV_OK;
}

/* ---- Decode ---------------------------------------------------------------------------------- */

static void explain_decode_work(const qkv_ctx *ctx, const qkvi_problem *p,
                                const qkvi_decode_plan *plan, qkv_attention_plan *out) {
    const int there = qkvi_pool_threads(ctx->pool);
    const int64_t heads = p->n_batch * p->n_kv_heads;
    out->n_threads = plan->n_threads;
    if (plan->n_threads < there)
        say(out->thread_reason, "of %d: more would cost more to wake than they would do", there);
    else
        say(out->thread_reason, "all that the context has");
    out->own_heads = plan->shared ? 0 : heads;
    out->shared_heads = heads - out->own_heads;
    out->n_tasks = plan->n_units * (plan->shared ? plan->n_splits : 1);
    if (plan->shared)
        say(out->sharing_reason,
            "few heads: threads draw splits of %d keys; who ends the last one joins them",
            QKVI_DECODE_SPLIT);
    else if (plan->n_threads > 1)
        say(out->sharing_reason, "each thread draws blocks of rows, and joins their splits itself");
    else
        say(out->sharing_reason, "one thread does one block of rows after the other");
}

static qkv_status explain_decode(qkv_ctx *ctx, const qkvi_problem *p, qkv_attention_plan *out) {
    qkvi_decode_plan plan;
    QKV_TRY(qkvi_decode_plan_of(ctx, p, &plan, &out->workspace_bytes));
    explain_isa(ctx, out);
    explain_class(ctx, p, QKVI_CLASS_F32, " is not for decode", out);
    out->kernel = "decode_split";
    say(out->kernel_reason,
        "the only one there is: K and V where they lie, once for %" PRId64 " query head%s",
        p->heads_per_kv, plural(p->heads_per_kv));
    explain_decode_work(ctx, p, &plan, out);
    out->query_block = out->tile_rows = out->skip_rows = plan.n_rows;
    out->key_block = QKVI_DECODE_BLOCK;
    out->tile_keys = QKVI_DECODE_GROUP;
    out->skip_keys = QKVI_DECODE_SPLIT;
    say(out->block_reason,
        "rows are queries times heads that share keys; blocks and splits of keys are "
        "part of the written order");
    say(out->packing_reason, "nothing is packed");
    say(out->workspace_reason, "rows and sums of %d thread%s%s", plan.n_threads,
        plural(plan.n_threads), plan.shared ? ", and a part for every split" : "");
    if (plan.n_units == 0)
        explain_nothing(out);
    else
        explain_pieces(p, qkvi_decode_pieces_of(p, &plan), out);
    return QKV_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

static qkv_status explain(qkv_ctx *ctx, const qkv_attention_desc *desc, qkv_attention_plan *plan) {
    qkvi_problem problem;
    qkv_attention_plan given = qkv_attention_plan_init(), made = given;
    if (!plan) return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "plan is NULL");
    QKV_TRY(qkvi_options_read(&given, sizeof given, plan, "plan", &ctx->error));
    switch (given.pass) {
    case QKV_PASS_FORWARD:
        QKV_TRY(qkvi_problem_shape(desc, true, &problem, &ctx->error));
        QKV_TRY(explain_forward(ctx, &problem, &made));
        break;
    case QKV_PASS_BACKWARD:
        QKV_TRY(qkvi_problem_shape(desc, false, &problem, &ctx->error));
        qkvi_problem_choose_gradients(&problem, ctx);
        QKV_TRY(explain_backward(ctx, &problem, &made));
        break;
    case QKV_PASS_DECODE:
        QKV_TRY(qkvi_problem_decode_shape(desc, &problem, &ctx->error));
        QKV_TRY(explain_decode(ctx, &problem, &made));
        break;
    default:
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "plan.pass = %d is no qkv_pass",
                             (int)given.pass);
    }
    made.pass = given.pass;
    qkvi_options_write(plan, &made, sizeof made);
    return QKV_OK;
}

qkv_status qkv_attention_explain(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                 qkv_attention_plan *plan) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, explain(ctx, desc, plan));
}
