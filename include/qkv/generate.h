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
 * is none, of config.json, as older versions of transformers wrote it. *options, made by _INIT, gets all
 * that they say. (The tokens that end a text, and those that are never written, are the model's in
 * any case.) @return QKV_OK; QKV_ERR_UNSUPPORTED for a field that would change what is written and is not
 * implemented, naming it; QKV_ERR_ARGUMENT, _VERSION.
 */
QKV_API QKV_NODISCARD qkv_status qkv_generate_options_of(const qkv_model *model,
                                                         qkv_generate_options *options,
                                                         qkv_error *error);

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

/**
 * Writes what follows a prompt, or, with an encoder-decoder, what a source becomes:
 *     p(t_1 ... t_n) = prod_i p(t_i | prompt, t_1 ... t_(i-1)),   p the softmax of the model's logits
 * One of three searches goes through the tokens: the likeliest each time (of equal ones the smaller
 * id), drawing, or beams; what is forbidden and what changes logits comes before, in transformers'
 * order: repetition_penalty, no_repeat_ngram, bad_words, min_length, min_new, forced_bos, forced_eos,
 * and, when sampling, temperature, top_k, top_p; renormalize last.
 *
 *   Prompt    Decoder-only models: the tokens to go on from; if there are none, the model's token of the
 *             beginning. Encoder-decoders: the source, with what its tokenizer puts around it; the
 *             decoder begins with its start token.
 *   Accuracy  Logits are the model's f32. Log-probabilities, penalties and scores are computed from
 *             them in double, exp and log of our own; transformers computes them in f32. So at the
 *             first token in which both differ, its two best scores are almost equal.
 *   Ties      Beams: the better beam, then the smaller id, comes first. top_k keeps all tokens as likely
 *             as its last one; of equally likely ones top_p keeps those with greater ids. Two of
 *             transformers' beams never have the same tokens here: where it fills up with such
 *             (fewer tokens are allowed than there are beams), there are fewer sequences.
 *   Sampling  The number for step i of sequence s is Philox's for (seed, s, i): the same on every machine,
 *             but not that of other libraries. A sequence does not depend on n_return.
 *   Determinism, threads   the same bits for any threads and any instruction set of one class.
 *   Memory    keys and values of n_beams (n_return) sequences, 8 bytes for each of them and each token of
 *             the vocabulary.
 *   Strings   are looked for in the text that is made, not in the prompt nor in special tokens.
 *   Errors    QKV_ERR_ARGUMENT naming the field, its value and its rule; QKV_ERR_SHAPE: the prompt is
 *             longer than the model, or fills it; QKV_ERR_UNSUPPORTED: a model without a head that
 *             predicts the next token; logits that are NaN or infinite; QKV_ERR_VERSION, _CANCELLED,
 *             _MEMORY, _BUSY. *generation is NULL then; what on_text was given stays.
 *
 * @param prompt   nullable for decoder-only models.
 * @param options  nullable: those of the _INIT, not of the model's files.
 */
QKV_API QKV_NODISCARD qkv_status qkv_generate(qkv_ctx *ctx, const qkv_model *model,
                                              const qkv_encoding *prompt,
                                              const qkv_generate_options *options,
                                              qkv_generation **generation, qkv_error *error);
QKV_API void qkv_generation_free(qkv_generation *generation); /* NULL is allowed */

/** How well a model expects texts. */
typedef struct qkv_perplexity_report {
    int64_t n_tokens;  /* that were predicted */
    double loss;       /* mean of -ln p(token | tokens before it) */
    double perplexity; /* e^loss */
} qkv_perplexity_report;

/**
 * Perplexity of a decoder-only model on n texts: every token of a text but its first is predicted once.
 * Texts longer than the model are read in windows of its length, each `stride` tokens after the one
 * before: a token that no window had before is predicted from all that its window has of the text.
 *
 *   stride    1 ... max_len - 1: smaller ones give every token more text before it, and take longer;
 *             0: half of max_len.
 *   Accuracy  logits and losses in f32, sums in double. Texts of fewer than two tokens count nothing.
 *   Determinism, threads   the same bits for any threads.
 *   Memory    a run of a window; 64 rows of logits.
 *   Errors    QKV_ERR_ARGUMENT, _UNSUPPORTED (other models), as qkv_model_run. report is untouched then.
 *   Source    transformers' documentation, "Perplexity of fixed-length models".
 */
QKV_API QKV_NODISCARD qkv_status qkv_perplexity(qkv_ctx *ctx, const qkv_model *model, int64_t n,
                                                const qkv_encoding *const *texts, int64_t stride,
                                                qkv_perplexity_report *report, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
