/*
 * The target of an encoder-decoder, as in `qkv look SOURCE --cross [--target TEXT]`: given, or
 * written by the model. Row i of the decoder's attention reads one token and predicts the next one:
 *
 *     next     t_1  t_2  ...  t_n        tokens of the target, as its tokenizer makes them
 *     inputs   start  t_1  ...  t_n-1    the token that the model starts from, then next
 */
#include "common/pair.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options --------------------------------------------------------------------------------- */

qkv_attention_kind pair_which(const struct pair_options *options) {
    return options->decoder ? QKV_DECODER : options->cross ? QKV_CROSS : QKV_SELF;
}

/* ---- The target ------------------------------------------------------------------------------ */

/* The model's own, by the search that its generation_config.json asks for. */
static qkv_status write_target(const struct session *session, const qkv_encoding *source,
                               char **target, qkv_error *error) {
    qkv_generate_options options = qkv_generate_options_init();
    qkv_generation *written = NULL;
    qkv_status status = qkv_generate_options_read(session->model, &options, error);
    if (status == QKV_OK)
        status = qkv_generate(session->ctx, session->model, source, &options, &written, error);
    if (status == QKV_OK && !(*target = strdup(written->sequences[0]->text)))
        status = text_no_memory(error);
    qkv_generation_free(written);
    return status;
}

static qkv_status find_target(const struct session *session, const qkv_encoding *source,
                              struct text given, char **target, qkv_error *error) {
    if (!given.bytes) return write_target(session, source, target, error);
    *target = strndup(given.bytes, given.n);
    return *target ? QKV_OK : text_no_memory(error);
}

static qkv_status encode(const struct session *session, struct text text, qkv_encoding **target,
                         qkv_error *error) {
    const qkv_status status =
        qkv_tokenizer_encode(session->target, text.bytes, text.n, NULL, 0, target, error);
    if (status != QKV_OK) return status;
    if ((*target)->n == 0) return text_error(error, QKV_ERR_SHAPE, "--target has no tokens");
    return text_shorten(session, session->target, session->info->max_len, "--target", "takes", NULL,
                        *target, error);
}

bool encoding_room(qkv_encoding *encoding, int64_t n) {
    char *block = calloc((size_t)n + 1, 2 * sizeof(int64_t) + sizeof(int32_t) + 2);
    if (!block) return false;
    encoding->n = n;
    encoding->begin = (int64_t *)(void *)block;
    encoding->end = encoding->begin + n;
    encoding->ids = (int32_t *)(void *)(encoding->end + n);
    encoding->types = (uint8_t *)(encoding->ids + n);
    encoding->special = encoding->types + n;
    return true;
}

void encoding_copy(qkv_encoding *to, int64_t i, const qkv_encoding *from, int64_t j) {
    to->ids[i] = from->ids[j];
    to->types[i] = from->types[j];
    to->special[i] = from->special[j];
    to->begin[i] = from->begin[j];
    to->end[i] = from->end[j];
}

/* Places in the text are those of the token that was read. */
static qkv_status shift(const qkv_encoding *next, int32_t start, qkv_encoding *inputs,
                        qkv_error *error) {
    if (!encoding_room(inputs, next->n)) return text_no_memory(error);
    inputs->ids[0] = start;
    inputs->special[0] = 1;
    for (int64_t i = 1; i < next->n; i++) encoding_copy(inputs, i, next, i - 1);
    return QKV_OK;
}

static qkv_status name_rows(const struct session *session, struct pair *pair, qkv_error *error) {
    const qkv_tokenizer *tokenizer = session->target;
    const char *arrow = session->common->ascii ? "->" : "\u2192";
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
    return made ? QKV_OK : text_no_memory(error);
}

qkv_status pair_make(const struct session *session, const qkv_encoding *source, struct text target,
                     struct pair *pair, qkv_error *error) {
    const int64_t start = session->info->start_id;
    qkv_status status = find_target(session, source, target, &pair->target, error);
    if (status == QKV_OK && !target.bytes)
        target = (struct text){ pair->target, strlen(pair->target) };
    if (status == QKV_OK) status = encode(session, target, &pair->next, error);
    if (status == QKV_OK && start < 0)
        status = text_error(error, QKV_ERR_UNSUPPORTED,
                            "%s does not say which token its decoder starts from",
                            session->info->source);
    if (status == QKV_OK) status = shift(pair->next, (int32_t)start, &pair->inputs, error);
    return status == QKV_OK ? name_rows(session, pair, error) : status;
}

