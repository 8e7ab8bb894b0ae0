/**
 * qkv: text that a model generates, one token after another.
 *
 *     qkv_generate_options options = qkv_generate_options_init();
 *     qkv_generation *made = NULL;
 *     options.max_new = 40;
 *     if (qkv_generate(ctx, model, prompt, &options, &made, &error) == QKV_OK)
 *         printf("%s\n", made->sequences[0]->text);
 *     qkv_generation_free(made);
 *
 * Experimental: see docs/api.md, Stability.
 */
#ifndef QKV_GENERATE_H
#define QKV_GENERATE_H

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/** When beam search ends, once it has n_beams sequences that are complete. */
typedef enum qkv_early_stopping {
    /** When the best beam would not be better if it were complete now: the default. */
    QKV_EARLY_LIKELY,
    /** At once. */
    QKV_EARLY_ALWAYS,
    /** When the best beam cannot become better at any length that is left. */
    QKV_EARLY_NEVER
} qkv_early_stopping;

/**
 * Options of generation. Names and meanings are those of transformers' GenerationConfig. ids are of
 * the language that is written, 0 … vocab_size - 1. Made by qkv_generate_options_init(), which sets
 * transformers' defaults: the likeliest token each time, and nothing forbidden.
 */
typedef struct qkv_generate_options {
    size_t struct_size;

    /* Length, in tokens. The model's own length ends a sequence in any case. */

    /** At most so many new tokens; 0: until max_length, or the model's length. */
    int64_t max_new;
    /** The same with the prompt counted (of a pair: its first token); max_new goes before it. */
    int64_t max_length;
    /** No end before there are so many new tokens. */
    int64_t min_new;
    /** The same with the prompt counted. */
    int64_t min_length;

    /* Search. */

    /** 1 … 256. Above 1: beam search with so many. */
    int64_t n_beams;
    /** Sequences: 1 … n_beams; without beams, above 1 only when sampling. */
    int64_t n_return;
    /** Beams: scores are divided by (new tokens)^it; -16 … 16. */
    double length_penalty;
    qkv_early_stopping early_stopping;

    /* Sampling: tokens are drawn by their probabilities. */

    int sample;
    uint64_t seed;
    /** Logits are divided by it; above 0. */
    double temperature;
    /** Only the k likeliest, and those as likely as the last of them; 0: all. */
    int64_t top_k;
    /** Only the fewest likeliest whose probabilities reach it, 0 … 1; 1: all. */
    double top_p;
    /** Only those with this share of the likeliest's probability, 0 … 1; 0: all. */
    double min_p;

    /* What is unlikely or forbidden. */

    /**
     * Logits of tokens that are there already are divided by it, negative ones multiplied (Keskar
     * et al. 2019). Above 0; 1: nothing.
     */
    double repetition_penalty;
    /** No run of so many tokens twice; 0: allowed. */
    int64_t no_repeat_ngram;
    /** Forbidden sequences, one after another, of [n_bad_words] lengths. */
    const int32_t *bad_words;
    const int64_t *bad_word_lengths;
    int64_t n_bad_words;
    /** The second token of the text, prompt counted; -1: none. */
    int32_t forced_bos;
    /**
     * The last token where length ends the text; -1: none. Not where the model's length is less
     * than what was asked for.
     */
    int32_t forced_eos;
    /** NULL, or [n_forced_ends], at most 64: one of these instead of forced_eos. */
    const int32_t *forced_ends;
    int64_t n_forced_ends;
    /** 1: what is left of the distribution becomes one again (for scores of beams). */
    int renormalize;

    /* What else ends a text. */

    /** NULL, or [n_eos], at most 64: these instead of the model's own. */
    const int32_t *eos;
    int64_t n_eos;
    /** 1: end tokens do not end a text. */
    int no_eos;
    /** NULL, or [n_stop], at most 64: UTF-8 of 1 … 4,096 bytes each. */
    const char *const *stop;
    int64_t n_stop;

    /** Of the language that is written: makes text of its tokens. NULL: the model's own. */
    const qkv_tokenizer *tokenizer;

    /**
     * NULL, or gets the text as it is made, in pieces that join to that of the sequence. Only for
     * one sequence without beams. Each piece is valid UTF-8: bytes of a character, and what may
     * become a string of stop, are held back. bytes live until it returns. Non-zero ends the text.
     */
    int (*on_text)(void *user, const char *bytes, size_t n_bytes);
    void *user;
    /** NULL, or read before each token: non-zero ends with QKV_ERR_CANCELLED. */
    const int *cancel;
} qkv_generate_options;

