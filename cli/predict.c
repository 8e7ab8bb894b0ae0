/* Words for blanks: from the MLM head, as bars or as JSON. */
#include "predict.h"

#include <inttypes.h>
#include <stdlib.h>

static bool is_mask(const struct session *session, const qkv_encoding *input, int64_t i) {
    const int32_t mask = qkv_tokenizer_special(session->tokenizer, QKV_TOKEN_MASK);
    return mask >= 0 && input->ids[i] == mask;
}

int64_t count_masks(const struct session *session, const qkv_encoding *input) {
    int64_t n = 0;
    for (int64_t i = 0; i < input->n; i++) n += is_mask(session, input, i);
    return n;
}

qkv_status predictions_make(const struct session *session, const qkv_run *run,
                            const qkv_encoding *input, int64_t top, struct predictions *predictions,
                            qkv_error *error) {
    const int64_t n = count_masks(session, input), vocab = session->info->vocab_size;
    *predictions = (struct predictions){ .n_masks = n, .top = top < vocab ? top : vocab };
    top = predictions->top;
    predictions->positions = calloc((size_t)n + 1, sizeof(int64_t));
    predictions->candidates = calloc((size_t)(n * top) + 1, sizeof(qkv_candidate));
    if (!predictions->positions || !predictions->candidates)
        return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = QKV_OK;
    for (int64_t i = 0, m = 0; i < input->n && status == QKV_OK; i++) {
        if (!is_mask(session, input, i)) continue;
        predictions->positions[m] = i;
        status = qkv_model_fill(session->ctx, session->model, run, 0, i, top,
                                predictions->candidates + m * top, error);
        m++;
    }
    return status;
}

void predictions_free(struct predictions *predictions) {
    free(predictions->positions);
    free(predictions->candidates);
}

static void print_candidate(const struct session *session, const qkv_candidate *candidate,
                            struct term *term) {
    char *token = session_token(session, candidate->id);
    int bar = term->width - 30;
    if (bar > 40) bar = 40;
    fputs("  ", term->out);
    term_put(term, token ? token : "", 18, false);
    fprintf(term->out, " %.4f ", (double)candidate->probability);
    if (bar > 0) term_bar(term, (double)candidate->probability, bar);
    term_newline(term);
    free(token);
}

void predictions_print(const struct session *session, const struct predictions *predictions,
                       struct term *term) {
    for (int64_t m = 0; m < predictions->n_masks; m++) {
        term_style(term, STYLE_BOLD);
        if (predictions->n_masks > 1)
            fprintf(term->out, "[MASK], token %" PRId64, predictions->positions[m]);
        else
            fputs("[MASK]", term->out);
        term_style(term, STYLE_NONE);
        term_newline(term);
        for (int64_t c = 0; c < predictions->top; c++)
            print_candidate(session, &predictions->candidates[m * predictions->top + c], term);
    }
}

json_t *predictions_json(const struct session *session, const struct predictions *predictions) {
    json_t *list = json_array();
    for (int64_t m = 0; m < predictions->n_masks; m++) {
        json_t *candidates = json_array();
        for (int64_t c = 0; c < predictions->top; c++) {
            const qkv_candidate *candidate = &predictions->candidates[m * predictions->top + c];
            json_array_append_new(
                candidates, json_pack("{s:o, s:i, s:o}", "token",
                                      text_token_json(session, candidate->id), "id", candidate->id,
                                      "probability", json_number((double)candidate->probability)));
        }
        json_array_append_new(list, json_pack("{s:I, s:o}", "position",
                                              (json_int_t)predictions->positions[m], "candidates",
                                              candidates));
    }
    return list;
}
