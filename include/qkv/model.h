/**
 * qkv models: text to tokens, tokens to hidden states, and what every head looked at on the way.
 *
 * A whole program:
 *
 *     qkv_model *model = NULL;
 *     qkv_encoding *tokens = NULL;
 *     qkv_run *run = NULL;
 *     if (qkv_model_open("bert-base-uncased", &model, &error) != QKV_OK) …
 *     if (qkv_tokenizer_encode(qkv_model_tokenizer(model), text, strlen(text), NULL, 0, &tokens,
 *     &error) != QKV_OK) … if (qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&tokens,
 *     QKV_RUN_CAPTURE, &run, &error) != QKV_OK) … const float *hidden = qkv_run_hidden(run, 0,
 *     qkv_model_get_info(model)->n_layers);
 *
 * Every object is freed by its own function, NULL allowed. A model and a tokenizer are read-only
 * after they are opened and may be used by many threads, each with its own context.
 */
#ifndef QKV_MODEL_H
#define QKV_MODEL_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tokens ---------------------------------------------------------------------------------- */

typedef struct qkv_tokenizer qkv_tokenizer;

typedef enum qkv_token_role {
    QKV_TOKEN_UNK,
    QKV_TOKEN_SEP,
    QKV_TOKEN_PAD,
    QKV_TOKEN_CLS,
    QKV_TOKEN_MASK
} qkv_token_role;

/** A tokenized text or pair. Arrays of n; begin and end are the token's bytes in the text it
 * comes from. */
typedef struct qkv_encoding {
    int64_t n;
    int32_t *ids;
    uint8_t *types;       /* segment: 0 for the first text and its [SEP], 1 for the second */
    uint8_t *special;     /* 1: a special token, inserted or written in the text */
    int64_t *begin, *end; /* inserted tokens have an empty range */
} qkv_encoding;

/**
 * Opens the tokenizer of a model folder: of source.spm and vocab.json with tokenizer_config.json if
 * the first is there (Marian), else tokenizer.json, else vocab.txt with tokenizer_config.json
 * (WordPiece), else vocab.json and merges.txt with tokenizer_config.json, special_tokens_map.json,
 * added_tokens.json and config.json (byte-level BPE of GPT-2, RoBERTa and BART); see
 * docs/tokenizers.md. @return QKV_OK; QKV_ERR_IO where files are missing, naming them; FORMAT, LIMIT
 * or UNSUPPORTED, naming file, field, value and rule; MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_open(const char *directory,
                                                    qkv_tokenizer **tokenizer, qkv_error *error);

/** The same for texts of the language that a model translates into: target.spm in place of
 * source.spm, and target_vocab.json in place of vocab.json where the vocabularies are separate. Of
 * a folder with one tokenizer, that one. */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_open_target(const char *directory,
                                                           qkv_tokenizer **tokenizer,
                                                           qkv_error *error);

/** A WordPiece tokenizer from the bytes of a vocab.txt and (nullable) of a
 * tokenizer_config.json. */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_open_memory(const void *vocab, size_t vocab_bytes,
                                                           const void *config, size_t config_bytes,
                                                           qkv_tokenizer **tokenizer,
                                                           qkv_error *error);
QKV_API void qkv_tokenizer_free(qkv_tokenizer *tokenizer);

/**
 * [CLS] text [SEP], or [CLS] text [SEP] pair [SEP], or what the model puts around its texts. Texts
 * are UTF-8 and may hold NUL; pair may be
 * NULL. Special tokens written in the text are recognised, in their exact case. Time is linear in
 * the text. @return QKV_OK; QKV_ERR_FORMAT for invalid UTF-8, with the byte offset; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_encode(const qkv_tokenizer *tokenizer,
                                                      const char *text, size_t text_bytes,
                                                      const char *pair, size_t pair_bytes,
                                                      qkv_encoding **encoding, qkv_error *error);
QKV_API void qkv_encoding_free(qkv_encoding *encoding);

/**
 * Cuts an encoding to max_len tokens by dropping the last tokens of the longer text until both are
 * as long, then of each in turn, so that an odd token stays with the text that was the longer, or
 * with the second one: what PyPI tokenizers calls longest_first. What stands around the texts
 * stays, also where it alone is more than max_len.
 */
QKV_API void qkv_encoding_cut(qkv_encoding *encoding, int64_t max_len);

typedef struct qkv_text {
    char *bytes; /* a NUL follows the last one */
    int64_t n;
} qkv_text;

enum { QKV_DECODE_SKIP_SPECIAL = 1 };

