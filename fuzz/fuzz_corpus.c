/*
 * A text file to train on. Every line and every pair of both splits lies within the file, and the
 * first half is never empty.
 */
#include "fuzz/fuzz.h"
#include "train/corpus.h"

static void check_pair(const qkvi_pair *pair) {
    volatile char sum = 0; /* touches every byte */
    FUZZ_CHECK(pair->a_bytes > 0 && pair->b_bytes >= 0);
    for (int64_t i = 0; i < pair->a_bytes; i++) sum = (char)(sum ^ pair->a[i]);
    for (int64_t i = 0; i < pair->b_bytes; i++) sum = (char)(sum ^ pair->b[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkvi_text *text;
    qkv_error error;
    if (!fuzz_accepted(qkvi_text_open(fuzz_file(bytes, n_bytes), &text, &error), &error)) {
        FUZZ_CHECK(!text);
        return 0;
    }
    FUZZ_CHECK(qkvi_text_n_lines(text) > 0);
    for (int64_t i = 0; i < qkvi_text_n_lines(text); i++) {
        int64_t line_bytes;
        FUZZ_CHECK(qkvi_text_line(text, i, &line_bytes) && line_bytes > 0);
    }
    qkvi_pair pair;
    for (int64_t i = 0; i < qkvi_text_n_pairs(text) && i < 64; i++) {
        qkvi_text_pair(text, QKVI_SPLIT_HELD_OUT, i, 0, &pair);
        check_pair(&pair);
        qkvi_text_pair(text, QKVI_SPLIT_TRAIN, i, 7, &pair);
        check_pair(&pair);
    }
    qkvi_text_free(text);
    return 0;
}
