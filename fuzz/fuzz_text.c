/*
 * A text, or two with a NUL byte between them, for a tokenizer of a few pieces that open both halves
 * of WordPiece, the added tokens and the rules for Chinese, accents and case.
 */
#include <string.h>

#include "fuzz/fuzz.h"

static qkv_tokenizer *make_tokenizer(void) {
    static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\n##ab\ne\n##e\n"
                                "aba\n.\n,\n\xe4\xb8\xad\nss\n##i\n";
    qkv_tokenizer *tokenizer;
    qkv_error error;
    FUZZ_CHECK(qkv_tokenizer_open_memory(vocab, sizeof vocab - 1, NULL, 0, &tokenizer, &error) ==
               QKV_OK);
    return tokenizer;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static qkv_tokenizer *tokenizer;
    if (!tokenizer) tokenizer = make_tokenizer();
    const char *const text = (const char *)bytes, *const nul = memchr(bytes, '\0', n_bytes);
    const size_t a_bytes = nul ? (size_t)(nul - text) : n_bytes;
    fuzz_encode(tokenizer, text, n_bytes, NULL, 0);
    if (nul) fuzz_encode(tokenizer, text, a_bytes, nul + 1, n_bytes - a_bytes - 1);
    return 0;
}