/**
 * The text of ids, as the decoder of PyPI tokenizers makes it. WordPiece puts spaces between words
 * and closes those before punctuation; Marian's is that of SentencePiece, with special tokens as they
 * are written; byte-level BPE gives back the bytes that were encoded, and
 * for each maximal part of them that is no UTF-8 U+FFFD (Unicode 15, section 3.9). flags: 0, or
 * QKV_DECODE_SKIP_SPECIAL to leave special tokens out. Time and memory are linear.
 * @return QKV_OK; QKV_ERR_ARGUMENT for an id without a token or an unknown flag; UNSUPPORTED for a
 * decoder that is not implemented; MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_decode(const qkv_tokenizer *tokenizer,
                                                      const int32_t *ids, int64_t n, int flags,
                                                      qkv_text **text, qkv_error *error);

/**
 * A token as it is shown to people. Of byte-level BPE and SentencePiece the text that it stands for: a
 * space is U+2423, a newline U+21B5, a tab U+21E5, other control characters and bytes that are only a
 * part of a character are \x1b, \xe6. Of WordPiece, and of special tokens: as the vocabulary has it. @return QKV_OK;
 * QKV_ERR_ARGUMENT for an id without a token; MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_show(const qkv_tokenizer *tokenizer, int32_t id,
                                                    qkv_text **text, qkv_error *error);
QKV_API void qkv_text_free(qkv_text *text);

/** The number of ids; the bytes of a token as its vocabulary has it (not terminated by NUL; NULL if out of range); the id
 * of a token, or -1. */
QKV_API int32_t qkv_tokenizer_size(const qkv_tokenizer *tokenizer);
QKV_API const char *qkv_tokenizer_token(const qkv_tokenizer *tokenizer, int32_t id, size_t *bytes);
QKV_API int32_t qkv_tokenizer_id(const qkv_tokenizer *tokenizer, const char *token, size_t bytes);

/** The id of a special token, or -1 if the vocabulary lacks it. */
QKV_API int32_t qkv_tokenizer_special(const qkv_tokenizer *tokenizer, qkv_token_role role);

/* ---- Models ---------------------------------------------------------------------------------- */

typedef struct qkv_model qkv_model;

/** How hidden states h_1 ... h_n of a text's tokens, special ones among them, become one vector. */
typedef enum qkv_pooling {
    QKV_POOLING_DEFAULT,       /* what the model's files say (modules.json), else the mean */
    QKV_POOLING_MEAN,          /* sum of h_i, by n */
    QKV_POOLING_CLS,           /* h_1 */
    QKV_POOLING_MAX,           /* of each channel the largest */
    QKV_POOLING_MEAN_SQRT_LEN, /* sum of h_i, by the root of n */
    QKV_POOLING_WEIGHTED_MEAN, /* sum of i h_i, by n (n + 1) / 2 */
    QKV_POOLING_LAST           /* h_n */
} qkv_pooling;

typedef struct qkv_model_info {
    /* "bert", "distilbert", "roberta", "electra", "gpt2", "bart" or "marian" */
    const char *architecture;
    const char *source; /* the folder, escaped for printing; "embedded" for one from memory */
    /* of the encoder, or of the only stack */
    int64_t n_layers, n_heads, hidden, head_dim, intermediate, vocab_size, max_len;
    int64_t n_types; /* segments; 0: the model has none and ignores them */
    int64_t n_parameters;
    double layer_norm_eps;
    int has_mlm, has_nsp, has_pooler;
    int sinusoidal_positions;
    int64_t embedding_size; /* of word vectors: hidden, but for ELECTRA */
    /* row of the position table that the first token gets: 0, but for RoBERTa and BART */
    int64_t first_position;
    int has_judge;        /* a head that tells replaced tokens: ELECTRA's discriminator */
    qkv_pooling pooling;  /* of sentence vectors; the mean where no modules.json says otherwise */
    int normalizes;       /* 1: sentence vectors have length 1 */
    int64_t sentence_len; /* tokens of the longest text it makes vectors of, at most max_len */
    int is_decoder; /* 1: tokens see those before them only, and a head tells the next: GPT-2 */
    int is_encoder_decoder; /* 1: a decoder that sees the encoder's tokens, too: BART, Marian */
    int has_lm;             /* a head that tells the next token */
    /* of the decoder over an encoder; 0: there is none */
    int64_t n_decoder_layers, n_decoder_heads, decoder_intermediate;
    int64_t
        target_vocab_size; /* of what the decoder reads and writes: vocab_size unless separate */
    int separate_words;    /* 1: encoder and decoder have word vectors of their own */
    /* tokens by which generated texts begin, end and are filled, and the one that a decoder over an
     * encoder starts from; -1 where there is none. Models without a decoder have -1. */
    int64_t bos_id, eos_id, pad_id, start_id;
    const char
        *activation;       /* of the feed-forward: "gelu" (with erf), "gelu_tanh", "relu", "silu" */
    int scales_words;      /* 1: word vectors are multiplied by the root of hidden */
    int unscaled;          /* 1: scores are not divided by the root of head_dim (GPT-2) */
    int scales_by_layer;   /* 1: scores of layer l = 0, 1, ... are divided by l + 1 (GPT-2) */
    int weights;           /* qkv_model_weights: F32, BF16_DP or BF16_AMX */
    int64_t weights_bytes; /* memory that all parameters take as they are kept */
} qkv_model_info;

