/* `qkv heads --effect` for one text: options, computation, output. See effect.h. */
#include "heads/effect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/conflicts.h"
#include "common/named.h"

/* ---- The numbers ----------------------------------------------------------------------------- */

/* The mean ln p of the words, in row `row`. */
static double value_of(const struct effect *effect, int64_t row) {
    const int64_t n = effect->request.n_places;
    double sum = 0;
    for (int64_t t = 0; t < n; t++) sum += effect->log_p[row * n + t];
    return sum / (double)n;
}

/* Heads of a group count once. */
static double sum_of_singles(const struct effect *effect, const struct effect_set *set) {
    double sum = 0;
    for (int64_t i = 0; i < set->n; i++) {
        bool before = false;
        for (int64_t j = 0; j < i; j++) before |= set->heads[j] == set->heads[i];
        if (!before) sum += effect->sets[set->heads[i]].nats;
    }
    return sum;
}

static void set_numbers(struct effect *effect) {
    const struct heads_options *const options = effect->options;
    effect->value = value_of(effect, 0);
    for (int64_t s = 0; s < effect->request.n_sets; s++) {
        struct effect_set *const set = &effect->sets[s];
        const double value = value_of(effect, s + 1);
        set->nats = value - effect->value;
        set->probability = exp(value) - exp(effect->value);
    }
    for (int64_t s = 0; s < effect->request.n_sets; s++)
        effect->sets[s].sum = sum_of_singles(effect, &effect->sets[s]);
    for (int64_t i = 0; i < effect->n_all; i++)
        effect->order[i] = (struct sort_key){ effect->sets[i].nats, i };
    sort_keys(effect->order, effect->n_all);
    effect->n_shown = effect->n_all;
    if (options->top.set && options->top.value < effect->n_all)
        effect->n_shown = options->top.value;
}

/* ---- One text -------------------------------------------------------------------------------- */

static qkv_status compute_effects(struct effect *effect, struct text_job *job, qkv_error *error) {
    const struct session *const session = effect->session;
    const char *const target = effect->options->which.target;
    const struct text given = { (char *)(uintptr_t)target, target ? strlen(target) : 0 };
    struct progress progress;
    qkv_status status = QKV_OK;
    if (session->info->kind == QKV_MODEL_PAIR)
        status = pair_make(session, effect->input, given, &effect->pair, error);
    if (effect->pair.next) effect->request.target = &effect->pair.inputs;
    if (status == QKV_OK) status = effect_words(effect, job, error);
    if (status == QKV_OK) status = effect_sets(effect, error);
    if (status == QKV_OK) status = effect_given(effect, error);
    if (status != QKV_OK) return status;
    const int64_t n = (effect->request.n_sets + 1) * effect->request.n_places;
    effect->log_p = calloc((size_t)n + 1, sizeof *effect->log_p);
    if (!effect->log_p) return text_no_memory(error);
    const qkv_call_options call = progress_call(&progress, "ablating", session->common->quiet);
    status = qkv_inspect_effects(session->ctx, session->model, effect->input, &effect->request,
                                 effect->log_p, &call, error);
    progress_end(&progress);
    if (status == QKV_OK) set_numbers(effect);
    return status == QKV_OK ? effect_edges(effect, error) : status;
}

static void effect_free(struct effect *effect) {
    free(effect->positions);
    free(effect->words);
    free(effect->ends);
    free(effect->heads);
    free(effect->means);
    free(effect->log_p);
    free(effect->sets);
    free(effect->order);
    free(effect->edges);
    pair_free(&effect->pair);
    pair_free(&effect->source_pair);
    qkv_encoding_free(effect->source);
    qkv_run_free(effect->source_run);
}

static qkv_status show_effects(const struct effect *effect, json_t **json, qkv_error *error) {
    const char *out = effect->options->out;
    char room[NAMED_ROOM];
    if (json) return (*json = effect_json(effect)) ? QKV_OK : text_no_memory(error);
    if (!out) {
        effect_print(effect);
        return QKV_OK;
    }
    if (cli_cancelled) return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    out = named_file(out, "effect", effect->said, room);
    const qkv_status status = effect_write(effect, out, error);
    if (status == QKV_OK) cli_note(effect->options->common.quiet, "qkv: wrote %s", out);
    return status;
}

qkv_status effect_answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    struct effect effect = { .options = job->options,
                             .session = &job->session,
                             .input = input,
                             .said = { job->said[0], job->said[1] },
                             .which = job->which,
                             .request = qkv_effects_init() };
    session_sizes(&job->session, job->which, &effect.n_layers, &effect.n_heads);
    effect.n_all = effect.n_layers * effect.n_heads;
    effect.request.which = job->which;
    qkv_status status = compute_effects(&effect, job, error);
    if (status == QKV_OK) status = show_effects(&effect, json, error);
    effect_free(&effect);
    return status;
}
