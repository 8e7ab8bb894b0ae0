/**
 * qkv models: from tokens to hidden states, and q, k and lse of every head on the way.
 *
 *     qkv_model *model = NULL;
 *     qkv_encoding *tokens = NULL;
 *     qkv_run *run = NULL;
 *     if (qkv_model_open("bert-base-uncased", NULL, &model, &error) == QKV_OK &&
 *         qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), text, strlen(text), NULL, 0,
 *                              &tokens, &error) == QKV_OK &&
 *         qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&tokens, QKV_RUN_CAPTURE, NULL,
 *                       &run, &error) == QKV_OK)
 *         hidden = qkv_run_hidden(run, QKV_SELF, 0, qkv_model_get_info(model)->n_layers);
 *
 * A model is read-only after it is opened. Many threads may use it, each with its own context.
 * Every object is freed by its own function, which accepts NULL.
 */
#ifndef QKV_MODEL_H
#define QKV_MODEL_H

#include "qkv/qkv.h"
#include "qkv/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a model is ------------------------------------------------------------------------- */

typedef struct qkv_model qkv_model;

/** Which stacks a model has, and so what it is trained for. */
typedef enum qkv_model_kind {
    /** Tokens see each other. It is trained for masked words and next sentences. */
    QKV_MODEL_ENCODER,
    /** Tokens see those before them only. It is trained for the next token. */
    QKV_MODEL_DECODER,
    /**
     * A decoder over an encoder. It is trained for the next token of a target, given its source.
     */
    QKV_MODEL_PAIR
} qkv_model_kind;

/** How hidden states h_1 … h_n of a text's tokens, special ones among them, become one vector. */
typedef enum qkv_pooling {
    /** What the model's files say (modules.json), else the mean. */
    QKV_POOLING_DEFAULT,
    /** The sum of h_i, divided by n. */
    QKV_POOLING_MEAN,
    /** h_1. */
    QKV_POOLING_CLS,
    /** Of each channel the largest. */
    QKV_POOLING_MAX,
    /** The sum of h_i, divided by the root of n. */
    QKV_POOLING_MEAN_SQRT_LEN,
    /** The sum of i h_i, divided by n (n + 1) / 2. */
    QKV_POOLING_WEIGHTED_MEAN,
    /** h_n. */
    QKV_POOLING_LAST
} qkv_pooling;

/**
 * How a model keeps the weights of its linear layers, and what these compute with. They are kept
 * once, as the panels that are multiplied. A table of words that a head shares is such a weight,
 * and vectors of words are read from its panels. Other tables, norms, biases and attention are f32.
 * A model whose file has bf16 is kept in bf16 without loss, in half the memory of f32.
 */
typedef enum qkv_model_weights {
    QKV_WEIGHTS_F32,
    /** The faster of the next two on this processor: AMX where there is AMX, else DP. */
    QKV_WEIGHTS_BF16,
    /** Weights and inputs are rounded to bf16. Sums are f32, in the order of VDPBF16PS. */
    QKV_WEIGHTS_BF16_DP,
    /** The same, in the order of TDPBF16PS. */
    QKV_WEIGHTS_BF16_AMX,
    /** Weights and inputs are rounded to 8-bit integers, in groups of 64 with a scale each. */
    QKV_WEIGHTS_INT8,
    /**
     * As the file has them: blocks of a GGUF file that layers multiply by stay as they lie, and
     * inputs are rounded to 8-bit integers; all other weights are f32. Without such blocks it is
     * QKV_WEIGHTS_F32, also in qkv_model_info.
     */
    QKV_WEIGHTS_FILE
} qkv_model_weights;

/** Bits of qkv_model_info.untied: what has a table of words of its own, not the shared one. */
enum {
    /** The head that predicts words: masked ones, or the next. */
    QKV_UNTIED_HEAD = 1,
    /** The vectors of words of the encoder of BART or Marian. */
    QKV_UNTIED_ENCODER = 2,
    /** Those of its decoder. */
    QKV_UNTIED_DECODER = 4
};

/** How frequencies of rotary positions are made for texts longer than those learned from. */
typedef enum qkv_rope_type {
    QKV_ROPE_NONE,
    QKV_ROPE_DEFAULT,
    /** w / factor. */
    QKV_ROPE_LINEAR,
    /** By the length of the text (NTK-aware): as by default up to original_len tokens. */
    QKV_ROPE_DYNAMIC,
    /** By the wavelength: w, w / factor, or a mixture (Llama 3.1). */
    QKV_ROPE_LLAMA3,
    /** Peng et al. 2023. */
    QKV_ROPE_YARN
} qkv_rope_type;