/**
 * Opens a model: a folder with config.json, a .safetensors file or a .safetensors.index.json in
 * one, or a name in the local Hugging Face cache. Weights are in model.safetensors, or without it
 * in the files that model.safetensors.index.json names. Nothing is downloaded. Every byte of the files is checked; messages name the
 * file, the field, the value and the rule.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_open(const char *path_or_name, qkv_model **model,
                                                qkv_error *error);

/**
 * How a model keeps the weights of its linear layers, and what these compute with: once, as the panels
 * that they multiply with. A table of words that a head shares (tied) is such a weight, and words'
 * vectors are read from its panels. Other tables, norms, biases and attention are f32 always. A model
 * whose file has bf16 is kept in bf16 without loss, in half the memory of f32.
 */
typedef enum qkv_model_weights {
    QKV_WEIGHTS_F32 = 0,
    QKV_WEIGHTS_BF16 = 1, /* the faster of the next two here: amx where there is AMX, else dp */
    QKV_WEIGHTS_BF16_DP =
        2, /* weights and inputs rounded to bf16, sums in f32 as VDPBF16PS has them */
    QKV_WEIGHTS_BF16_AMX = 3 /* the same as TDPBF16PS has them */
} qkv_model_weights;

typedef struct qkv_model_open_options {
    size_t struct_size;
    qkv_model_weights weights;
} qkv_model_open_options;
#define QKV_MODEL_OPEN_OPTIONS_INIT                                                                \
    { sizeof(qkv_model_open_options), QKV_WEIGHTS_F32 }

/**
 * qkv_model_open with options; NULL: none.
 *
 * Memory: that of the parameters in the form that they are kept in, and while they are read some 1 MiB
 * more; a file is read in pieces, not mapped.
 *
 * Weights in bf16: each linear layer, heads included, is y = x W^T + b of x and W rounded to bf16, to
 * nearest even, with products that are exact, sums in f32 in the order of the class (docs/numerics.md,
 * Layers), and b and y in f32. An encoder attends in bf16, too, in the same class: q, k and v rounded to
 * it, o in f32; a decoder in f32. Each class has the same bits on every processor, batch and number of
 * threads; without the class's instruction it is slow. A layer's result differs from that in f32 by
 * at most 2^-8 sum |x| |W| (to first order). info.weights says which class it became.
 * @return as qkv_model_open; QKV_ERR_ARGUMENT for weights that are none of these; QKV_ERR_VERSION for
 * struct_size.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_open_with(const char *path_or_name,
                                                     const qkv_model_open_options *options,
                                                     qkv_model **model, qkv_error *error);

/**
 * qkv_model_open_with of the bytes of a config.json, a vocab.txt and a .safetensors file. They are copied:
 * nothing of them is read after the call.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_open_memory(const void *config, size_t config_bytes,
                                                       const void *vocab, size_t vocab_bytes,
                                                       const void *weights, size_t weights_bytes,
                                                       const qkv_model_open_options *options,
                                                       qkv_model **model, qkv_error *error);
QKV_API void qkv_model_free(qkv_model *model);
QKV_API const qkv_model_info *qkv_model_get_info(const qkv_model *model);
/** The tokenizer of the texts that go in, and that of the texts that come out: of an encoder-decoder
 * that of its decoder (qkv_tokenizer_open_target), of others the same one. They live as long as the
 * model. */
QKV_API const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *model);
QKV_API const qkv_tokenizer *qkv_model_target_tokenizer(const qkv_model *model);

/** Name of the index-th file that the weights came from, without its folder, escaped for printing:
 * in the order of their names if there are several; none of a model from memory; NULL past the end. */
QKV_API const char *qkv_model_file(const qkv_model *model, int64_t index);

/** Name of the index-th stored tensor that the model does not use, escaped for printing; "NAME in
 * FILE" if the weights are in several files; NULL past the end. */
QKV_API const char *qkv_model_unused(const qkv_model *model, int64_t index);

/** The index-th sentence about what was accepted but is odd, escaped for printing: a vocabulary
 * that has a token twice (the last wins), rows of the embedding that no token has. NULL past the
 * end. */
QKV_API const char *qkv_model_warning(const qkv_model *model, int64_t index);

/** A parameter that holds values that are no numbers. */
typedef struct qkv_not_finite {
    const char *tensor; /* its name as transformers writes it */
    int64_t n_nan, n_inf;
} qkv_not_finite;

/** Looks at every parameter and calls visit for each that holds a NaN or an infinity; returns how
 * many do. Models load with them: one row of an embedding may be bad and never used. */
QKV_API int64_t qkv_model_check_finite(const qkv_model *model,
                                       void (*visit)(void *user, const qkv_not_finite *found),
                                       void *user);

