/*
 * What attention saw in a run. Captures are copied once into the layout that model.h promises,
 * [n_heads][n][head_dim] for each input; weights of heads are not kept but computed again from q, k
 * and lse, with the instruction set of the context that ran.
 */

#include "attn/mask.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "kernels/gemm.h"
#include "kernels/table.h"
#include "model/model_impl.h"
#include "model/run_impl.h"

/* Queries are tokens of the second stack in all but the first kind; keys are in the last one those
 * of the first stack. */
static const qkvi_stack_pass *queries_of(const qkv_run *run, qkv_attention_kind which) {
    return qkvi_net_stack(run->pass, which == QKV_SELF ? 0 : 1);
}
static const qkvi_stack_pass *keys_of(const qkv_run *run, qkv_attention_kind which) {
    return qkvi_net_stack(run->pass, which == QKV_DECODER ? 1 : 0);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* to [n_heads][n][head_dim] = from [n][n_heads][head_dim] */
static void heads_first(int64_t n_heads, int64_t head_dim, int64_t n, const float *from,
                        float *to) {
    for (int64_t h = 0; h < n_heads; h++)
        for (int64_t i = 0; i < n; i++)
            memcpy(to + (h * n + i) * head_dim, from + (i * n_heads + h) * head_dim,
                   (size_t)head_dim * sizeof *to);
}

/* All sequences of one layer. */
static void copy_layer(int64_t n_heads, int64_t head_dim, const qkvi_stack_pass *pass,
                       const float *from, float *to) {
    const int64_t hidden = n_heads * head_dim;
    for (int64_t b = 0; b < pass->rows.n_sequences; b++) {
        const int64_t at = qkvi_stack_row(pass, b) * hidden;
        heads_first(n_heads, head_dim, pass->rows.lengths[b], from + at, to + at);
    }
}

/* What was computed with, as floats: in arrays that all layers share. */
static void widen(const qkvi_kernels *kernels, const qkvi_run_part *part,
                  const qkvi_mha_acts *acts) {
    const int64_t hidden = part->n_heads * part->head_dim;
    kernels->rows->load[QKV_BF16](acts->half[0], hidden, part->n_rows, hidden, acts->q, hidden);
    kernels->rows->load[QKV_BF16](acts->half[1], hidden, part->n_keys, hidden, acts->k, hidden);
}

static qkv_status allocate(qkvi_run_part *part, qkv_error *error) {
    const int64_t width = part->n_heads * part->head_dim;
    const int64_t kv_width = part->n_kv_heads * part->head_dim;
    int64_t q_elems, k_elems;
    if (!qkvi_mul_i64(part->n_layers, part->n_rows * width, &q_elems) ||
        !qkvi_mul_i64(part->n_layers, part->n_keys * kv_width, &k_elems))
        return qkvi_no_memory(error, "a run");
    part->layers = qkvi_malloc_array((size_t)part->n_layers, sizeof *part->layers);
    part->q = qkvi_aligned_array((size_t)q_elems, sizeof(float));
    part->k = qkvi_aligned_array((size_t)k_elems, sizeof(float));
    return part->layers && part->q && part->k ? QKV_OK : qkvi_no_memory(error, "a run");
}

/* The copies of one stack's layers, of which each thread makes some. */
typedef struct copying {
    const qkvi_stack_pass *queries, *keys;
    qkvi_run_part *part;
    qkv_attention_kind which;
} copying;

static void copy_one(void *argument, int index) {
    const copying *const c = argument;
    const qkvi_run_part *const part = c->part;
    const qkvi_mha_acts *const acts = qkvi_stack_captured(c->queries, index, c->which == QKV_CROSS);
    copy_layer(part->n_heads, part->head_dim, c->queries, acts->q,
               part->q + index * part->n_rows * part->n_heads * part->head_dim);
    copy_layer(part->n_kv_heads, part->head_dim, c->keys, acts->k,
               part->k + index * part->n_keys * part->n_kv_heads * part->head_dim);
}

static qkv_status capture(const qkvi_stack *stack, qkvi_pool *pool, qkv_run *run,
                          qkv_attention_kind which, qkv_error *error) {
    const qkvi_stack_pass *const queries = queries_of(run, which), *const keys =
                                                                       keys_of(run, which);
    qkvi_run_part *const part = &run->parts[which];
    *part = (qkvi_run_part){ .n_layers = stack->n_layers,
                             .n_heads = stack->n_heads,
                             .n_kv_heads = stack->n_kv_heads,
                             .head_dim = stack->head_dim,
                             .n_rows = queries->rows.n_rows,
                             .n_keys = keys->rows.n_rows };
    copying copies = { queries, keys, part, which };
    bool shared = false; /* in half precision all layers were widened into the same arrays */
    QKV_TRY(allocate(part, error));
    for (int64_t l = 0; l < part->n_layers; l++) {
        const qkvi_block *const block = &stack->blocks[l];
        const qkvi_mha_acts *const acts = qkvi_stack_captured(queries, l, which == QKV_CROSS);
        const qkvi_mha *const mha = which == QKV_CROSS ? &block->cross : &block->mha;
        part->layers[l] = (qkvi_run_layer){
            .scale = (float)qkvi_mha_scale(mha, &queries->change),
            .softcap = mha->softcap,
            .window_left = mha->windowed ? mha->window_left : -1,
            .window_right = mha->windowed ? mha->window_right : -1,
            .distances = mha->distances,
            .alibi = mha->alibi,
        };
        if (mha->rope > 0) {
            part->layers[l].turns = qkvi_stack_turns(queries, l);
            part->layers[l].length = (float)stack->ropes[mha->rope - 1].factor;
            part->layers[l].turned = mha->turned;
        }
        if (!acts->half[0]) continue;
        shared = true;
        widen(run->kernels, part, acts);
        copy_one(&copies, (int)l);
    }
    if (!shared) qkvi_pool_run(pool, (int)part->n_layers, copy_one, &copies);
    return QKV_OK;
}

bool qkvi_run_decodes(const qkv_run *run, qkv_attention_kind which) {
    return run->parts[which].causal && !queries_of(run, which)->change.causal;
}

qkv_status qkvi_run_capture(const qkvi_net *net, qkvi_pool *pool, qkv_run *run, qkv_error *error) {
    QKV_TRY(capture(&net->stacks[0], pool, run, QKV_SELF, error));
    run->parts[QKV_SELF].causal = net->stacks[0].causal || queries_of(run, QKV_SELF)->change.causal;
    if (!run->is_pair) return QKV_OK;
    QKV_TRY(capture(&net->stacks[1], pool, run, QKV_DECODER, error));
    run->parts[QKV_DECODER].causal = true;
    return capture(&net->stacks[1], pool, run, QKV_CROSS, error);
}

/* ---- Views ----------------------------------------------------------------------------------- */

static qkv_status check(const qkv_run *run, qkv_attention_kind which, int64_t b, int64_t layer,
                        qkv_error *error) {
    static const char *const names[] = { "self-attention", "a decoder's self-attention",
                                         "cross-attention" };
    if ((int)which < QKV_SELF || which > QKV_CROSS)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "which = %d is no attention", (int)which);
    QKV_TRY(qkvi_check_index("b", b, run->n_batch, error));
    if (!run->parts[QKV_SELF].q) {
        QKV_TRY(qkvi_check_index("layer", layer, run->n_layers, error));
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run was made without QKV_RUN_CAPTURE");
    }
    if (!run->parts[which].q)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run has no %s: it is of no pairs",
                              names[which]);
    return qkvi_check_index("layer", layer, run->parts[which].n_layers, error);
}

