/*
 * vocab.txt and, behind the first NUL that a '{' follows, tokenizer_config.json. What opens then
 * encodes the input itself, and finds each of its tokens by name.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "model/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static const char sample[] = "I saw the [MASK]. \xc3\x89t\xc3\xa9\xe4\xb8\xad "
                                 "42x ##ing";
    const uint8_t *const cut = memmem(bytes, n_bytes, "\0{", 2);
    const size_t vocab_bytes = cut ? (size_t)(cut - bytes) : n_bytes;
    qkv_tokenizer *tokenizer;
    qkv_error error;
    const qkv_status status =
        qkv_tokenizer_open_memory(bytes, vocab_bytes, cut ? cut + 1 : NULL,
                                  cut ? n_bytes - vocab_bytes - 1 : 0, &tokenizer, &error);
    if (!fuzz_accepted(status, &error)) {
        FUZZ_CHECK(!tokenizer);
        return 0;
    }
    for (int32_t id = 0; id < qkv_tokenizer_size(tokenizer); id++) {
        size_t token_bytes = 0, same_bytes = 0;
        const char *const token = qkv_tokenizer_token(tokenizer, id, &token_bytes);
        if (!token) continue;
        /* Of a token that is there twice, the last one counts. */
        const int32_t found = qkv_tokenizer_id(tokenizer, token, token_bytes);
        const char *const same = qkv_tokenizer_token(tokenizer, found, &same_bytes);
        FUZZ_CHECK(found >= id && same_bytes == token_bytes);
        FUZZ_CHECK(memcmp(same, token, token_bytes) == 0);
    }
    fuzz_encode(tokenizer, sample, sizeof sample - 1, NULL, 0);
    fuzz_encode(tokenizer, (const char *)bytes, vocab_bytes, sample, sizeof sample - 1);
    qkv_tokenizer_free(tokenizer);
    return 0;
}