/**
 * Copies the vector [embedding_size] that the model has for a token before anything else happens to it: a
 * row of its table of word embeddings, the encoder's if there are two. The values are those of the file
 * as f32; where the weights are kept in bf16 and a head shares the table, rounded to that.
 * @return QKV_OK; QKV_ERR_ARGUMENT for a NULL model or vector, or an id that is not in 0 ... vocab_size - 1.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_word_vector(const qkv_model *model, int32_t id,
                                                       float *vector, qkv_error *error);

/**
 * Sinusoidal positions (Vaswani et al. 2017, section 3.5), as models with such positions add them:
 *     table[p][2 i] = sin(p w)    table[p][2 i + 1] = cos(p w)    w = 10000^(-2 i / dim)
 * table is [n_positions][dim], n_positions 1 ... 2^20, dim 1 ... 2^16. Accuracy: half an ulp and 1e-9
 * of it; the same bits everywhere. @return QKV_OK; QKV_ERR_ARGUMENT.
 */
QKV_API QKV_NODISCARD qkv_status qkv_sinusoids(int64_t n_positions, int64_t dim, float *table,
                                               qkv_error *error);

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct qkv_run qkv_run;

enum {
    QKV_RUN_CAPTURE = 1u << 0, /* keep q, k and lse of every layer and head */
    QKV_RUN_HIDDEN = 1u << 1   /* keep the hidden states of every layer, not only of the last */
};

/**
 * Runs a model on a batch of encodings of any lengths (each at most max_len, else QKV_ERR_SHAPE).
 * Padding is internal and cannot be seen: each result has the bits of a run alone.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_run(qkv_ctx *ctx, const qkv_model *model,
                                               int64_t n_batch, const qkv_encoding *const *inputs,
                                               uint32_t flags, qkv_run **run, qkv_error *error);
QKV_API void qkv_run_free(qkv_run *run);

/**
 * A question to a model: what if attention, in every layer and head, were another one. Zeros are the
 * model as it is.
 */
typedef struct qkv_what_if {
    size_t struct_size;
    int causal;         /* 1: query i sees keys j <= i only */
    int no_scale;       /* 1: scores are q.k, without 1 / sqrt(head_dim) */
    double temperature; /* scores are divided by it, finite and above 0; 0: they are not */
    /* [n_batch], of each input [n]: 1 for tokens that no query sees as a key; nullable, entries too */
    const uint8_t *const *dropped;
} qkv_what_if;

#define QKV_WHAT_IF_INIT                                                                           \
    { sizeof(qkv_what_if), 0, 0, 0, NULL }

/**
 * qkv_model_run, but for what attention is asked to do otherwise:
 *     s[j] = <q_i, k_j> scale / temperature for the keys j that are left, scale = 1 or 1 / sqrt(head_dim)
 * Later layers see what follows from it: q and k of a run are those of the changed model. Captures
 * have the changed scale, weights are 0 where a key is not seen; a query that sees no key has
 * lse = -infinity and weights of 0, and attention adds nothing to its token. With zeros (and a
 * temperature of 1) every bit is that of qkv_model_run.
 *
 *   Determinism, memory, threads   as qkv_model_run; n tokens bytes more if something is dropped.
 *   Errors    as qkv_model_run; QKV_ERR_ARGUMENT for a temperature that is not above 0 or not finite,
 *             or so small that the scale is no float above 0; QKV_ERR_VERSION, for struct_size.
 *
 * @param what_if  nullable.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_run_what_if(qkv_ctx *ctx, const qkv_model *model,
                                                       int64_t n_batch,
                                                       const qkv_encoding *const *inputs,
                                                       uint32_t flags, const qkv_what_if *what_if,
                                                       qkv_run **run, qkv_error *error);

/**
 * Runs an encoder-decoder on pairs: sources through the encoder, and the tokens that have been written
 * so far through the decoder, which sees them from the left and all of its source. targets are decoder
 * inputs: they begin with the token that the model starts from (info's start_id), and row i predicts
 * token i + 1. Lengths may be any; each result has the bits of a run alone.
 *
 *   Errors   as qkv_model_run; QKV_ERR_UNSUPPORTED for a model without a decoder over an encoder.
 *
 * @param what_if  nullable; what it drops are source tokens, for the encoder and for cross-attention.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_run_pair(qkv_ctx *ctx, const qkv_model *model,
                                                    int64_t n_batch,
                                                    const qkv_encoding *const *sources,
                                                    const qkv_encoding *const *targets,
                                                    uint32_t flags, const qkv_what_if *what_if,
                                                    qkv_run **run, qkv_error *error);

/** Hidden states [n][hidden] after layer (0: the embeddings, n_layers: the last, with the norm that
 * follows it in GPT-2); NULL if not kept. */
QKV_API const float *qkv_run_hidden(const qkv_run *run, int64_t b, int64_t layer);
/** Those of the decoder of a pair. */
QKV_API const float *qkv_run_decoder_hidden(const qkv_run *run, int64_t b, int64_t layer);

/**
 * What attention saw in a layer. q is [n_heads][n][head_dim], k alike with n_keys, after the bias and before
 * scaling (after rotation in models that rotate); lse is [n_heads][n]. scale is the factor on q·k.
 */
typedef struct qkv_capture {
    const float *q, *k, *lse;
    int64_t n_heads, n, head_dim;
    float scale;
    int causal; /* 1: queries see keys j <= i only */
    const uint8_t
        *seen;      /* [n_keys]: 0 for keys that no query sees (qkv_what_if); NULL: all are seen */
    int64_t n_keys; /* k is [n_heads][n_keys][head_dim]; n but for cross-attention */
} qkv_capture;

