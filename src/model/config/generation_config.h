/**
 * What a model folder says about generating: generation_config.json or, where there is none, the
 * same fields of config.json, and nothing else: what the file does not say has transformers'
 * default, whatever config.json says. A number that makes no sense is an error only where it is
 * used (generate/generate.c), and a field that is not implemented only where it would change what
 * is written: the first is named.
 */
#ifndef QKVI_CONFIG_GENERATION_CONFIG_H
#define QKVI_CONFIG_GENERATION_CONFIG_H

#include <jansson.h>

#include "qkv/model.h"

enum { QKVI_MAX_ENDS = 8, QKVI_MAX_BAD_WORDS = 64, QKVI_MAX_BAD_TOKENS = 256 };

/* early_stopping of a beam search. */
typedef enum qkvi_early_stopping {
    QKVI_STOP_BY_HEURISTIC, /* false: when no beam is likely to become better */
    QKVI_STOP_AT_ONCE,      /* true: when there are num_beams finished ones */
    QKVI_STOP_NEVER         /* "never": when no beam can become better */
} qkvi_early_stopping;

/* For which searches a field counts. */
typedef enum qkvi_search_kind {
    QKVI_ANY_SEARCH,
    QKVI_SAMPLING,
    QKVI_BEAMS,
    QKVI_NO_BEAMS,
    QKVI_GREEDY, /* neither beams nor sampling */
    QKVI_SEARCH_KINDS
} qkvi_search_kind;

/* Tokens are -1, numbers of them and lengths 0, where nothing is said. */
typedef struct qkvi_generation_config {
    int64_t bos, pad, start;             /* decoder_start_token_id */
    int64_t ends[QKVI_MAX_ENDS], n_ends; /* eos_token_id */
    int64_t forced_first;                /* forced_bos_token_id: the first token of all */
    int32_t forced_last[QKVI_MAX_ENDS];  /* forced_eos_token_id: one of them is the last, at … */
    int64_t n_forced_last;               /* … max_length */
    /* bad_words_ids: sequences that are never written, one after another, and their lengths */
    int32_t bad_words[QKVI_MAX_BAD_TOKENS];
    int64_t bad_word_lengths[QKVI_MAX_BAD_WORDS], n_bad_words;
    int64_t max_length, max_new_tokens, min_length, min_new_tokens;
    int64_t num_beams, no_repeat_ngram_size, top_k; /* 1, 0, 50 where nothing is said */
    double length_penalty, repetition_penalty, temperature, top_p; /* 1 */
    double min_p;                                                  /* 0 */
    qkvi_early_stopping early_stopping;
    int64_t num_return_sequences; /* 1 */
    int do_sample, renormalize_logits;
    const char *unsupported[QKVI_SEARCH_KINDS]; /* a field that is not implemented; NULL */
} qkvi_generation_config;

/** The first field that is not implemented and would change what such a search writes; NULL. */
const char *qkvi_generation_unsupported(const qkvi_generation_config *config, int samples,
                                        int64_t n_beams);

/**
 * Reads the file of a folder. Of other tokens than the model has, those that end a text, fill it or
 * begin it are dropped, as they are never written, and others are errors. FORMAT, LIMIT, SHAPE,
 * with file, field, value, rule: *config then has what was read before.
 */
qkv_status qkvi_generation_config_read(const char *folder, const qkv_model_info *info,
                                       qkvi_generation_config *config, qkv_error *error);

/** The same from the bytes of a generation_config.json. */
qkv_status qkvi_generation_config_parse(const char *file, const void *bytes, size_t n_bytes,
                                        const qkv_model_info *info, qkvi_generation_config *config,
                                        qkv_error *error);

#endif
