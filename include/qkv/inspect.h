/**
 * qkv inspection: probes, words, alignment, steps and maps. qkv/heads.h has weights and numbers of
 * heads.
 *
 * Experimental: see docs/api.md, Stability.
 */
#ifndef QKV_INSPECT_H
#define QKV_INSPECT_H

#include "qkv/heads.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Probes ---------------------------------------------------------------------------------- */

/** Zeros are the defaults. */
typedef struct qkv_probe_options {
    size_t struct_size;
    uint64_t seed;
    /* The number of texts of random tokens. 0: 32. */
    int64_t n_texts;
    /* The number of random tokens, which a text has twice. 0: as many as fit, at most 64. */
    int64_t period;
    /* NULL, or a file (docs/grammar.md) whose pronoun probes are run. */
    const char *grammar;
    /* NULL, or the bytes of such a file. */
    const void *grammar_bytes;
    size_t n_grammar_bytes;
} qkv_probe_options;

QKV_DEFINE_INIT(qkv_probe_options)

/** What was run. Made by qkv_probe_report_init(). */
typedef struct qkv_probe_report {
    size_t struct_size;
    /* 0 if the model has no room for two random tokens twice. */
    int64_t n_texts, period;
    /* 0 without pronoun probes. */
    int64_t n_probes;
    /* The `antecedent` of a head that looks at any content word. */
    double chance;
} qkv_probe_report;

QKV_DEFINE_INIT(qkv_probe_report)

/**
 * Runs a model on inputs that show what its heads do.
 *
 * A random text is [CLS] x_1 ... x_T x_1 ... x_T [SEP]. Its T tokens differ, and are neither
 * special nor punctuation. They are drawn from the vocabulary by Philox from seed and the number of
 * the text. With p the weight of a head:
 *     duplicate = mean over texts and the T queries i of the second time of p[i, i - T],
 *     induction = the same of p[i, i - T + 1].
 *
 * Pronoun probes are the sentences that a grammar holds out, as in qkv_eval, up to 512. The pronoun
 * is masked. They need an MLM head.
 *
 * Determinism: the same bits for any number of threads and any instruction set.
 * Memory: a run of 8 random texts, or of 256 sentences.
 * Threads: those of ctx.
 *
 * @param options  NULL: the defaults.
 * @param probes   [n_layers * n_heads], layer by layer; receives NaN where nothing was run.
 * @param probe_bytes  sizeof(qkv_head_probes).
 * @param report   NULL, or receives what was run.
 * @param call     NULL: the defaults. cancel is read between runs. progress counts random texts,
 *                 and all pronoun probes as one more.
 * @return QKV_OK; QKV_ERR_ARGUMENT, also for a period that does not fit; QKV_ERR_VERSION;
 *         QKV_ERR_UNSUPPORTED for a grammar without an MLM head or [MASK]; QKV_ERR_SHAPE if the
 *         model has no token for a pronoun; QKV_ERR_IO and QKV_ERR_FORMAT of the grammar, naming
 *         the line; QKV_ERR_BUSY; QKV_ERR_MEMORY; QKV_ERR_CANCELLED.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_probes(qkv_ctx *ctx, const qkv_model *model,
                                                    const qkv_probe_options *options,
                                                    qkv_head_probes *probes, size_t probe_bytes,
                                                    qkv_probe_report *report,
                                                    const qkv_call_options *call, qkv_error *error);

/* ---- Words ----------------------------------------------------------------------------------- */

/**
 * Marks the tokens of content words with 1, and others with 0. A content word is not special, not
 * [UNK], not punctuation, and not in our list of English function words. Pieces get the mark of the
 * word that they continue.
 *
 * @param content  [input->n]: receives the marks.
 */
QKV_API void qkv_inspect_content(const qkv_tokenizer *tokenizer, const qkv_encoding *input,
                                 uint8_t *content);

/**
 * Numbers the words of a text in their order, from 0. The tokens of a word get the same number.
 * Special tokens and punctuation are words of their own.
 *
 * @param words  [input->n]: receives the numbers.
 * @return the number of words.
 */
