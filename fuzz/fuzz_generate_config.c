/*
 * generation_config.json: whatever the bytes are, options or an error; lists of options lie where they
 * say, and those that the door of generation lets pass have sensible numbers.
 */
#include "fuzz/fuzz.h"
#include "model/generate/generate_config.h"
#include "model/generate/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkv_generate_options *options;
    qkv_error error;
    qkvi_plan plan;
    const qkvi_lm_facts facts = { 1000, 64, 0, -1, 1 };
    const qkv_status status = qkvi_generate_config_parse("F", bytes, n_bytes, &options, &error);
    if (!fuzz_accepted(status, &error)) {
        FUZZ_CHECK(options == NULL);
        return 0;
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < options->n_eos; i++) sum += options->eos[i];
    for (int64_t w = 0, at = 0; w < options->n_bad_words; at += options->bad_word_lengths[w++]) {
        FUZZ_CHECK(options->bad_word_lengths[w] > 0);
        for (int64_t i = 0; i < options->bad_word_lengths[w]; i++)
            sum += options->bad_words[at + i];
    }
    FUZZ_CHECK(sum >= 0);
    if (fuzz_accepted(qkvi_plan_make(&plan, options, &facts, &error), &error))
        FUZZ_CHECK(plan.max_total > 1 && plan.max_total <= 64 && plan.n_slots >= 1);
    qkv_generate_config_free(options);
    return 0;
}
