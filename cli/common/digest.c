/*
 * A hash that is the same for two opened models if a command would give the same answers: of the
 * vocabulary, the encoding of a text, the hidden states and predictions of the model on that text,
 * and embeddings from all over the vocabulary. It hashes what the weights compute, not their bytes,
 * which differ between formats and would all have to be read.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/session.h"

static uint64_t add_tokenizer(uint64_t hash, const qkv_tokenizer *tokenizer) {
    const int32_t n = tokenizer ? qkv_tokenizer_size(tokenizer) : 0;
    for (int32_t id = 0; id < n; id++) {
        size_t n_bytes = 0;
        const char *const token = qkv_tokenizer_token(tokenizer, id, &n_bytes);
        hash = hash_add(hash, &n_bytes, sizeof n_bytes);
        if (token) hash = hash_add(hash, token, n_bytes);
    }
    return hash;
}

enum { MOST_WORDS = 256 };

static uint64_t add_words(uint64_t hash, const struct session *session) {
    const qkv_model_info *const info = session->info;
    const int64_t n = info->vocab_size < MOST_WORDS ? info->vocab_size : MOST_WORDS;
    float *const vector = calloc((size_t)info->embedding_size + 1, sizeof *vector);
    qkv_error error;
    for (int64_t i = 0; vector && i < n; i++) {
        const int32_t id = (int32_t)((info->vocab_size - 1) * i / (n > 1 ? n - 1 : 1));
        if (qkv_model_word_vector(session->model, id, vector, &error) == QKV_OK)
            hash = hash_add(hash, vector, (size_t)info->embedding_size * sizeof *vector);
    }
    free(vector);
    return hash;
}

/* Of the head for words, if there is one, which has a row for each. */
static uint64_t add_logits(uint64_t hash, const struct session *session, const qkv_run *run) {
    const qkv_model_info *const info = session->info;
    const int64_t n = info->has_lm ? info->target_vocab_size : info->vocab_size;
    float *const logits = calloc((size_t)n + 1, sizeof *logits);
    qkv_error error;
    if (logits && (info->has_lm || info->has_mlm) &&
        qkv_model_logits(session->ctx, session->model, run,
                         info->has_lm ? QKV_HEAD_NEXT : QKV_HEAD_MASKED, 0, 0, logits,
                         &error) == QKV_OK)
        hash = hash_add(hash, logits, (size_t)n * sizeof *logits);
    free(logits);
    return hash;
}

/* The last states of the stack that words are read from. */
static uint64_t add_states(uint64_t hash, const struct session *session, const qkv_encoding *text) {
    const qkv_model_info *const info = session->info;
    const bool pair = info->kind == QKV_MODEL_PAIR;
    int32_t start = (int32_t)(info->start_id < 0 ? 0 : info->start_id);
    const qkv_encoding begun = { .n = 1, .ids = &start }, *const target = &begun;
    qkv_run_options options = qkv_run_options_init();
    qkv_run *run = NULL;
    qkv_error error;
    if (pair) options.targets = &target;
    const qkv_status status =
        qkv_model_run(session->ctx, session->model, 1, &text, 0, &options, &run, &error);
    hash = hash_add(hash, &status, sizeof status);
    if (status != QKV_OK) return hash; /* which the command will say */
    const int64_t n = (pair ? 1 : text->n) * info->hidden;
    const float *const states = qkv_run_hidden(run, pair ? QKV_DECODER : QKV_SELF, 0,
                                               pair ? info->n_decoder_layers : info->n_layers);
    if (states) hash = hash_add(hash, states, (size_t)n * sizeof *states);
    hash = add_logits(hash, session, run);
    qkv_run_free(run);
    return hash;
}

uint64_t session_digest(const struct session *session) {
    static const char text[] = "The man in 1984 didn't see\nher old dog, a caf\u00e9 \u2026";
    uint64_t hash = add_tokenizer(add_tokenizer(HASH_START, session->tokenizer), session->target);
    qkv_encoding *encoding = NULL;
    qkv_error error;
    if (!session->info || !session->ctx ||
        qkv_tokenizer_encode(session->tokenizer, text, strlen(text), NULL, 0, &encoding, &error) !=
            QKV_OK)
        return hash;
    qkv_tokenizer_cut(session->tokenizer, encoding, session->info->max_len);
    hash = hash_add(hash, encoding->ids, (size_t)encoding->n * sizeof *encoding->ids);
    hash = add_words(hash, session);
    if (encoding->n > 0) hash = add_states(hash, session, encoding);
    qkv_encoding_free(encoding);
    return hash;
}
