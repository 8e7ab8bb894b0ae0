/** qkv inspection: numbers about what heads do, from captured q, k and lse. */
#ifndef QKV_INSPECT_H
#define QKV_INSPECT_H

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Signatures and labels of heads ----------------------------------------------------------- */

enum { QKV_HEAD_WINDOW = 8 }; /* mass_window: keys at most so far away */

/**
 * The signature of one head on one input: numbers about its weights, with natural logarithms.
 * docs/statistics.md has each formula. Means are over the queries that are neither [CLS], [SEP] nor
 * [PAD], or over all if there are no others; what keys receive is of all queries. A NaN weight makes
 * what it enters NaN, and the label "".
 */
typedef struct qkv_head_stats {
    int64_t layer, head;
    double entropy;            /* mean over queries of -sum p ln p */
    double entropy_normalized; /* entropy / mean of ln m, m: the keys that a query may see */
    double confidence;         /* mean of the largest weight */
    double mean_distance;      /* mean of sum p |i - j| */
    double mass_cls, mass_sep, mass_punctuation, mass_self, mass_previous, mass_next;
    char label[24];        /* qkv_inspect_label without probes */
    double effective_keys; /* mean of 1 / sum p^2 */
    double mass_window;    /* mean weight on keys with |i - j| <= QKV_HEAD_WINDOW */
    double
        mass_same_token; /* on other places of the query's token, earlier ones of them, and keys */
    double mass_duplicate; /* after an earlier one; means over the queries that have such a key, */
    double mass_induction; /* NaN if none has */
    double received_largest, received_early; /* the largest mean weight of a key over all queries
                                                that may see it; the same of the first 64 keys that
                                                at least half as many see as any */
    double received_gini;                    /* Gini coefficient of the keys' sums */
    int64_t received_key;                    /* whose mean weight is the largest; -1: none */
    int64_t n_queries;                       /* that the means are over */
} qkv_head_stats;

/**
 * Signature and label of every head for input b of a run that captured. stats is [n_layers *
 * n_heads], layer by layer. input is the encoding that the run was made from. Rows come from
 * qkv_attention_forward over the captured q and k (qkv/stats.h), what keys receive from
 * qkv_attention_columns_pass (qkv/columns.h); queries that see no key (qkv_what_if) are left out.
 *
 * Accuracy: means within 1e-6 of those over the weights of qkv_run_weights, relative for sums over
 *     keys that are not shares.
 * Determinism: the same bits for any number of threads and any instruction set.
 * Memory: O(n). Threads: those of ctx, which may be another one than that of the run.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_SHAPE if input is not that of the run; QKV_ERR_BUSY;
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_heads(qkv_ctx *ctx, const qkv_model *model,
                                                   const qkv_run *run, int64_t b,
                                                   const qkv_encoding *input, qkv_head_stats *stats,
                                                   qkv_error *error);

/** Tokens, and the tokenizer that made them. */
typedef struct qkv_token_list {
    const qkv_tokenizer *tokenizer;
    const qkv_encoding *tokens;
} qkv_token_list;

/**
 * The same of any attention of a run (qkv_model_run_pair). Of cross-attention queries and keys are
 * tokens of two texts: what compares their places or tokens (mean_distance, mass_self, _previous,
 * _next, _window, _same_token, _duplicate and _induction) is NaN, kinds of keys are by the tokenizer
 * of keys, and means are over the queries that are not special, as queries: a row that begins a
 * translation belongs to the start token, and is not counted.
 *
 *   stats    [n_decoder_layers * n_decoder_heads], or of QKV_SELF [n_layers * n_heads]     written
 *   queries  decoder inputs; of QKV_SELF the input
 *   keys     source tokens; read for QKV_CROSS only, and may be NULL otherwise
 *
 * Else as qkv_inspect_heads; QKV_ERR_ARGUMENT also for an attention that the run has not.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_heads_of(qkv_ctx *ctx, const qkv_model *model,
                                                      const qkv_run *run, qkv_attention_of which,
                                                      int64_t b, const qkv_token_list *queries,
                                                      const qkv_token_list *keys,
                                                      qkv_head_stats *stats, qkv_error *error);

/** What a head does on inputs made to find it out, rather than on a text: qkv_inspect_probes. */
typedef struct qkv_head_probes {
    int64_t layer, head;
    double duplicate; /* on random tokens said twice: mean weight, over the queries of the second */
    double induction; /* time, of the same token the first time; of the one after it */
    double antecedent; /* share of pronoun probes whose antecedent has the largest weight of all
                          content words, from the [MASK] in the pronoun's place; NaN without */
} qkv_head_probes;