/**
 * Rotary positions (Su et al. 2021). With d = rotary_dim and i < d / 2, position p turns channels i
 * and i + d / 2 of every query and key by the angle p w_i, or channels 2i and 2i + 1 with
 * rotary_neighbours. Channels from d on stay as they are.
 *
 *     default   w_i = theta^(-2 i / d)
 *     linear    w_i / factor
 *     dynamic   theta' in place of theta, in a text of n > original_len tokens:
 *               theta' = theta (factor n / original_len - (factor - 1))^(d / (d - 2)).
 *               A decoder's kept keys stay as they were turned when n was smaller
 *     llama3    with t = original_len w_i / 2 pi: w_i if t > high_freq_factor, w_i / factor if
 *               t < low_freq_factor, else (1 - s) w_i / factor + s w_i,
 *               s = (t - low) / (high - low)
 *     yarn      w_i (g / factor + 1 - g), g = clamp((i - a) / (b - a), 0, 1),
 *               a = floor(r(beta_fast)), b = ceil(r(beta_slow)),
 *               r(n) = d ln(original_len / (2 pi n)) / (2 ln theta), both rounded only if
 *               `truncates`, a at least 0 and b at most d - 1
 *
 * Cosines and sines are multiplied by attention_factor, which is 1 but for yarn.
 */
typedef struct qkv_rope {
    qkv_rope_type type;
    double theta, factor, original_len;
    double low_freq_factor, high_freq_factor;
    double beta_fast, beta_slow;
    double attention_factor;
    int truncates;
} qkv_rope;

enum {
    /** The most layers of a stack. */
    QKV_MAX_LAYERS = 1024,
    /** Bits of qkv_model_info.layer_kinds: queries see a window; there are no rotary positions. */
    QKV_LAYER_SLIDES = 1,
    QKV_LAYER_UNROTATED = 2,
    /** Bits of qkv_model_info.biases: of q, k and v; of what follows attention; of the MLP. */
    QKV_BIAS_QKV = 1,
    QKV_BIAS_OUTPUT = 2,
    QKV_BIAS_MLP = 4,
    /** With QKV_BIAS_QKV: k has no bias. */
    QKV_BIAS_NO_KEY = 8
};

/** What logits of a classifier mean, by problem_type and the number of labels. */
typedef enum qkv_label_kind {
    /** A text has one label: softmax makes them probabilities. */
    QKV_LABELS_ONE,
    /** Each label may hold, or there is but one: sigmoid makes them probabilities. */
    QKV_LABELS_EACH,
    /** They are values (regression). */
    QKV_LABELS_VALUES
} qkv_label_kind;

/** What a classifier labels. */
typedef enum qkv_label_task {
    /** A text, or an image (qkv_model_classify). */
    QKV_LABELS_OF_TEXTS,
    /** Each token (qkv_model_classify_tokens). */
    QKV_LABELS_OF_TOKENS,
    /** Each token: label 0, an answer begins there; 1, one ends there. */
    QKV_LABELS_OF_ANSWERS
} qkv_label_task;

