/**
 * What a model folder says about generating: generation_config.json, or, in folders of before 2023,
 * the same fields of config.json. Of fields that would change what is written and that are not here, the
 * first is named.
 */
#ifndef QKVI_STORE_GENERATION_CONFIG_H
#define QKVI_STORE_GENERATION_CONFIG_H

#include "qkv/model.h"

enum { QKVI_MAX_ENDS = 8, QKVI_MAX_BAD_WORDS = 64, QKVI_MAX_BAD_TOKENS = 256 };

/* early_stopping of a beam search. */
typedef enum qkvi_early_stopping {
    QKVI_STOP_BY_HEURISTIC, /* false: when no beam is likely to become better */
    QKVI_STOP_AT_ONCE,      /* true: when there are num_beams finished ones */
    QKVI_STOP_NEVER         /* "never": when no beam can become better */
} qkvi_early_stopping;

/* Tokens are -1, numbers of them and lengths 0, where nothing is said. */
typedef struct qkvi_generation_config {
    int64_t bos, pad, start;             /* decoder_start_token_id */
    int64_t ends[QKVI_MAX_ENDS], n_ends; /* eos_token_id */
    int64_t forced_first;                /* forced_bos_token_id: the first token of all */
    int64_t forced_last[QKVI_MAX_ENDS],
        n_forced_last; /* forced_eos_token_id: the last, at max_length */
    /* bad_words_ids: sequences that are never written, one after another, and their lengths */
    int32_t bad_words[QKVI_MAX_BAD_TOKENS];
    int64_t bad_word_lengths[QKVI_MAX_BAD_WORDS], n_bad_words;
    int64_t max_length, max_new_tokens, min_length, min_new_tokens;
    int64_t num_beams, no_repeat_ngram_size, top_k; /* 1, 0, 50 where nothing is said */
    double length_penalty, repetition_penalty, temperature, top_p; /* 1 */
    qkvi_early_stopping early_stopping;
    int64_t num_return_sequences; /* 1 */
    int do_sample, renormalize_logits;
    const char *unsupported; /* a field that is not honoured; NULL */
} qkvi_generation_config;

/**
 * Reads the file of a folder over what info says about tokens. Of other tokens than the model has,
 * those that end a text are dropped, as they are never written, and others are errors.
 * FORMAT, LIMIT, SHAPE, with file, field, value, rule.
 */
qkv_status qkvi_generation_config_read(const char *folder, const qkv_model_info *info,
                                       qkvi_generation_config *config, qkv_error *error);

/** The same from the bytes of a generation_config.json. */
qkv_status qkvi_generation_config_parse(const char *file, const void *bytes, size_t n_bytes,
                                        const qkv_model_info *info, qkvi_generation_config *config,
                                        qkv_error *error);

#endif