/** Zeros are the defaults. */
typedef struct qkv_probe_options {
    size_t struct_size;
    uint64_t seed;
    int64_t n_texts;           /* of random tokens; 0: 32 */
    int64_t period;            /* random tokens, said twice; 0: as many as fit, at most 64 */
    const char *grammar;       /* nullable: a file (docs/grammar.md) whose pronoun probes are run */
    const void *grammar_bytes; /* nullable: or the bytes of one */
    size_t n_grammar_bytes;
} qkv_probe_options;

#define QKV_PROBE_OPTIONS_INIT                                                                     \
    { sizeof(qkv_probe_options), 0, 0, 0, NULL, NULL, 0 }

/** What was run. 0: the model has no room for two random tokens said twice; no pronoun probes. */
typedef struct qkv_probe_report {
    int64_t n_texts, period;
    int64_t n_probes;
    double chance; /* antecedent of a head that looks at any content word */
} qkv_probe_report;

/**
 * Runs a model on inputs that show what its heads do. Random texts are [CLS] x_1 ... x_T x_1 ... x_T
 * [SEP] with T different tokens of the vocabulary that are neither special nor punctuation, drawn by
 * Philox from seed and the number of the text; with p the weight of a head,
 *     duplicate = mean over texts and the T queries i of the second time of p[i, i - T],
 *     induction = the same of p[i, i - T + 1].
 * Pronoun probes are the sentences that a grammar holds out, as in qkv_eval, up to 512, with the
 * pronoun masked; they need an MLM head.
 *
 *   probes  [n_layers * n_heads], layer by layer; NaN where nothing was run    written
 *
 * Determinism: the same bits for any number of threads and any instruction set.
 * Memory: a run of 8 random texts, or of 256 sentences. Threads: those of ctx.
 * call: cancel is asked between runs; progress counts random texts, and pronoun probes as one more.
 *
 * @param options  NULL for the defaults.  @param report, call, error  nullable.
 * @return QKV_OK; QKV_ERR_ARGUMENT, also for a period that does not fit; QKV_ERR_VERSION;
 *         QKV_ERR_UNSUPPORTED without an MLM head or [MASK] for a grammar; QKV_ERR_SHAPE if the
 *         model has no token for a pronoun; QKV_ERR_IO, QKV_ERR_FORMAT of the grammar, naming the
 *         line; QKV_ERR_BUSY; QKV_ERR_MEMORY; QKV_ERR_CANCELLED.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_probes(qkv_ctx *ctx, const qkv_model *model,
                                                    const qkv_probe_options *options,
                                                    qkv_head_probes *probes,
                                                    qkv_probe_report *report,
                                                    const qkv_call_options *call, qkv_error *error);

/** A rule: the label of a head whose number is above (with or_equal: or at) the threshold. */
typedef struct qkv_head_rule {
    const char *label;
    const char *number; /* the field of qkv_head_stats, or of qkv_head_probes */
    double threshold;
    int or_equal, needs_probes;
} qkv_head_rule;

/** The index-th rule, in the order in which they are tried; NULL past the end. */
QKV_API const qkv_head_rule *qkv_inspect_rule(int index);

/**
 * The label of the first rule that holds: "next", "prev", "[CLS]", "[SEP]", "punctuation", "broad",
 * "sink", "duplicate", "induction", "same-token", "coreference-like"; "" if none does. Rules about
 * probes are left out if probes is NULL. stats may hold means over texts.
 */
QKV_API const char *qkv_inspect_label(const qkv_head_stats *stats, const qkv_head_probes *probes);

/**
 * 1 for tokens of content words: not special, not [UNK], not punctuation, not in our list of
 * English function words; pieces follow the word they continue. content is [input->n].
 */
QKV_API void qkv_inspect_content(const qkv_tokenizer *tokenizer, const qkv_encoding *input,
                                 uint8_t *content);

