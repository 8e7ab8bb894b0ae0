/*
 * Fields of generation_config.json that are not implemented: each is named where transformers
 * (generation/utils.py: _get_logits_processor, _get_stopping_criteria, get_generation_mode) would
 * write something else because of it.
 */
#include <math.h>

#include "model/base.h"
#include "model/store/generation_config.h"

/* What else than null and false changes what is written. */
typedef struct other {
    const char *field;
    qkvi_search_kind kind;
    double above, below; /* numbers between these … */
    double but;          /* … but this one */
    int even_empty;      /* a list or an object without entries, too */
} other;

static const other others[] = {
    { "begin_suppress_tokens", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "constraints", QKVI_ANY_SEARCH, 0, 0, 0, 1 },
    { "encoder_no_repeat_ngram_size", QKVI_ANY_SEARCH, 0, INFINITY, 0, 0 },
    { "encoder_repetition_penalty", QKVI_ANY_SEARCH, -INFINITY, INFINITY, 1, 0 },
    { "exponential_decay_length_penalty", QKVI_ANY_SEARCH, 0, 0, 0, 1 },
    { "force_words_ids", QKVI_ANY_SEARCH, 0, 0, 0, 1 },
    { "guidance_scale", QKVI_ANY_SEARCH, -INFINITY, INFINITY, 1, 0 },
    { "is_assistant", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "max_time", QKVI_ANY_SEARCH, -INFINITY, INFINITY, INFINITY, 0 },
    { "sequence_bias", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "stop_strings", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "suppress_tokens", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "token_healing", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "watermarking_config", QKVI_ANY_SEARCH, 0, 0, 0, 1 },
    { "epsilon_cutoff", QKVI_SAMPLING, 0, 1, 0, 0 },
    { "eta_cutoff", QKVI_SAMPLING, 0, 1, 0, 0 },
    { "top_h", QKVI_SAMPLING, -INFINITY, INFINITY, INFINITY, 0 },
    { "typical_p", QKVI_SAMPLING, -INFINITY, 1, 1, 0 },
    { "num_beam_groups", QKVI_BEAMS, 1, INFINITY, 1, 0 },
    { "dola_layers", QKVI_NO_BEAMS, -INFINITY, INFINITY, INFINITY, 1 },
    { "penalty_alpha", QKVI_GREEDY, 0, INFINITY, 0, 0 },
};

static int counts(const other *o, const json_t *value) {
    if (value == NULL || json_is_null(value) || json_is_false(value)) return 0;
    if (json_is_number(value)) {
        const double number = json_number_value(value);
        return number > o->above && number < o->below && number != o->but;
    }
    const int is_empty = (json_is_array(value) && json_array_size(value) == 0) ||
                         (json_is_object(value) && json_object_size(value) == 0);
    return !is_empty || o->even_empty;
}

void qkvi_generation_find_unsupported(const json_t *object, qkvi_generation_config *config) {
    const char *const cache = json_string_value(json_object_get(object, "cache_implementation"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const other *const o = &others[i];
        if (!config->unsupported[o->kind] && counts(o, json_object_get(object, o->field)))
            config->unsupported[o->kind] = o->field;
    }
    if (cache && strcmp(cache, "quantized") == 0 && !config->unsupported[QKVI_ANY_SEARCH])
        config->unsupported[QKVI_ANY_SEARCH] = "cache_implementation";
}

const char *qkvi_generation_unsupported(const qkvi_generation_config *config, int samples,
                                        int64_t n_beams) {
    const int is_kind[QKVI_SEARCH_KINDS] = { [QKVI_ANY_SEARCH] = 1,
                                             [QKVI_SAMPLING] = samples,
                                             [QKVI_BEAMS] = n_beams > 1,
                                             [QKVI_NO_BEAMS] = n_beams <= 1,
                                             [QKVI_GREEDY] =
                                                 n_beams <= 1 && !samples && config->top_k > 1 };
    for (int k = 0; k < QKVI_SEARCH_KINDS; k++)
        if (is_kind[k] && config->unsupported[k]) return config->unsupported[k];
    return NULL;
}
