/*
 * Running a model: encodings in, hidden states and captures (run_capture.c) out. A run owns the
 * pass that computed it.
 */
#include <math.h>

#include "attn/ctx.h"
#include "core/options.h"
#include "model/model_impl.h"
#include "model/run_impl.h"

/* ---- Batch of encodings ---------------------------------------------------------------------- */

/* Encodings one after another. */
typedef struct joined {
    int64_t n, n_tokens;
    int64_t *lengths;
    int32_t *ids;
    uint8_t *types, *seen;
    qkvi_pixels *images; /* NULL: they are texts */
} joined;

static void joined_free(joined *j) {
    free(j->lengths);
    free(j->ids);
    free(j->types);
    free(j->seen);
    free(j->images);
}

/* Images go to a stack that reads these, and texts to one of words. */
static qkv_status join_images(const qkvi_stack *stack, const char *name,
                              const qkv_encoding *const *inputs, joined *j, qkv_error *error) {
    const bool sees = qkvi_stack_sees(stack);
    for (int64_t b = 0; b < j->n; b++) {
        const qkv_image_tokens *const image = inputs[b]->image;
        if (sees != (image != NULL))
            return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                                  "%s[%lld] is %s, and the model reads %s", name, (long long)b,
                                  image ? "an image" : "a text", image ? "texts" : "images");
        if (image && (!image->pixels || image->height < 1 || image->width < 1))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s[%lld].image has no pixels", name,
                                  (long long)b);
    }
    if (!sees) return QKV_OK;
    j->images = qkvi_malloc_array((size_t)j->n, sizeof *j->images);
    if (!j->images) return qkvi_no_memory(error, "a run");
    for (int64_t b = 0; b < j->n; b++)
        j->images[b] = (qkvi_pixels){ inputs[b]->image->pixels, inputs[b]->image->height,
                                      inputs[b]->image->width };
    return QKV_OK;
}

static qkv_status join_lengths(const qkvi_stack *stack, const char *name,
                               const qkv_encoding *const *inputs, joined *j, qkv_error *error) {
    if (j->n > 0) j->lengths = qkvi_malloc_array((size_t)j->n, sizeof *j->lengths);
    if (j->n > 0 && !j->lengths) return qkvi_no_memory(error, "a run");
    for (int64_t b = 0; b < j->n; b++) {
        if (!inputs[b])
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s[%lld] is NULL", name, (long long)b);
        if (!inputs[b]->ids && inputs[b]->n > 0)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s[%lld].ids is NULL", name,
                                  (long long)b);
        j->lengths[b] = inputs[b]->n;
    }
    const qkvi_sequences sequences = { .n = j->n, .lengths = j->lengths };
    return qkvi_sequences_check_lengths(stack, &sequences, &j->n_tokens, error);
}

static qkv_status join(const qkvi_stack *stack, const char *name, int64_t n_batch,
                       const qkv_encoding *const *inputs, joined *j, qkv_error *error) {
    int64_t at = 0;
    j->n = n_batch;
    QKV_TRY(join_lengths(stack, name, inputs, j, error));
    QKV_TRY(join_images(stack, name, inputs, j, error));
    j->ids = qkvi_malloc_array((size_t)j->n_tokens, sizeof *j->ids);
    j->types = qkvi_calloc_array((size_t)j->n_tokens, sizeof *j->types);
    if (!j->ids || !j->types) return qkvi_no_memory(error, "a run");
    for (int64_t b = 0; b < n_batch; at += inputs[b++]->n) {
        memcpy(j->ids + at, inputs[b]->ids, (size_t)inputs[b]->n * sizeof *j->ids);
        if (inputs[b]->types) memcpy(j->types + at, inputs[b]->types, (size_t)inputs[b]->n);
    }
    return QKV_OK;
}