/**
 * Which tokens are pieces of one word: words, [input->n], gets 0 for the first token, and for each other
 * the number of the token before it, or one more where a word begins. Special tokens and punctuation are
 * words of their own. Returns how many words there are.
 */
QKV_API int64_t qkv_inspect_words(const qkv_tokenizer *tokenizer, const qkv_encoding *input,
                                  int32_t *words);

/**
 * Where one token looks most sharply at another: the largest weight over the heads that `heads`
 * marks ([n_layers * n_heads], layer by layer), from a query that `from` marks to a key that `to`
 * marks ([n] of the run's input b), the query itself and keys that it does not see aside. NULL marks
 * all. Of equal weights the one with the smaller layer, head, query, key; query = key = -1, the rest 0, if nothing is left.
 * qkv_inspect_content gives marks of words that say something. Memory: O(n).
 */
typedef struct qkv_sharpest {
    int64_t layer, head, query, key;
    float weight;
} qkv_sharpest;

QKV_API QKV_NODISCARD qkv_status qkv_inspect_sharpest(const qkv_model *model, const qkv_run *run,
                                                      int64_t b, const uint8_t *heads,
                                                      const uint8_t *from, const uint8_t *to,
                                                      qkv_sharpest *sharpest, qkv_error *error);

/** The same of any attention of a run. heads is then [n_decoder_layers * n_decoder_heads]; of
 * QKV_CROSS from marks decoder tokens and to source tokens, and no pair is left out. */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_sharpest_of(const qkv_model *model, const qkv_run *run,
                                                         qkv_attention_of which, int64_t b,
                                                         const uint8_t *heads, const uint8_t *from,
                                                         const uint8_t *to, qkv_sharpest *sharpest,
                                                         qkv_error *error);

/* ---- What a language model makes of a text ---------------------------------------------------- */

/**
 * How a model expected a text: of every position i the logarithm of the probability of the token that
 * comes next,
 *     log_p[i] = z_t - ln sum_v exp z_v,    z = logits of qkv_model_lm at i, t = next[i]
 * With next[i] the input's token i + 1, exp(-mean of log_p) is its perplexity; of an encoder-decoder
 * next holds the labels of the decoder inputs.
 *
 *   next   [n] tokens; below 0: not asked for                   read
 *   log_p  [n], n tokens of the run's only stack, or of the     written
 *          decoder; NaN where nothing was asked for
 *
 * Accuracy: logits in floats, the rest in double. Determinism: the same bits for any threads.
 * Memory: 64 rows of logits. Threads: those of ctx.
 * @return QKV_OK; QKV_ERR_ARGUMENT, also for an id without a row; QKV_ERR_UNSUPPORTED "no LM head";
 *         QKV_ERR_BUSY; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_expected(qkv_ctx *ctx, const qkv_model *model,
                                                      const qkv_run *run, int64_t b,
                                                      const int32_t *next, double *log_p,
                                                      qkv_error *error);

/* ---- Alignment: which source word a written word comes from ----------------------------------- */

/** What to average, and what belongs together. */
typedef struct qkv_align_options {
    size_t struct_size;
    int64_t layer;            /* of the decoder */
    const uint8_t *heads;     /* [n_decoder_heads] 1: counts; NULL: all do */
    const int32_t *row_words; /* [n] the word of each row: 0, and from row to row as before or one
                                 more; NULL: each row is a word */
    const int32_t *key_words; /* [n_keys] the same of source tokens */
    const uint8_t *keys;      /* [n_keys] 1: may be aligned to; NULL: all */
} qkv_align_options;

#define QKV_ALIGN_OPTIONS_INIT                                                                     \
    { sizeof(qkv_align_options), 0, NULL, NULL, NULL, NULL }

/** Rows of a decoder and their words, as qkv_inspect_align writes them. */
typedef struct qkv_aligned {
    int64_t key_word; /* -1: there is none */
    double weight;    /* W below */
} qkv_aligned;

