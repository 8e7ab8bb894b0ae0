/* tokenizer.json. What opens encodes a sample and the input itself, alone and as a pair. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "model/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static const char sample[] = "I saw the [MASK]. \xc3\x89t\xc3\xa9\xe4\xb8\xad "
                                 "42x ##ing";
    qkv_tokenizer *tokenizer;
    qkv_error error;
    const qkv_status status = qkvi_tokenizer_read_json("x", bytes, n_bytes, &tokenizer, &error);
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
