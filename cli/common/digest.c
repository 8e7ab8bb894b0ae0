/*
 * A hash that is the same for two opened models if a command would give the same answers: of the
 * vocabulary, the encoding of a text and of a turn, the hidden states and predictions of the model
 * on that text, embeddings from all over the vocabulary, what vectors of texts are made by, and the
 * options of generation. It hashes what the weights compute, not their bytes, which differ between
 * formats and would all have to be read.
 */
#include <qkv/generate.h>
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

/* ---- What the other files of a model say ----------------------------------------------------- */

static uint64_t add_text(uint64_t hash, const char *text) {
    return text ? hash_add(hash, text, strlen(text) + 1) : hash_add(hash, "", 1);
}

static uint64_t add_ids(uint64_t hash, const int32_t *ids, int64_t n) {
    hash = hash_add(hash, &n, sizeof n);
    return n > 0 ? hash_add(hash, ids, (size_t)n * sizeof *ids) : hash;
}

/* The turn of a chat, and how tokens become a text again. */
static uint64_t add_turn(uint64_t hash, const qkv_tokenizer *tokenizer, const char *text) {
    qkv_encoding *turn = NULL;
    qkv_text *decoded = NULL;
    int32_t end = 0;
    qkv_error error;
    hash = add_text(hash, qkv_tokenizer_chat(tokenizer));
    if (qkv_tokenizer_encode_turn(tokenizer, NULL, text, strlen(text), &turn, &end, &error) ==
        QKV_OK) {
        hash = add_ids(add_ids(hash, &end, 1), turn->ids, turn->n);
        qkv_encoding_free(turn);
    }
    if (qkv_tokenizer_encode(tokenizer, text, strlen(text), NULL, 0, &turn, &error) != QKV_OK)
        return hash;
    if (qkv_tokenizer_decode(tokenizer, turn->ids, turn->n, 0, &decoded, &error) == QKV_OK)
        hash = add_text(hash, decoded->bytes);
    qkv_text_free(decoded);
    qkv_encoding_free(turn);
    return hash;
}

/* Prompts, pooling and the modules behind it. */
static uint64_t add_sentence(uint64_t hash, const struct session *session, const char *text) {
    const qkv_model_info *const info = session->info;
    const qkv_prompt *prompt;
    qkv_encoding *encoding = NULL;
    int64_t n_prompt = 0;
    qkv_error error;
    for (int64_t i = 0; (prompt = qkv_model_prompt(session->model, i)); i++) {
        hash = add_text(add_text(hash, prompt->name), prompt->text);
        hash = hash_add(hash, &prompt->is_default, sizeof prompt->is_default);
    }
    const int64_t sizes[] = { (int64_t)info->pooling, info->normalizes, info->sentence_len,
                              info->sentence_dim, info->sentence_layers };
    hash = hash_add(hash, sizes, sizeof sizes);
    if (qkv_model_encode_sentence(session->model, "a: ", text, strlen(text), &encoding, &n_prompt,
                                  &error) != QKV_OK)
        return hash;
    hash = hash_add(hash, &n_prompt, sizeof n_prompt);
    hash = add_ids(hash, encoding->ids, encoding->n);
    qkv_tokenizer_cut(session->tokenizer, encoding, info->sentence_len);
    const qkv_encoding *const input = encoding;
    float *const vector = calloc((size_t)info->sentence_dim + 1, sizeof *vector);
    if (vector && info->sentence_layers > 0 &&
        qkv_model_embed(session->ctx, session->model, 1, &input, NULL, vector, &error) == QKV_OK)
        hash = hash_add(hash, vector, (size_t)info->sentence_dim * sizeof *vector);
    free(vector);
    qkv_encoding_free(encoding);
    return hash;
}

/* generation_config.json, in short. */
static uint64_t add_generation(uint64_t hash, const struct session *session) {
    qkv_generate_options o = qkv_generate_options_init();
    qkv_error error;
    int64_t n_bad = 0;
    const qkv_status status = qkv_generate_options_read(session->model, &o, &error);
    const double numbers[] = {
        (double)status,
        (double)o.max_new,
        (double)o.max_length,
        (double)o.min_new,
        (double)o.min_length,
        (double)o.n_beams,
        (double)o.n_return,
        o.length_penalty,
        (double)o.early_stopping,
        (double)o.sample,
        o.temperature,
        (double)o.top_k,
        o.top_p,
        o.min_p,
        o.repetition_penalty,
        (double)o.no_repeat_ngram,
        (double)o.forced_bos,
        (double)o.forced_eos,
        (double)o.renormalize,
        (double)o.no_eos,
        (double)o.n_bad_words,
    };
    hash = hash_add(hash, numbers, sizeof numbers);
    for (int64_t i = 0; i < o.n_bad_words; i++) n_bad += o.bad_word_lengths[i];
    hash = add_ids(hash, o.bad_words, n_bad);
    hash = add_ids(hash, o.forced_ends, o.forced_ends ? o.n_forced_ends : 0);
    return add_ids(hash, o.eos, o.eos ? o.n_eos : 0);
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
    hash = add_turn(hash, session->tokenizer, text);
    if (session->target) hash = add_turn(hash, session->target, text);
    if (session->info->has_lm) hash = add_generation(hash, session);
    return add_sentence(hash, session, text);
}