/**
 * Attention as alignment: for each written word the source word that a layer of cross-attention looks
 * at most. With p^h the weights of head h, n tokens written and n_keys of the source,
 *
 *     A_ij = mean over the heads that count of p^h_ij
 *     W_ab = mean over the rows i of word a of the sum over the keys j of word b of A_ij
 *     aligned_a = argmax_b W_ab,    of equal ones the first
 *
 * Sums are over keys that may be aligned to; a word without any is none. The layer is the caller's
 * choice: Garg et al. (2019) found the one before the last to follow alignments best. Rows are decoder
 * inputs, and row i predicts token i + 1: row i is of the word that is about to be written. Attention is
 * not made to align, and what it says is not proved by it.
 *
 *   aligned  [number of words of rows]                                         written
 *   table    [words of rows][words of keys] W; nullable                        written
 *
 * Special values: a word with a NaN in its row has key_word -1 and weight NaN.
 * Accuracy: sums in double, in order, over the floats of qkv_run_weights_of.
 * Determinism: the same bits for any threads. Memory: two tables of n x n_keys. One thread.
 * Sources: Garg, Peitz, Nallasamy and Paulik (2019), "Jointly learning to align and translate with
 * Transformer models", section 4.1; words of pieces as in Clark et al. (2019), section 4.1.
 * @return QKV_OK; QKV_ERR_ARGUMENT: NULL, a layer out of range, no head that counts, words out of
 *         order, a run without QKV_RUN_CAPTURE or of no pairs; QKV_ERR_VERSION; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_align(const qkv_run *run, int64_t b,
                                                   const qkv_align_options *options,
                                                   qkv_aligned *aligned, double *table,
                                                   qkv_error *error);

/* ---- Steps: one query through one head, number by number -------------------------------------- */

/**
 * Everything that happens to one token in one layer, as a textbook writes it, in double precision
 * from the parameters; n tokens, i the query, h the head, x the hidden states that the run has for
 * the layer's input:
 *
 *     embedding = word[id_i] + segment[type_i] + position[i];  embedded = norm(embedding)
 *     q = x_i Wq + bq   k_j = x_j Wk + bk   v_j = x_j Wv + bv            channels of head h
 *     products_j = q . k_j    scores_j = scale products_j    shifted_j = scores_j - max scores
 *     exponentials_j = exp(shifted_j)    weights_j = exponentials_j / sum    o = sum_j weights_j v_j
 *     concat = o of all heads, side by side    projected = concat Wo + bo
 *     added = x_i + projected    normed = norm(added)
 *     up = normed Wu + bu   gelu = up Phi(up)   down = gelu Wd + bd
 *     added2 = normed + down    y = norm(added2)
 *
 * That is a block whose norms follow (BERT, BART, Marian). Where they come first (GPT-2: pre_norm),
 *
 *     q, k and v are of read_j = norm(x_j) in place of x_j; added = x_i + projected; normed = norm(added);
 *     added2 = added + down; y = added2, of the last layer norm(added2) where a norm ends the stack
 *
 * word is multiplied by the root of hidden where the model wants it; embedded is embedding without a norm
 * of it; gelu is the model's activation; scale is the head's. Queries of a decoder see the keys j <= i:
 * the others have a product, a score of -infinity and a weight of 0.
 *
 * norm is (s - mean) / sqrt(mean (s - mean)^2 + eps) gamma + beta, Phi the normal distribution. The
 * fields that end in _error are the largest differences between these numbers and what the run
 * itself computed, in floats: of the embeddings of all tokens, of q, of all k, of lse = max scores +
 * ln sum, of the weights, and of y with the layer's output. Norms of vectors are left to the reader.
 */
typedef struct qkv_steps {
    int64_t n, hidden, n_heads, head_dim, intermediate;
    int64_t layer, head, query;
    double scale; /* 1 / sqrt(head_dim), unless the model has another one */
    const double *word, *segment, *position, *embedding, *embedded;     /* [hidden] */
    const double *x;                                                    /* [n][hidden] */
    const double *q;                                                    /* [head_dim] */
    const double *k, *v;                                                /* [n][head_dim] */
    const double *products, *scores, *shifted, *exponentials, *weights; /* [n] */
    double largest, sum;                               /* of scores; of exponentials */
    const double *o;                                   /* [head_dim] */
    const double *concat, *projected, *added, *normed; /* [hidden] */
    const double *up, *gelu;                           /* [intermediate] */
    const double *down, *added2, *y;                   /* [hidden] */
    double embedded_error, q_error, k_error, lse_error, weights_error, y_error;
    int pre_norm, causal;
    int embed_norm, last_norm; /* 1: embedded and y, here, end with a norm of their own */
    const char *activation;    /* as in qkv_model_info */
    const double *read; /* [n][hidden] what q, k and v are made of; x itself without pre_norm */
} qkv_steps;

