/*
 * tokenizer.json and, each behind a NUL that a '{' follows, tokenizer_config.json,
 * special_tokens_map.json, added_tokens.json and config.json. What opens encodes a sample and the
 * input itself, alone and as a pair.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "text/tokenizer_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static const char sample[] = "I saw the [MASK]. \xc3\x89t\xc3\xa9\xe4\xb8\xad "
                                 "42x ##ing";
    qkv_tokenizer *tokenizer;
    qkv_error error;
    qkvi_text_files files = { .tokenizer.name = "x",
                              .vocab.name = "x",
                              .tokenizer_config.name = "tokenizer_config",
                              .special_tokens_map.name = "special_tokens_map",
                              .added_tokens.name = "added_tokens",
                              .config.name = "config" };
    qkvi_text_file *const others[] = { &files.tokenizer_config, &files.special_tokens_map,
                                       &files.added_tokens, &files.config };
    fuzz_parts(bytes, n_bytes, &files.tokenizer, 4, others);
    const qkv_status status = qkvi_tokenizer_read_json(&files, &tokenizer, &error);
    if (!fuzz_accepted(status, &error)) {
        FUZZ_CHECK(!tokenizer);
        return 0;
    }
    for (int role = 0; role < QKVI_N_ROLES; role++) {
        size_t token_bytes;
        const int32_t id = qkv_tokenizer_special(tokenizer, (qkv_token_role)role);
        FUZZ_CHECK(id == -1 || qkv_tokenizer_token(tokenizer, id, &token_bytes));
    }
    fuzz_encode(tokenizer, sample, sizeof sample - 1, NULL, 0);
    fuzz_encode(tokenizer, (const char *)bytes, n_bytes, sample, sizeof sample - 1);
    qkv_tokenizer_free(tokenizer);
    return 0;
}
