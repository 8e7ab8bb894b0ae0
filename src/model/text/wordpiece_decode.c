/**
 * Words from pieces, as the decoder of PyPI tokenizers does it (decoders/wordpiece.rs): a token
 * that begins with the mark follows without it, any other with a space before; then, in each token
 * with its space by itself, spaces before punctuation are closed.
 */

#include "model/text/wordpiece.h"

/* Replaces all; to is not longer than from. Returns the new length. */
static size_t replace(char *text, size_t n, const char *from, const char *to) {
    const size_t from_bytes = strlen(from), to_bytes = strlen(to);
    size_t out = 0;
    for (size_t i = 0; i < n;) {
        const int match = n - i >= from_bytes && memcmp(text + i, from, from_bytes) == 0;
        if (match)
            memcpy(text + out, to, to_bytes);
        else
            text[out] = text[i];
        out += match ? to_bytes : 1;
        i += match ? from_bytes : 1;
    }
    return out;
}

static size_t clean_up(char *text, size_t n) {
    static const char *const pairs[][2] = {
        { " .", "." },   { " ?", "?" },     { " !", "!" },     { " ,", "," },
        { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },   { " do not", " don't" },
        { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        n = replace(text, n, pairs[i][0], pairs[i][1]);
    return n;
}

qkv_status qkvi_wordpiece_decode(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                                 qkvi_growing *text) {
    const qkvi_wordpiece *model = tokenizer->model;
    const size_t mark = strlen(model->mark);
    char word[1 + QKVI_PIECE_MAX_BYTES];
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes = 0, n_word = 0;
        const char *token = qkvi_tokenizer_decoded(tokenizer, ids[i], &n_bytes);
        const int continues = i > 0 && n_bytes >= mark && memcmp(token, model->mark, mark) == 0;
        if (i > 0 && !continues) word[n_word++] = ' ';
        const size_t skip = continues ? mark : 0;
        memcpy(word + n_word, token + skip, n_bytes - skip);
        n_word += n_bytes - skip;
        if (model->cleanup) n_word = clean_up(word, n_word);
        QKV_TRY(qkvi_growing_put(text, word, n_word));
    }
    return QKV_OK;
}