/**
 * The steps of a query in a head of the only stack or of the encoder, for input b of a run that kept captures and hidden states
 * (QKV_RUN_CAPTURE | QKV_RUN_HIDDEN). input is the encoding that the run was made from. Special
 * values: a NaN parameter makes what it enters NaN. Accuracy: that of double precision and of the
 * platform's exp and erf. Time: n hidden^2 multiplications, twice, on one thread. Memory: 3 n hidden
 * doubles. Free with qkv_steps_free. @return QKV_OK; QKV_ERR_ARGUMENT for NULL, an index out of
 * range, a run of another model or without what is needed; QKV_ERR_SHAPE; QKV_ERR_MEMORY.
 * Source: Vaswani et al. (2017), sections 3.1 to 3.4; Devlin et al. (2018).
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_steps(const qkv_model *model, const qkv_run *run,
                                                   int64_t b, const qkv_encoding *input,
                                                   int64_t layer, int64_t head, int64_t query,
                                                   qkv_steps **steps, qkv_error *error);
QKV_API void qkv_steps_free(qkv_steps *steps);

/**
 * What a head of layer 0 makes of a text before attention: q, k and v, [n][head_dim] each, of
 * x = norm(word + segment + position), or, with positions 0, of x = norm(word + segment): attention
 * then cannot know the order of the tokens, but where a decoder hides those that follow. norm is that of
 * the embedding, then that of a block whose norms come first; where there is none, it is left out. Double precision, rounded once. @return QKV_OK;
 * QKV_ERR_ARGUMENT; QKV_ERR_SHAPE for a text longer than the model takes; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_projections(const qkv_model *model,
                                                         const qkv_encoding *input, int64_t head,
                                                         int positions, float *q, float *k,
                                                         float *v, qkv_error *error);

/* ---- Why scores are divided by sqrt(d) --------------------------------------------------------- */

/**
 * Attention over random queries and keys, whose components are independent and normal with mean 0
 * and variance 1, drawn n_draws times anew. Means over all queries; w is a row of weights, and its gradient is the matrix of dw_i / ds_j =
 * w_i (1{i = j} - w_j), through which everything that is learned before softmax must come.
 */
typedef struct qkv_saturation {
    int64_t head_dim, n_draws, n_queries, n_keys;
    double scale;          /* the factor on q.k: 1, or 1 / sqrt(head_dim) */
    double score_variance; /* of all scores scale q.k: near scale^2 head_dim */
    double entropy;        /* mean of -sum w ln w, in nats: at most ln n_keys */
    double largest;        /* mean of max w */
    double gradient;       /* mean of the Frobenius norm of the gradient; 0: nothing is learned */
} qkv_saturation;

/**
 * Measures rows[0] without and rows[1] with the factor 1 / sqrt(head_dim), on the same numbers, by
 * two calls of qkv_attention_forward whose values are the identity, so that its output is the
 * weights. head_dim 1 ... 65,536, the others 1 ... 4,096. Accuracy: as qkv/stats.h; the gradient
 * 1e-6. The same seed gives the same bits. Memory: 4 bytes for each of n_draws ((n_queries + n_keys)
 * head_dim + n_queries n_keys) + n_keys^2. @return QKV_OK; QKV_ERR_ARGUMENT, QKV_ERR_MEMORY.
 * Source: Vaswani et al. (2017), section 3.2.1.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_saturation(qkv_ctx *ctx, int64_t head_dim,
                                                        int64_t n_draws, int64_t n_queries,
                                                        int64_t n_keys, uint64_t seed,
                                                        qkv_saturation rows[2], qkv_error *error);

/**
 * What one head does at each position, from its weights p, [n_queries][n_keys], rows that sum to 1 (or
 * to 0, where a query sees no key):
 *
 *   entropy    [n_queries]               -sum_j p_ij ln p_ij, in nats, 0 ... ln n_keys; 0 ln 0 = 0
 *   largest    [n_queries]               max_j p_ij
 *   received   [n_keys]                  sum_i p_ij
 *   by_offset  [n_queries + n_keys - 1]  the diagonal profile: of d = -(n_queries - 1) ... n_keys - 1 the
 *                                        mean of p_i,i+d over the queries i that have a key i + d
 *
 * Each is nullable. Sums are chains in double over the weights, in order. A NaN makes the numbers that it
 * enters NaN. qkv_view_queries_write, qkv_view_received_write and qkv_view_offsets_write draw them.
 * No memory; one thread; time is linear in the weights.
 *
 * @return QKV_OK; QKV_ERR_ARGUMENT: weights is NULL; QKV_ERR_SHAPE: a length is not in 1 ... 2^20.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_profile(const float *weights, int64_t n_queries,
                                                     int64_t n_keys, double *entropy,
                                                     double *largest, double *received,
                                                     double *by_offset, qkv_error *error);

/* ---- The map: queries and keys of one head in the plane --------------------------------------- */

