/*
 * What is odd about a model that opens: found once when it is opened (warnings), or when a caller
 * asks (values that are no numbers).
 */
#include <math.h>

#include "core/half.h"
#include "model/model_impl.h"
#include "text/tokenizer.h"

static qkv_status add(qkv_model *model, const char *text, qkv_error *error) {
    char *const copy = strdup(text);
    if (!copy) return qkvi_no_memory(error, "a warning");
    model->warnings[model->n_warnings++] = copy;
    return QKV_OK;
}

static qkv_status warn_of_hidden(qkv_model *model, qkv_error *error) {
    const qkvi_pieces *const pieces = &model->tokenizer->pieces;
    char text[400];
    if (pieces->n_hidden == 0) return QKV_OK;
    const struct qkvi_text_piece first = pieces->tokens[pieces->first_hidden];
    const char *const bytes = pieces->bytes + first.offset;
    snprintf(
        text, sizeof text,
        "%d of %d tokens are in the vocabulary again with a later id, which is used; the first "
        "is '%s', ids %d and %d",
        (int)pieces->n_hidden, (int)pieces->n_ids,
        QKVI_PRINTABLE_BYTES(128, bytes, (size_t)first.length), (int)pieces->first_hidden,
        (int)qkvi_pieces_find(pieces, bytes, (size_t)first.length));
    return add(model, text, error);
}

/*
 * SmolLM2's folder, for one: transformers 5 lets the class count, which its authors' releases did
 * not.
 */
static qkv_status warn_of_words(qkv_model *model, qkv_error *error) {
    if (!model->tokenizer->other_words) return QKV_OK;
    return add(
        model,
        "tokenizer.json cuts texts by more rules than the class that goes with it: the class "
        "counts, as in transformers 5. All rules of the file count with the class "
        "PreTrainedTokenizerFast",
        error);
}

/* transformers counts the tokens of a vocabulary with holes, and gives an id again. */
static qkv_status warn_of_shared(qkv_model *model, qkv_error *error) {
    const qkv_tokenizer *const tokenizer = model->tokenizer;
    char text[400];
    for (int32_t id = 0; id < tokenizer->added.n_ids; id++) {
        size_t n = 0, n_word = 0;
        const char *const added = qkvi_added_token(&tokenizer->added, id, &n);
        const char *const word = qkvi_pieces_token(&tokenizer->pieces, id, &n_word);
        if (!added || !word || (n == n_word && memcmp(added, word, n) == 0)) continue;
        snprintf(text, sizeof text, "added token '%s' has the id of '%s', %d, as in transformers",
                 QKVI_PRINTABLE_BYTES(128, added, n), QKVI_PRINTABLE_BYTES(128, word, n_word), id);
        return add(model, text, error);
    }
    return QKV_OK;
}

