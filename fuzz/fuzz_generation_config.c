/*
 * generation_config.json: whatever the bytes are, numbers that make sense and tokens of the model, or an
 * error; what is not honoured is one of our own names.
 */
#include <math.h>

#include "fuzz/fuzz.h"
#include "model/store/generation_config.h"

static void check_tokens(const int64_t *ids, int64_t n, int64_t most) {
    FUZZ_CHECK(n >= 0 && n <= most);
    for (int64_t i = 0; i < n; i++) FUZZ_CHECK(ids[i] >= 0 && ids[i] < 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    const qkv_model_info info = {
        .target_vocab_size = 1000, .bos_id = -1, .pad_id = 3, .eos_id = 2, .start_id = -1
    };
    qkvi_generation_config config;
    qkv_error error;
    const qkv_status status =
        qkvi_generation_config_parse("F", bytes, n_bytes, &info, &config, &error);
    if (!fuzz_accepted(status, &error)) return 0;
    FUZZ_CHECK(config.bos >= -1 && config.bos < 1000 && config.pad >= -1 && config.pad < 1000);
    FUZZ_CHECK(config.start >= -1 && config.start < 1000);
    FUZZ_CHECK(config.forced_first >= -1 && config.forced_first < 1000);
    check_tokens(config.ends, config.n_ends, QKVI_MAX_ENDS);
    check_tokens(config.forced_last, config.n_forced_last, QKVI_MAX_ENDS);
    check_tokens(config.bad_words, config.n_bad_words, QKVI_MAX_BAD_WORDS);
    FUZZ_CHECK(config.num_beams >= 1 && config.max_length >= 0 && config.min_length >= 0);
    FUZZ_CHECK(config.temperature > 0 && config.repetition_penalty > 0 && config.top_p > 0);
    FUZZ_CHECK(isfinite(config.length_penalty) && config.top_p <= 1);
    return 0;
}
