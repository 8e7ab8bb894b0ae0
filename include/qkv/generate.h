/**
 * qkv: text that a model writes, one token after another.
 *
 *     qkv_generate_options options = QKV_GENERATE_OPTIONS_INIT;
 *     qkv_generation *made = NULL;
 *     options.max_new = 40;
 *     if (qkv_generate(ctx, model, prompt, &options, &made, &error) == QKV_OK)
 *         printf("%s\n", made->sequences[0].text);
 *     qkv_generation_free(made);
 */
#ifndef QKV_GENERATE_H
#define QKV_GENERATE_H

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/** When beam search gives up looking for better sequences, once it has n_beams that are complete. */
typedef enum qkv_early_stopping {
    QKV_EARLY_LIKELY, /* when the best beam, were it complete now, would not be better: the default */
    QKV_EARLY_ALWAYS, /* at once */
    QKV_EARLY_NEVER   /* when the best beam cannot become better at any length that is left */
} qkv_early_stopping;

/**
 * How to write. Names and meanings are those of transformers' GenerationConfig; zeros of the _INIT are
 * its defaults: the likeliest token each time, nothing forbidden. ids are of the language that is
 * written, 0 ... vocab_size - 1.
 */
typedef struct qkv_generate_options {
    size_t struct_size;

    /* Length, in tokens. The model's own length ends a sequence in any case. */
    int64_t max_new;    /* at most so many; 0: until max_length, or the model's length */
    int64_t max_length; /* as max_new, with the prompt counted (of an encoder-decoder: its first
                         * token); 0: none. max_new goes before it */
    int64_t min_new;    /* no end before there are so many */
    int64_t min_length; /* as min_new, with the prompt counted */

    /* Search. */
    int64_t n_beams;       /* 1 ... 256: beam search with so many, if above 1 */
    int64_t n_return;      /* sequences: 1 ... n_beams; without beams, above 1 only when sampling */
    double length_penalty; /* beams: scores are divided by (new tokens)^it; -16 ... 16 */
    qkv_early_stopping early_stopping;

    /* Sampling: tokens are drawn by their probabilities. */
    int sample;
    uint64_t seed;
    double temperature; /* logits are divided by it; above 0 */
    int64_t top_k;      /* only the k likeliest, and those as likely as the last of them; 0: all */
    double top_p; /* only the fewest likeliest whose probabilities reach it, 0 ... 1; 1: all */

    /* What is unlikely or forbidden. */
    double repetition_penalty; /* logits of tokens that are there are divided by it, negative ones
                                * multiplied (Keskar et al. 2019); above 0; 1: nothing */
    int64_t no_repeat_ngram;   /* no run of so many tokens twice; 0: allowed */
    const int32_t *bad_words;  /* forbidden sequences, one after another … */
    const int64_t *bad_word_lengths; /* … [n_bad_words] tokens each */
    int64_t n_bad_words;
    int32_t forced_bos; /* the second token of the text, prompt counted; -1: none */
    int32_t forced_eos; /* the last token where length ends the text; -1: none */
    int renormalize; /* what is left of the distribution becomes one again (for scores of beams) */

    /* Where a text ends, besides. */
    const int32_t *eos; /* nullable, [n_eos], 64 at most: these instead of the model's own */
    int64_t n_eos;
    int no_eos;              /* 1: tokens of the end are like all others */
    const char *const *stop; /* nullable, [n_stop], 64 at most: UTF-8 of 1 ... 4,096 bytes each */
    int64_t n_stop;

    /* Of the language that is written; NULL: the model's own. Makes text of tokens. */
    const qkv_tokenizer *tokenizer;

    /*
     * Gets the text as it is made, in pieces that join to sequences[0].text: each is valid UTF-8, as
     * bytes of a character and what may become a string of stop are held back. bytes live until it
     * returns; non-zero ends the text here. Nullable; only for one sequence without beams.
     */
    int (*on_text)(void *user, const char *bytes, size_t n_bytes);
    void *user;
    const int *cancel; /* nullable; asked before each token: non-zero ends with QKV_ERR_CANCELLED */
} qkv_generate_options;

#define QKV_GENERATE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(qkv_generate_options), 0, 0, 0, 0, 1, 1, 1, QKV_EARLY_LIKELY, 0, 0, 1, 0, 1, 1, 0,  \
            NULL, NULL, 0, -1, -1, 0, NULL, 0, 0, NULL, 0, NULL, NULL, NULL, NULL                  \
    }

/**
 * The options that a model's files say: those of generation_config.json of its folder or, where there
 * is none, of config.json, as older versions of transformers wrote it; the _INIT for what they do not
 * say. *options holds its own lists, and is freed by qkv_generate_config_free; it may be copied and
 * changed while it lives. @return QKV_OK; as qkv_model_open for what is not found; QKV_ERR_FORMAT,
 * _LIMIT, or _UNSUPPORTED for a field that would change what is written and is not implemented, naming
 * file, field and value; _MEMORY. *options is NULL then.
 */
QKV_API QKV_NODISCARD qkv_status qkv_generate_config_read(const char *path_or_name,
                                                          qkv_generate_options **options,
                                                          qkv_error *error);
QKV_API void qkv_generate_config_free(qkv_generate_options *options); /* NULL is allowed */

/** Why a sequence ends. */
typedef enum qkv_end {
    QKV_END_EOS,          /* its last token says so */
    QKV_END_STRING,       /* one of stop is in the text, which is cut before it */
    QKV_END_MAX_NEW,      /* max_new, or max_length */
    QKV_END_MODEL_LENGTH, /* the model's length */
    QKV_END_CALLER,       /* on_text returned non-zero */
    QKV_END_FORBIDDEN     /* every token was forbidden */
} qkv_end;

typedef struct qkv_sequence {
    int32_t *ids; /* [n] what is new: no prompt, but the token of the end */
    int64_t n;
    /*
     * Beams: the sum of log-probabilities over (n)^length_penalty. Otherwise the sum of the
     * log-probabilities that the model itself, before any option, gave to the tokens.
     */
    double score;
    qkv_end end;
    char *text; /* of ids, without special tokens; a NUL follows the last byte */
    int64_t n_bytes;
} qkv_sequence;

typedef struct qkv_generation {
    int64_t prompt_len; /* tokens that the decoder was given: 1 in an encoder-decoder */
    int64_t n_steps;    /* passes of the decoder after the prompt */
    int64_t n_sequences;
    qkv_sequence *sequences; /* beams: the best first */
} qkv_generation;

QKV_API void qkv_generation_free(qkv_generation *generation); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