/** What lies near what: the distance D of two points, of which t-SNE takes e^(-beta D). */
typedef enum qkv_map_metric {
    QKV_MAP_COSINE = 0,       /* (1 - cos)^2, as scikit-learn from 1.2 on */
    QKV_MAP_COSINE_PLAIN = 1, /* 1 - cos */
    QKV_MAP_EUCLIDEAN = 2,    /* |x - y|^2 */
    QKV_MAP_INNER = 3 /* query and key: |q|^2 + M^2 - 2 q.k with M = max |k|, so a nearer key is one
                         with a larger score; as |x - y|^2 with sqrt(M^2 - |k|^2) as one more
                         coordinate of keys, 0 of queries */
} qkv_map_metric;

typedef enum qkv_map_init { QKV_MAP_INIT_PCA = 0, QKV_MAP_INIT_RANDOM = 1 } qkv_map_init;

/** How the gradient is computed. */
typedef enum qkv_map_method {
    QKV_MAP_AUTO = 0,      /* exact up to QKV_MAP_MAX_EXACT_POINTS, else Barnes and Hut */
    QKV_MAP_EXACT = 1,     /* over all pairs */
    QKV_MAP_BARNES_HUT = 2 /* affinities of near points only, far ones repel in groups */
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
    double
        perplexity;  /* 1 <= perplexity < points, <= 200 with Barnes and Hut; 0: 5 up to 60 points,
                          else 30, at most a third of the other points and at least 1 */
    int64_t n_iters; /* 0: 1000 */
    int64_t n_runs;  /* from different starts; 0: 32 up to 512 points and 10^5 iterations, else 1 */
    qkv_map_init init; /* of the first run; all others begin at random */
    uint64_t seed;
    int no_early_stop; /* else: gradient <= 1e-7, or 300 iterations without a smaller KL */
    int center_keys; /* k - mean(k) + mean(q) in place of k: moves every row's scores by one sum */
    double balance;  /* > 0: q times it, k divided by it; 0: as they are */
    int pca_only;    /* no t-SNE: the map is the two principal components */
    const double *start; /* [points][2], the start of the first run; NULL: init */
    qkv_map_method method;
    double
        theta; /* Barnes and Hut, 0 < theta <= 1: how large, per distance, a group that repels as one
                     may be; 0: 0.5 */
    int auto_balance; /* in place of balance the one of 0.2, 0.4, 0.8, 1, 1.25, 2.5, 5 with which near
                         distances follow q.k best, as AttentionViz has it; sets center_keys */
} qkv_map_options;

#define QKV_MAP_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(qkv_map_options), QKV_MAP_COSINE, 0, 0, 0, QKV_MAP_INIT_PCA, 0, 0, 0, 0, 0, NULL,   \
            QKV_MAP_AUTO, 0, 0                                                                     \
    }

