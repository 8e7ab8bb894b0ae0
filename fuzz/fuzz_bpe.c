/*
 * vocab.json, merges.txt and the small files beside them, with a NUL between each: an empty one is
 * not there. What opens encodes a sample and the input itself,
 * alone and as a pair; every token is shown, and all ids become text.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "text/tokenizer_json.h"

enum { N_PARTS = 6 };

/* The input up to its next NUL; the last part is all that is left. */
static qkvi_text_file take_part(const char *name, const char **at, size_t *left, int is_last) {
    const char *const nul = *left && !is_last ? memchr(*at, '\0', *left) : NULL;
    const size_t n = nul ? (size_t)(nul - *at) : *left;
    const qkvi_text_file file = { name, *at, n };
    *at += n + (nul != NULL);
    *left -= n + (nul != NULL);
    return file;
}

static void show_all(const qkv_tokenizer *tokenizer) {
    for (int32_t id = 0; id < qkv_tokenizer_size(tokenizer) && id < 1000; id++) {
        qkv_text *text;
        qkv_error error;
        const qkv_status shown = qkv_tokenizer_show(tokenizer, id, &text, &error);
        if (fuzz_accepted(shown, &error)) qkv_text_free(text);
        const qkv_status made = qkv_tokenizer_decode(tokenizer, &id, 1, 0, &text, &error);
        FUZZ_CHECK(made == shown);
        if (fuzz_accepted(made, &error)) qkv_text_free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static const char sample[] = "I saw the <mask>. \xc3\x89t\xc3\xa9 \xe4\xb8\xad  42x abab\n";
    static const char *const names[N_PARTS] = { "vocab.json",       "merges.txt",
                                                "tokenizer_config", "special_tokens_map",
                                                "added_tokens",     "config" };
    qkvi_text_file parts[N_PARTS];
    const char *at = (const char *)bytes;
    size_t left = n_bytes;
    for (int i = 0; i < N_PARTS; i++) {
        parts[i] = take_part(names[i], &at, &left, i == N_PARTS - 1);
        if (i >= 2 && parts[i].n_bytes == 0) parts[i].bytes = NULL; /* is not there */
    }
    const qkvi_text_files files = { .vocab = parts[0],
                                    .merges = parts[1],
                                    .tokenizer_config = parts[2],
                                    .special_tokens_map = parts[3],
                                    .added_tokens = parts[4],
                                    .config = parts[5] };
    qkv_tokenizer *tokenizer;
    qkv_error error;
    const qkv_status status = qkvi_tokenizer_read_bpe(&files, &tokenizer, &error);
    if (!fuzz_accepted(status, &error)) {
        FUZZ_CHECK(!tokenizer);
        return 0;
    }
    fuzz_encode(tokenizer, sample, sizeof sample - 1, NULL, 0);
    fuzz_encode(tokenizer, (const char *)bytes, n_bytes, sample, sizeof sample - 1);
    show_all(tokenizer);
    qkv_tokenizer_free(tokenizer);
    return 0;
}
