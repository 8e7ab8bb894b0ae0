/* Token ids in place of a text: see ids.h. */
#include "common/ids.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "common/term.h"

#define BETWEEN " ,\t\r\n"

/* Puts a word of the text into room, at most; false: there is none. */
static bool next_word(const struct text *text, size_t *at, char *room, size_t bytes) {
    size_t n = 0;
    while (*at < text->n && strchr(BETWEEN, text->bytes[*at]) && text->bytes[*at]) ++*at;
    while (*at < text->n && (!text->bytes[*at] || !strchr(BETWEEN, text->bytes[*at]))) {
        if (n + 1 < bytes) room[n++] = text->bytes[*at];
        ++*at;
    }
    room[n] = '\0';
    return n > 0;
}

static qkv_status allocate(int64_t n, qkv_encoding **encoding, qkv_error *error) {
    const size_t room = (size_t)n + 1;
    qkv_encoding *const e = *encoding = calloc(1, sizeof *e);
    if (!e) return text_no_memory(error);
    e->ids = calloc(room, sizeof *e->ids);
    e->types = calloc(room, 1);
    e->special = calloc(room, 1);
    e->begin = calloc(room, sizeof *e->begin);
    e->end = calloc(room, sizeof *e->end);
    return e->ids && e->types && e->special && e->begin && e->end ? QKV_OK : text_no_memory(error);
}

static void put(const qkv_tokenizer *tokenizer, int32_t id, qkv_encoding *e) {
    static const qkv_token_role around[] = { QKV_TOKEN_CLS, QKV_TOKEN_SEP, QKV_TOKEN_PAD };
    const int64_t i = e->n++;
    bool is_around = false;
    for (size_t r = 0; r < sizeof around / sizeof *around; r++)
        is_around |= id == qkv_tokenizer_special(tokenizer, around[r]);
    e->ids[i] = id;
    e->special[i] = is_around || id == qkv_tokenizer_special(tokenizer, QKV_TOKEN_MASK);
    e->begin[i] = 2 * i; /* none touches the one before it */
    e->end[i] = 2 * i + !is_around;
}

qkv_status ids_read(const struct session *session, const struct text *text, qkv_encoding **encoding,
                    qkv_error *error) {
    const int64_t n = qkv_tokenizer_size(session->tokenizer);
    char word[64];
    int64_t id, n_words = 0;
    for (size_t at = 0; next_word(text, &at, word, sizeof word);) n_words++;
    qkv_status status = allocate(n_words, encoding, error);
    for (size_t at = 0; status == QKV_OK && next_word(text, &at, word, sizeof word);) {
        if (!number_int(word, 0, n - 1, &id)) {
            char *const shown = term_escape(word, strlen(word));
            status = text_error(error, QKV_ERR_ARGUMENT,
                                "--ids: '%s' is no token: ids are numbers from 0 to %" PRId64,
                                shown ? shown : "", n - 1);
            free(shown);
        } else {
            put(session->tokenizer, (int32_t)id, *encoding);
        }
    }
    if (status == QKV_OK && n_words == 0)
        status = text_error(error, QKV_ERR_ARGUMENT, "--ids: there is no id");
    return status;
}

void ids_free(qkv_encoding *encoding) {
    if (!encoding) return;
    free(encoding->ids);
    free(encoding->types);
    free(encoding->special);
    free(encoding->begin);
    free(encoding->end);
    free(encoding);
}