QKV_API int64_t qkv_inspect_words(const qkv_tokenizer *tokenizer, const qkv_encoding *input,
                                  int32_t *words);

/* ---- Predictions of a language model --------------------------------------------------------- */

/**
 * Computes how well a model predicts a text. For each position i it is the log-probability of the
 * token that comes next:
 *     log_p[i] = z_t - ln sum_v exp z_v,    z = logits of qkv_model_logits at i, t = next[i]
 *
 * If next[i] is the input's token i + 1, exp(-mean of log_p) is the perplexity. Of an
 * encoder-decoder, next has the labels of the decoder inputs.
 *
 * Accuracy: logits in floats, the rest in double.
 * Determinism: the same bits for any threads.
 * Memory: 64 rows of logits.
 * Threads: those of ctx.
 *
 * @param next   [n] tokens. One below 0 is not asked for.
 * @param log_p  [n], for the n tokens of the run's only stack, or of the decoder. Receives NaN
 *               where nothing was asked for.
 * @return QKV_OK; QKV_ERR_ARGUMENT, also for an id without a row; QKV_ERR_UNSUPPORTED "no LM head";
 *         QKV_ERR_BUSY; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_expected(qkv_ctx *ctx, const qkv_model *model,
                                                      const qkv_run *run, int64_t b,
                                                      const int32_t *next, double *log_p,
                                                      qkv_error *error);

/* ---- Alignment: which source word a written word comes from ---------------------------------- */

/** What to average, and which tokens make a word. Zeros are the defaults. */
typedef struct qkv_align_options {
    size_t struct_size;
    /* A layer of the decoder. */
    int64_t layer;
    /* [n_decoder_heads]: 1 for heads that count. NULL: all do. */
    const uint8_t *heads;
    /*
     * [n]: the word of each row. It is 0 for the first row; each other row has that of the row
     * before, or one more. NULL: each row is a word.
     */
    const int32_t *row_words;
    /* [n_keys]: the same for source tokens. */
    const int32_t *key_words;
    /* [n_keys]: 1 for keys that may be aligned to. NULL: all may. */
    const uint8_t *keys;
    /*
     * 1: takes the sharpest layer, by the mean over words of the largest W_ab of
     * qkv_inspect_align. layer is then ignored.
     */
    int sharpest;
    /* NULL, or receives the layer that was taken. */
    int64_t *taken;
} qkv_align_options;

QKV_DEFINE_INIT(qkv_align_options)

/** The source word of one word of rows. */
typedef struct qkv_aligned {
    /* -1: there is none. */
    int64_t key_word;
    /* W_ab of qkv_inspect_align. */
    double weight;
} qkv_aligned;

/**
 * Reads cross-attention as an alignment: for each written word, the source word with the largest
 * weight in a layer. With p^h the weights of head h, n tokens written and n_keys of the source,
 *
 *     A_ij = mean over the heads that count of p^h_ij
 *     W_ab = mean over the rows i of word a of the sum over the keys j of word b of A_ij
 *     aligned_a = argmax_b W_ab,    of equal ones the first
 *
 * Sums are over keys that may be aligned to. A word without such a key is never aligned to. Rows
 * are decoder inputs, and row i predicts token i + 1. So row i belongs to the word of that token.
 *
 * Which layer follows alignments best differs between models. Garg et al. (2019) found the layer
 * before the last. In our translator it is the last (docs/statistics.md). With `sharpest` all
 * layers are tried. Attention is not trained to align, and does not prove an alignment.
 *
 * Special values: a word with a NaN in its row has key_word -1 and weight NaN.
 * Accuracy: sums in double, in order, over the floats of qkv_run_weights.
 * Determinism: the same bits for any threads.
 * Memory: two tables of n x n_keys. One thread.
 * Sources: Garg, Peitz, Nallasamy and Paulik (2019), "Jointly learning to align and translate with
 *     Transformer models", section 4.1. Words of pieces are as in Clark et al. (2019), section 4.1.
 *
 * @param options  NULL: layer 0, all heads, and each token a word.
 * @param aligned  [number of words of rows]: receives the source words.
 * @param aligned_bytes  sizeof(qkv_aligned).
 * @param table    NULL, or [words of rows][words of keys]: receives W.
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL, a layer out of range, no head that counts, words out
 *         of order, or a run without QKV_RUN_CAPTURE or of no pairs; QKV_ERR_VERSION;
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_align(const qkv_run *run, int64_t b,
                                                   const qkv_align_options *options,
                                                   qkv_aligned *aligned, size_t aligned_bytes,
                                                   double *table, qkv_error *error);

/* ---- Steps: one query through one head, number by number ------------------------------------- */

