/*
 * The searches over a real model: a decoder with kept keys and values, and what it begins with. See
 * qkv/generate.h.
 */

#include "core/fpstate.h"
#include "core/options.h"
#include "model/arch/decoder.h"
#include "model/generate/search.h"
#include "model/model_impl.h"

/* A call. */
typedef struct writer {
    qkv_ctx *ctx;
    const qkv_model *model;
    qkvi_plan plan;
    qkvi_decoder *decoder;
    qkv_run *source; /* of an encoder */
    int64_t n_source;
    const int32_t *prompt; /* of the decoder */
    int32_t first[1];
} writer;

static qkv_status step(void *self, int64_t n, const int32_t *ids, float *logits, qkv_error *error) {
    const writer *const w = self;
    return qkvi_decoder_step(w->ctx, w->decoder, n, ids, logits, error);
}

static qkv_status reorder(void *self, int64_t n, const int32_t *from, qkv_error *error) {
    const writer *const w = self;
    return qkvi_decoder_reorder(w->ctx, w->decoder, n, from, error);
}

/* ---- What the files say ---------------------------------------------------------------------- */

/* One of which some values make no sense: an error where it is used; else the default stays. */
typedef struct number {
    const char *field;
    double value, min, max;
    bool is_used;
} number;

static qkv_status take_number(const qkv_model *model, const number *n, double *to,
                              qkv_error *error) {
    if (n->value >= n->min && n->value <= n->max)
        *to = n->value;
    else if (n->is_used)
        return qkvi_error_set(error, QKV_ERR_FORMAT,
                              "%s: generation_config.json: %s = %g is not between %g and %g",
                              model->info.source, n->field, n->value, n->min, n->max);
    return QKV_OK;
}

static qkv_status take_numbers(const qkv_model *model, qkv_generate_options *o, qkv_error *error) {
    const qkvi_generation_config *const f = &model->generation;
    const bool samples = o->sample, beams = o->n_beams > 1;
    double top_k = (double)o->top_k;
    const struct {
        number number;
        double *to;
    } numbers[] = {
        { { "length_penalty", f->length_penalty, -16, 16, beams }, &o->length_penalty },
        { { "temperature", f->temperature, 1e-6, 1e6, samples }, &o->temperature },
        { { "top_k", (double)f->top_k, 0, INT32_MAX, samples }, &top_k },
        { { "top_p", f->top_p, 0, 1, samples }, &o->top_p },
        { { "min_p", f->min_p, 0, 1, samples }, &o->min_p },
        { { "repetition_penalty", f->repetition_penalty, 1e-6, 1e6, true },
          &o->repetition_penalty },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        QKV_TRY(take_number(model, &numbers[i].number, numbers[i].to, error));
    o->top_k = (int64_t)top_k;
    return QKV_OK;
}

static void take_tokens(const qkvi_generation_config *files, qkv_generate_options *o) {
    o->forced_bos = (int32_t)files->forced_first;
    o->forced_eos = files->n_forced_last == 1 ? files->forced_last[0] : -1;
    if (files->n_forced_last <= 1) return;
    o->forced_ends = files->forced_last;
    o->n_forced_ends = files->n_forced_last;
}

static void take_files(const qkvi_generation_config *files, qkv_generate_options *o) {
    static const qkv_early_stopping early[] = { [QKVI_STOP_BY_HEURISTIC] = QKV_EARLY_LIKELY,
                                                [QKVI_STOP_AT_ONCE] = QKV_EARLY_ALWAYS,
                                                [QKVI_STOP_NEVER] = QKV_EARLY_NEVER };
    o->max_new = files->max_new_tokens;
    o->max_length = files->max_length;
    o->min_new = files->min_new_tokens;
    o->min_length = files->min_length;
    if (o->n_beams == 1) o->n_beams = files->num_beams;
    o->n_return = files->num_return_sequences;
    o->early_stopping = early[files->early_stopping];
    o->sample |= files->do_sample;
    o->no_repeat_ngram = files->no_repeat_ngram_size;
    o->renormalize = files->renormalize_logits;
}

static qkv_status check_fields(const qkv_model *model, const qkv_generate_options *o,
                               qkv_error *error) {
    const char *const field =
        qkvi_generation_unsupported(&model->generation, o->sample, o->n_beams);
    if (!field) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s: generation_config.json: %s is not supported", model->info.source,
                          field);
}

qkv_status qkv_generate_options_read(const qkv_model *model, qkv_generate_options *options,
                                     qkv_error *error) {
    qkv_generate_options ours = qkv_generate_options_init();
    if (!model || !options)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", !model ? "model" : "options");
    QKV_TRY(qkvi_options_read(&ours, sizeof ours, options, "qkv_generate_options", error));
    if (!model->info.has_lm) return QKV_OK;
    const qkv_error *const problem = &model->generation_problem;
    if (problem->status != QKV_OK)
        return qkvi_error_set(error, problem->status, "%s", problem->message);
    take_files(&model->generation, &ours);
    take_tokens(&model->generation, &ours);
    QKV_TRY(check_fields(model, &ours, error));
    QKV_TRY(take_numbers(model, &ours, error));
    qkvi_options_write(options, &ours, sizeof ours);
    return QKV_OK;
}

