/* What `qkv look` knows, as a JSON object. */
#include <math.h>
#include <stdlib.h>

#include "heads/heads.h"
#include "look/findings.h"

static json_t *heads_json(const struct look *look) {
    json_t *heads = json_array();
    const int64_t n = look_n_heads(look);
    for (int64_t i = 0; i < n; i++) {
        int64_t layer, head;
        look_place(look, i, &layer, &head);
        json_array_append_new(heads,
                              head_json(layer, head, look_label(look, i), look_numbers(look, i)));
    }
    return heads;
}

static json_t *sharpest_json(const qkv_heads_choice *choice) {
    if (choice->key < 0) return json_null();
    return json_set(NULL, "layer:i head:i query:i key:i weight:n", choice->layer, choice->head,
                    choice->query, choice->key, (double)choice->weight);
}

qkv_status look_weights_json(const struct look *look, json_t **rows, qkv_error *error) {
    struct look_tiles each;
    float *const weights = look_chosen_cells(look, INT64_MAX, &each, error), *cell = weights;
    if (!weights) return error->status;
    *rows = json_array();
    for (int64_t i = 0; i < each.rows; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < each.cols; j++, cell++)
            json_array_append_new(row, *cell == QKV_CELL_HIDDEN ? json_null()
                                                                : json_number((double)*cell));
        json_array_append_new(*rows, row);
    }
    free(weights);
    return QKV_OK;
}

/* Probabilities of the tokens that come next: of a text all but its first one, of a target all. */
static void expected_json(const struct look *look, json_t *object) {
    json_t *list = json_array();
    int64_t n;
    const double perplexity = look_perplexity(look, &n);
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_number(exp(look->log_p[i])));
    json_set(object, "expected:o perplexity:n", list, n ? perplexity : NAN);
}

qkv_status look_json(const struct look *look, json_t **json, qkv_error *error) {
    const struct attended *text = &look->text;
    const struct session *session = text->session;
    json_t *object = json_object();
    if (look->windows)
        windows_json(look, object);
    else
        json_set(object, "tokens:o", text_tokens_json(session, text->input));
    json_set(object, "attention:s", attention_key(session, text->view.which));
    if (text->pair.next) pair_json(session, &text->pair, object);
    json_set(object, look->predictions.is_next ? "next:o" : "predictions:o",
             predictions_json(session, &look->predictions));
    if (look->log_p) expected_json(look, object);
    if (look->alignment) json_set(object, "alignment:o", look_align_json(look));
    if (text->what_if.any) {
        json_set(object, "modified:s what_if:t", WHAT_IF_BADGE, text->what_if.words);
        json_set(object, look->before.is_next ? "next_before:o" : "predictions_before:o",
                 predictions_json(session, &look->before));
    }
    if (look->replaced)
        json_set(object, "replaced:o", replaced_json(text->input, look->replaced));
    else if (look->labels)
        json_set(object, "labels:o", labels_json(session, look->labels));
    else if (!session->info->has_mlm && !look->log_p)
        json_set(object, "note:s", "the model has no MLM head, so it predicts nothing");
    json_set(object, "heads:o sharpest:o", heads_json(look), sharpest_json(&look->choice));
    struct findings findings = { .n = 0 };
    qkv_status status = look->alignment ? QKV_OK : findings_make(look, &findings, error);
    if (findings.n > 0) json_set(object, "findings:o", findings_json(look, &findings));
    if (status == QKV_OK && look->given) {
        json_t *rows = NULL;
        status = look_weights_json(look, &rows, error);
        json_set(object, "layer:i head:i weights:o", look->choice.layer, look->choice.head, rows);
    }
    if (status == QKV_OK)
        *json = object;
    else
        json_decref(object);
    return status;
}