/**
 * Everything that is computed for one token in one layer, in the order of a textbook, in double
 * precision from the parameters. n tokens, i the query, h the head, x the hidden states that the
 * run has for the layer's input:
 *
 *     embedding = word[id_i] + segment[type_i] + position[i];  embedded = norm(embedding)
 *     q = x_i Wq + bq   k_j = x_j Wk + bk   v_j = x_j Wv + bv            channels of head h
 *     products_j = q . k_j    scores_j = scale products_j    shifted_j = scores_j - max scores
 *     exponentials_j = exp(shifted_j)   weights_j = exponentials_j / sum   o = sum_j weights_j v_j
 *     concat = o of all heads, side by side    projected = concat Wo + bo
 *     added = x_i + projected    normed = norm(added)
 *     up = normed Wu + bu   gelu = up Phi(up)   down = gelu Wd + bd
 *     added2 = normed + down    y = norm(added2)
 *
 * This is a block whose norms follow (BERT, BART, Marian). With pre_norm norms come first (GPT-2):
 *
 *     read_j = norm(x_j), and q, k and v are made of read_j in place of x_j
 *     added = x_i + projected    normed = norm(added)    added2 = added + down
 *     y = added2, of the last layer norm(added2) where a norm ends the stack
 *
 * norm is (s - mean) / sqrt(mean (s - mean)^2 + eps) gamma + beta. Phi is the normal distribution.
 *
 * Llama and its kin have RMSNorm, s / sqrt(mean s^2 + eps) gamma, or (1 + gamma) in Gemma's, and a
 * gated feed-forward:
 *
 *     gate = normed Wg   up = normed Wu   gelu = act(gate) up   down = gelu Wd
 *     q = turn(norm(q_projected))    k = turn(norm(k_projected))         norm: where there are such
 *     scores_j = c tanh(scale products_j / c)                            with softcap c
 *     scores_j = scale products_j + biases_j                             of T5 and BLOOM
 *     added = x_i + norm(projected)   added2 = added + norm(down)        with attended and fed
 *
 * With `parallel` (GPT-NeoX, GPT-J) normed = norm(x_i), and added2 = added + down all the same.
 * With `adds_to_norm` (some BLOOM) added = read_i + projected, and added2 = normed + down.
 *
 * Of an image `word` is W p + b of a patch p, or the learned row of a token before the patches;
 * segment is 0, and position is 0 where nothing is added. DINO has a factor for each channel in
 * place of the norms of attended and fed. DINOv3 turns queries and keys by row and column of a
 * patch (docs/vision.md).
 *
 * turn is that of rotary positions (qkv_rope). Query heads share the k and v of a key/value head.
 *
 * Models differ as follows. word may be multiplied by the root of hidden, or be a linear map of a
 * narrower vector (OPT). Without a norm of its own, embedded is embedding. gelu is the model's
 * activation, and scale is that of the head. Queries of a decoder see keys j <= i, and those of a
 * layer with a window see i - window_left <= j <= i + window_right. Other keys have a product, a
 * score of -infinity and a weight of 0.
 *
 * Fields that end in _error are the largest differences between these numbers and those that the
 * run computed, in floats. They compare the embeddings of all tokens, q, all k, lse = max scores +
 * ln sum, the weights, and y with the layer's output. Norms of vectors are not computed.
 */