/* What if: dropped tokens become keys that are not seen. */
static qkv_status join_dropped(const qkv_run_options *what_if, joined *j, qkv_error *error) {
    int64_t at = 0;
    if (!what_if->dropped) return QKV_OK;
    j->seen = qkvi_malloc_array((size_t)j->n_tokens, 1);
    if (!j->seen) return qkvi_no_memory(error, "a run");
    for (int64_t b = 0; b < j->n; at += j->lengths[b++])
        for (int64_t i = 0; i < j->lengths[b]; i++)
            j->seen[at + i] = !(what_if->dropped[b] && what_if->dropped[b][i]);
    return QKV_OK;
}

static qkv_status ask(const qkv_model *model, const qkv_run_options *what_if,
                      qkvi_mha_change *change, qkv_error *error) {
    const double temperature = what_if->temperature == 0 ? 1 : what_if->temperature;
    *change = (qkvi_mha_change){ .causal = what_if->causal != 0,
                                 .no_scale = what_if->no_scale != 0,
                                 .temperature = what_if->temperature };
    if (temperature != 1 && (model->info.max_distance > 0 || model->info.alibi))
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "temperature = %g: scores of %s have a bias by distance, which no "
                              "temperature divides",
                              temperature, model->info.architecture);
    if (!(temperature > 0) || !isfinite(temperature))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "temperature = %g is not above 0 and finite",
                              temperature);
    const double scale = qkvi_mha_scale(&model->net->stacks[0].blocks[0].mha, change);
    if (isfinite((float)scale) && (float)scale > 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "temperature = %g makes the scale %g, no float above 0", temperature,
                          scale);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* What a call asks for. */
typedef struct request {
    int64_t n_batch;
    const qkv_encoding *const *inputs;
    uint32_t flags;
    qkv_run_options options;
} request;

/* What if: edges that are cut. */
static qkv_status cut_edges(const qkv_model *model, const qkv_run_options *asked,
                            const joined *source, const joined *target, qkvi_cuts *cuts,
                            qkv_error *error) {
    const qkv_attention_kind which = asked->cut_which;
    if (asked->n_cuts == 0) return QKV_OK;
    if (!asked->cuts || asked->n_cuts < 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "cuts is NULL, or n_cuts = %lld below 0",
                              (long long)asked->n_cuts);
    if ((int)which < QKV_SELF || which > QKV_CROSS || (which != QKV_SELF && !target->lengths))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "cut_which = %d is no attention of this run",
                              (int)which);
    if (source->n != 1)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "cuts in a run of %lld inputs, not of 1",
                              (long long)source->n);
    const qkvi_stack *const stack = &model->net->stacks[which != QKV_SELF];
    const joined *const queries = which == QKV_SELF ? source : target;
    const joined *const keys = which == QKV_DECODER ? target : source;
    const qkvi_cut_sizes sizes = { .n_layers = stack->n_layers,
                                   .n_heads = stack->n_heads,
                                   .n_queries = queries->lengths[0],
                                   .n_keys = keys->lengths[0],
                                   .seen = keys->seen };
    return qkvi_cuts_make(asked, &sizes, cuts, error);
}

static qkv_status compute(qkv_ctx *ctx, const qkv_model *model, const request *asked,
                          const joined *source, const joined *target, qkv_run *run,
                          qkv_error *error) {
    qkvi_net_batch batch = { .n_sequences = asked->n_batch,
                             .lengths = source->lengths,
                             .ids = source->ids,
                             .types = source->types,
                             .images = source->images,
                             .decoder_lengths = target->lengths,
                             .decoder_ids = target->ids };
    QKV_TRY(ask(model, &asked->options, &batch.change, error));
    batch.change.seen = source->seen;
    QKV_TRY(cut_edges(model, &asked->options, source, target, &run->cuts, error));
    if (run->cuts.layers) batch.change.cuts[asked->options.cut_which] = run->cuts.layers;
    QKV_TRY(qkvi_net_pass_create(&run->pass, error));
    QKV_TRY(qkvi_net_forward(ctx, model->net, &batch, asked->flags, run->pass, error));
    return asked->flags & QKV_RUN_CAPTURE ? qkvi_run_capture(model->net, ctx->pool, run, error)
                                          : QKV_OK;
}

