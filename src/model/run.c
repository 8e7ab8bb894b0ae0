/*
 * Running a model: encodings in, hidden states and captures out, and the heads on top of them.
 *
 * A run owns the pass that computed it. Captures are copied once into the layout that model.h
 * promises, [n_heads][n][head_dim] for each input; weights of heads are not kept but computed again
 * from q, k and lse, with the instruction set of the context that ran.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/ctx.h"
#include "core/alloc.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "kernels/gemm.h"
#include "kernels/table.h"
#include "model/arch/batch.h"
#include "model/model_impl.h"
#include "model/run_impl.h"

/* ---- Batch of encodings ---------------------------------------------------------------------- */

typedef struct joined {
    qkvi_net_batch batch;
    int64_t *lengths;
    int32_t *ids;
    uint8_t *types, *seen;
} joined;

static void joined_free(joined *j) {
    free(j->lengths);
    free(j->ids);
    free(j->types);
    free(j->seen);
}

static qkv_status no_memory(qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a run");
}

static qkv_status join_lengths(const qkvi_net *params, int64_t n_batch,
                               const qkv_encoding *const *inputs, joined *j, int64_t *n_tokens,
                               qkv_error *error) {
    if (n_batch > 0) j->lengths = qkvi_malloc_array((size_t)n_batch, sizeof *j->lengths);
    if (n_batch > 0 && !j->lengths) return no_memory(error);
    for (int64_t b = 0; b < n_batch; b++) {
        if (!inputs[b])
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "inputs[%lld] is NULL", (long long)b);
        j->lengths[b] = inputs[b]->n;
    }
    j->batch = (qkvi_net_batch){ .n_sequences = n_batch, .lengths = j->lengths };
    return qkvi_batch_check_lengths(params, &j->batch, n_tokens, error);
}

/* What if: dropped tokens become keys that are not seen. */
static qkv_status join_dropped(const qkv_what_if *what_if, int64_t n_tokens, joined *j,
                               qkv_error *error) {
    int64_t at = 0;
    if (!what_if->dropped) return QKV_OK;
    j->batch.change.seen = j->seen = qkvi_malloc_array((size_t)n_tokens, 1);
    if (!j->seen) return no_memory(error);
    for (int64_t b = 0; b < j->batch.n_sequences; at += j->lengths[b++])
        for (int64_t i = 0; i < j->lengths[b]; i++)
            j->seen[at + i] = !(what_if->dropped[b] && what_if->dropped[b][i]);
    return QKV_OK;
}

static qkv_status join(const qkvi_net *params, int64_t n_batch,
                       const qkv_encoding *const *inputs, const qkv_what_if *what_if, joined *j,
                       qkv_error *error) {
    int64_t n_tokens, at = 0;
    QKV_TRY(join_lengths(params, n_batch, inputs, j, &n_tokens, error));
    j->batch.ids = j->ids = qkvi_malloc_array((size_t)n_tokens, sizeof *j->ids);
    j->batch.types = j->types = qkvi_calloc_array((size_t)n_tokens, sizeof *j->types);
    if (!j->ids || !j->types) return no_memory(error);
    for (int64_t b = 0; b < n_batch; at += inputs[b++]->n) {
        memcpy(j->ids + at, inputs[b]->ids, (size_t)inputs[b]->n * sizeof *j->ids);
        if (inputs[b]->types) memcpy(j->types + at, inputs[b]->types, (size_t)inputs[b]->n);
    }
    return join_dropped(what_if, n_tokens, j, error);
}

/* The model's own scale is left to attention, so that its bits stay. */
static qkv_status ask(const qkv_model *model, const qkv_what_if *what_if, qkvi_mha_change *change,
                      qkv_error *error) {
    const double temperature = what_if->temperature == 0 ? 1 : what_if->temperature;
    const double scale = what_if->no_scale ? 1 : 1 / sqrt((double)model->info.head_dim);
    change->causal = what_if->causal != 0;
    if (!(temperature > 0) || !isfinite(temperature))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "temperature = %g is not above 0 and finite",
                              temperature);
    if (!what_if->no_scale && temperature == 1) return QKV_OK;
    change->scale = (float)(scale / temperature);
    if (isfinite(change->scale) && change->scale > 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "temperature = %g makes the scale %g, no float above 0", temperature,
                          scale / temperature);
}