typedef struct qkv_steps {
    int64_t n, hidden, n_heads, head_dim, intermediate;
    int64_t layer, head, query;
    /* 1 / sqrt(head_dim), unless the model has another one. */
    double scale;

    /* The embedding, and what the layer reads. */

    /* [hidden] */
    const double *word, *segment, *position, *embedding, *embedded;
    /* [n][hidden] */
    const double *x;
    /* [n][hidden]: what q, k and v are made of. It is x itself without pre_norm. */
    const double *read;

    /* Attention. */

    /* [head_dim], [n][head_dim]: before norms of queries and keys, and before they are turned. */
    const double *q_projected, *k_projected;
    /* [head_dim] */
    const double *q;
    /* [n][head_dim] */
    const double *k, *v;
    /* [n]: what is added to the score of each key: T5's bias by distance, ALiBi; NULL: nothing. */
    const double *biases;
    /* [n] */
    const double *products, *scores, *shifted, *exponentials, *weights;
    /* The largest of scores, and the sum of exponentials. */
    double largest, sum;
    /* [head_dim] */
    const double *o;

    /* The rest of the block. */

    /* [hidden] */
    const double *concat, *projected, *added, *normed;
    /* [hidden]: norms of projected and of down; NULL: the model has none. */
    const double *attended, *fed;
    /* [intermediate]; NULL: the feed-forward is not gated. */
    const double *gate;
    /* [intermediate] */
    const double *up, *gelu;
    /* [hidden] */
    const double *down, *added2, *y;

    /* Which of the formulas above hold. */

    int pre_norm, causal;
    /* 1: embedded, or y of this layer, ends with a norm of its own. */
    int embed_norm, last_norm;
    /* 1: y is added2, a sum, or a norm that ends the stack of it. */
    int adds;
    /* 1: normed is a norm of x, not of added. The feed-forward is added to added all the same. */
    int parallel;
    /* 1: parts are added to the norm that they read, not to its input. */
    int adds_to_norm;
    /* 1: attended and fed are no norms, but projected and down times a factor for each channel. */
    int layer_scale;
    /* 1: norms are RMSNorm. 2: with 1 + gamma. */
    int rms;
    /* 1: queries and keys of this layer are turned; 1: they have norms. */
    int rotated, qk_norm;
    /* As in qkv_model_info. */
    const char *activation;
    /* 0: none. */
    double softcap;
    /* The slope of ALiBi in the head: biases_j = alibi (j - query); 0: there is none. */
    double alibi;
    /* -1: no bound. */
    int64_t window_left, window_right;
    /* The query sees the keys first_key to end_key - 1. */
    int64_t first_key, end_key;

    /* Differences from the run. */

    double embedded_error, q_error, k_error, lse_error, weights_error, y_error;
} qkv_steps;

/**
 * Computes the steps of a query in a head of the only stack, or of the encoder.
 *
 * Special values: a NaN parameter makes what it enters NaN.
 * Accuracy: that of double precision, and of the platform's exp and erf.
 * Time: n hidden^2 multiplications, twice, on one thread.
 * Memory: 3 n hidden doubles.
 * Source: Vaswani et al. (2017), sections 3.1 to 3.4; Devlin et al. (2018).
 *
 * @param run    must have captures and hidden states (QKV_RUN_CAPTURE | QKV_RUN_HIDDEN) of input b.
 * @param input  the encoding that the run was made from.
 * @param steps  receives the steps; free with qkv_steps_free.
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL, an index out of range, or a run of another model or
 *         without what is needed; QKV_ERR_SHAPE; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_steps(const qkv_model *model, const qkv_run *run,
                                                   int64_t b, const qkv_encoding *input,
                                                   int64_t layer, int64_t head, int64_t query,
                                                   qkv_steps **steps, qkv_error *error);

/** Frees the steps. NULL is allowed. */
QKV_API void qkv_steps_free(qkv_steps *steps);

