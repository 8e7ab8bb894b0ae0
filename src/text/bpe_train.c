/** See bpe_train.h. The reference is trainer.rs of PyPI tokenizers, in models/bpe. */
#include "text/bpe_train.h"

#include "files/utf8.h"
#include "text/byte_level.h"
#include "text/merges.h"
#include "text/pieces.h"
#include "text/unicode.h"
#include "text/words.h"

enum { LEAST_COUNT = 2, N_BYTES = 256 };

qkv_status qkvi_bpe_count(qkvi_counter *words, const char *text, size_t text_bytes, int64_t count,
                          qkv_error *error) {
    const size_t valid = qkvi_utf8_valid(text, text_bytes);
    if (valid < text_bytes)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "text is not valid UTF-8 at byte %zu", valid);
    if (text_bytes > UINT32_MAX)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "text has %zu bytes, the limit is %u",
                              text_bytes, UINT32_MAX);
    for (size_t at = 0; at < text_bytes;) {
        const size_t n = qkvi_gpt2_word(text + at, text_bytes - at);
        const qkv_status status = qkvi_counter_add(words, text + at, n, count, NULL);
        if (status != QKV_OK)
            return qkvi_error_set(error, status, "no memory to count %zu different words",
                                  words->n);
        at += n;
    }
    return QKV_OK;
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* The bytes' symbols come first, in the order of their characters, which decides between equal
 * pairs. */
static qkv_status add_bytes(qkvi_merges *merges) {
    for (int32_t code = 0, n = 0; n < N_BYTES; code++) {
        char character[4];
        if (qkvi_char_byte(code) < 0) continue;
        QKV_TRY(
            qkvi_counter_add(&merges->symbols, character, qkvi_utf8_put(code, character), 0, NULL));
        n++;
    }
    return QKV_OK;
}

static qkv_status add_word(qkvi_merges *merges, const char *bytes, size_t n, int64_t count,
                           qkvi_growing *characters) {
    characters->n = 0;
    for (size_t i = 0; i < n; i++) {
        char character[4];
        const int32_t code = qkvi_byte_char((unsigned char)bytes[i]);
        QKV_TRY(qkvi_growing_put(characters, character, qkvi_utf8_put(code, character)));
    }
    return qkvi_merges_add(merges, characters->bytes, characters->n, count);
}

static qkv_status fill(const qkvi_counter *words, qkvi_merges *merges) {
    qkvi_growing characters = { 0 };
    qkv_status status = add_bytes(merges);
    for (size_t w = 0; w < words->n && status == QKV_OK; w++) {
        const qkvi_count *const word = &words->entries[w];
        status =
            add_word(merges, words->keys + word->offset, word->n_bytes, word->count, &characters);
    }
    free(characters.bytes);
    return status;
}

/* ---- The two files --------------------------------------------------------------------------- */

static qkv_status put_text(qkvi_growing *file, const char *text) {
    return qkvi_growing_put(file, text, strlen(text));
}

/* "token":id of vocab.json. */
static qkv_status put_token(qkvi_growing *vocab, const char *token, size_t n, int32_t id) {
    char number[24];
    QKV_TRY(put_text(vocab, id == 0 ? "{\"" : ",\""));
    for (size_t i = 0; i < n; i++) {
        if (token[i] == '"' || token[i] == '\\') QKV_TRY(put_text(vocab, "\\"));
        QKV_TRY(qkvi_growing_put(vocab, token + i, 1));
    }
    snprintf(number, sizeof number, "\":%d", id);
    return put_text(vocab, number);
}

static qkv_status put_merge(qkvi_growing *merges, const qkvi_merge *merge) {
    QKV_TRY(qkvi_growing_put(merges, merge->text, merge->n_left));
    QKV_TRY(put_text(merges, " "));
    QKV_TRY(qkvi_growing_put(merges, merge->text + merge->n_left, merge->n_bytes - merge->n_left));
    return put_text(merges, "\n");
}

static qkv_status write_files(qkvi_merges *merges, int32_t size, qkvi_bpe_vocab *made) {
    int32_t id = 0;
    QKV_TRY(put_text(&made->merges, "#version: 0.2\n"));
    for (const char *const *token = made->style->special; *token; token++, id++)
        QKV_TRY(put_token(&made->vocab, *token, strlen(*token), id));
    for (int i = 0; i < N_BYTES; i++, id++) {
        const qkvi_count *const symbol = &merges->symbols.entries[i];
        QKV_TRY(
            put_token(&made->vocab, merges->symbols.keys + symbol->offset, symbol->n_bytes, id));
    }
    for (; id < size; id++) {
        qkvi_merge merge;
        QKV_TRY(qkvi_merges_next(merges, LEAST_COUNT, QKVI_PIECE_MAX_BYTES, &merge));
        if (merge.text == NULL) break;
        QKV_TRY(put_token(&made->vocab, merge.text, merge.n_bytes, id));
        QKV_TRY(put_merge(&made->merges, &merge));
    }
    return put_text(&made->vocab, "}\n");
}

static int32_t least_size(const qkvi_bpe_style *style) {
    int32_t n = N_BYTES;
    for (const char *const *token = style->special; *token; token++) n++;
    return n;
}

qkv_status qkvi_bpe_train(const qkvi_counter *words, const qkvi_bpe_style *style, int32_t size,
                          qkvi_bpe_vocab *made, qkv_error *error) {
    const int32_t least = least_size(style);
    *made = (qkvi_bpe_vocab){ .style = style };
    if (size < least)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "vocab_size = %d is less than the %d bytes and special tokens", size,
                              least);
    qkvi_merges merges = { .mark = "" };
    qkv_status status = fill(words, &merges);
    if (status == QKV_OK) status = write_files(&merges, size, made);
    qkvi_merges_free(&merges);
    if (status == QKV_OK) return QKV_OK;
    qkvi_bpe_vocab_free(made);
    return qkvi_error_set(error, status, "no memory for a vocabulary of %d tokens", size);
}

void qkvi_bpe_vocab_free(qkvi_bpe_vocab *made) {
    free(made->vocab.bytes);
    free(made->merges.bytes);
    *made = (qkvi_bpe_vocab){ 0 };
}