/** The library allocates it, and it may grow at its end. */
typedef struct qkv_model_info {
    /** model_type of config.json: "bert", "gpt2", "bart" … */
    const char *architecture;
    /** The folder, escaped for printing; "embedded" for a model from memory. */
    const char *source;
    qkv_model_kind kind;

    /* Sizes. */

    /** Of the encoder, or of the only stack. */
    int64_t n_layers, n_heads, hidden, head_dim, intermediate, vocab_size, max_len;
    /** Key/value heads of self-attention, each of which n_heads / n_kv_heads query heads share. */
    int64_t n_kv_heads;
    /** Segments; 0: the model has none and ignores them. */
    int64_t n_types;
    /** Of the vectors of words: hidden, except for ELECTRA and some OPT. */
    int64_t embedding_size;
    /** Of the decoder over an encoder; 0: there is none. */
    int64_t n_decoder_layers, n_decoder_heads, decoder_intermediate;
    /**
     * Words that the decoder reads and writes: vocab_size, unless the vocabularies are separate.
     */
    int64_t target_vocab_size;
    int64_t n_parameters;

    /* Words and positions. */

    /** 1: encoder and decoder have words, and vectors of words, of their own. */
    int separate_words;
    /**
     * QKV_UNTIED_…; 0: the family's ties hold. Ties end by config.json (tie_word_embeddings:
     * false), or because the file has another copy of what would be tied.
     */
    int untied;
    /** 1: vectors of words are multiplied by the root of hidden. */
    int scales_words;
    /** Above 0: that root, rounded to the type in which the file has the words (Gemma). */
    double word_scale;
    /** 1: positions are sinusoids, not learned. */
    int sinusoidal_positions;
    /** Row of the position table that the first token gets: 0, except for RoBERTa, BART, OPT. */
    int64_t first_position;
    /** Channels of a head that rotary positions turn: all, or the first (GPT-NeoX); 0: none. */
    int64_t rotary_dim;
    /** 1: rotary positions turn channels 2i and 2i + 1 as one vector (GPT-J). */
    int rotary_neighbours;
    /** Rotary positions of layers that do not slide, and of those that do; both may be alike. */
    qkv_rope rope[2];
    /**
     * Of a bias by distance (T5), in place of positions: numbers of each head, and the distance
     * from which on all keys have the last of them; 0: there is none.
     */
    int64_t distance_buckets, max_distance;
    /** 1: scores have ALiBi, in place of positions (BLOOM). */
    int alibi;

    /* Attention. */

    /** 1: scores are not divided by the root of head_dim (GPT-2, T5). */
    int unscaled;
    /** 1: scores of layer l = 0, 1, … are divided by l + 1 (GPT-2). */
    int scales_by_layer;
    /** The factor on q.k; 0: 1 / sqrt(head_dim), or what the fields above say. */
    double score_scale;
    /** c of c tanh(x / c), of scores and of the logits of the next token; 0: none. */
    double score_cap, logit_cap;
    /** Of layers that slide: query i sees keys i - window_left to i + window_right; -1: all. */
    int64_t window_left, window_right;
    /** [n_layers] QKV_LAYER_… */
    unsigned char layer_kinds[QKV_MAX_LAYERS];

    /* Blocks. */

    /**
     * Of the feed-forward: "gelu" (with erf), "gelu_tanh", "relu", "silu", "quick_gelu", "tanh".
     */
    const char *activation;
    /** 1: the feed-forward is gated, in a family that has both (DINOv2, T5). */
    int gated;
    /** QKV_BIAS_… of linear layers in blocks. */
    int biases;
    double layer_norm_eps;
    /** 1: norms are RMSNorm (Llama), not LayerNorm. */
    int rms_norm;
    /** 1: norms are of sums, norm(x + f(x)), in a family that has f(norm(x)) otherwise (OPT). */
    int post_norm;
    /** 1: no norm ends the stack of such a family (OPT). */
    int no_last_norm;
    /** 1: both parts of a block read its input (GPT-NeoX), not the second the sum of the first. */
    int parallel;
    /** 1: parts of a block are added to the norm that they read, not to its input (some BLOOM). */
    int adds_to_norm;

    /* Heads on top, and tokens of generated texts. */

    /** Masked words, next sentence, pooler, replaced tokens (ELECTRA), next token. */
    int has_mlm, has_nsp, has_pooler, has_discriminator, has_lm;
    /** 1: logits of the next token are divided by the root of hidden (T5). */
    int scales_logits;
    /**
     * Tokens by which generated texts begin and end, that of padding, and the one that a decoder
     * over an encoder starts from; -1: none. Models without a decoder have padding only.
     */
    int64_t bos_id, eos_id, pad_id, start_id;

    /* Weights. */

    /** Any but QKV_WEIGHTS_BF16. FILE: some are blocks of a GGUF file. */
    qkv_model_weights weights;
    /** Memory that all parameters take as they are kept. */
    int64_t weights_bytes;

    /* Vectors of sentences. */

    /**
     * The mean, if no modules.json says otherwise. If that has several, the first.
     */
    qkv_pooling pooling;
    /** 1: vectors have length 1. */
    int normalizes;
    /** The most tokens of a text, at most max_len. */
    int64_t sentence_len;
    /** Numbers of a vector: pooled_dim, unless a modules.json says otherwise. */
    int64_t sentence_dim;
    /** Modules with weights behind the pooling: Dense, LayerNorm. */
    int sentence_layers;
    /** Channels that are pooled: hidden, or embedding_size, to which some OPT project them. */
    int64_t pooled_dim;

    /* A classifier. */

    /** Classes that a text may have; 0: there is no classifier on top. */
    int64_t n_labels;
    /**
     * What the classifier reads: QKV_POOLING_CLS, the first token, QKV_POOLING_MEAN, or of a
     * decoder QKV_POOLING_LAST, the last token that is not pad_id.
     */
    qkv_pooling label_pooling;
    /** What its logits mean. */
    qkv_label_kind label_kind;
    /** What it labels. */
    qkv_label_task label_task;
    /** 1: logits of classes are the mean of two classifiers, of [CLS] and of [DIST] (DeiT). */
    int distilled;

    /* Images (qkv/vision.h). */

    /**
     * The size of the images that the model was trained on, and that of a patch. 0: it reads texts.
     */
    int64_t image_height, image_width, patch_height, patch_width;
    /** Tokens before those of patches, and how many of them, the last, are registers. */
    int64_t n_prefix, n_registers;
    /** Numbers of a vector in the space that texts and images share (CLIP, SigLIP); 0: none is. */
    int64_t joint_dim;
    /** An image and a text match by match_scale cos(image, text) + match_bias. */
    double match_scale, match_bias;
    /** 1: a text matches with the sigmoid of its own logit (SigLIP), not the softmax over texts. */
    int match_each;
    /** Tokens to which qkv_model_pad pads a text, as in training; 0: texts are not padded. */
    int64_t padded_len;
} qkv_model_info;

