/*
 * `qkv look SOURCE --cross [--target TEXT]`: what a decoder over an encoder was given, or has written itself. Row i of its attention is the token
 * that it read, and predicts the next one, so a row has both names:
 *
 *     next     t_1  t_2  ...  t_n        tokens of the target, with what its tokenizer puts around them
 *     inputs   start  t_1  ...  t_n-1    the token that the model starts from, and next, one place later
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look.h"

qkv_attention_of look_which(const struct look_options *options) {
    return options->decoder ? QKV_DECODER : options->cross || options->align ? QKV_CROSS : QKV_SELF;
}

static qkv_status no_memory(qkv_error *error) {
    return text_error(error, QKV_ERR_MEMORY, "out of memory");
}

/* Without --target, the model's own: by the search that its generation_config.json asks for. */
static qkv_status find_target(struct look *look, qkv_error *error) {
    const struct session *session = look->session;
    qkv_generate_options options = QKV_GENERATE_OPTIONS_INIT;
    look->pair.target = look->options->target;
    if (look->pair.target) return QKV_OK;
    qkv_status status = qkv_generate_options_of(session->model, &options, error);
    if (status == QKV_OK)
        status = qkv_generate(session->ctx, session->model, look->input, &options,
                              &look->pair.written, error);
    if (status == QKV_OK) look->pair.target = look->pair.written->sequences[0].text;
    return status;
}

static qkv_status encode(const struct look *look, qkv_encoding **target, qkv_error *error) {
    const struct session *session = look->session;
    const char *text = look->pair.target;
    qkv_status status =
        qkv_tokenizer_encode(session->target, text, strlen(text), NULL, 0, target, error);
    if (status != QKV_OK) return status;
    if ((*target)->n > session->info->max_len && look->options->common.truncate)
        qkv_encoding_cut(*target, session->info->max_len);
    if ((*target)->n == 0) return text_error(error, QKV_ERR_SHAPE, "--target has no tokens");
    if ((*target)->n <= session->info->max_len) return QKV_OK;
    return text_error(error, QKV_ERR_SHAPE,
                      "--target has %" PRId64 " tokens, the model takes %" PRId64
                      ": --truncate cuts it",
                      (*target)->n, session->info->max_len);
}

/* In one block: places in the text are those of the token that was read. */
static qkv_status shift(const qkv_encoding *next, int32_t start, qkv_encoding *inputs,
                        qkv_error *error) {
    const size_t n = (size_t)next->n;
    char *block = calloc(n, 2 * sizeof(int64_t) + sizeof(int32_t) + 2);
    if (!block) return no_memory(error);
    inputs->n = next->n;
    inputs->begin = (int64_t *)(void *)block;
    inputs->end = inputs->begin + n;
    inputs->ids = (int32_t *)(void *)(inputs->end + n);
    inputs->types = (uint8_t *)(inputs->ids + n);
    inputs->special = inputs->types + n;
    inputs->ids[0] = start;
    inputs->special[0] = 1;
    for (size_t i = 1; i < n; i++) {
        inputs->ids[i] = next->ids[i - 1];
        inputs->special[i] = next->special[i - 1];
        inputs->begin[i] = next->begin[i - 1];
        inputs->end[i] = next->end[i - 1];
    }
    return QKV_OK;
}

static qkv_status name_rows(struct look *look, qkv_error *error) {
    struct look_pair *pair = &look->pair;
    const qkv_tokenizer *tokenizer = look->session->target;
    const char *arrow = look->options->common.ascii ? "->" : "\u2192";
    pair->names = calloc((size_t)pair->inputs.n + 1, sizeof(char *));
    pair->input_names = calloc((size_t)pair->inputs.n + 1, sizeof(char *));
    bool made = pair->names && pair->input_names;
    for (int64_t i = 0; made && i < pair->inputs.n; i++) {
        char *from = token_label(tokenizer, pair->inputs.ids[i]),
             *to = token_label(tokenizer, pair->next->ids[i]);
        made = from && to && asprintf(&pair->names[i], "%s %s %s", from, arrow, to) >= 0;
        if (!made) pair->names[i] = NULL;
        pair->input_names[i] = from;
        free(to);
    }
    return made ? QKV_OK : no_memory(error);
}

static void take_view(struct look *look) {
    const qkv_token_list inputs = { look->session->target, &look->pair.inputs };
    struct attention_view *view = &look->view;
    view->which = look_which(look->options);
    session_sizes(look->session, view->which, &view->n_layers, &view->n_heads);
    if (view->which == QKV_SELF) return;
    view->causal = view->which == QKV_DECODER;
    view->queries = inputs;
    if (view->causal) view->keys = inputs;
    look->n_rows = look->pair.inputs.n;
    look->rows = look->pair.names;
    if (!view->causal) return;
    look->n_cols = look->n_rows;
    look->cols = look->pair.input_names;
}

qkv_status look_pair_make(struct look *look, qkv_error *error) {
    struct look_pair *pair = &look->pair;
    const int64_t start = look->session->info->start_id;
    qkv_status status = find_target(look, error);
    if (status == QKV_OK) status = encode(look, &pair->next, error);
    if (status == QKV_OK && start < 0)
        status = text_error(error, QKV_ERR_UNSUPPORTED,
                            "%s does not say which token its decoder starts from",
                            look->session->info->source);
    if (status == QKV_OK) status = shift(pair->next, (int32_t)start, &pair->inputs, error);
    if (status == QKV_OK) status = name_rows(look, error);
    if (status == QKV_OK) take_view(look);
    return status;
}

void look_pair_free(struct look_pair *pair) {
    look_align_free(pair->alignment);
    session_labels_free(pair->names, pair->inputs.n);
    session_labels_free(pair->input_names, pair->inputs.n);
    qkv_generation_free(pair->written);
    qkv_encoding_free(pair->next);
    free(pair->inputs.begin);
}
