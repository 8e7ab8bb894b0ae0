/**
 * Kinds of tokens, and which of them are content words.
 *
 * A word is a token and the tokens that continue it; its text is theirs without the continuation
 * marks. It is a content word if it is not special, not [UNK], not punctuation and not in
 * function_words.h.
 */

#include "files/utf8.h"
#include "inspect/function_words.h"
#include "inspect/tokens.h"
#include "qkv/inspect.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

enum { LONGEST_FUNCTION_WORD = 16 };

static int is_punctuation(const char *token, size_t n_bytes) {
    int32_t code;
    return n_bytes > 0 && qkvi_utf8_next(token, n_bytes, &code) == n_bytes &&
           (qkvi_char_class(code) & QKVI_CHAR_PUNCTUATION);
}

qkvi_token_kind qkvi_token_kind_of(const qkv_tokenizer *tokenizer, int32_t id) {
    size_t n_bytes = 0;
    if (id < 0) return QKVI_TOKEN_TEXT;
    if (id == qkv_tokenizer_special(tokenizer, QKV_TOKEN_CLS)) return QKVI_TOKEN_CLS;
    if (id == qkv_tokenizer_special(tokenizer, QKV_TOKEN_SEP)) return QKVI_TOKEN_SEP;
    if (id == qkv_tokenizer_special(tokenizer, QKV_TOKEN_PAD)) return QKVI_TOKEN_PAD;
    const char *token = qkv_tokenizer_token(tokenizer, id, &n_bytes);
    return token && is_punctuation(token, n_bytes) ? QKVI_TOKEN_PUNCTUATION : QKVI_TOKEN_TEXT;
}

qkvi_token_kind qkvi_token_kind_of_name(const char *name) {
    static const struct {
        const char *name;
        qkvi_token_kind kind;
    } special[] = { { "[CLS]", QKVI_TOKEN_CLS }, { "<s>", QKVI_TOKEN_CLS },
                    { "[SEP]", QKVI_TOKEN_SEP }, { "</s>", QKVI_TOKEN_SEP },
                    { "[PAD]", QKVI_TOKEN_PAD }, { "<pad>", QKVI_TOKEN_PAD } };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (strcmp(name, special[i].name) == 0) return special[i].kind;
    return is_punctuation(name, strlen(name)) ? QKVI_TOKEN_PUNCTUATION : QKVI_TOKEN_TEXT;
}

static int compare_words(const void *key, const void *entry) {
    return strcmp(key, *(const char *const *)entry);
}

int qkvi_is_function_word(const char *word, size_t n_bytes) {
    char lower[LONGEST_FUNCTION_WORD + 1];
    if (n_bytes > LONGEST_FUNCTION_WORD) return 0;
    for (size_t i = 0; i < n_bytes; i++) {
        lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
    }
    lower[n_bytes] = '\0';
    return bsearch(lower, qkvi_function_words,
                   sizeof qkvi_function_words / sizeof qkvi_function_words[0],
                   sizeof qkvi_function_words[0], compare_words) != NULL;
}

/* The end of the word that begins at token i. */
static int64_t word_end(const qkv_tokenizer *tokenizer, const qkv_encoding *input, int64_t i) {
    for (i++; i < input->n; i++) {
        char text[QKVI_PIECE_MAX_BYTES];
        size_t n_bytes;
        if (input->special[i] || !qkvi_tokenizer_piece(tokenizer, input->ids[i], text, &n_bytes))
            break;
    }
    return i;
}

static int is_content(const qkv_tokenizer *tokenizer, const qkv_encoding *input, int64_t begin,
                      int64_t end) {
    char word[LONGEST_FUNCTION_WORD + 1]; /* one more than any: cut words are no function words */
    size_t n = 0;
    const int32_t first = input->ids[begin];
    if (input->special[begin] || first == qkv_tokenizer_special(tokenizer, QKV_TOKEN_UNK) ||
        qkvi_token_kind_of(tokenizer, first) != QKVI_TOKEN_TEXT)
        return 0;
    for (int64_t i = begin; i < end; i++) {
        char text[QKVI_PIECE_MAX_BYTES];
        size_t n_bytes;
        qkvi_tokenizer_piece(tokenizer, input->ids[i], text, &n_bytes);
        for (size_t k = 0; k < n_bytes && n < sizeof word; k++) word[n++] = text[k];
    }
    return !qkvi_is_function_word(word, n);
}

static int is_alone(const qkv_tokenizer *tokenizer, const qkv_encoding *input, int64_t i) {
    return input->special[i] || qkvi_token_kind_of(tokenizer, input->ids[i]) != QKVI_TOKEN_TEXT;
}

static int is_whole(const qkv_tokenizer *tokenizer, const qkv_encoding *input) {
    return tokenizer && input && input->ids && input->special;
}

int64_t qkv_inspect_words(const qkv_tokenizer *tokenizer, const qkv_encoding *input,
                          int32_t *words) {
    int32_t word = -1;
    if (!is_whole(tokenizer, input) || !words) return 0;
    for (int64_t i = 0; i < input->n; i++) {
        char text[QKVI_PIECE_MAX_BYTES];
        size_t n_bytes;
        const int begins = i == 0 || is_alone(tokenizer, input, i) ||
                           is_alone(tokenizer, input, i - 1) ||
                           !qkvi_tokenizer_piece(tokenizer, input->ids[i], text, &n_bytes);
        word += begins;
        words[i] = word;
    }
    return word + 1;
}

void qkv_inspect_content(const qkv_tokenizer *tokenizer, const qkv_encoding *input,
                         uint8_t *content) {
    if (!is_whole(tokenizer, input) || !content) return;
    for (int64_t i = 0; i < input->n;) {
        const int64_t end = word_end(tokenizer, input, i);
        const int is = is_content(tokenizer, input, i, end);
        while (i < end) content[i++] = (uint8_t)is;
    }
}
