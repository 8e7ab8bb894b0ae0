/* The logit lens: a row for each layer, about the word that the model says in the end. */
#include "common/lens.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/predict.h"

/* One place of a text. */
struct lens {
    const struct session *session;
    qkv_word_head head;
    int64_t position, n_rows; /* rows: layers, the embeddings first */
    int32_t word;
    qkv_lens *rows;
};

qkv_status lens_read(const struct session *session, const qkv_run *run, qkv_word_head head,
                     int64_t position, int32_t word, qkv_lens *rows, qkv_error *error) {
    qkv_status status = QKV_OK;
    for (int64_t layer = 0; layer <= session->info->n_layers && status == QKV_OK; layer++) {
        rows[layer] = qkv_lens_init();
        status = qkv_inspect_lens(session->ctx, session->model, run, head, 0, position, layer, word,
                                  &rows[layer], error);
    }
    return status;
}

static qkv_status make(const qkv_run *run, struct lens *lens, qkv_error *error) {
    lens->n_rows = lens->session->info->n_layers + 1;
    lens->rows = calloc((size_t)lens->n_rows + 1, sizeof *lens->rows);
    if (!lens->rows) return text_no_memory(error);
    return lens_read(lens->session, run, lens->head, lens->position, lens->word, lens->rows, error);
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void print_row(struct term *term, const struct lens *lens, int64_t layer) {
    const qkv_lens *const row = &lens->rows[layer];
    char *const best = session_token(lens->session, row->best);
    const double p = exp(row->best_log_p);
    fprintf(term->out, "%5" PRId64 "  ", layer);
    term_put(term, best ? best : "", 18, false);
    fputc(' ', term->out);
    term_weight_bg(term, p);
    term_readable_on(term, p);
    fprintf(term->out, "%.4f", p);
    term_reset(term);
    fprintf(term->out, "  %9.4f  %9" PRId64 "  %7.4f", exp(row->log_p), row->rank + 1,
            row->entropy);
    term_newline(term);
    free(best);
}

static void print(struct term *term, const struct lens *lens) {
    struct caption line = { "" };
    char *const word = session_token(lens->session, lens->word), *const mask =
                                                                     mask_name(lens->session);
    if (lens->head == QKV_HEAD_NEXT)
        caption_add(&line, "What comes next: %.200s", word ? word : "");
    else
        caption_add(&line, "%.40s, token %" PRId64 ": %.200s", mask ? mask : "", lens->position,
                    word ? word : "");
    term_wrap_styled(term, STYLE_BOLD, line.text);
    fprintf(term->out, "%5s  %-18s %6s  %9s  %9s  %7s\n", "layer", "best", "p", "p(word)", "rank",
            "entropy");
    for (int64_t layer = 0; layer < lens->n_rows; layer++) print_row(term, lens, layer);
    term_newline(term);
    free(word);
    free(mask);
}

static json_t *lens_json(const struct lens *lens) {
    json_t *const rows = json_array();
    for (int64_t layer = 0; layer < lens->n_rows; layer++) {
        const qkv_lens *const row = &lens->rows[layer];
        json_array_append_new(
            rows, json_set(NULL,
                           "layer:i best:o best_id:i best_probability:n probability:n log_p:n "
                           "rank:i entropy:n",
                           layer, token_json(lens->session->tokenizer, row->best),
                           (int64_t)row->best, exp(row->best_log_p), exp(row->log_p), row->log_p,
                           row->rank + 1, row->entropy));
    }
    return json_set(NULL, "position:i token:o id:i layers:o", lens->position,
                    token_json(lens->session->tokenizer, lens->word), (int64_t)lens->word, rows);
}

static const char note[] =
    "Each layer's hidden state is read as if it were the last one (the logit lens): best = the "
    "likeliest word there, p(word) and rank = of the word that the model says in the end, entropy "
    "= of all words, in nats. Layer 0 is the embeddings. Layers were not trained to be read so: "
    "early ones may say little.";

/* ---- One text -------------------------------------------------------------------------------- */

static qkv_status each_place(struct text_job *job, const qkv_run *run,
                             const struct predictions *predictions, qkv_word_head head,
                             struct term *term, json_t *list, qkv_error *error) {
    qkv_status status = QKV_OK;
    for (int64_t m = 0; m < predictions->n_masks && status == QKV_OK; m++) {
        struct lens lens = { .session = &job->session,
                             .head = head,
                             .position = predictions->positions[m],
                             .word = predictions->candidates[m * predictions->top].id };
        status = make(run, &lens, error);
        if (status == QKV_OK && list)
            json_array_append_new(list, lens_json(&lens));
        else if (status == QKV_OK)
            print(term, &lens);
        free(lens.rows);
    }
    return status;
}

qkv_status lens_check(const struct session *session, qkv_error *error) {
    if (session->info->kind != QKV_MODEL_PAIR) return QKV_OK;
    return text_error(error, QKV_ERR_UNSUPPORTED,
                      "--lens is of a model with one stack, and %s has an encoder and a decoder",
                      session->info->source);
}

static qkv_status check(struct text_job *job, const qkv_encoding *input, bool next,
                        qkv_error *error) {
    const struct session *const session = &job->session;
    job->usage = true; /* of what is refused here */
    qkv_status status = lens_check(session, error);
    if (status != QKV_OK) return status;
    if (!next && count_masks(session, input) == 0) {
        char *const mask = mask_name(session);
        status = text_error(error, QKV_ERR_ARGUMENT, "there is no %s in the text",
                            mask ? mask : "[MASK]");
        free(mask);
        return status;
    }
    job->usage = false;
    return QKV_OK;
}

qkv_status lens_answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                       qkv_error *error) {
    const struct session *const session = &job->session;
    const bool next = session->info->kind == QKV_MODEL_DECODER;
    struct predictions predictions = { .n_masks = 0 };
    struct term term;
    qkv_run *run = NULL;
    qkv_status status = check(job, input, next, error);
    if (status == QKV_OK)
        status = qkv_model_run(session->ctx, session->model, 1, &input, QKV_RUN_HIDDEN, NULL, &run,
                               error);
    if (status == QKV_OK)
        status = next ? predictions_next(session, run, input->n - 1, 1, &predictions, error)
                      : predictions_make(session, run, input, 1, &predictions, error);
    if (status == QKV_OK) {
        json_t *const list = json ? json_array() : NULL;
        term_init(&term, stdout, session->common);
        if (next) predictions.positions[0] = input->n - 1;
        status = each_place(job, run, &predictions, next ? QKV_HEAD_NEXT : QKV_HEAD_MASKED, &term,
                            list, error);
        if (json)
            *json = json_set(NULL, "lens:o note:s", list, note);
        else if (status == QKV_OK)
            term_wrap(&term, note);
    }
    predictions_free(&predictions);
    qkv_run_free(run);
    return status;
}