static inline qkv_generate_options qkv_generate_options_init(void) {
    qkv_generate_options made;
    memset(&made, 0, sizeof made);
    made.struct_size = sizeof made;
    made.n_beams = made.n_return = 1;
    made.length_penalty = made.temperature = made.top_p = made.repetition_penalty = 1;
    made.forced_bos = made.forced_eos = -1;
    return made;
}

/**
 * Reads the options that a model's files say: those of generation_config.json or, where there is
 * none, of config.json. *options comes from qkv_generate_options_init() and receives all that they
 * say. Arrays live as long as the model. Tokens that end a text, and those that are never written,
 * are the model's in any case.
 *
 * Where a caller has set sample or n_beams before, both stay, and what they need is checked, too.
 * @return QKV_OK; QKV_ERR_UNSUPPORTED for a field that would change what is written and is not
 *         implemented, naming it; QKV_ERR_FORMAT, QKV_ERR_LIMIT or QKV_ERR_SHAPE for a file that
 *         says what cannot be (a model opens with it); QKV_ERR_ARGUMENT; QKV_ERR_VERSION.
 */
QKV_API QKV_NODISCARD qkv_status qkv_generate_options_read(const qkv_model *model,
                                                           qkv_generate_options *options,
                                                           qkv_error *error);

/** Why a sequence ends. */
typedef enum qkv_end {
    /** Its last token says so. */
    QKV_END_EOS,
    /** One of stop is in the text, which is cut before it. */
    QKV_END_STRING,
    /** max_new, or max_length. */
    QKV_END_MAX_NEW,
    /** The model's length. */
    QKV_END_MODEL_LENGTH,
    /** on_text returned non-zero. */
    QKV_END_CALLER,
    /** Every token was forbidden. */
    QKV_END_FORBIDDEN
} qkv_end;

typedef struct qkv_sequence {
    /** [n] new tokens: without the prompt, with the end token. */
    int32_t *ids;
    int64_t n;
    /**
     * Beams: the sum of log-probabilities over (n)^length_penalty. Otherwise the sum of the
     * log-probabilities that the model itself, before any option, gave to the tokens.
     */
    double score;
    qkv_end end;
    /** Text of ids, without special tokens. A NUL follows the last byte. */
    char *text;
    int64_t n_bytes;
} qkv_sequence;

/** The library allocates it and its sequences, and both may grow at their ends. */
typedef struct qkv_generation {
    /** Tokens that the decoder was given: 1 in a pair. */
    int64_t prompt_len;
    /** Passes of the decoder after the prompt. */
    int64_t n_steps;
    int64_t n_sequences;
    /** [n_sequences]; beams: the best first. */
    qkv_sequence **sequences;
} qkv_generation;

/**
 * Writes what follows a prompt or, with a pair, what a source becomes:
 *     p(t_1 ... t_n) = prod_i p(t_i | prompt, t_1 ... t_(i-1)),   p the softmax of the model's
 *     logits
 * One of three searches chooses tokens: the likeliest each time (of equal ones the smaller id),
 * drawing, or beams. Before it, logits are changed in transformers' order: repetition_penalty,
 * no_repeat_ngram, bad_words, min_length, min_new, forced_bos, forced_eos; when sampling
 * temperature, top_k, top_p, min_p; renormalize last.
 *
 *   Prompt    Decoders: the tokens to go on from; if there are none, the model's token of the
 *             beginning. Pairs: the source, with what its tokenizer puts around it.
 *   Accuracy  Logits are f32. Log-probabilities, penalties and scores are double, while
 *             transformers has f32: where both first differ, their two best scores are almost
 *             equal.
 *   Ties      Beams: the better beam, then the smaller id, comes first. top_k keeps all tokens as
 *             likely as its last one; of equally likely ones top_p keeps those with greater ids.
 *             No two beams have the same tokens: where fewer tokens are allowed than there are
 *             beams, there are fewer sequences.
 *   Sampling  The number for step i of sequence s is Philox's for (seed, s, i): the same on every
 *             machine. A sequence does not depend on n_return.
 *   Determinism, threads   the same bits for any threads and any instruction set of one class.
 *   Memory    keys and values of n_beams (n_return) sequences; 8 bytes for each of them and each
 *             token of the vocabulary.
 *   Strings   of stop are looked for in the text that is made, not in the prompt nor in special
 *             tokens.
 *   Errors    QKV_ERR_ARGUMENT naming the field, its value and its rule; QKV_ERR_SHAPE for a prompt
 *             that fills the model; QKV_ERR_UNSUPPORTED without a head for the next token, and for
 *             logits that are NaN or infinite; QKV_ERR_VERSION; QKV_ERR_CANCELLED;
 *             QKV_ERR_MEMORY; QKV_ERR_BUSY. *generation is NULL then. Text that on_text was given
 *             stays.
 *
 * @param prompt   NULL is allowed for decoders: a text of its own.
 * @param options  NULL: those of qkv_generate_options_init(), not of the model's files.
 */