/** Which attention of a model. */
typedef enum qkv_attention_of {
    QKV_SELF,    /* of the only stack, or of the encoder, to itself */
    QKV_DECODER, /* of a decoder over an encoder, to itself: causal */
    QKV_CROSS    /* of the decoder to the encoder: queries are decoder tokens, keys source tokens */
} qkv_attention_of;

QKV_API QKV_NODISCARD qkv_status qkv_run_capture(const qkv_run *run, int64_t b, int64_t layer,
                                                 qkv_capture *capture, qkv_error *error);

/** The same of any attention that the run has; QKV_ERR_ARGUMENT for one that it has not. */
QKV_API QKV_NODISCARD qkv_status qkv_run_capture_of(const qkv_run *run, qkv_attention_of which,
                                                    int64_t b, int64_t layer, qkv_capture *capture,
                                                    qkv_error *error);

/** The weights of one head, [n][n], recomputed as exp(scale q·k - lse), 0 for keys that what-if
 * hides; rows are queries and sum to 1. */
QKV_API QKV_NODISCARD qkv_status qkv_run_weights(const qkv_run *run, int64_t b, int64_t layer,
                                                 int64_t head, float *weights, qkv_error *error);
/** The same, [n][n_keys], of any attention that the run has. */
QKV_API QKV_NODISCARD qkv_status qkv_run_weights_of(const qkv_run *run, qkv_attention_of which,
                                                    int64_t b, int64_t layer, int64_t head,
                                                    float *weights, qkv_error *error);

/** MLM logits [vocab_size] at a position; QKV_ERR_UNSUPPORTED "no MLM head" without one. */
QKV_API QKV_NODISCARD qkv_status qkv_model_mlm(qkv_ctx *ctx, const qkv_model *model,
                                               const qkv_run *run, int64_t b, int64_t position,
                                               float *logits, qkv_error *error);

/** Logits [target_vocab_size] of what follows the token at a position (of the decoder, if there are
 * two stacks); QKV_ERR_UNSUPPORTED "no LM head" without one. */
QKV_API QKV_NODISCARD qkv_status qkv_model_lm(qkv_ctx *ctx, const qkv_model *model,
                                              const qkv_run *run, int64_t b, int64_t position,
                                              float *logits, qkv_error *error);

/** NSP logits: [0] the second text follows the first, [1] it does not. */
QKV_API QKV_NODISCARD qkv_status qkv_model_nsp(qkv_ctx *ctx, const qkv_model *model,
                                               const qkv_run *run, int64_t b, float logits[2],
                                               qkv_error *error);

/**
 * ELECTRA's judgement (Clark et al. 2020): for each token of an input, the logit of "somebody put this
 * token in place of another one"; sigmoid makes it a probability. logits is [n].
 * QKV_ERR_UNSUPPORTED without such a head.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_judge(qkv_ctx *ctx, const qkv_model *model,
                                                 const qkv_run *run, int64_t b, float *logits,
                                                 qkv_error *error);

/** How to make vectors of sentences. Zeros: as the model's files say. */
typedef struct qkv_embed_options {
    size_t struct_size;
    qkv_pooling pooling;
    int normalize; /* above 0: to length 1; below 0: not; 0: as the model's files say */
} qkv_embed_options;

#define QKV_EMBED_OPTIONS_INIT                                                                     \
    { sizeof(qkv_embed_options), QKV_POOLING_DEFAULT, 0 }

/**
 * Vectors of sentences (Reimers and Gurevych 2019): the last hidden states of each input, pooled, and
 * divided by max(|x|, 1e-12) where they are normalized; then products are cosines.
 *
 *   vectors   [n_batch][hidden], in the order of inputs, of any lengths up to max_len.
 *   Accuracy  pooled in double precision, rounded once.
 *   Determinism, threads   each vector has the bits of a call alone, for any threads.
 *   Memory    a run of at most 4,096 tokens at a time, or of one input that is longer.
 *   Errors    as qkv_model_run; QKV_ERR_ARGUMENT; QKV_ERR_VERSION, for struct_size. Vectors may then be
 *             partly written.
 *
 * @param options  nullable.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_embed(qkv_ctx *ctx, const qkv_model *model,
                                                 int64_t n_batch, const qkv_encoding *const *inputs,
                                                 const qkv_embed_options *options, float *vectors,
                                                 qkv_error *error);

/** One word for a blank. */
typedef struct qkv_candidate {
    int32_t id;
    float probability;
} qkv_candidate;

/** The likeliest tokens of qkv_model_mlm at a position, best first (ties: smaller id), softmax
 * over the vocabulary. */
QKV_API QKV_NODISCARD qkv_status qkv_model_fill(qkv_ctx *ctx, const qkv_model *model,
                                                const qkv_run *run, int64_t b, int64_t position,
                                                int64_t n_candidates, qkv_candidate *candidates,
                                                qkv_error *error);