/* ---- Opening --------------------------------------------------------------------------------- */

/** Made by qkv_model_open_options_init(). */
typedef struct qkv_model_open_options {
    size_t struct_size;
    /* by default QKV_WEIGHTS_FILE */
    qkv_model_weights weights;
    /* NULL, or a context whose threads read the weights. The model is the same, and keeps none. */
    qkv_ctx *ctx;
} qkv_model_open_options;

static inline qkv_model_open_options qkv_model_open_options_init(void) {
    qkv_model_open_options made;
    memset(&made, 0, sizeof made);
    made.struct_size = sizeof made;
    made.weights = QKV_WEIGHTS_FILE;
    return made;
}

/**
 * Opens a model: a folder with config.json, a .safetensors file or a .safetensors.index.json in
 * one, a GGUF file, or a cached Hugging Face name. Weights of a folder are in its
 * model.safetensors, or in the files of model.safetensors.index.json. It must also have the files
 * of a tokenizer (qkv_tokenizer_open). A GGUF file is a path that ends in .gguf, a file that begins
 * with GGUF, or ollama:NAME[:TAG], a model of Ollama's. It has all of a model in it. Nothing is
 * downloaded. Every byte of the files is checked, and messages name the file, the field, the value
 * and the rule.
 *
 *   Memory   that of the parameters in the form in which they are kept, and 1 MiB for each thread
 *            while they are read.
 *   bf16     Each linear layer y = x W^T + b, heads included, rounds x and W to bf16, to nearest
 *            even. Products are exact, sums are f32 in the order of the class (docs/numerics.md,
 *            Layers), and b and y are f32. An encoder also attends in bf16, and a decoder in f32.
 *            A layer's result differs from that in f32 by at most 2^-7 sum |x| |W| (first order).
 *            A class has the same bits everywhere; without its instruction it is slow.
 *   int8     Each of these layers rounds groups of 64 neighbours in a row of x, and in a row of W,
 *            to scale q: scale = max|x| / 127, and q is the integer nearest to x / scale. Sums of
 *            64 products are exact; they are scaled and added as f32 (docs/numerics.md, Layers).
 *            b, y and attention are f32. The bits are the same everywhere. Weights take 17/64 of
 *            the memory of f32. A group that holds a NaN or an infinity becomes NaN, and one below
 *            2^-100 becomes zeros. Such a model is not trained.
 *
 *   file     Of a GGUF file, layers with weights in Q8_0, Q4_0, Q4_1, Q5_0, Q4_K, Q5_K or Q6_K keep
 *            their blocks, in about the memory of the file, and so do vectors of words. A row of x
 *            is rounded as in int8, in groups as long as a block. Sums of products of integers are
 *            exact; they are scaled and added as f32 (docs/numerics.md, Products by blocks). The
 *            bits are the same everywhere. With QKV_WEIGHTS_F32 the numbers that blocks stand for
 *            are multiplied in f32, as transformers does.
 *
 * @param options  NULL: the defaults.
 * @return QKV_OK; the errors of the files; QKV_ERR_ARGUMENT; QKV_ERR_VERSION for struct_size;
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_open(const char *path_or_name,
                                                const qkv_model_open_options *options,
                                                qkv_model **model, qkv_error *error);

/**
 * Opens a model from the bytes of a config.json, a vocab.txt and a .safetensors file, which it
 * copies.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_open_memory(const void *config, size_t config_bytes,
                                                       const void *vocab, size_t vocab_bytes,
                                                       const void *weights, size_t weights_bytes,
                                                       const qkv_model_open_options *options,
                                                       qkv_model **model, qkv_error *error);
QKV_API void qkv_model_free(qkv_model *model);
QKV_API const qkv_model_info *qkv_model_get_info(const qkv_model *model);

/**
 * Returns the tokenizer of the texts that go in, or of those that come out. The latter is that of
 * the decoder of a pair, and the same one for all other models. It lives as long as the model.
 */
QKV_API const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *model, qkv_side side);

/* ---- What was read --------------------------------------------------------------------------- */

/**
 * Returns the name of the index-th file that the weights came from, without its folder, escaped for
 * printing; NULL past the end. Names are in their order. A model from memory has none.
 */
QKV_API const char *qkv_model_file(const qkv_model *model, int64_t index);

/**
 * Returns the name of the index-th stored tensor that the model does not use, escaped for printing;
 * NULL past the end. It is "NAME in FILE" if the weights are in several files.
 */