QKV_API QKV_NODISCARD qkv_status qkv_generate(qkv_ctx *ctx, const qkv_model *model,
                                              const qkv_encoding *prompt,
                                              const qkv_generate_options *options,
                                              qkv_generation **generation, qkv_error *error);
QKV_API void qkv_generation_free(qkv_generation *generation);

/** How well a model predicts texts. Made by qkv_perplexity_report_init(). */
typedef struct qkv_perplexity_report {
    size_t struct_size;
    /** Tokens that were predicted. */
    int64_t n_tokens;
    /** The mean of -ln p(token | tokens before it). */
    double loss;
    /** e^loss. */
    double perplexity;
    /**
     * The loss if every window of a text that begins with bos_id did so, too, in place of its first
     * token. It is `loss` where texts have one window, or do not begin with bos_id.
     */
    double begun_loss;
    /** e^begun_loss. */
    double begun_perplexity;
} qkv_perplexity_report;
QKV_DEFINE_INIT(qkv_perplexity_report)

/**
 * Computes the perplexity of a decoder on n texts. Every token of a text but its first is predicted
 * once. A text longer than the model is read in windows of its length, each `stride` tokens after
 * the one before. A token that is new in a window is predicted from all that the window has before
 * it. Windows are pieces of the tokens of the text, so only the first has the token that begins it:
 * see begun_loss.
 *
 *   stride    1 … max_len - 1: a smaller one gives every token more text before it, and takes
 *             longer; 0: half of max_len.
 *   Accuracy  logits and losses in f32, sums in double. Texts of fewer than two tokens count
 *             nothing.
 *   Determinism, threads   the same bits for any threads.
 *   Memory    a run of a window; 64 rows of logits.
 *   Errors    QKV_ERR_ARGUMENT, QKV_ERR_VERSION, QKV_ERR_UNSUPPORTED for other models and for one
 *             that takes 1 token, and those of qkv_model_run. report is untouched then.
 *   Source    transformers' documentation, "Perplexity of fixed-length models".
 */
QKV_API QKV_NODISCARD qkv_status qkv_perplexity(qkv_ctx *ctx, const qkv_model *model, int64_t n,
                                                const qkv_encoding *const *texts, int64_t stride,
                                                qkv_perplexity_report *report, qkv_error *error);

/**
 * Computes the perplexity of a model with two stacks on n pairs. Every token of a target is
 * predicted once, from its source and from the tokens of the target before it.
 *
 *   targets   what is to be predicted, as the tokenizer of the target encodes it, with what it puts
 *             around. The decoder reads start_id before it. An empty target counts nothing.
 *   Accuracy, determinism, threads   as qkv_perplexity.
 *   Memory    a run of a pair; 64 rows of logits.
 *   Errors    QKV_ERR_ARGUMENT, QKV_ERR_VERSION, QKV_ERR_UNSUPPORTED for other models and without a
 *             start_id, and those of qkv_model_run. report is untouched then.
 *   Source    the loss of transformers' labels, without smoothing.
 */
QKV_API QKV_NODISCARD qkv_status qkv_perplexity_pairs(qkv_ctx *ctx, const qkv_model *model,
                                                      int64_t n, const qkv_encoding *const *sources,
                                                      const qkv_encoding *const *targets,
                                                      qkv_perplexity_report *report,
                                                      qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