/** The same of qkv_model_lm: the likeliest tokens after the one at a position, of which there are
 * target_vocab_size. */
QKV_API QKV_NODISCARD qkv_status qkv_model_next(qkv_ctx *ctx, const qkv_model *model,
                                                const qkv_run *run, int64_t b, int64_t position,
                                                int64_t n_candidates, qkv_candidate *candidates,
                                                qkv_error *error);

/* ---- Training -------------------------------------------------------------------------------- */

/** What is trained, and for what. */
typedef enum qkv_arch {
    QKV_ARCH_BERT,  /* an encoder, for masked words and next sentences */
    QKV_ARCH_GPT2,  /* a decoder, for the next token */
    QKV_ARCH_ENCDEC /* a decoder over an encoder, for the next token of a target, given its source */
} qkv_arch;

/** What a training run tells while it runs. Rates are over the time since the last report. */
typedef struct qkv_train_report {
    int64_t step, n_steps;
    double loss, mlm_loss,
        nsp_loss;         /* means since the last report; loss is their sum, or lm_loss */
    double held_out_loss; /* of the first 128 examples that are held out, made alike; no dropout */
    double learning_rate, tokens_per_second, seconds, seconds_left;
    qkv_arch arch;
    double lm_loss; /* with label smoothing, if there is any; of held-out examples without */
} qkv_train_report;

/**
 * Trains a model: AdamW, linear warm-up and decay, gradients clipped by their norm. The same options
 * give the same bits for any number of threads and any instruction set.
 *
 *   QKV_ARCH_BERT    MLM (15 %, of which 80 % [MASK], 10 % random, 10 % kept) and NSP; WordPiece.
 *                    A line of the text is a sentence, or sentence TAB following sentence.
 *   QKV_ARCH_GPT2    the next token; byte-level BPE. A line is a document, of a grammar as many
 *                    sentences as fit: <|endoftext|> and its tokens, cut to max_len.
 *   QKV_ARCH_ENCDEC  the next token of a target, all before it being told; byte-level BPE; a BART.
 *                    A line is source TAB target. QKV_ERR_FORMAT, naming it, for one that is not.
 *   from             fine-tunes a model of these families. Its architecture, sizes and vocabulary
 *                    are the run's, in place of those in the options; QKV_ERR_UNSUPPORTED for a model
 *                    without an MLM or LM head. Its configuration is copied.
 *   accumulate       parts of a step, of batch sequences each: the gradient is the mean of theirs, by
 *                    their numbers of targets, in their order. Memory is that of one part.
 *   compute          bf16 (qkv_model_weights): the three products of each linear layer, heads included,
 *                    y = x W^T + b, d_x = d_y W and d_W = d_y^T x, are of both factors rounded to bf16,
 *                    to nearest even, with sums in f32 in the order of the class; an element differs by
 *                    at most 2^-8 sum |a| |b| from that in f32 (to first order). Weights, gradients,
 *                    moments, biases, norms, attention, losses and AdamW are f32, and so is the model that
 *                    is written. QKV_WEIGHTS_BF16 becomes the class that is fast here; a class has the
 *                    same bits on every processor, but without its instruction it is slow. A checkpoint
 *                    names the class, and goes on in no other.
 *   The folder       config.json, the tokenizer's files and model.safetensors, as transformers
 *                    reads them.
 *
 * A run that was stopped by report or cancel, and one that was killed, leaves a checkpoint in out.
 * The same options with resume go on from it and end with the same bits. QKV_ERR_ARGUMENT, naming
 * what differs: it is of another run; or it is of this very run, but resume is NULL.
 */
typedef struct qkv_train_options {
    size_t struct_size;
    const char *text;    /* a file, in lines: see above */
    const char *grammar; /* or a grammar file; exactly one of the two */
    const char *out;     /* the folder to write */
    const char *resume;  /* nullable: a folder written by a run that was stopped */
    int64_t n_layers, n_heads, hidden, intermediate, vocab_size, max_len;
    int64_t n_steps, batch, warmup, checkpoint_every, report_every; /* every 0: never */
    double learning_rate, weight_decay, beta1, beta2, clip;
    uint64_t seed;
    int sinusoidal_positions;
    int (*report)(
        void *user,
        const qkv_train_report *report); /* nullable; non-zero stops with QKV_ERR_CANCELLED */
    void *report_user;
    const int *cancel;  /* nullable; asked after each step: non-zero stops with QKV_ERR_CANCELLED */
    int arch;           /* a qkv_arch */
    const char *from;   /* nullable: the model to start from, as qkv_model_open takes it */
    int64_t accumulate; /* parts of a step; 0: 1 */
    double dropout;     /* of embeddings, weights of attention, and what blocks add */
    double label_smoothing;   /* of LM targets (Szegedy et al. 2016) */
    int64_t n_decoder_layers; /* QKV_ARCH_ENCDEC; 0: as many as n_layers */
    int compute;              /* a qkv_model_weights: what linear layers compute in */
} qkv_train_options;