QKV_API const char *qkv_model_unused(const qkv_model *model, int64_t index);

/**
 * Returns the index-th sentence about what was accepted but is odd, escaped for printing; NULL past
 * the end. Examples: a vocabulary that has a token twice, tokens without a row of the embedding, a
 * generation_config.json by which nothing can be generated.
 */
QKV_API const char *qkv_model_warning(const qkv_model *model, int64_t index);

/** A parameter that holds NaN or infinities. The struct may grow at its end. */
typedef struct qkv_not_finite {
    /** Its name as transformers writes it; valid until visit returns. */
    const char *tensor;
    int64_t n_nan, n_inf;
} qkv_not_finite;

/**
 * Calls visit for every parameter that holds a NaN or an infinity, and returns how many do. visit
 * may be NULL. Models load with them, since such a row of an embedding may never be used.
 */
QKV_API int64_t qkv_model_check_finite(const qkv_model *model,
                                       void (*visit)(void *user, const qkv_not_finite *found),
                                       void *user);

/**
 * Copies the vector [embedding_size] of a token: a row of the table of words, the encoder's if
 * there are two. Values are those of the file as f32. They are rounded to bf16 where the weights
 * are kept so and a head shares the table, and to int8 likewise.
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL, or an id that is not in 0 … vocab_size - 1.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_word_vector(const qkv_model *model, int32_t id,
                                                       float *vector, qkv_error *error);

/**
 * Fills table [n_positions][dim] with sinusoidal positions (Vaswani et al. 2017, section 3.5):
 *     table[p][2 i] = sin(p w)    table[p][2 i + 1] = cos(p w)    w = 10000^(-2 i / dim)
 * n_positions is 1 … 2^20, dim 1 … 2^16. Accuracy: half an ulp and 1e-9 of it, the same bits
 * everywhere. @return QKV_OK; QKV_ERR_ARGUMENT.
 */
QKV_API QKV_NODISCARD qkv_status qkv_sinusoids(int64_t n_positions, int64_t dim, float *table,
                                               qkv_error *error);

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct qkv_run qkv_run;

enum {
    /** Keep q, k and lse of every layer and head. */
    QKV_RUN_CAPTURE = 1u << 0,
    /** Keep the hidden states of every layer, not only of the last. */
    QKV_RUN_HIDDEN = 1u << 1,
    /** Keep what every head gives, before the output projection: qkv_run_outputs. */
    QKV_RUN_OUTPUTS = 1u << 2
};

/** Which attention of a model. */
typedef enum qkv_attention_kind {
    /** Of the only stack, or of the encoder, to itself. */
    QKV_SELF,
    /** Of a decoder over an encoder, to itself: causal. */
    QKV_DECODER,
    /** Of the decoder to the encoder: queries are target tokens, keys are source tokens. */
    QKV_CROSS
} qkv_attention_kind;

/**
 * What a run does otherwise. Zeros are the model as it is. Made by qkv_run_options_init().
 *
 * The fields before targets change attention in every layer and head:
 *     s[j] = <q_i, k_j> scale / temperature    for the keys j that are left
 * Later layers see what follows from it. Captures have the changed scale. The weight of a key that
 * is not seen is 0. A query that sees no key has weights of 0 and lse = -infinity, and attention
 * adds nothing to its token.
 */
typedef struct qkv_run_options {
    size_t struct_size;
    /** 1: query i sees keys j <= i only. */
    int causal;
    /** 1: scale is 1, not 1 / sqrt(head_dim). */
    int no_scale;
    /** Scores are divided by it. It is finite and above 0; 0 means 1. */
    double temperature;
    /**
     * NULL, or [n_batch], of each input NULL or [n]: 1 for tokens that no query sees as a key.
     * Tokens of a pair are those of the source, for the encoder and for cross-attention.
     */
    const uint8_t *const *dropped;
    /**
     * [n_batch] what the decoder over an encoder reads; NULL: the encoder alone runs. A target
     * begins with the token that the model starts from (start_id). Its row i predicts token i + 1.
     */
    const qkv_encoding *const *targets;
    /**
     * NULL, or [n_cuts][4]: edges of the attention cut_which that are cut, in a run of one input:
     * layer, head, query and key. The query does not see the key there, and what it gives others
     * grows. -1: all layers; all heads. Then masks of n_queries * n_keys bytes are kept, for each
     * layer or head, at most 2^31 bytes.
     */
    const int64_t *cuts;
    int64_t n_cuts;
    qkv_attention_kind cut_which;
} qkv_run_options;
QKV_DEFINE_INIT(qkv_run_options)

