/*
 * Effects of ablated heads on the probabilities of words: checks the request, runs the model once
 * without ablation, then the sets in batches with the same lowest layer (effects_pass.c).
 */
#include "inspect/effects.h"

#include "core/options.h"
#include "inspect/rows.h"
#include "model/run_impl.h"

enum { MAX_TOKENS = 4096 };

/* ---- The request ----------------------------------------------------------------------------- */

static qkv_status check_places(const qkvi_effects *e, int64_t n_tokens, qkv_error *error) {
    const qkv_effects *const request = e->request;
    if (request->n_places < 1)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_places = %lld is below 1",
                              (long long)request->n_places);
    if (!qkvi_effects_of_labels(e)) QKV_TRY(qkvi_need(request->positions, "positions", error));
    QKV_TRY(qkvi_need(request->words, "words", error));
    for (int64_t t = 0; t < request->n_places; t++) {
        char name[48];
        snprintf(name, sizeof name, "positions[%lld]", (long long)t);
        if (!qkvi_effects_of_labels(e))
            QKV_TRY(qkvi_check_index(name, request->positions[t], n_tokens, error));
        snprintf(name, sizeof name, "words[%lld]", (long long)t);
        QKV_TRY(qkvi_check_index(name, request->words[t], e->n_words, error));
    }
    return QKV_OK;
}

static qkv_status check_sets(const qkvi_effects *e, qkv_error *error) {
    const qkv_effects *const request = e->request;
    int64_t last = 0;
    if (request->n_sets < 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_sets = %lld is below 0",
                              (long long)request->n_sets);
    for (int64_t s = 0; request->ends && s < request->n_sets; last = request->ends[s++])
        if (request->ends[s] < last)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "ends[%lld] = %lld is below %lld",
                                  (long long)s, (long long)request->ends[s], (long long)last);
    if (!request->ends) last = request->n_sets;
    if (last > 0) QKV_TRY(qkvi_need(request->heads, "heads", error));
    for (int64_t i = 0; i < last; i++) {
        char name[48];
        snprintf(name, sizeof name, "heads[%lld]", (long long)i);
        QKV_TRY(qkvi_check_index(name, request->heads[i], e->n_layers * e->n_heads, error));
    }
    return QKV_OK;
}

static qkv_status check_source(const qkvi_effects *e, qkv_error *error) {
    const qkv_run *const source = e->request->source;
    if (!source) return QKV_OK;
    if (e->request->means)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "means and source are both given");
    if (source->model != e->model)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the source is a run of another model");
    QKV_TRY(qkvi_check_index("source_b", e->request->source_b, source->n_batch, error));
    if (!qkv_run_outputs(source, e->request->which, e->request->source_b, 0))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "the source was run without QKV_RUN_OUTPUTS, or without a decoder");
    const int64_t n = e->stack ? source->decoder_lengths[e->request->source_b]
                               : source->lengths[e->request->source_b];
    if (n == e->len) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE, "the source has %lld tokens, the text has %lld",
                          (long long)n, (long long)e->len);
}

static qkv_status check_head(const qkv_model *model, qkv_word_head head, qkv_error *error) {
    const qkv_model_info *const info = &model->info;
    switch (head) {
    case QKV_HEAD_MASKED: return qkvi_model_check_head(model, info->has_mlm, "MLM", error);
    case QKV_HEAD_NEXT: return qkvi_model_check_head(model, info->has_lm, "LM", error);
    case QKV_HEAD_LABEL: break;
    default:
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "head = %d is none that tells words",
                              (int)head);
    }
    if (info->n_labels == 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s has no classifier", info->source);
    if (info->label_kind != QKV_LABELS_VALUES) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s tells values (regression), which have no probability", info->source);
}

static qkv_status check_which(const qkv_model *model, const qkv_effects *request,
                              qkv_error *error) {
    const bool pairs = model->net->n_stacks > 1;
    if ((int)request->which < QKV_SELF || request->which > QKV_CROSS)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "which = %d is no attention",
                              (int)request->which);
    QKV_TRY(check_head(model, request->head, error));
    if (!pairs && (request->which != QKV_SELF || request->target))
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: a %s has no decoder over an encoder",
                              model->info.source, model->info.architecture);
    if (pairs && !request->target)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "target is NULL: words are the decoder's");
    return QKV_OK;
}

static qkv_status prepare(qkvi_effects *e, qkv_error *error) {
    const qkvi_net *const net = e->model->net;
    const qkv_effects *const request = e->request;
    QKV_TRY(check_which(e->model, request, error));
    if (request->max_tokens < 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "max_tokens = %lld is below 0",
                              (long long)request->max_tokens);
    e->stack = request->which != QKV_SELF;
    e->cross = request->which == QKV_CROSS;
    const qkvi_stack *const stack = &net->stacks[e->stack];
    const qkv_encoding *const last = request->target ? request->target : e->input;
    e->n_layers = stack->n_layers;
    e->n_heads = stack->n_heads;
    e->head_dim = stack->head_dim;
    e->len = e->stack ? request->target->n : e->input->n;
    e->n_words = qkvi_effects_of_labels(e)        ? net->n_labels
                 : request->head == QKV_HEAD_NEXT ? net->lm.n_out
                                                  : e->model->info.vocab_size;
    QKV_TRY(check_places(e, last->n, error));
    QKV_TRY(check_sets(e, error));
    return check_source(e, error);
}

/* ---- Batches --------------------------------------------------------------------------------- */