/**
 * Computes the steps of one query of vectors, without a model. It sets n, head_dim, query, scale,
 * q, k, v and all fields up to o, and lse_error. y_error is the error of o. The errors compare with
 * qkv_attention_forward.
 *
 * @param q       [head_dim].
 * @param k       [n_keys][head_dim].
 * @param v       [n_keys][head_dim_v].
 * @param causal  1: keys after place `query` are hidden.
 * @param steps   receives the steps; free with qkv_steps_free.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_SHAPE; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_vectors(qkv_ctx *ctx, int64_t n_keys, int64_t head_dim,
                                                     int64_t head_dim_v, const float *q,
                                                     const float *k, const float *v, int64_t query,
                                                     int causal, qkv_steps **steps,
                                                     qkv_error *error);

/**
 * Computes q, k and v of a head of layer 0 on a text:
 *     x = norm(word + segment + position), or norm(word + segment) if positions is 0
 *
 * Without positions attention cannot know the order of the tokens, except where a decoder hides
 * those that follow. norm is that of the embedding, then that of a block whose norms come first. A
 * norm that the model lacks is left out.
 *
 * Accuracy: double precision, rounded once.
 *
 * @param q  [n][head_dim], as k and v; receives the projections.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_SHAPE for a text longer than the model takes;
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_projections(const qkv_model *model,
                                                         const qkv_encoding *input, int64_t head,
                                                         int positions, float *q, float *k,
                                                         float *v, qkv_error *error);

/* ---- Why scores are divided by sqrt(d) ------------------------------------------------------- */

/**
 * Attention over random queries and keys. Their components are independent and normal, with mean 0
 * and variance 1. They are drawn n_draws times. Means are over all queries. w is a row of weights.
 * Its gradient is the matrix of dw_i / ds_j = w_i (1{i = j} - w_j). Every gradient of what is
 * before softmax passes through it.
 */
typedef struct qkv_saturation {
    int64_t head_dim, n_draws, n_queries, n_keys;
    /* The factor on q.k: 1, or 1 / sqrt(head_dim). */
    double scale;
    /* Of all scores scale q.k: near scale^2 head_dim. */
    double score_variance;
    /* Mean of -sum w ln w, in nats: at most ln n_keys. */
    double entropy;
    /* Mean of max w. */
    double largest;
    /* Mean of the Frobenius norm of the gradient. 0: nothing is learned. */
    double gradient;
} qkv_saturation;

/**
 * Measures attention without the factor 1 / sqrt(head_dim) and with it, on the same numbers. It
 * calls qkv_attention_forward twice. Values are the identity, so that the output is the weights.
 *
 * Accuracy: as qkv/stats.h; the gradient 1e-6.
 * Determinism: the same seed gives the same bits.
 * Memory: 4 bytes for each of n_draws ((n_queries + n_keys) head_dim + n_queries n_keys) +
 *     n_keys^2.
 * Source: Vaswani et al. (2017), section 3.2.1.
 *
 * @param head_dim  1 to 65,536. n_draws, n_queries and n_keys are 1 to 4,096.
 * @param rows      [2]: receives the numbers without the factor, then those with it.
 * @param row_bytes  sizeof(qkv_saturation).
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_VERSION; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_saturation(qkv_ctx *ctx, int64_t head_dim,
                                                        int64_t n_draws, int64_t n_queries,
                                                        int64_t n_keys, uint64_t seed,
                                                        qkv_saturation *rows, size_t row_bytes,
                                                        qkv_error *error);

/* ---- The map: queries and keys of one head in the plane -------------------------------------- */

/** The distance D of two points, of which t-SNE takes e^(-beta D). */
typedef enum qkv_map_metric {
    /* (1 - cos)^2, as scikit-learn from 1.2 on. */
    QKV_MAP_COSINE = 0,
    /* 1 - cos */
    QKV_MAP_COSINE_PLAIN = 1,
    /* |x - y|^2 */
    QKV_MAP_EUCLIDEAN = 2,
    /*
     * Query and key: |q|^2 + M^2 - 2 q.k with M = max |k|. So a nearer key has a larger score. It
     * is |x - y|^2 with one more coordinate: sqrt(M^2 - |k|^2) for keys, 0 for queries.
     */
    QKV_MAP_INNER = 3
} qkv_map_metric;

