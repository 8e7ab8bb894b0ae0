/* What `qkv look` knows, as a JSON object. */
#include <math.h>
#include <stdlib.h>

#include "heads/heads.h"
#include "look/look.h"

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
    return json_pack("{s:I, s:I, s:I, s:I, s:o}", "layer", (json_int_t)choice->layer, "head",
                     (json_int_t)choice->head, "query", (json_int_t)choice->query, "key",
                     (json_int_t)choice->key, "weight", json_number((double)choice->weight));
}

qkv_status look_weights_json(const struct look *look, json_t **rows, qkv_error *error) {
    const int64_t n = look->n_rows, m = look->n_cols;
    float *weights = calloc((size_t)(n * m) + 1, sizeof(float));
    if (!weights) return text_no_memory(error);
    const struct look_tiles each = look_tiles_of(look, INT64_MAX);
    const qkv_status status = look_cells(look, look_chosen(look), &each, weights, error);
    *rows = json_array();
    for (int64_t i = 0; status == QKV_OK && i < n; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < m; j++) {
            const float weight = weights[i * m + j];
            json_array_append_new(row, weight == QKV_CELL_HIDDEN ? json_null()
                                                                 : json_number((double)weight));
        }
        json_array_append_new(*rows, row);
    }
    free(weights);
    return status;
}

/* Probabilities of the tokens that come next: of a text all but its first one, of a target all. */
static void expected_json(const struct look *look, json_t *object) {
    json_t *list = json_array();
    int64_t n;
    const double perplexity = look_perplexity(look, &n);
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_number(exp(look->log_p[i])));
    json_object_set_new(object, "expected", list);
    json_object_set_new(object, "perplexity", n ? json_number(perplexity) : json_null());
}

qkv_status look_json(const struct look *look, json_t **json, qkv_error *error) {
    json_t *object = json_object();
    if (look->windows)
        windows_json(look, object);
    else
        json_object_set_new(object, "tokens",
                            text_tokens_json(look->text.session, look->text.input));
    const char *attention = attention_key(look->text.session, look->text.view.which);
    if (attention) json_object_set_new(object, "attention", json_string(attention));
    if (look->text.pair.next) pair_json(look->text.session, &look->text.pair, object);
    json_object_set_new(object, look->predictions.is_next ? "next" : "predictions",
                        predictions_json(look->text.session, &look->predictions));
    if (look->log_p) expected_json(look, object);
    if (look->alignment) json_object_set_new(object, "alignment", look_align_json(look));
    if (look->text.what_if.any) {
        json_object_set_new(object, "modified", json_string(WHAT_IF_BADGE));
        json_object_set_new(object, "what_if", json_text(look->text.what_if.words));
        json_object_set_new(object, look->before.is_next ? "next_before" : "predictions_before",
                            predictions_json(look->text.session, &look->before));
    }
    if (look->replaced)
        json_object_set_new(object, "replaced", replaced_json(look->text.input, look->replaced));
    else if (!look->text.session->info->has_mlm && !look->log_p)
        json_object_set_new(object, "note",
                            json_string("the model has no MLM head, so it predicts nothing"));
    json_object_set_new(object, "heads", heads_json(look));
    json_object_set_new(object, "sharpest", sharpest_json(&look->choice));
    qkv_status status = QKV_OK;
    if (look->given) {
        json_t *rows = NULL;
        status = look_weights_json(look, &rows, error);
        json_object_set_new(object, "layer", json_integer(look->choice.layer));
        json_object_set_new(object, "head", json_integer(look->choice.head));
        json_object_set_new(object, "weights", rows);
    }
    if (status == QKV_OK)
        *json = object;
    else
        json_decref(object);
    return status;
}
