/*
 * The searches over a real model: a decoder with kept keys and values, and what it begins with. See
 * qkv/generate.h.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
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

static void take_files(const qkvi_generation_config *files, qkv_generate_options *o) {
    static const qkv_early_stopping early[] = { [QKVI_STOP_BY_HEURISTIC] = QKV_EARLY_LIKELY,
                                                [QKVI_STOP_AT_ONCE] = QKV_EARLY_ALWAYS,
                                                [QKVI_STOP_NEVER] = QKV_EARLY_NEVER };
    o->max_new = files->max_new_tokens;
    o->max_length = files->max_length;
    o->min_new = files->min_new_tokens;
    o->min_length = files->min_length;
    o->n_beams = files->num_beams;
    o->n_return = files->num_return_sequences;
    o->length_penalty = files->length_penalty;
    o->early_stopping = early[files->early_stopping];
    o->sample = files->do_sample;
    o->temperature = files->temperature;
    o->top_k = files->top_k;
    o->top_p = files->top_p;
    o->repetition_penalty = files->repetition_penalty;
    o->no_repeat_ngram = files->no_repeat_ngram_size;
    o->forced_bos = (int32_t)files->forced_first;
    o->forced_eos = files->n_forced_last > 0 ? (int32_t)files->forced_last[0] : -1;
    o->renormalize = files->renormalize_logits;
}

qkv_status qkv_generate_options_of(const qkv_model *model, qkv_generate_options *options,
                                   qkv_error *error) {
    qkv_generate_options ours;
    if (!model || !options)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", !model ? "model" : "options");
    QKV_TRY(qkvi_options_read(&ours, sizeof ours, options, "qkv_generate_options", error));
    const qkvi_generation_config *const files = &model->generation;
    if (!model->info.has_lm) return QKV_OK;
    if (files->unsupported || files->n_forced_last > 1)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: generation_config.json: %s is not supported", model->info.source,
                              files->unsupported ? files->unsupported
                                                 : "a list as forced_eos_token_id");
    take_files(files, &ours);
    ours.struct_size = options->struct_size;
    memcpy(options, &ours, sizeof ours);
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
    return qkv_model_run(w->ctx, w->model, 1, &source, 0, &w->source, error);
}

static qkv_status read_prompt(writer *w, const qkv_encoding *prompt, int64_t *n, qkv_error *error) {
    *n = 1;
    if (w->model->info.is_encoder_decoder) return read_source(w, prompt, error);
    if (prompt == NULL || prompt->n == 0)
        return begin_with(w, "bos_token_id", w->model->info.bos_id, error);
    *n = prompt->n;
    w->prompt = prompt->ids;
    return QKV_OK;
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
    if (w->plan.o.tokenizer == NULL) w->plan.o.tokenizer = qkv_model_target_tokenizer(w->model);
    return QKV_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

static qkv_status decode(writer *w, qkv_generation **generation, qkv_error *error) {
    const qkvi_plan *const plan = &w->plan;
    const float *const hidden =
        w->source ? qkv_run_hidden(w->source, 0, w->model->info.n_layers) : NULL;
    const qkvi_lm lm = { w, step, reorder };
    size_t n_logits;
    QKV_TRY(qkvi_decoder_make(w->ctx, w->model->net, plan->n_slots, plan->max_total, w->n_source,
                              hidden, &w->decoder, error));
    if (!qkvi_mul_size((size_t)plan->n_slots, (size_t)plan->lm.vocab, &n_logits))
        n_logits = SIZE_MAX;
    float *const logits = qkvi_malloc_array(n_logits, sizeof *logits);
    if (logits == NULL) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for logits");
    qkv_status status =
        qkvi_decoder_prompt(w->ctx, w->decoder, 0, plan->lm.prompt_len, w->prompt, logits, error);
    if (status == QKV_OK) status = qkvi_search(plan, &lm, w->prompt, logits, generation, error);
    free(logits);
    return status;
}

static qkv_status check(const qkv_ctx *ctx, const qkv_model *model, qkv_error *error) {
    if (!ctx || !model)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : "model");
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