qkv_status qkv_run_capture(const qkv_run *run, qkv_attention_kind which, int64_t b, int64_t layer,
                           qkv_capture *capture, qkv_error *error) {
    if (!run || !capture)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", run ? "capture" : "run");
    qkv_capture made = qkv_capture_init();
    QKV_TRY(qkvi_options_read(&made, sizeof made, capture, "qkv_capture", error));
    QKV_TRY(check(run, which, b, layer, error));
    const qkvi_run_part *const part = &run->parts[which];
    const qkvi_stack_pass *const queries = queries_of(run, which), *const keys =
                                                                       keys_of(run, which);
    const int64_t width = part->n_heads * part->head_dim;
    const int64_t kv_width = part->n_kv_heads * part->head_dim;
    const qkvi_run_layer *const scores = &part->layers[layer];
    const int64_t row = qkvi_stack_row(queries, b), key = qkvi_stack_row(keys, b);
    const float *const lse = qkvi_stack_captured(queries, layer, which == QKV_CROSS)->lse;
    made = (qkv_capture){ .q = part->q + (layer * part->n_rows + row) * width,
                          .k = part->k + (layer * part->n_keys + key) * kv_width,
                          .lse = lse + row * part->n_heads,
                          .n_heads = part->n_heads,
                          .n = queries->rows.lengths[b],
                          .head_dim = part->head_dim,
                          .scale = scores->scale,
                          .causal = part->causal,
                          .seen = keys->rows.seen ? keys->rows.seen + key : NULL,
                          .n_keys = keys->rows.lengths[b],
                          .n_kv_heads = part->n_kv_heads,
                          .window_left = scores->window_left,
                          .window_right = scores->window_right,
                          .softcap = scores->softcap,
                          .alibi_slopes = scores->alibi };
    const qkvi_uncut *const cut = qkvi_stack_cut(queries, which, layer);
    if (cut) {
        made.uncut = cut->sees;
        made.uncut_stride = cut->head_stride;
    }
    if (scores->distances) {
        qkv_attention_desc of = { .flags = 0 };
        qkvi_distance_bias_describe(scores->distances, &of);
        made.distance_bias = of.distance_bias;
        made.distance_bias_stride = of.distance_bias_stride;
        made.distance_before = of.distance_before;
        made.distance_after = of.distance_after;
    }
    qkvi_options_write(capture, &made, sizeof made);
    return QKV_OK;
}