/**
 * Runs a model on a batch of encodings of any lengths, each at most max_len.
 *
 *   Determinism, threads   each result has the bits of a run alone, for any threads.
 *   Errors   QKV_ERR_SHAPE for a length; QKV_ERR_ARGUMENT, for a temperature or scale that is no
 *            float above 0, too; QKV_ERR_UNSUPPORTED for targets of a model without two stacks;
 *            QKV_ERR_VERSION for struct_size; QKV_ERR_MEMORY. *run is NULL then.
 *
 * @param flags    0, or QKV_RUN_... The heads on top need none of them.
 * @param options  NULL: the defaults.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_run(qkv_ctx *ctx, const qkv_model *model,
                                               int64_t n_batch, const qkv_encoding *const *inputs,
                                               uint32_t flags, const qkv_run_options *options,
                                               qkv_run **run, qkv_error *error);
QKV_API void qkv_run_free(qkv_run *run);

/**
 * Returns hidden states [n][hidden] after a layer, of the stack whose attention is QKV_SELF or
 * QKV_DECODER. Layer 0 is the embeddings, and n_layers the last one, with a norm that follows it.
 * NULL if they were not kept.
 */
QKV_API const float *qkv_run_hidden(const qkv_run *run, qkv_attention_kind which, int64_t b,
                                    int64_t layer);

/**
 * Returns what the heads of an attention give, [n][n_heads][head_dim]: o = softmax(scale q k^T) v,
 * before the output projection. NULL if it was not kept (QKV_RUN_OUTPUTS). It lives as long as the
 * run.
 */
QKV_API const float *qkv_run_outputs(const qkv_run *run, qkv_attention_kind which, int64_t b,
                                     int64_t layer);

/** What attention had in a layer. The arrays live as long as the run. */
typedef struct qkv_capture {
    size_t struct_size;
    /**
     * [n_heads][n][head_dim] and [n_kv_heads][n_keys][head_dim], as scores are made of them: after
     * the bias, norms of queries and keys and rotary positions, and before scaling. Head h has the
     * keys of key/value head h / (n_heads / n_kv_heads).
     */
    const float *q, *k;
    /** [n_heads][n]. */
    const float *lse;
    int64_t n_heads, n, head_dim;
    /** The factor on q·k. */
    float scale;
    /** 1: queries see keys j <= i only. */
    int causal;
    /** [n_keys]: 0 for keys that no query sees (qkv_run_options.dropped); NULL: all are seen. */
    const uint8_t *seen;
    /** n, except for cross-attention. */
    int64_t n_keys;
    /** n_heads, except for models whose query heads share keys. */
    int64_t n_kv_heads;
    /** Query i sees keys i - window_left to i + window_right only; -1: no bound. */
    int64_t window_left, window_right;
    /** A score s becomes softcap tanh(s / softcap); 0: it stays. */
    float softcap;
    /**
     * NULL, or rows of heads whose element for j - i is added to the score: the fields of
     * qkv_attention_desc.
     */
    const float *distance_bias;
    int64_t distance_bias_stride, distance_before, distance_after;
    /** NULL, or [n_heads]: slope[h] (j - i) is added to the score (ALiBi). */
    const float *alibi_slopes;
    /**
     * NULL, or what qkv_run_options.cuts left of the layer: head h, query i sees key j only if
     * element h * uncut_stride + i * n_keys + j is 1. It has 0 for keys that `seen` hides, too.
     */
    const uint8_t *uncut;
    int64_t uncut_stride;
} qkv_capture;
QKV_DEFINE_INIT(qkv_capture)

/**
 * @param capture  made by qkv_capture_init(); written only after success.
 * @return QKV_OK; QKV_ERR_ARGUMENT for an attention that the run does not have, or did not keep;
 *         QKV_ERR_VERSION.
 */
QKV_API QKV_NODISCARD qkv_status qkv_run_capture(const qkv_run *run, qkv_attention_kind which,
                                                 int64_t b, int64_t layer, qkv_capture *capture,
                                                 qkv_error *error);

/**
 * Computes the weights [n][n_keys] of one head, as exp(softcap(scale q·k) + bias - lse). Rows are
 * queries and sum to 1. Keys that are not seen have 0. The bias is that by distance, or ALiBi.
 */
QKV_API QKV_NODISCARD qkv_status qkv_run_weights(const qkv_run *run, qkv_attention_kind which,
                                                 int64_t b, int64_t layer, int64_t head,
                                                 float *weights, qkv_error *error);

/* ---- Heads on top ---------------------------------------------------------------------------- */

/** A head that predicts words. */
typedef enum qkv_word_head {
    /** The word that stands at a masked position, out of vocab_size. */
    QKV_HEAD_MASKED,
    /**
     * The token after the one at a position (of the decoder of a pair), out of target_vocab_size.
     */
    QKV_HEAD_NEXT,
    /** A class of the whole text or image, out of n_labels; for qkv_inspect_effects only. */
    QKV_HEAD_LABEL
} qkv_word_head;