typedef enum qkv_map_init { QKV_MAP_INIT_PCA = 0, QKV_MAP_INIT_RANDOM = 1 } qkv_map_init;

/** How the gradient is computed. */
typedef enum qkv_map_method {
    /* Exact up to QKV_MAP_MAX_EXACT_POINTS, Barnes and Hut above. */
    QKV_MAP_AUTO = 0,
    /* Over all pairs. */
    QKV_MAP_EXACT = 1,
    /* Affinities of near points only; far points repel in groups. */
    QKV_MAP_BARNES_HUT = 2
} qkv_map_method;

enum {
    QKV_MAP_MAX_POINTS = 65536,
    QKV_MAP_MAX_EXACT_POINTS = 4096,
    QKV_MAP_MAX_HEAD_DIM = 512,
    QKV_MAP_MAX_RUNS = 10000
};

/** Zeros are the defaults. */
typedef struct qkv_map_options {
    size_t struct_size;
    qkv_map_metric metric;
    /*
     * 1 <= perplexity < points, and <= 200 with Barnes and Hut. 0: 5 up to 60 points, else 30; at
     * most a third of the other points, and at least 1.
     */
    double perplexity;
    /* 0: 1000. */
    int64_t n_iters;
    /* Runs from different starts. 0: 32 up to 512 points and 10^5 iterations, else 1. */
    int64_t n_runs;
    /* Of the first run. All others begin at random. */
    qkv_map_init init;
    uint64_t seed;
    /* 0: a run ends at a gradient <= 1e-7, or after 300 iterations without a smaller KL. */
    int no_early_stop;
    /* 1: k becomes k - mean(k) + mean(q). It adds the same number to all scores of a row. */
    int center_keys;
    /* Above 0: q is multiplied by it, and k divided by it. 0: both stay. */
    double balance;
    /* 1: no t-SNE. The map is the two principal components. */
    int pca_only;
    /* NULL: init. Otherwise [points][2]: the start of the first run. */
    const double *start;
    qkv_map_method method;
    /*
     * Barnes and Hut: 0 < theta <= 1, the size, divided by the distance, up to which a group repels
     * as one. 0: 0.5.
     */
    double theta;
    /*
     * 1: balance is chosen from 0.2, 0.4, 0.8, 1, 1.25, 2.5, 5, so that near distances follow q.k
     * best, as in AttentionViz. It sets center_keys.
     */
    int auto_balance;
} qkv_map_options;

QKV_DEFINE_INIT(qkv_map_options)

/**
 * Figures of the quality of a map. Those that have no meaning for so few points are NaN. Made by
 * qkv_map_report_init().
 */
typedef struct qkv_map_report {
    size_t struct_size;
    /* The perplexity that was used. */
    double perplexity;
    /* The KL of the returned points, and the median of all runs. */
    double kl, median_kl;
    /* Before the last step. */
    double gradient_norm;
    /* Of the returned run. */
    int64_t n_iters;
    /* The number of runs, and the run that is returned, from 0. */
    int64_t n_runs, run;
    /* Points without a direction. Their cosine distance from all others is 1. */
    int64_t n_zero;
    /* Shares of the variance that the principal components explain. */
    double explained[2];
    /* The k of the next two. */
    int64_t n_neighbours;
    /* Trustworthiness: 1, less what is near on the map only, by rank. */
    double trust;
    /* The share of the k nearest points that are among the k nearest on the map. */
    double preserved;
    /* The share of queries whose nearest key on the map has the largest q.k. */
    double recall;
    /* Spearman, of map distance and q.k, over all pairs of query and key. */
    double rank_correlation;
    /* The method that was used, and its theta. 0: exact. */
    qkv_map_method method;
    double theta;
    /*
     * Points, evenly spread, at which trust and preserved were measured. It is all up to 4096;
     * above, so many that they make 4096^2 pairs with all.
     */
    int64_t n_measured;
    /* The same for the queries of recall and rank_correlation, with 2048^2 pairs at most. */
    int64_t n_measured_queries;
    /* The balance that was used. 1 if none was asked for. */
    double balance;
} qkv_map_report;