/* ---- The beginning --------------------------------------------------------------------------- */

static qkv_status begin_with(writer *w, const char *what, int64_t id, qkv_error *error) {
    if (id < 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: config.json has no %s, which a text "
                              "begins with",
                              w->model->info.source, what);
    w->first[0] = (int32_t)id;
    w->prompt = w->first;
    return QKV_OK;
}

/* The source through the encoder; the decoder begins with its start token. */
static qkv_status read_source(writer *w, const qkv_encoding *source, qkv_error *error) {
    if (source == NULL || source->n == 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "prompt: an encoder-decoder needs a source");
    QKV_TRY(begin_with(w, "decoder_start_token_id", w->model->info.start_id, error));
    w->n_source = source->n;
    return qkv_model_run(w->ctx, w->model, 1, &source, 0, NULL, &w->source, error);
}

static qkv_status read_prompt(writer *w, const qkv_encoding *prompt, int64_t *n, qkv_error *error) {
    *n = 1;
    if (w->model->info.kind == QKV_MODEL_PAIR) return read_source(w, prompt, error);
    if (prompt == NULL || prompt->n == 0)
        return begin_with(w, "bos_token_id", w->model->info.bos_id, error);
    *n = prompt->n;
    w->prompt = prompt->ids;
    return w->prompt ? QKV_OK : qkvi_error_set(error, QKV_ERR_ARGUMENT, "prompt.ids is NULL");
}

static qkv_status make_plan(writer *w, const qkv_generate_options *options, int64_t prompt_len,
                            qkv_error *error) {
    const qkvi_generation_config *const files = &w->model->generation;
    const qkvi_lm_facts facts = { .vocab = w->model->net->lm.n_out,
                                  .max_len = qkvi_net_last(w->model->net)->max_len,
                                  .prompt_len = prompt_len,
                                  .n_eos = files->n_ends,
                                  .eos = files->ends,
                                  .n_never = files->n_bad_words,
                                  .never = files->bad_words,
                                  .never_lengths = files->bad_word_lengths };
    QKV_TRY(qkvi_plan_make(&w->plan, options, &facts, error));
    if (w->plan.o.tokenizer == NULL)
        w->plan.o.tokenizer = qkv_model_tokenizer(w->model, QKV_TARGET);
    return QKV_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

static qkv_status decode(writer *w, qkv_generation **generation, qkv_error *error) {
    const qkvi_plan *const plan = &w->plan;
    const float *const hidden =
        w->source ? qkv_run_hidden(w->source, QKV_SELF, 0, w->model->info.n_layers) : NULL;
    const qkvi_lm lm = { w, step, reorder };
    size_t n_logits;
    QKV_TRY(qkvi_decoder_make(w->ctx, w->model->net, plan->n_slots, plan->max_total, w->n_source,
                              hidden, &w->decoder, error));
    if (!qkvi_mul_size((size_t)plan->n_slots, (size_t)plan->lm.vocab, &n_logits))
        n_logits = SIZE_MAX;
    float *const logits = qkvi_malloc_array(n_logits, sizeof *logits);
    if (logits == NULL) return qkvi_no_memory(error, "logits");
    qkv_status status =
        qkvi_decoder_prompt(w->ctx, w->decoder, 0, plan->lm.prompt_len, w->prompt, logits, error);
    if (status == QKV_OK) status = qkvi_search(plan, &lm, w->prompt, logits, generation, error);
    free(logits);
    return status;
}

static qkv_status check(const qkv_ctx *ctx, const qkv_model *model, qkv_error *error) {
    if (!ctx || !model)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : "model");
    if (model->no_head) return qkvi_model_check_head(model, 0, "LM", error);
    if (!model->net->has_lm)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: a %s has no head that predicts the next token",
                              model->info.source, model->info.architecture);
    return QKV_OK;
}

qkv_status qkv_generate(qkv_ctx *ctx, const qkv_model *model, const qkv_encoding *prompt,
                        const qkv_generate_options *options, qkv_generation **generation,
                        qkv_error *error) {
    writer w = { .ctx = ctx, .model = model };
    int64_t prompt_len;
    if (!generation) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "generation is NULL");
    *generation = NULL;
    QKV_TRY(check(ctx, model, error));
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkv_status status = read_prompt(&w, prompt, &prompt_len, error);
    if (status == QKV_OK) status = make_plan(&w, options, prompt_len, error);
    if (status == QKV_OK) status = decode(&w, generation, error);
    qkvi_decoder_free(w.decoder);
    qkv_run_free(w.source);
    qkvi_fpstate_leave(saved);
    return status;
}