/** Computes logits of words at a position. QKV_ERR_UNSUPPORTED without such a head. */
QKV_API QKV_NODISCARD qkv_status qkv_model_logits(qkv_ctx *ctx, const qkv_model *model,
                                                  const qkv_run *run, qkv_word_head head, int64_t b,
                                                  int64_t position, float *logits,
                                                  qkv_error *error);

/** One word for a position. */
typedef struct qkv_candidate {
    int32_t id;
    float probability;
} qkv_candidate;

/**
 * Finds the likeliest words of qkv_model_logits by its softmax, best first, of equal ones the
 * smaller id. candidate_bytes is sizeof(qkv_candidate) as the caller knows it.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_candidates(qkv_ctx *ctx, const qkv_model *model,
                                                      const qkv_run *run, qkv_word_head head,
                                                      int64_t b, int64_t position,
                                                      int64_t n_candidates,
                                                      qkv_candidate *candidates,
                                                      size_t candidate_bytes, qkv_error *error);

/** Computes NSP logits: [0] the second text follows the first, [1] it does not. */
QKV_API QKV_NODISCARD qkv_status qkv_model_nsp(qkv_ctx *ctx, const qkv_model *model,
                                               const qkv_run *run, int64_t b, float logits[2],
                                               qkv_error *error);

/**
 * Computes logits [n] of "this token was put in place of another one", for every token of an input
 * (ELECTRA: Clark et al. 2020). sigmoid makes them probabilities.
 * @return QKV_OK; QKV_ERR_UNSUPPORTED without such a head.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_discriminate(qkv_ctx *ctx, const qkv_model *model,
                                                        const qkv_run *run, int64_t b,
                                                        float *logits, qkv_error *error);

/**
 * Computes logits [n_labels] of the classes of input b, by a classifier of texts (or of images).
 * With x the first token's last hidden state, or the mean of all, special tokens among them:
 *
 *     BERT                          W tanh(Wp x + bp) + b
 *     RoBERTa, DistilBERT, ELECTRA  W f(Wd x + bd) + b     f: tanh, relu, gelu
 *     ModernBERT                    W norm(gelu(Wt x)) + b
 *     decoders                      W x, with x of the last token that is not padding
 *
 * qkv_model_info.label_kind says what they mean. The mean is a sum in double, in the order of
 * tokens, rounded once.
 *
 * @return QKV_OK; QKV_ERR_UNSUPPORTED without such a classifier; the errors of qkv_model_nsp.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_classify(qkv_ctx *ctx, const qkv_model *model,
                                                    const qkv_run *run, int64_t b, float *logits,
                                                    qkv_error *error);

/**
 * Computes logits [n][n_labels] of the classes of each of the n tokens of input b, by a classifier
 * of tokens or of answers. With x the token's last hidden state:
 *
 *     ModernBERT  W norm(gelu(Wt x)) + b
 *     others      W x + b
 *
 * Of a classifier of tokens softmax over the labels of a token makes them probabilities; of one of
 * answers softmax over the tokens where an answer may be, for each of both labels.
 *
 * @return QKV_OK; QKV_ERR_UNSUPPORTED without such a classifier; the errors of qkv_model_nsp.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_classify_tokens(qkv_ctx *ctx, const qkv_model *model,
                                                           const qkv_run *run, int64_t b,
                                                           float *logits, qkv_error *error);

/**
 * Makes probabilities of the logits of a classifier, or copies them where they are values.
 *
 *     label_task                logits, p           p
 *     QKV_LABELS_OF_TEXTS       [n_rows][n_labels]  QKV_LABELS_ONE: softmax of each row;
 *                                                   QKV_LABELS_EACH: 1 / (1 + exp(-x)) of each
 *                                                   number; QKV_LABELS_VALUES: x
 *     QKV_LABELS_OF_TOKENS      [n_rows][n_labels]  softmax of each row
 *     QKV_LABELS_OF_ANSWERS     [n_rows][2]         softmax of each column, over the tokens where
 *                                                   an answer may be; 0 elsewhere
 *
 * An answer may be in the second text of a pair, or the only one, and at the first of all tokens,
 * [CLS], which says that there is none (Devlin et al. 2018).
 *
 * Special values: NaN makes its row NaN, of answers its column. Accuracy: double.
 *
 * @param input   of answers the tokens, n_rows of them, with begin and end; else it may be NULL.
 * @param n_rows  texts; or tokens of one text.
 * @param logits  those of qkv_model_classify or qkv_model_classify_tokens.
 * @return QKV_OK; QKV_ERR_UNSUPPORTED without a classifier; QKV_ERR_ARGUMENT; QKV_ERR_SHAPE for
 *         tokens that are not n_rows.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_probabilities(const qkv_model *model,
                                                         const qkv_encoding *input, int64_t n_rows,
                                                         const float *logits, double *p,
                                                         qkv_error *error);

enum {
    /** The most tokens of an answer. */
    QKV_ANSWER_TOKENS = 15
};