void pair_free(struct pair *pair) {
    session_labels_free(pair->names, pair->inputs.n);
    session_labels_free(pair->input_names, pair->inputs.n);
    qkv_encoding_free(pair->next);
    free(pair->inputs.begin);
    free(pair->target);
}

/* ---- Running --------------------------------------------------------------------------------- */

struct attention_view pair_view(const struct session *session, const qkv_encoding *source,
                                const struct pair *pair, qkv_attention_kind which) {
    const qkv_token_list inputs = { session->target, pair ? &pair->inputs : NULL },
                         list = { session->tokenizer, source };
    struct attention_view view = { .which = which,
                                   .queries = list,
                                   .keys = list,
                                   .causal = session->info->kind == QKV_MODEL_DECODER };
    session_sizes(session, which, &view.n_layers, &view.n_heads);
    if (which == QKV_SELF) return view;
    view.causal = which == QKV_DECODER;
    view.queries = inputs;
    if (view.causal) view.keys = inputs;
    return view;
}

qkv_status pair_heads(const struct session *session, const struct attention_view *view,
                      const qkv_run *run, int64_t b, qkv_heads **heads, qkv_error *error) {
    const qkv_status status = qkv_heads_open_run(session->ctx, run, view->which, b, &view->queries,
                                                 &view->keys, heads, error);
    if (status != QKV_OK) return status;
    return qkv_heads_measure(*heads, QKV_HEADS_RECEIVED, NULL, error);
}

qkv_status pair_model_run(const struct session *session, int64_t n,
                          const qkv_encoding *const *sources, const struct pair *pairs,
                          uint32_t flags, const qkv_run_options *what_if, qkv_run **run,
                          qkv_error *error) {
    if (!pairs || !pairs[0].next)
        return qkv_model_run(session->ctx, session->model, n, sources, flags, what_if, run, error);
    const qkv_encoding **targets = malloc((size_t)n * sizeof *targets);
    if (!targets) return text_no_memory(error);
    for (int64_t b = 0; b < n; b++) targets[b] = &pairs[b].inputs;
    qkv_run_options options = what_if ? *what_if : qkv_run_options_init();
    options.targets = targets;
    const qkv_status status =
        qkv_model_run(session->ctx, session->model, n, sources, flags, &options, run, error);
    free(targets);
    return status;
}

qkv_status pair_check_causal(const struct what_if *what_if, const struct attention_view *view,
                             qkv_error *error) {
    if (!what_if->run_options.causal || view->which == QKV_CROSS || !view->causal) return QKV_OK;
    return text_error(error, QKV_ERR_ARGUMENT,
                      "--what-if causal: every token of a decoder sees itself and those before it "
                      "only, as it is");
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* What an attention is called: in JSON, in captions, in headings, in titles. */
static const struct attention_name {
    const char *key, *words, *heads, *title;
} names[] = {
    [QKV_SELF] = { "encoder", "the encoder, ", " of the encoder", "Encoder, l" },
    [QKV_DECODER] = { "decoder", "the decoder's attention to itself, ", " of the decoder",
                      "Decoder, l" },
    [QKV_CROSS] = { "cross", "the decoder's attention to the source, ", " of cross-attention",
                    "Cross-attention, l" },
};
static const struct attention_name the_only = { NULL, "", "", "L" };

static const struct attention_name *name_of(const struct session *session,
                                            qkv_attention_kind which) {
    return session->info->kind == QKV_MODEL_PAIR ? &names[which] : &the_only;
}

const char *attention_key(const struct session *session, qkv_attention_kind which) {
    return name_of(session, which)->key;
}

const char *attention_words(const struct session *session, qkv_attention_kind which) {
    return name_of(session, which)->words;
}

const char *attention_heads(const struct session *session, qkv_attention_kind which) {
    return name_of(session, which)->heads;
}

void attention_head(const struct session *session, qkv_attention_kind which, int64_t layer,
                    int64_t head, char name[HEAD_NAME]) {
    snprintf(name, HEAD_NAME, "%sayer %" PRId64 ", head %" PRId64, name_of(session, which)->title,
             layer, head);
}

void pair_json(const struct session *session, const struct pair *pair, json_t *object) {
    json_object_set_new(object, "decoder_inputs", tokens_json(session->target, &pair->inputs));
    json_object_set_new(object, "decoder_predicts", tokens_json(session->target, pair->next));
}
