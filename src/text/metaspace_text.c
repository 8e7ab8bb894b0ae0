/* Spaces as U+2581: see metaspace.h. */
#include "text/metaspace.h"

#include "files/utf8.h"
#include "text/byte_level.h"

int qkvi_begins_meta(const char *text, size_t n) {
    return n >= QKVI_META_BYTES && memcmp(text, QKVI_META, QKVI_META_BYTES) == 0;
}

int qkvi_metaspace_prepends(const qkvi_metaspace *rules, const char *text, size_t n,
                            uint32_t place) {
    if (n == 0 || text[0] == ' ' || qkvi_begins_meta(text, n)) return 0;
    return rules->prepend == QKVI_PREPEND_ALWAYS ||
           (rules->prepend == QKVI_PREPEND_FIRST && place == 0);
}

uint32_t qkvi_metaspace_word_end(const char *text, uint32_t begin, uint32_t end) {
    uint32_t at = begin + 1;
    while (at < end && !qkvi_begins_meta(text + at, end - at)) at++;
    return at;
}

/* ---- Tokens as text -------------------------------------------------------------------------- */

int qkvi_metaspace_byte(const char *token, size_t n) {
    static const char digits[] = "0123456789abcdef";
    int byte = 0;
    if (n != QKVI_BYTE_TOKEN || memcmp(token, "<0x", 3) != 0 || token[5] != '>') return -1;
    for (int i = 3; i < 5; i++) {
        const char c = token[i] >= 'A' && token[i] <= 'F' ? (char)(token[i] + 32) : token[i];
        const char *const digit = c ? strchr(digits, c) : NULL;
        if (digit == NULL) return -1;
        byte = byte * 16 + (int)(digit - digits);
    }
    return byte;
}

/* A token with spaces for U+2581, or without them. */
static qkv_status put_spaced(const char *token, size_t n, int drops, qkvi_growing *text) {
    for (size_t at = 0; at < n;) {
        const int is_meta = qkvi_begins_meta(token + at, n - at);
        if (!is_meta)
            QKV_TRY(qkvi_growing_put(text, token + at, 1));
        else if (!drops)
            QKV_TRY(qkvi_growing_put(text, " ", 1));
        at += is_meta ? QKVI_META_BYTES : 1;
    }
    return QKV_OK;
}

/* A run of bytes: themselves if they are UTF-8, else U+FFFD for each of them. */
static qkv_status put_run(qkvi_growing *run, qkvi_growing *text) {
    const int is_valid = qkvi_utf8_valid(run->bytes, run->n) == run->n;
    const size_t n = run->n;
    run->n = 0;
    if (is_valid) return qkvi_growing_put(text, run->bytes, n);
    for (size_t i = 0; i < n; i++) QKV_TRY(qkvi_growing_put(text, "\xEF\xBF\xBD", 3));
    return QKV_OK;
}

static qkv_status decode_all(const qkv_tokenizer *tokenizer, const qkvi_metaspace *rules,
                             const int32_t *ids, size_t n, int drops_first, qkvi_growing *run,
                             qkvi_growing *text) {
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes = 0;
        const char *const token = qkvi_tokenizer_decoded(tokenizer, ids[i], &n_bytes);
        const int byte = rules->joins_bytes ? qkvi_metaspace_byte(token, n_bytes) : -1;
        const char bytes[1] = { (char)byte };
        if (byte >= 0) {
            QKV_TRY(qkvi_growing_put(run, bytes, 1));
            continue;
        }
        if (run->n > 0) QKV_TRY(put_run(run, text));
        QKV_TRY(put_spaced(token, n_bytes, i == 0 && drops_first, text));
    }
    return run->n > 0 ? put_run(run, text) : QKV_OK;
}

static qkv_status decode_from(const qkv_tokenizer *tokenizer, const qkvi_metaspace *rules,
                              const int32_t *ids, size_t n, int drops_first, qkvi_growing *text) {
    qkvi_growing run = { 0 };
    const qkv_status status = decode_all(tokenizer, rules, ids, n, drops_first, &run, text);
    free(run.bytes);
    return status;
}

qkv_status qkvi_metaspace_decode(const qkv_tokenizer *tokenizer, const qkvi_metaspace *rules,
                                 const int32_t *ids, size_t n, int goes_on, qkvi_growing *text) {
    const size_t strips = goes_on ? 0 : (size_t)rules->strips;
    size_t spaces = 0;
    QKV_TRY(decode_from(tokenizer, rules, ids, n, !goes_on && rules->drops_first, text));
    while (spaces < strips && spaces < text->n && text->bytes[spaces] == ' ') spaces++;
    if (spaces > 0) memmove(text->bytes, text->bytes + spaces, text->n - spaces);
    text->n -= spaces;
    return QKV_OK;
}

int qkvi_metaspace_piece(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes) {
    const char *token = qkv_tokenizer_token(tokenizer, id, n_bytes);
    const int byte = qkvi_metaspace_byte(token, *n_bytes),
              begins = qkvi_begins_meta(token, *n_bytes);
    if (byte >= 0) {
        *text = (char)byte;
        *n_bytes = 1;
        return 1;
    }
    if (begins) *n_bytes -= QKVI_META_BYTES;
    memcpy(text, begins ? token + QKVI_META_BYTES : token, *n_bytes);
    return !begins;
}

qkv_status qkvi_metaspace_show(const qkv_tokenizer *tokenizer, int32_t id, qkvi_growing *text) {
    size_t n = 0;
    const char *const token = qkv_tokenizer_token(tokenizer, id, &n);
    const int byte = qkvi_metaspace_byte(token, n);
    const char bytes[1] = { (char)byte };
    qkvi_growing spaced = { 0 };
    if (byte >= 0) return qkvi_show(bytes, 1, text);
    qkv_status status = put_spaced(token, n, 0, &spaced);
    if (status == QKV_OK) status = qkvi_show(spaced.bytes, spaced.n, text);
    free(spaced.bytes);
    return status;
}

void qkvi_metaspace_find_bytes(const qkv_tokenizer *tokenizer, int32_t ids[256]) {
    for (int byte = 0; byte < 256; byte++) {
        char token[QKVI_BYTE_TOKEN + 1];
        snprintf(token, sizeof token, "<0x%02X>", (unsigned)byte);
        ids[byte] = qkvi_pieces_find(&tokenizer->pieces, token, QKVI_BYTE_TOKEN);
    }
}