QKV_DEFINE_INIT(qkv_map_report)

/**
 * Computes a map of queries and keys together by t-SNE (van der Maaten and Hinton 2008), in double,
 * with restarts. The gradient is exact, as scikit-learn's method 'exact', or that of Barnes and Hut
 * (van der Maaten 2014), as its method 'barnes_hut'.
 *
 *     p_j|i = e^(-beta_i D_ij) / sum over j != i, beta_i such that the entropy is ln perplexity;
 *     p_ij = max((p_j|i + p_i|j) / sum, 2.2e-16);
 *     w_ij = 1 / (1 + |y_i - y_j|^2), q_ij = w_ij / sum w;
 *     KL = sum p_ij ln(p_ij / q_ij), gradient 4 sum_j (p_ij - q_ij) w_ij (y_i - y_j)
 *
 * The descent has momentum and gains: 250 iterations with 12 p and momentum 0.5, then with p and
 * 0.8. Its step is max(points / 48, 50). The run with the smallest KL is kept.
 *
 * The start of a run has a standard deviation of 1e-4. Of principal components it is that of the
 * first of the two. Of random numbers (Philox by seed and run) it is that of both. docs/numerics.md
 * has the order of every sum.
 *
 * With QKV_MAP_BARNES_HUT, p_j|i is over the min(points - 1, floor(3 perplexity) + 1) nearest j; of
 * equal D the first count. p_ij = (p_j|i + p_i|j) / sum, and 0 elsewhere. The points in a cell of a
 * quadtree act as so many points at their mean. They do so on each point that is farther from it
 * than its side / theta. kl is over all pairs also then, gradient_norm is not.
 *
 * Special values: NaN and infinity in q or k are an error that names them. Equal points are legal.
 *     One point lies at 0.
 * Accuracy: entropies are within 1e-10, and KL is as exact as sums of doubles. Where a run ends
 *     depends on its start: compare maps of different seeds by KL only. Forces by Barnes and Hut
 *     had errors of at most 0.6, 3.6 and 9 % of the largest force, with theta 0.2, 0.5 and 1
 *     (tests/inspect/test_map_tree.c).
 * Determinism: the same bits for any number of threads and any instruction set.
 * Memory: 8 points^2 bytes; with Barnes and Hut at most points (60 (3 perplexity + 1) + 250). Both
 *     add 8 head_dim (2 points + head_dim), and at most 270 MB for the figures of the report.
 * Threads: those of ctx.
 *
 * @param options  NULL: the defaults.
 * @param q        [n_queries][head_dim], dense.
 * @param k        [n_keys][head_dim], dense.
 * @param xy       [n_queries + n_keys][2]: receives the map, queries first.
 * @param pca      NULL, or [n_queries + n_keys][2]: receives the principal components.
 * @param agree    NULL, or [n_queries]: receives in how many runs the query's nearest key is that
 *                 of the returned map.
 * @param report   NULL, or receives the figures.
 * @param call     NULL: the defaults. cancel ends the descent. progress counts iterations of all
 *                 runs. workspace is ignored.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_VERSION; QKV_ERR_SHAPE; QKV_ERR_LIMIT; QKV_ERR_BUSY;
 *         QKV_ERR_MEMORY. After QKV_ERR_CANCELLED the outputs have the best map so far, with its
 *         whole report. With Barnes and Hut, before there are affinities, it is the principal
 *         components, with n_runs = 0.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_map(qkv_ctx *ctx, const qkv_map_options *options,
                                                 int64_t n_queries, int64_t n_keys,
                                                 int64_t head_dim, const float *q, const float *k,
                                                 double *xy, double *pca, int32_t *agree,
                                                 qkv_map_report *report,
                                                 const qkv_call_options *call, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