/* ---- Capture --------------------------------------------------------------------------------- */

/* to [n_heads][n][head_dim] = from [n][n_heads][head_dim] */
static void heads_first(const qkv_run *run, int64_t n, const float *from, float *to) {
    const int64_t head_dim = run->head_dim, n_heads = run->n_heads;
    for (int64_t h = 0; h < n_heads; h++)
        for (int64_t i = 0; i < n; i++)
            memcpy(to + (h * n + i) * head_dim, from + (i * n_heads + h) * head_dim,
                   (size_t)head_dim * sizeof *to);
}

static qkv_status capture(qkv_run *run, qkv_error *error) {
    const int64_t hidden = run->n_heads * run->head_dim, layer_elems = run->n_rows * hidden;
    int64_t elems;
    if (!qkvi_mul_i64(run->n_layers, layer_elems, &elems)) return no_memory(error);
    run->q = qkvi_aligned_array((size_t)elems, sizeof(float));
    run->k = qkvi_aligned_array((size_t)elems, sizeof(float));
    if (!run->q || !run->k) return no_memory(error);
    for (int64_t l = 0; l < run->n_layers; l++) {
        for (int64_t b = 0; b < run->n_batch; b++) {
            const int64_t at = qkvi_net_row(run->pass, b) * hidden;
            float *q = run->q + l * layer_elems + at, *k = run->k + l * layer_elems + at;
            heads_first(run, run->lengths[b], qkvi_net_query(run->pass, l) + at, q);
            heads_first(run, run->lengths[b], qkvi_net_key(run->pass, l) + at, k);
        }
    }
    return QKV_OK;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static qkv_status compute(qkv_ctx *ctx, const qkv_model *model, const joined *j, uint32_t flags,
                          qkv_run *run, qkv_error *error) {
    QKV_TRY(qkvi_net_pass_create(&run->pass, error));
    QKV_TRY(qkvi_net_forward(ctx, model->net, &j->batch, flags, run->pass, error));
    for (int64_t b = 0; b < run->n_batch; b++) run->n_rows += run->lengths[b];
    return flags & QKV_RUN_CAPTURE ? capture(run, error) : QKV_OK;
}

qkv_status qkv_model_run(qkv_ctx *ctx, const qkv_model *model, int64_t n_batch,
                         const qkv_encoding *const *inputs, uint32_t flags, qkv_run **run,
                         qkv_error *error) {
    return qkv_model_run_what_if(ctx, model, n_batch, inputs, flags, NULL, run, error);
}

qkv_status qkv_model_run_what_if(qkv_ctx *ctx, const qkv_model *model, int64_t n_batch,
                                 const qkv_encoding *const *inputs, uint32_t flags,
                                 const qkv_what_if *given, qkv_run **run, qkv_error *error) {
    qkv_what_if what_if = QKV_WHAT_IF_INIT;
    if (!run) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "run is NULL");
    *run = NULL;
    if (!ctx || !model || !inputs)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !ctx     ? "ctx"
                              : !model ? "model"
                                       : "inputs");
    if (flags & ~(uint32_t)(QKV_RUN_CAPTURE | QKV_RUN_HIDDEN))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "flags = %#x has unknown bits", flags);
    if (given) QKV_TRY(qkvi_options_read(&what_if, sizeof what_if, given, "qkv_what_if", error));
    joined j = { 0 };
    qkvi_mha_change change = { 0 };
    QKV_TRY(ask(model, &what_if, &change, error));
    qkv_run *r = calloc(1, sizeof *r);
    if (!r) return no_memory(error);
    qkv_status status = join(model->net, n_batch, inputs, &what_if, &j, error);
    j.batch.change.causal = change.causal;
    j.batch.change.scale = change.scale;
    r->model = model;
    r->kernels = ctx->kernels;
    r->n_batch = n_batch;
    r->n_layers = model->info.n_layers;
    r->n_heads = model->info.n_heads;
    r->head_dim = model->info.head_dim;
    r->lengths = j.lengths;
    if (status == QKV_OK) status = compute(ctx, model, &j, flags, r, error);
    j.lengths = NULL; /* the run's now */
    joined_free(&j);
    if (status == QKV_OK)
        *run = r;
    else
        qkv_run_free(r);
    return status;
}