/** What a map is worth. Figures that have no meaning for so few points are NaN. */
typedef struct qkv_map_report {
    double perplexity;    /* that was used */
    double kl, median_kl; /* at the returned points; the median of all runs */
    double gradient_norm; /* before the last step */
    int64_t n_iters;      /* of the returned run */
    int64_t n_runs, run;  /* made, and the one that was kept, from 0 */
    int64_t n_zero;       /* points without a direction: at cosine distance 1 from all others */
    double explained[2];  /* by the principal components: shares of the variance */
    int64_t n_neighbours; /* the k of the next two */
    double trust;         /* trustworthiness: 1, less what is near on the map only, by rank */
    double preserved;     /* share of the k nearest that are among the k nearest on the map */
    double recall;        /* share of queries whose nearest key on the map has the largest q.k */
    double
        rank_correlation;  /* Spearman, of map distance and q.k, over all pairs of query and key */
    qkv_map_method method; /* that was used */
    double theta;          /* of it; 0: exact */
    int64_t n_measured; /* points that trust and preserved were measured at, evenly spread: all up
                              to 4096, so many that they make 4096^2 pairs with all above */
    int64_t n_measured_queries; /* of recall and rank_correlation: those of 2048^2 pairs at most */
    double balance;             /* that was used; 1 if none was asked for */
} qkv_map_report;

/**
 * t-SNE (van der Maaten and Hinton 2008) of queries and keys together, in double, with restarts: by its
 * exact gradient, the method 'exact' of scikit-learn, or that of Barnes and Hut (van der Maaten 2014),
 * its method 'barnes_hut'.
 *
 *     p_j|i = e^(-beta_i D_ij) / sum over j != i, beta_i such that the entropy is ln perplexity;
 *     p_ij = max((p_j|i + p_i|j) / sum, 2.2e-16); w_ij = 1 / (1 + |y_i - y_j|^2), q_ij = w_ij / sum w;
 *     KL = sum p_ij ln(p_ij / q_ij), gradient 4 sum_j (p_ij - q_ij) w_ij (y_i - y_j),
 *
 * descended with momentum and gains: 250 iterations with 12 p and momentum 0.5, then with p and 0.8;
 * step max(points / 48, 50). The run with the smallest KL is kept. The start of a run has a standard
 * deviation of 1e-4: of the first of the two principal components, or of both random numbers
 * (Philox by seed and run). docs/numerics.md has the order of every sum.
 *
 * With QKV_MAP_BARNES_HUT p_j|i is that over the min(points - 1, floor(3 perplexity) + 1) nearest j, of
 * equal D the first, p_ij = (p_j|i + p_i|j) / sum and else 0; w of the points in a cell of a quadtree is
 * that of as many points at their mean, for each point farther from it than its side / theta. kl is
 * over all pairs also there, gradient_norm is not.
 *
 *   q       [n_queries][head_dim]           k  [n_keys][head_dim]             read; dense
 *   xy      [n_queries + n_keys][2]         the map: queries, then keys       written
 *   pca     [n_queries + n_keys][2]         principal components; nullable    written
 *   agree   [n_queries]: in how many runs the query's nearest key is the one
 *           of the returned map; nullable                                    written
 *
 * Special values: NaN and infinity in q or k are refused by name. Equal points are legal. One point
 * lies at 0.
 * Accuracy: entropies within 1e-10; KL as exact as sums of doubles. Where a run ends depends on its
 * start: maps of different seeds are to be compared by KL only. Forces by Barnes and Hut were off by
 * 0.6, 3.6 and 9 % of the largest at most with theta 0.2, 0.5 and 1 (tests/unit/test_map_tree.c).
 * Determinism: the same bits for any number of threads and any instruction set.
 * Memory: 8 points^2 bytes, or with Barnes and Hut points (60 (3 perplexity + 1) + 250) at most; 8
 * head_dim (2 points + head_dim); 270 MB at most for the figures of what it is worth. Threads: those of ctx.
 * call: cancel ends the descent; then the best map so far is there, complete with its report, and
 * the status is QKV_ERR_CANCELLED; with Barnes and Hut, before there are affinities, it is the
 * principal components, with n_runs = 0. progress counts iterations of all runs. workspace is not used.
 *
 * @param options  NULL for the defaults.  @param report, call, error  nullable.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_VERSION; QKV_ERR_SHAPE; QKV_ERR_LIMIT; QKV_ERR_BUSY;
 *         QKV_ERR_MEMORY; QKV_ERR_CANCELLED.
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
