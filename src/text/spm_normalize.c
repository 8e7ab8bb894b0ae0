/**
 * SentencePiece's normalisation of a text before segmentation: sentencepiece src/normalizer.cc.
 *
 * At each place the longest user-defined symbol is kept; else the longest rule of the map is
 * applied; else a character is kept. By switches of the model, white space at both ends is removed,
 * runs of it become one space, a space is put before (or after) the text, and spaces are written as
 * U+2581. The origin of a byte is the offset in the raw text of the bytes that it comes from; a
 * last entry is where these end.
 */

#include "files/utf8.h"
#include "text/spm.h"

static const char space_sign[] = "\xE2\x96\x81";

/* The bytes at the front of a text: how many, and what they become. */
struct front {
    uint32_t consumed;
    const char *bytes;
    size_t n_bytes;
};

static struct front front_of(const qkvi_spm_rules *rules, const char *text, uint32_t n) {
    const uint32_t symbol = (uint32_t)qkvi_trie_longest(&rules->symbols, text, n);
    if (symbol > 0) return (struct front){ symbol, text, symbol };
    const qkvi_charsmap_match match = qkvi_charsmap_longest(&rules->map, text, n);
    if (match.length > 0)
        return (struct front){ (uint32_t)match.length, match.string, match.string_bytes };
    int32_t code;
    const uint32_t length = (uint32_t)qkvi_utf8_next(text, n, &code);
    if (length > 0) return (struct front){ length, text, length };
    return (struct front){ 1, "\xEF\xBF\xBD", 3 }; /* a rule ended inside a character */
}

/* Room for n more bytes and an origin behind them. */
static qkv_status reserve(qkvi_spm_text *text, size_t n) {
    const size_t needed = (size_t)text->n + n + 1;
    if (needed <= text->capacity) return QKV_OK;
    if (needed > UINT32_MAX / 2) return QKV_ERR_LIMIT;
    size_t capacity = text->capacity; /* of both: what grew alone grows again */
    QKV_TRY(qkvi_reserve(&text->bytes, &capacity, needed, 1));
    return qkvi_reserve(&text->origin, &text->capacity, needed, sizeof *text->origin);
}

static void append(qkvi_spm_text *text, const char *bytes, size_t n, uint32_t origin) {
    for (size_t i = 0; i < n; i++) {
        text->bytes[text->n] = bytes[i];
        text->origin[text->n++] = origin;
    }
}

static void append_space(const qkvi_spm_rules *rules, qkvi_spm_text *text, uint32_t origin) {
    if (rules->escape_whitespaces)
        append(text, space_sign, 3, origin);
    else
        append(text, " ", 1, origin);
}

static qkv_status append_front(const qkvi_spm_rules *rules, qkvi_spm_text *text, struct front front,
                               uint32_t origin) {
    QKV_TRY(reserve(text, 3 * front.n_bytes));
    for (size_t i = 0; i < front.n_bytes; i++) {
        if (front.bytes[i] == ' ')
            append_space(rules, text, origin);
        else
            append(text, front.bytes + i, 1, origin);
    }
    return QKV_OK;
}

static int is_space(struct front front) { return front.n_bytes == 1 && front.bytes[0] == ' '; }

/* Takes spaces off the end; returns the origin of what follows the text then. */
static uint32_t trim_end(const qkvi_spm_rules *rules, qkvi_spm_text *text, uint32_t end) {
    const char *space = rules->escape_whitespaces ? space_sign : " ";
    const uint32_t n = (uint32_t)strlen(space);
    while (text->n >= n && memcmp(text->bytes + text->n - n, space, n) == 0) {
        text->n -= n;
        end = text->origin[text->n];
    }
    return end;
}

qkv_status qkvi_spm_normalize(const qkvi_spm_rules *rules, const char *bytes, uint32_t n_bytes,
                              qkvi_spm_text *text) {
    text->n = 0;
    uint32_t at = 0;
    while (rules->remove_extra_whitespaces && at < n_bytes) {
        const struct front front = front_of(rules, bytes + at, n_bytes - at);
        if (!is_space(front)) break;
        at += front.consumed;
    }
    if (at == n_bytes) return QKV_OK;
    QKV_TRY(reserve(text, (size_t)n_bytes - at + 3));
    if (rules->add_dummy_prefix && !rules->whitespace_as_suffix) append_space(rules, text, at);

    int after_space = rules->remove_extra_whitespaces;
    while (at < n_bytes) {
        struct front front = front_of(rules, bytes + at, n_bytes - at);
        while (after_space && front.n_bytes > 0 && front.bytes[0] == ' ') {
            front.bytes++;
            front.n_bytes--;
        }
        if (front.n_bytes > 0) {
            QKV_TRY(append_front(rules, text, front, at));
            after_space = rules->remove_extra_whitespaces && front.bytes[front.n_bytes - 1] == ' ';
        }
        at += front.consumed;
    }
    uint32_t end = n_bytes;
    if (rules->remove_extra_whitespaces) end = trim_end(rules, text, end);
    QKV_TRY(reserve(text, 3));
    if (rules->add_dummy_prefix && rules->whitespace_as_suffix) append_space(rules, text, end);
    text->origin[text->n] = end;
    return QKV_OK;
}

void qkvi_spm_text_free(qkvi_spm_text *text) {
    free(text->bytes);
    free(text->origin);
    *text = (qkvi_spm_text){ 0 };
}