/** An answer: the tokens begin to end, both of which it has. Both are 0: there is no answer. */
typedef struct qkv_answer {
    int64_t begin, end;
    double probability;
} qkv_answer;

/**
 * Finds the likeliest answers to a question (QKV_LABELS_OF_ANSWERS), best first, of equal ones the
 * first:
 *
 *     P(i … j) = p[i][0] p[j][1]    i <= j < i + QKV_ANSWER_TOKENS, in the text that may have it
 *
 * and as one of them that of [CLS] alone, no answer. Memory: most answers.
 *
 * @param p             those of qkv_model_probabilities.
 * @param most          at least 1.
 * @param answers       [most], of which *n_answers are written.
 * @param answer_bytes  sizeof(qkv_answer).
 * @return QKV_OK; QKV_ERR_UNSUPPORTED for another classifier; QKV_ERR_ARGUMENT; QKV_ERR_VERSION;
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_answers(const qkv_model *model,
                                                   const qkv_encoding *input, const double *p,
                                                   int64_t most, qkv_answer *answers,
                                                   size_t answer_bytes, int64_t *n_answers,
                                                   qkv_error *error);

/**
 * Returns what config.json calls a class (id2label), escaped for printing; NULL past the last, or
 * where the file has no name for it. It lives as long as the model.
 */
QKV_API const char *qkv_model_label(const qkv_model *model, int64_t label);

/* ---- Vectors of texts ------------------------------------------------------------------------ */

/**
 * Text that sentence-transformers puts before a text, by its name: "query", "passage". The library
 * allocates it, and it may grow at its end.
 */
typedef struct qkv_prompt {
    /** Terminated by NUL. text may be empty. */
    const char *name, *text;
    /** 1: before every text, unless another is asked for. */
    int is_default;
} qkv_prompt;

/**
 * Returns the index-th prompt of a model; NULL past the end. It lives as long as the model. Every
 * model has "query" and "document", without text unless its files give one.
 */
QKV_API const qkv_prompt *qkv_model_prompt(const qkv_model *model, int64_t index);

/**
 * Makes the tokens of a text that is to become a vector. They are those of the prompt with the text
 * behind it, in lower case if the model's files say do_lower_case. Places of tokens count from the
 * beginning of the prompt. The text is not cut: see qkv_tokenizer_cut and sentence_len.
 *
 * @param prompt    text, terminated by NUL; NULL or empty: none.
 * @param n_prompt  receives the number of leading tokens that are left out of the pooling
 *                  (include_prompt: false), for qkv_embed_options; else 0.
 * @return as qkv_tokenizer_encode. *encoding is NULL on error.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_encode_sentence(const qkv_model *model,
                                                           const char *prompt, const char *text,
                                                           size_t text_bytes,
                                                           qkv_encoding **encoding,
                                                           int64_t *n_prompt, qkv_error *error);

/** How to make vectors. Zeros: as the model's files say. Made by qkv_embed_options_init(). */
typedef struct qkv_embed_options {
    size_t struct_size;
    /** A pooling that is asked for stands alone: no module of the model's files follows it. */
    qkv_pooling pooling;
    /** Above 0: to length 1; below 0: not. */
    int normalize;
    /** Tokens at the front of each input that are not pooled. */
    int64_t n_prompt;
} qkv_embed_options;
QKV_DEFINE_INIT(qkv_embed_options)

/**
 * Makes vectors of texts (Reimers and Gurevych 2019). The last hidden states of each input are
 * pooled, and then pass through the modules of the model's folder: Dense, LayerNorm, Normalize
 * (docs/checkpoints.md). Normalize divides by max(|x|, 1e-12); then products are cosines.
 *
 *   vectors   [n_batch][dim], in the order of inputs, of any lengths up to max_len. dim is
 *             sentence_dim, or pooled_dim where a pooling is asked for.
 *   Accuracy  pooled and multiplied in double precision; rounded once, and by each module.
 *   Determinism, threads   each vector has the bits of a call alone, for any threads.
 *   Memory    a run of at most 4,096 tokens at a time, or of one input that is longer.
 *   Errors    as qkv_model_run. vectors may then be partly written.
 *
 * @param options  NULL: the defaults.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_embed(qkv_ctx *ctx, const qkv_model *model,
                                                 int64_t n_batch, const qkv_encoding *const *inputs,
                                                 const qkv_embed_options *options, float *vectors,
                                                 qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