void qkv_run_free(qkv_run *run) {
    if (!run) return;
    qkvi_net_pass_free(run->pass);
    free(run->lengths);
    free(run->q);
    free(run->k);
    free(run);
}

const float *qkv_run_hidden(const qkv_run *run, int64_t b, int64_t layer) {
    if (!run || b < 0 || b >= run->n_batch) return NULL;
    const float *hidden = qkvi_net_hidden(run->pass, layer);
    return hidden ? hidden + qkvi_net_row(run->pass, b) * run->n_heads * run->head_dim : NULL;
}

qkv_status qkv_run_capture(const qkv_run *run, int64_t b, int64_t layer, qkv_capture *capture,
                           qkv_error *error) {
    if (!run || !capture)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", run ? "capture" : "run");
    QKV_TRY(qkvi_check_index("b", b, run->n_batch, error));
    QKV_TRY(qkvi_check_index("layer", layer, run->n_layers, error));
    if (!run->q)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run was made without QKV_RUN_CAPTURE");
    const int64_t row = qkvi_net_row(run->pass, b), hidden = run->n_heads * run->head_dim;
    const int64_t at = (layer * run->n_rows + row) * hidden;
    const qkvi_mha_change *change = qkvi_net_change(run->pass);
    *capture =
        (qkv_capture){ .q = run->q + at,
                       .k = run->k + at,
                       .lse = qkvi_net_lse(run->pass, layer) + row * run->n_heads,
                       .n_heads = run->n_heads,
                       .n = run->lengths[b],
                       .head_dim = run->head_dim,
                       .scale = change->scale != 0 ? change->scale
                                                   : (float)(1 / sqrt((double)run->head_dim)),
                       .causal = change->causal,
                       .seen = change->seen ? change->seen + row : NULL };
    return QKV_OK;
}

/* Keys that What if hides, of a row of weights. */
static void hide(const qkv_capture *c, int64_t i, float *weights) {
    for (int64_t j = c->causal ? i + 1 : c->n; j < c->n; j++) weights[j] = 0;
    for (int64_t j = 0; c->seen && j < c->n; j++)
        if (!c->seen[j]) weights[j] = 0;
}

qkv_status qkvi_run_weight_rows(const qkv_run *run, int64_t b, int64_t layer, int64_t head,
                                int64_t first, int64_t n_rows, float *weights, qkv_error *error) {
    qkv_capture c;
    QKV_TRY(qkv_run_capture(run, b, layer, &c, error));
    QKV_TRY(qkvi_check_index("head", head, c.n_heads, error));
    if (!weights) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "weights is NULL");
    float *packed = qkvi_aligned_array(qkvi_gemm_packed_elems(c.head_dim, c.n), sizeof(float));
    if (!packed) return no_memory(error);
    const float *q = c.q + (head * c.n + first) * c.head_dim, *k = c.k + head * c.n * c.head_dim;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_gemm_pack_b(NULL, c.head_dim, c.n, k, 1, c.head_dim, packed);
    qkvi_gemm(NULL, run->kernels, n_rows, c.n, c.head_dim, q, c.head_dim, 1, packed, weights, c.n,
              NULL, false);
    for (int64_t i = 0; i < n_rows; i++) {
        run->kernels->layer.weights(c.n, c.scale, c.lse[head * c.n + first + i], weights + i * c.n);
        hide(&c, first + i, weights + i * c.n);
    }
    qkvi_fpstate_leave(saved);
    free(packed);
    return QKV_OK;
}

qkv_status qkv_run_weights(const qkv_run *run, int64_t b, int64_t layer, int64_t head,
                           float *weights, qkv_error *error) {
    qkv_capture c;
    QKV_TRY(qkv_run_capture(run, b, layer, &c, error));
    return qkvi_run_weight_rows(run, b, layer, head, 0, c.n, weights, error);
}