/** Fills the defaults: 4 layers, 4 heads, hidden 128, feed-forward 512, batch 128, length 32,
 * rate 1.5e-3 … */
QKV_API void qkv_train_options_default(qkv_train_options *options);
QKV_API QKV_NODISCARD qkv_status qkv_train(qkv_ctx *ctx, const qkv_train_options *options,
                                           qkv_error *error);

/** One line of an evaluation: blanks of one slot type. */
typedef struct qkv_eval_row {
    char slot[48];
    int64_t n_blanks, n_top1_admissible, n_single, n_top1_single;
    double mass; /* mean probability on the admissible set */
} qkv_eval_row;

typedef struct qkv_eval_report {
    qkv_eval_row total;
    qkv_eval_row *rows;
    int64_t n_rows;
    double mlm_loss;
    int64_t n_pairs, n_pairs_right;             /* NSP */
    int64_t n_probes, n_probes_right;           /* pronoun probes */
    int64_t head_layer, head_index;             /* chosen on the even probes … */
    int64_t n_head_probes, n_head_probes_right; /* … and measured on the odd ones */
} qkv_eval_report;

/** Masks every token of held-out sentences once (of a text file, or those that a grammar holds
 * out). */
QKV_API QKV_NODISCARD qkv_status qkv_eval(qkv_ctx *ctx, const qkv_model *model, const char *text,
                                          const char *grammar, uint64_t seed,
                                          qkv_eval_report **report, qkv_error *error);
QKV_API void qkv_eval_report_free(qkv_eval_report *report);

/** How much of a text a grammar says. */
typedef struct qkv_sentence_score {
    int64_t n_sentences, n_said; /* all that end; those of the grammar */
    int64_t n_held_out;          /* of these: such as training on the grammar never says */
    int64_t n_unfinished;        /* lines that end within a sentence, which is not counted */
} qkv_sentence_score;

/** A sentence, not terminated; said: 0 not of the grammar, 1 held out from training, 2 of training. */
typedef void qkv_sentence_visit(void *user, const char *sentence, size_t n_bytes, int said);

/**
 * Judges text, such as a model has written, by a grammar (docs/grammar.md): which of its sentences
 * does the grammar say, word by word? Capital letters do not matter.
 *
 * @param grammar A grammar file.
 * @param text    A file of UTF-8: any number of sentences in a line, each ending with . ? or !. A
 *                sentence is right if it is one of the grammar, the first half of one of its pairs,
 *                or the second half right after its first.
 * @param visit   Nullable; called for every sentence that is counted, in order.
 *
 * Errors: QKV_ERR_ARGUMENT, QKV_ERR_IO, QKV_ERR_FORMAT (with the line), QKV_ERR_LIMIT,
 *         QKV_ERR_MEMORY. Memory: both files and 24 bytes for each sentence of the longest line.
 */
QKV_API QKV_NODISCARD qkv_status qkv_eval_sentences(const char *grammar, const char *text,
                                                    qkv_sentence_visit *visit, void *user,
                                                    qkv_sentence_score *score, qkv_error *error);

/* ---- Tables in files -------------------------------------------------------------------------- */

/**
 * A table of keys and values: one line `key,value` for each. Of UTF-8 with or without a byte order
 * mark, lines that end in LF or CRLF, fields as RFC 4180 has them: one in quotes may hold separators,
 * line breaks and, doubled, quotes. The separator is a tab if the first line has one outside of
 * quotes, else a comma, else a semicolon. Spaces around keys and numbers do not count; empty lines
 * are skipped.
 *
 *   Values   The other fields are decimal numbers, as many in every line. A single one may be a list
 *            instead, numbers between spaces, commas or semicolons, with or without [ ] around it:
 *            "1, 2, 3".
 *   Names    If no value of the first line begins like a number (a digit, a sign, a point, "[", nan,
 *            inf), that line has the names of the columns.
 *   Limits   64 MiB, 1,000,000 lines, 4,096 values a line, 64 KiB a field.
 *   Errors   QKV_ERR_FORMAT with line, column (both from 1, in bytes) and the rule: invalid UTF-8, a NUL
 *            byte, an empty key, a value that is missing, no finite float or one too many, a quote
 *            that is never closed or that text follows, no lines; QKV_ERR_LIMIT, _IO, _MEMORY.
 */
typedef struct qkv_table {
    int64_t n_rows, n_values;
    char **keys;   /* [n_rows], as they are in the file: not fit to print */
    char **names;  /* [n_values]; NULL if the table has none */
    float *values; /* [n_rows][n_values], rounded once */
} qkv_table;

QKV_API QKV_NODISCARD qkv_status qkv_table_read(const char *path, qkv_table **table,
                                                qkv_error *error);
/** The same from bytes in memory; name is for messages. */
QKV_API QKV_NODISCARD qkv_status qkv_table_parse(const char *name, const void *bytes,
                                                 size_t n_bytes, qkv_table **table,
                                                 qkv_error *error);
QKV_API void qkv_table_free(qkv_table *table);