/* Switches that transformers 5 does not heed: a user who set them expects the token. */
static qkv_status warn_of_around(qkv_model *model, qkv_error *error) {
    const struct {
        int lacks;
        const char *field, *what;
    } ends[] = { { model->tokenizer->lacks_bos, "add_bos_token", "bos_token before" },
                 { model->tokenizer->lacks_eos, "add_eos_token", "eos_token behind" } };
    for (int e = 0; e < 2; e++) {
        char text[200];
        if (!ends[e].lacks) continue;
        snprintf(text, sizeof text,
                 "tokenizer_config.json says %s: true, but there is no %s a text, as in "
                 "transformers 5",
                 ends[e].field, ends[e].what);
        QKV_TRY(add(model, text, error));
    }
    return QKV_OK;
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

/* Tokens that the model has no row for: a text without them is like any other. */
static qkv_status warn_of_rows(qkv_model *model, const qkv_tokenizer *tokenizer, const char *field,
                               int64_t rows, qkv_error *error) {
    const int64_t tokens = tokenizer ? qkv_tokenizer_size(tokenizer) : 0;
    char text[200];
    if (tokens <= rows) return QKV_OK;
    snprintf(
        text, sizeof text,
        "the tokenizer has %lld tokens, config.json says %s = %lld: no text may use those from "
        "%lld on",
        (long long)tokens, field, (long long)rows, (long long)rows);
    return add(model, text, error);
}

/* Both tokenizers may have the same fault, which is told once. */
static qkv_status warn_of_missing_rows(qkv_model *model, qkv_error *error) {
    const qkv_model_info *const info = &model->info;
    const int n = model->n_warnings;
    QKV_TRY(warn_of_rows(model, model->tokenizer, "vocab_size", info->vocab_size, error));
    if (model->n_warnings > n && !info->separate_words) return QKV_OK;
    return warn_of_rows(model, model->target_tokenizer,
                        info->separate_words ? "decoder_vocab_size" : "vocab_size",
                        info->target_vocab_size, error);
}

static qkv_status warn_of_positions(qkv_model *model, qkv_error *error) {
    enum { ROUNDED = 1 << 20 }; /* sines of another library */
    char text[200];
    if (!(model->positions_off * ROUNDED > 1)) return QKV_OK;
    snprintf(
        text, sizeof text,
        "positions are stored and differ from sinusoids by up to %.3g: the stored ones are used",
        (double)model->positions_off);
    return add(model, text, error);
}

static qkv_status warn_of_generation(qkv_model *model, qkv_error *error) {
    char text[sizeof model->generation_problem.message + 80];
    if (model->generation_problem.status == QKV_OK) return QKV_OK;
    snprintf(text, sizeof text, "%s: nothing can be generated by this file",
             model->generation_problem.message);
    return add(model, text, error);
}

/* transformers trains with the one and generates with the other. */
static qkv_status warn_of_start(qkv_model *model, qkv_error *error) {
    char text[200];
    if (model->info.kind != QKV_MODEL_PAIR || model->info.start_id == model->config_start)
        return QKV_OK;
    snprintf(text, sizeof text,
             "decoder_start_token_id is %lld in config.json and %lld in generation_config.json, "
             "which is used; transformers trains with the former",
             (long long)model->config_start, (long long)model->info.start_id);
    return add(model, text, error);
}

/* Where its library is installed, transformers adds it to the model. */
static qkv_status warn_of_adapter(qkv_model *model, qkv_error *error) {
    if (!model->has_adapter) return QKV_OK;
    return add(model, "the adapter of adapter_config.json is not added to the model", error);
}

/* What is left of another way to save it may be another model. */
static qkv_status warn_of_index(qkv_model *model, qkv_error *error) {
    if (!model->has_index) return QKV_OK;
    return add(model,
               "model.safetensors is read, as in transformers, and not the files of "
               "model.safetensors.index.json beside it; name either file to choose",
               error);
}

static qkv_status warn_of_tokens(qkv_model *model, qkv_error *error) {
    QKV_TRY(warn_of_hidden(model, error));
    QKV_TRY(warn_of_shared(model, error));
    QKV_TRY(warn_of_words(model, error));
    QKV_TRY(warn_of_around(model, error));
    QKV_TRY(warn_of_padding(model, error));
    return warn_of_missing_rows(model, error);
}

qkv_status qkvi_model_warn(qkv_model *model, qkv_error *error) {
    if (model->tokenizer) QKV_TRY(warn_of_tokens(model, error));
    QKV_TRY(warn_of_positions(model, error));
    QKV_TRY(warn_of_generation(model, error));
    QKV_TRY(warn_of_start(model, error));
    QKV_TRY(warn_of_adapter(model, error));
    QKV_TRY(warn_of_index(model, error));
    return model->no_head ? add(model, model->no_head, error) : QKV_OK;
}

qkv_status qkvi_model_check_head(const qkv_model *model, int has_head, const char *name,
                                 qkv_error *error) {
    if (has_head) return QKV_OK;
    if (model->no_head)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: %s", model->source, model->no_head);
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: no %s head", model->source, name);
}

const char *qkv_model_warning(const qkv_model *model, int64_t index) {
    return model && index >= 0 && index < model->n_warnings ? model->warnings[index] : NULL;
}

static void count_blocks(const qkvi_param *row, const uint8_t *blocks, qkv_not_finite *found) {
    const qkvi_block_format *const f = &row->format;
    float values[256];
    for (size_t b = 0; b < row->n_elems / (size_t)f->n_elems; b++) {
        f->to_f32(blocks + b * (size_t)f->n_bytes, values);
        for (int v = 0; v < f->n_elems; v++) {
            found->n_nan += isnan(values[v]) != 0;
            found->n_inf += isinf(values[v]) != 0;
        }
    }
}

/* Counts what is no number in a row, in the form that it is kept in; padding is zeros. */
static void count_odd(const qkvi_param *row, const float *values, qkv_not_finite *found) {
    if (row->form == QKVI_PARAM_BLOCKS) {
        count_blocks(row, (const uint8_t *)values, found);
        return;
    }
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

static int64_t check_values(const char *name, const float *values, int64_t n,
                            void (*visit)(void *user, const qkv_not_finite *found), void *user) {
    qkv_not_finite found = { .tensor = name };
    for (int64_t i = 0; values && i < n; i++) {
        found.n_nan += isnan(values[i]) != 0;
        found.n_inf += isinf(values[i]) != 0;
    }
    if (found.n_nan + found.n_inf == 0) return 0;
    visit(user, &found);
    return 1;
}

/* Modules of vectors of sentences: "2_Dense/linear.weight". */
static int64_t check_step(const qkvi_step *step,
                          void (*visit)(void *user, const qkv_not_finite *found), void *user) {
    const int is_norm = step->kind == QKVI_STEP_LAYER_NORM;
    const int64_t n = is_norm ? step->n_in : step->n_in * step->n_out;
    const struct {
        const char *name;
        const float *values;
        int64_t n;
    } tensors[] = { { is_norm ? "norm.weight" : "linear.weight", step->weight, n },
                    { is_norm ? "norm.bias" : "linear.bias", step->bias, step->n_out },
                    { "residual.weight", step->residual, n } };
    int64_t n_found = 0;
    for (int i = 0; i < 3; i++) {
        char name[200];
        snprintf(name, sizeof name, "%s/%s", QKVI_PRINTABLE(160, step->name), tensors[i].name);
        n_found += check_values(name, tensors[i].values, tensors[i].n, visit, user);
    }
    return n_found;
}

int64_t qkv_model_check_finite(const qkv_model *model,
                               void (*visit)(void *user, const qkv_not_finite *found), void *user) {
    int64_t n_found = 0;
    if (!model) return 0;
    for (int64_t r = 0; r < model->params.n_rows; r++) {
        const qkvi_param *const row = &model->params.rows[r];
        qkv_not_finite found = { .tensor = qkvi_param_stored_name(row) };
        count_odd(row, model->arena + row->offset, &found);
        if (found.n_nan + found.n_inf == 0) continue;
        n_found++;
        if (visit) visit(user, &found);
    }
    for (int i = 0; i < model->recipe.n_steps; i++)
        n_found += check_step(&model->recipe.steps[i], visit, user);
    return n_found + qkv_model_check_finite(model->tower, visit, user);
}
