/*
 * vocab.txt and, each behind a NUL that a '{' follows, tokenizer_config.json,
 * special_tokens_map.json, added_tokens.json and config.json. What opens then encodes the input
 * itself, and finds each of its tokens by name.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "text/tokenizer_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static const char sample[] = "I saw the [MASK]. \xc3\x89t\xc3\xa9\xe4\xb8\xad "
                                 "42x ##ing";
    qkvi_text_files files = { .vocab.name = "vocab",
                              .tokenizer_config.name = "tokenizer_config",
                              .special_tokens_map.name = "special_tokens_map",
                              .added_tokens.name = "added_tokens",
                              .config.name = "config" };
    qkvi_text_file *const others[] = { &files.tokenizer_config, &files.special_tokens_map,
                                       &files.added_tokens, &files.config };
    qkv_tokenizer *tokenizer;
    qkv_error error;
    fuzz_parts(bytes, n_bytes, &files.vocab, 4, others);
    const qkv_status status = qkvi_tokenizer_read_vocab(&files, &tokenizer, &error);
    if (!fuzz_accepted(status, &error)) {
        FUZZ_CHECK(!tokenizer);
        return 0;
    }
    for (int32_t id = 0; id < qkv_tokenizer_size(tokenizer); id++) {
        size_t token_bytes = 0, same_bytes = 0;
        const char *const token = qkv_tokenizer_token(tokenizer, id, &token_bytes);
        if (!token) continue;
        /* Of a token that is there twice, the last one counts; an added one may have its id. */
        const int32_t found = qkv_tokenizer_id(tokenizer, token, token_bytes);
        const char *const same = qkv_tokenizer_token(tokenizer, found, &same_bytes);
        FUZZ_CHECK(found >= id && same);
        if (qkvi_added_token(&tokenizer->added, found, &same_bytes)) continue;
        FUZZ_CHECK(same_bytes == token_bytes && memcmp(same, token, token_bytes) == 0);
    }
    fuzz_encode(tokenizer, sample, sizeof sample - 1, NULL, 0);
    fuzz_encode(tokenizer, (const char *)bytes, files.vocab.n_bytes, sample, sizeof sample - 1);
    qkv_tokenizer_free(tokenizer);
    return 0;
}