static qkv_status join_and_compute(qkv_ctx *ctx, const qkv_model *model, const request *asked,
                                   qkv_run *run, qkv_error *error) {
    const qkvi_net *const net = model->net;
    joined source = { 0 }, target = { 0 };
    qkv_status status =
        join(&net->stacks[0], "inputs", asked->n_batch, asked->inputs, &source, error);
    if (status == QKV_OK && asked->options.targets)
        status = join(&net->stacks[1], "targets", asked->n_batch, asked->options.targets, &target,
                      error);
    if (status == QKV_OK) status = join_dropped(&asked->options, &source, error);
    if (status == QKV_OK) status = compute(ctx, model, asked, &source, &target, run, error);
    run->lengths = source.lengths; /* the run's now */
    run->decoder_lengths = target.lengths;
    source.lengths = target.lengths = NULL;
    joined_free(&source);
    joined_free(&target);
    return status;
}

static qkv_status run_request(qkv_ctx *ctx, const qkv_model *model, const request *asked,
                              qkv_run **run, qkv_error *error) {
    if (asked->flags & ~(uint32_t)(QKV_RUN_CAPTURE | QKV_RUN_HIDDEN | QKV_RUN_OUTPUTS))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "flags = %#x has unknown bits",
                              asked->flags);
    qkv_run *r = calloc(1, sizeof *r);
    if (!r) return qkvi_no_memory(error, "a run");
    r->model = model;
    r->kernels = ctx->kernels;
    r->n_batch = asked->n_batch;
    r->is_pair = asked->options.targets != NULL;
    r->hidden = model->info.hidden;
    r->n_layers = model->info.n_layers;
    const qkv_status status = join_and_compute(ctx, model, asked, r, error);
    if (status == QKV_OK)
        *run = r;
    else
        qkv_run_free(r);
    return status;
}

qkv_status qkv_model_run(qkv_ctx *ctx, const qkv_model *model, int64_t n_batch,
                         const qkv_encoding *const *inputs, uint32_t flags,
                         const qkv_run_options *options, qkv_run **run, qkv_error *error) {
    request asked = { n_batch, inputs, flags, qkv_run_options_init() };
    if (!run) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "run is NULL");
    *run = NULL;
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(inputs, "inputs", error));
    if (options)
        QKV_TRY(qkvi_options_read(&asked.options, sizeof asked.options, options, "qkv_run_options",
                                  error));
    if (asked.options.targets && model->net->n_stacks < 2)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: a %s has no decoder over an encoder, which targets need",
                              model->info.source, model->info.architecture);
    return run_request(ctx, model, &asked, run, error);
}

void qkv_run_free(qkv_run *run) {
    if (!run) return;
    qkvi_net_pass_free(run->pass);
    qkvi_cuts_free(&run->cuts);
    free(run->lengths);
    free(run->decoder_lengths);
    for (int p = 0; p <= QKV_CROSS; p++) {
        free(run->parts[p].layers);
        qkvi_aligned_free(run->parts[p].q);
        qkvi_aligned_free(run->parts[p].k);
    }
    free(run);
}

static const float *hidden_of(const qkv_run *run, int stack, int64_t b, int64_t layer) {
    const qkvi_stack_pass *const pass = qkvi_net_stack(run->pass, stack);
    const float *const hidden = qkvi_stack_hidden(pass, layer);
    return hidden ? hidden + qkvi_stack_row(pass, b) * run->hidden : NULL;
}

const float *qkv_run_hidden(const qkv_run *run, qkv_attention_kind which, int64_t b,
                            int64_t layer) {
    const bool is_there = which == QKV_SELF || (which == QKV_DECODER && run && run->is_pair);
    if (!run || !is_there || b < 0 || b >= run->n_batch) return NULL;
    return hidden_of(run, which == QKV_DECODER, b, layer);
}
