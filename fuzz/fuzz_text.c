/*
 * A text, or two with a NUL byte between them, for tokenizers of a few pieces that open both halves
 * of WordPiece, the added tokens and the rules for Chinese, accents and case: one with BERT's own
 * tokens, one with tokens that are normalised, at words' edges, or take the white space beside
 * them, and one that puts lower case first. Tokens that are cut keep what stands around the texts.
 */
#include <string.h>

#include "fuzz/fuzz.h"

enum { N_TOKENIZERS = 3 };

static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\n##ab\ne\n##e\n"
                            "aba\n.\n,\n\xe4\xb8\xad\nss\n##i\n";

static const char *const configs[N_TOKENIZERS] = {
    NULL,
    "{\"added_tokens_decoder\":{\"18\":{\"content\":\"<\xc3\x89>\"},"
    "\"19\":{\"content\":\"le\",\"lstrip\":true},\"20\":{\"content\":\"re\",\"rstrip\":true},"
    "\"21\":{\"content\":\"ab\",\"single_word\":true},"
    "\"22\":{\"content\":\"x.\",\"normalized\":false,\"lstrip\":true,\"rstrip\":true},"
    "\"23\":{\"content\":\"y\",\"normalized\":false,\"single_word\":true}}}",
    "{\"do_lower_case\":false,\"truncation_side\":\"left\",\"added_tokens_decoder\":{"
    "\"18\":{\"content\":\"\xe4\xb8\xad\xe6\x96\x87\"},\"19\":{\"content\":\"A "
    "b\",\"lstrip\":true},"
    "\"20\":{\"content\":\"e\xcc\x81\",\"lstrip\":true,\"single_word\":true}}}",
};

static void cut(const qkv_tokenizer *tokenizer, const char *text, size_t n_bytes) {
    qkv_encoding *encoding;
    qkv_error error;
    if (qkv_tokenizer_encode(tokenizer, text, n_bytes, NULL, 0, &encoding, &error) != QKV_OK)
        return;
    const int64_t n = encoding->n, most = n > 5 ? 5 : n;
    qkv_tokenizer_cut(tokenizer, encoding, 5);
    FUZZ_CHECK(encoding->n == most);
    FUZZ_CHECK(encoding->ids[0] == 2 && encoding->ids[most - 1] == 3);
    qkv_encoding_free(encoding);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static qkv_tokenizer *tokenizers[N_TOKENIZERS];
    const char *const text = (const char *)bytes, *const nul = memchr(bytes, '\0', n_bytes);
    const size_t a_bytes = nul ? (size_t)(nul - text) : n_bytes;
    for (int i = 0; i < N_TOKENIZERS; i++) {
        qkv_error error;
        if (!tokenizers[i])
            FUZZ_CHECK(qkv_tokenizer_open_memory(vocab, sizeof vocab - 1, configs[i],
                                                 configs[i] ? strlen(configs[i]) : 0,
                                                 &tokenizers[i], &error) == QKV_OK);
        fuzz_encode(tokenizers[i], text, n_bytes, NULL, 0);
        if (nul) fuzz_encode(tokenizers[i], text, a_bytes, nul + 1, n_bytes - a_bytes - 1);
        cut(tokenizers[i], text, n_bytes);
    }
    return 0;
}