/* ---- Arrays in files ------------------------------------------------------------------------- */

typedef enum qkv_array_type {
    QKV_ARRAY_F32,
    QKV_ARRAY_BOOL,
    QKV_ARRAY_I64,
    QKV_ARRAY_BF16, /* uint16_t, as in qkv_dtype; written as f32, because .npy has no bf16 */
    QKV_ARRAY_F16,
    QKV_ARRAY_BYTES /* never read; written as they are, as a file of its own kind */
} qkv_array_type;

/**
 * A dense array in row-major order, read from a file; floats of other widths are converted to f32,
 * integers to i64.
 */
typedef struct qkv_array {
    qkv_array_type type;
    int rank;
    int64_t shape[8];
    int64_t n_elems;
    void *data;
} qkv_array;

/**
 * Reads F.npy, F.safetensors:NAME or F.npz:NAME, the array that numpy's load knows as NAME, stored
 * or deflated. A zip is checked whole, and so is the checksum of what is read.
 */
QKV_API QKV_NODISCARD qkv_status qkv_array_read(const char *path, qkv_array **array,
                                                qkv_error *error);
/**
 * The same, with floats of every width as floats: QKV_ARRAY_F32, QKV_ARRAY_BF16 or QKV_ARRAY_F16,
 * rounded once, to nearest even, where they do not fit. An .npy of the type `<V2`, two bytes that
 * say nothing more, is what ml_dtypes writes for bf16: it is read if floats is QKV_ARRAY_BF16, and
 * refused otherwise.
 */
QKV_API QKV_NODISCARD qkv_status qkv_array_read_as(const char *path, qkv_array_type floats,
                                                   qkv_array **array, qkv_error *error);
/** Writes F.npy, of version 1, or F.npz:NAME, a .npz with this array alone; as qkv_file_write does. */
QKV_API QKV_NODISCARD qkv_status qkv_array_write(const char *path, const qkv_array *array,
                                                 qkv_error *error);
/**
 * Writes n arrays to n files, those of F.npz:NAME with the same F into one, in their order: a new
 * one, as numpy.savez does, with its bytes; what an old one held is gone. Files appear together: all of them are written beside their places before the first one is
 * put there, so a failure such as a full disk leaves every old file as it was. Only where putting a
 * written file in its place fails can those before it be new already.
 */
QKV_API QKV_NODISCARD qkv_status qkv_arrays_write(int n, const char *const *paths,
                                                  const qkv_array *const *arrays, qkv_error *error);
QKV_API void qkv_array_free(qkv_array *array);

/**
 * Writes a file whole or not at all, as everything here that writes files does: it has no name
 * until it is complete and on the disk (a temporary name beside path where the file system knows no
 * files without one), and then takes the place of the old one, with its permissions. Links are
 * followed and stay. A pipe or a device is written to as it is.
 */
QKV_API QKV_NODISCARD qkv_status qkv_file_write(const char *path, const void *bytes, size_t n_bytes,
                                                qkv_error *error);
/** Whether a file could be written to path now: for a long computation to ask before it begins. */
QKV_API QKV_NODISCARD qkv_status qkv_file_writable(const char *path, qkv_error *error);

/** A tensor of a .safetensors or .npz file as it is stored. */
typedef struct qkv_tensor_entry {
    const char *name; /* escaped for printing, cut at 400 bytes */
    const char *type; /* "F32", "BF16", "I64" … */
    int rank;
    int64_t shape[8];
} qkv_tensor_entry;

/** Checks the header of a .safetensors file, those of all that a .safetensors.index.json names, or
 * a .npz and the headers of its arrays (types without a name here are "V2": two bytes each), and calls visit for each tensor, in byte order of their names. Entries live until visit returns. */
QKV_API QKV_NODISCARD qkv_status qkv_tensor_list(const char *path,
                                                 void (*visit)(void *user,
                                                               const qkv_tensor_entry *entry),
                                                 void *user, qkv_error *error);

/** What a strict reader minds about a .safetensors file, though other readers may load it. */
typedef struct qkv_finding {
    const char *rule;   /* "duplicate-key", "hole" …: docs/hostile-inputs.md has them all */
    const char *tensor; /* escaped for printing, cut at 400 bytes; NULL if it is no one tensor's */
    const char *text;   /* what is wrong, escaped */
    uint64_t offset;    /* in the file: where it shows */
} qkv_finding;

typedef struct qkv_audit {
    uint64_t n_bytes;
    int64_t n_tensors, n_findings;
} qkv_audit;

/** Reads a whole .safetensors file and calls visit for all that is wrong with it, as far as it can
 * be read, and not only for the first; findings live until visit returns. Every file without
 * findings opens. @return QKV_OK, with findings or without; an error if the file cannot be audited:
 * IO, MEMORY, or LIMIT where its header is above our limits. */
QKV_API QKV_NODISCARD qkv_status qkv_tensor_audit(const char *path,
                                                  void (*visit)(void *user,
                                                                const qkv_finding *finding),
                                                  void *user, qkv_audit *audit, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