/* Keys that a query of a head does not see, of a row of weights. */
static void hide(const qkv_capture *c, int64_t head, int64_t i, float *weights) {
    const uint8_t *const uncut =
        c->uncut ? c->uncut + head * c->uncut_stride + i * c->n_keys : NULL;
    const qkvi_rules rules =
        qkvi_rules_of_window(c->n, c->n_keys, 0, c->causal, c->window_left, c->window_right);
    const qkvi_range keys = qkvi_keys_of(&rules, i);
    for (int64_t j = 0; j < keys.begin; j++) weights[j] = 0;
    for (int64_t j = keys.end; j < c->n_keys; j++) weights[j] = 0;
    for (int64_t j = 0; c->seen && j < c->n_keys; j++)
        if (!c->seen[j]) weights[j] = 0;
    for (int64_t j = 0; uncut && j < c->n_keys; j++)
        if (!uncut[j]) weights[j] = 0;
}

/* The bias of query i's scores, where there is one. */
static void bias(const qkv_capture *c, int64_t head, int64_t i, float *row) {
    const float slope = c->alibi_slopes ? c->alibi_slopes[head] : 0;
    for (int64_t j = 0; slope != 0 && j < c->n_keys; j++) row[j] += slope * (float)(j - i);
    if (!c->distance_bias) return;
    const float *const of = c->distance_bias + head * c->distance_bias_stride + c->distance_before;
    for (int64_t j = 0; j < c->n_keys; j++)
        row[j] += of[qkvi_max_i64(qkvi_min_i64(j - i, c->distance_after), -c->distance_before)];
}

/* Products of query i become weights. */
static void weigh(const qkvi_kernels *kernels, const qkv_capture *c, int64_t head, int64_t i,
                  float *row) {
    const float lse = c->lse[head * c->n + i];
    if (c->softcap == 0 && !c->distance_bias && !c->alibi_slopes) {
        kernels->layer->weights(c->n_keys, c->scale, lse, row);
        return;
    }
    for (int64_t j = 0; j < c->n_keys; j++) row[j] *= c->scale;
    if (c->softcap > 0) kernels->layer->soft_cap(c->n_keys, c->softcap, row);
    bias(c, head, i, row);
    kernels->layer->weights(c->n_keys, 1, lse, row);
}

qkv_status qkvi_run_weight_rows(const qkv_run *run, qkv_attention_kind which, int64_t b,
                                int64_t layer, int64_t head, int64_t first, int64_t n_rows,
                                float *weights, qkv_error *error) {
    qkv_capture c = qkv_capture_init();
    QKV_TRY(qkv_run_capture(run, which, b, layer, &c, error));
    QKV_TRY(qkvi_check_index("head", head, c.n_heads, error));
    if (!weights) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "weights is NULL");
    float *packed = qkvi_aligned_array(qkvi_gemm_packed_elems(c.head_dim, c.n_keys), sizeof(float));
    if (!packed) return qkvi_no_memory(error, "a run");
    const float *q = c.q + (head * c.n + first) * c.head_dim;
    const float *k = c.k + head / (c.n_heads / c.n_kv_heads) * c.n_keys * c.head_dim;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_gemm_pack_b(NULL, run->kernels, c.head_dim, c.n_keys, k, 1, c.head_dim, packed);
    qkvi_gemm(NULL, &(qkvi_gemm_job){ .kernels = run->kernels,
                                      .m = n_rows,
                                      .n = c.n_keys,
                                      .k = c.head_dim,
                                      .a = q,
                                      .a_row = c.head_dim,
                                      .a_col = 1,
                                      .packed_b = packed,
                                      .c = weights,
                                      .c_row = c.n_keys });
    for (int64_t i = 0; i < n_rows; i++) {
        float *const row = weights + i * c.n_keys;
        weigh(run->kernels, &c, head, first + i, row);
        hide(&c, head, first + i, row);
    }
    qkvi_fpstate_leave(saved);
    qkvi_aligned_free(packed);
    return QKV_OK;
}

qkv_status qkv_run_weights(const qkv_run *run, qkv_attention_kind which, int64_t b, int64_t layer,
                           int64_t head, float *weights, qkv_error *error) {
    qkv_capture c = qkv_capture_init();
    QKV_TRY(qkv_run_capture(run, which, b, layer, &c, error));
    return qkvi_run_weight_rows(run, which, b, layer, head, 0, c.n, weights, error);
}

const float *qkv_run_outputs(const qkv_run *run, qkv_attention_kind which, int64_t b,
                             int64_t layer) {
    if (!run || (int)which < QKV_SELF || which > QKV_CROSS) return NULL;
    if ((which != QKV_SELF && !run->is_pair) || b < 0 || b >= run->n_batch) return NULL;
    const qkvi_stack_pass *const pass = queries_of(run, which);
    const float *const o = qkvi_stack_outputs(pass, layer, which == QKV_CROSS);
    if (!o) return NULL;
    return o + qkvi_stack_row(pass, b) * pass->stack->n_heads * pass->stack->head_dim;
}
