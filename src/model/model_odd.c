/*
 * What is odd about a model that opens: found once when it is opened (warnings), or when somebody
 * asks (values that are no numbers).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "core/status.h"
#include "model/model_impl.h"
#include "model/text/tokenizer.h"

static qkv_status add(qkv_model *model, const char *text, qkv_error *error) {
    char *const copy = strdup(text);
    if (!copy) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a warning");
    model->warnings[model->n_warnings++] = copy;
    return QKV_OK;
}

static qkv_status warn_of_hidden(qkv_model *model, qkv_error *error) {
    const qkvi_pieces *const pieces = &model->tokenizer->pieces;
    char token[128], text[400];
    if (pieces->n_hidden == 0) return QKV_OK;
    const struct qkvi_piece first = pieces->tokens[pieces->first_hidden];
    const char *const bytes = pieces->bytes + first.offset;
    snprintf(
        text, sizeof text,
        "%d of %d tokens are in the vocabulary again with a later id, which is used; the first "
        "is '%s', ids %d and %d",
        (int)pieces->n_hidden, (int)pieces->n_ids,
        qkvi_escape(token, sizeof token, bytes, (size_t)first.length), (int)pieces->first_hidden,
        (int)qkvi_pieces_find(pieces, bytes, (size_t)first.length));
    return add(model, text, error);
}

static qkv_status warn_of_padding(qkv_model *model, qkv_error *error) {
    const int64_t rows = model->info.vocab_size, tokens = qkv_tokenizer_size(model->tokenizer);
    char text[200];
    if (rows <= tokens) return QKV_OK;
    snprintf(text, sizeof text,
             "%lld rows of the embedding have no token: config.json says vocab_size = %lld, the "
             "tokenizer has %lld",
             (long long)(rows - tokens), (long long)rows, (long long)tokens);
    return add(model, text, error);
}

qkv_status qkvi_model_warn(qkv_model *model, qkv_error *error) {
    QKV_TRY(warn_of_hidden(model, error));
    return warn_of_padding(model, error);
}

const char *qkv_model_warning(const qkv_model *model, int64_t index) {
    return index >= 0 && index < model->n_warnings ? model->warnings[index] : NULL;
}

/* Counts what is no number in a row, in the form that it is kept in; padding is zeros. */
static void count_odd(const qkvi_param *row, const float *values, qkv_not_finite *found) {
    const size_t n_words = qkvi_param_words(row);
    for (size_t i = 0; i < n_words; i++) {
        const uint32_t bits = qkvi_bits_of_float(values[i]);
        const float halves[2] = { qkvi_float_of_bits(bits & 0xFFFF0000),
                                  qkvi_float_of_bits(bits << 16) };
        const float *const each = row->form == QKVI_PARAM_HALF ? halves : &values[i];
        for (int v = 0; v <= (row->form == QKVI_PARAM_HALF); v++) {
            found->n_nan += isnan(each[v]) != 0;
            found->n_inf += isinf(each[v]) != 0;
        }
    }
}

int64_t qkv_model_check_finite(const qkv_model *model,
                               void (*visit)(void *user, const qkv_not_finite *found), void *user) {
    int64_t n_found = 0;
    for (int64_t r = 0; r < model->params.n_rows; r++) {
        const qkvi_param *const row = &model->params.rows[r];
        qkv_not_finite found = { .tensor = qkvi_param_stored_name(row) };
        count_odd(row, model->arena + row->offset, &found);
        if (found.n_nan + found.n_inf == 0) continue;
        n_found++;
        visit(user, &found);
    }
    return n_found;
}