/* The lowest layer of a set; n_layers of an empty one. */
static int64_t lowest(const qkvi_effects *e, int64_t set) {
    int64_t n = 0, layer = e->n_layers;
    const int64_t *const heads = qkvi_effects_set(e->request, set, &n);
    for (int64_t i = 0; i < n; i++)
        if (heads[i] / e->n_heads < layer) layer = heads[i] / e->n_heads;
    return layer;
}

static int64_t most_copies(const qkvi_effects *e) {
    const int64_t most = e->request->max_tokens ? e->request->max_tokens : MAX_TOKENS;
    const int64_t tokens = e->input->n + (e->request->target ? e->request->target->n : 0);
    return most / tokens > 1 ? most / tokens : 1;
}

/* Sets without a head are the model as it is. */
static int64_t copy_base(const qkvi_effects *e) {
    const qkv_effects *const request = e->request;
    const size_t n = (size_t)request->n_places;
    const size_t elems = (qkvi_effects_of_labels(e) ? 1 : n) * (size_t)e->n_words;
    int64_t n_empty = 0;
    for (int64_t s = 0; s < request->n_sets; s++) {
        if (lowest(e, s) < e->n_layers) continue;
        memcpy(e->log_p + (size_t)(s + 1) * n, e->log_p, n * sizeof *e->log_p);
        if (request->logits)
            memcpy(request->logits + (size_t)(s + 1) * elems, request->logits,
                   elems * sizeof(float));
        n_empty++;
    }
    return n_empty;
}

/* All sets, layer by layer, some at a time. sets: room for n_sets. */
static qkv_status run_sets(qkvi_effects *e, int64_t *sets, const qkv_call_options *call,
                           qkv_error *error) {
    const int64_t most = most_copies(e), n_sets = e->request->n_sets;
    int64_t done = copy_base(e);
    e->sets = sets;
    for (e->first = 0; e->first < e->n_layers; e->first++) {
        e->n_copies = 0;
        for (int64_t s = 0; s < n_sets; s++) {
            if (lowest(e, s) == e->first) sets[e->n_copies++] = s;
            if (e->n_copies == 0 || (e->n_copies < most && s < n_sets - 1)) continue;
            QKV_TRY(qkvi_effects_batch(e, error));
            done += e->n_copies;
            e->n_copies = 0;
            QKV_TRY(qkvi_rows_watch(call, done, n_sets, error));
        }
    }
    return QKV_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

static qkv_status run_base(const qkvi_effects *e, qkv_run **run, qkv_error *error) {
    qkv_run_options options = qkv_run_options_init();
    if (e->request->target) options.targets = &e->request->target;
    return qkv_model_run(e->ctx, e->model, 1, &e->input, QKV_RUN_HIDDEN | QKV_RUN_OUTPUTS, &options,
                         run, error);
}

static qkv_status answer(qkvi_effects *e, const qkv_call_options *call, qkv_error *error) {
    const bool pairs = e->request->target != NULL;
    const float *const y = qkv_run_hidden(e->base, pairs ? QKV_DECODER : QKV_SELF, 0,
                                          qkvi_net_last(e->model->net)->n_layers);
    QKV_TRY(qkvi_effects_tell(e, 1, NULL, &y, error));
    int64_t *const sets = qkvi_malloc_array((size_t)e->request->n_sets + 1, sizeof *sets);
    if (!sets) return qkvi_no_memory(error, "sets of heads");
    const qkv_status status = run_sets(e, sets, call, error);
    free(sets);
    return status;
}

qkv_status qkv_inspect_effects(qkv_ctx *ctx, const qkv_model *model, const qkv_encoding *input,
                               const qkv_effects *given, double *log_p,
                               const qkv_call_options *call, qkv_error *error) {
    qkv_effects request = qkv_effects_init();
    qkv_call_options options;
    qkv_run *base = NULL;
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(input, "input", error));
    QKV_TRY(qkvi_need(given, "request", error));
    QKV_TRY(qkvi_need(log_p, "log_p", error));
    QKV_TRY(qkvi_options_read(&request, sizeof request, given, "qkv_effects", error));
    QKV_TRY(qkvi_rows_call(call, &options, error));
    qkvi_effects e = {
        .ctx = ctx, .model = model, .input = input, .request = &request, .log_p = log_p
    };
    QKV_TRY(prepare(&e, error));
    QKV_TRY(run_base(&e, &base, error));
    e.base = base;
    const qkv_status status = answer(&e, &options, error);
    qkv_run_free(base);
    return status;
}

qkv_status qkv_run_add_outputs(const qkv_run *run, qkv_attention_kind which, int64_t b,
                               double *sums, qkv_error *error) {
    QKV_TRY(qkvi_need(run, "run", error));
    QKV_TRY(qkvi_need(sums, "sums", error));
    const float *o = qkv_run_outputs(run, which, b, 0);
    if (!o)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "the run has no outputs of heads: which = %d, b = %lld, and "
                              "QKV_RUN_OUTPUTS",
                              (int)which, (long long)b);
    const qkvi_stack_pass *const pass = qkvi_net_stack(run->pass, which != QKV_SELF);
    const int64_t width = pass->stack->n_heads * pass->stack->head_dim;
    const int64_t n = pass->rows.lengths[b];
    for (int64_t layer = 0; layer < pass->n_layers; layer++, sums += width) {
        o = qkv_run_outputs(run, which, b, layer);
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < width; c++) sums[c] += (double)o[i * width + c];
    }
    return QKV_OK;
}
