/**
 * qkv: the heads of one attention on one input. All weights and numbers of heads come from here.
 * The heads are those of a run of a model, of arrays of queries and keys, or of a mean over several
 * inputs.
 *
 *     qkv_heads *heads = NULL;
 *     if (qkv_heads_open_run(ctx, run, QKV_SELF, 0, &tokens, NULL, &heads, &error) == QKV_OK &&
 *         qkv_heads_measure(heads, QKV_HEADS_RECEIVED, NULL, &error) == QKV_OK)
 *         printf("%g\n", qkv_head_number_value(qkv_heads_numbers(heads, 0), "entropy"));
 *     qkv_heads_free(heads);
 *
 * run is a run of qkv_model_run with QKV_RUN_CAPTURE, and tokens is a qkv_token_list of its tokens.
 *
 * Every weight comes from a public call of libqkv and has its bits. docs/statistics.md has each
 * formula.
 */
#ifndef QKV_HEADS_H
#define QKV_HEADS_H

#include "qkv/model.h"
#include "qkv/patterns.h"
#include "qkv/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Numbers --------------------------------------------------------------------------------- */

typedef enum qkv_number_kind {
    /* From 0 to 1. */
    QKV_NUMBER_SHARE,
    /* At least 0. */
    QKV_NUMBER_SIZE,
    /* The position of a key. Over several inputs it is the most frequent one. */
    QKV_NUMBER_PLACE,
    /* A count. Over several inputs it is their sum. */
    QKV_NUMBER_COUNT
} qkv_number_kind;

/** What a number needs. Without it the number is NaN. */
enum {
    /* Queries and keys are tokens of one text. */
    QKV_NEEDS_ONE_TEXT = 1 << 0,
    /* The tokens have names. */
    QKV_NEEDS_TOKENS = 1 << 1,
    /* What keys receive was measured (QKV_HEADS_RECEIVED). */
    QKV_NEEDS_RECEIVED = 1 << 2,
    /* qkv_inspect_probes was called. */
    QKV_NEEDS_PROBES = 1 << 3
};

/** One number of a head: a row of the table that every output of numbers reads. */
typedef struct qkv_head_number {
    /* The name in JSON, CSV and options. */
    const char *name;
    /* A short heading, at most 6 columns wide. NULL: the number is not shown. */
    const char *title;
    /* The name on a page. NULL: it has no column there. */
    const char *page_title;
    /* The definition in words, after "title = ". */
    const char *what;
    /* The formula and its range. */
    const char *formula;
    qkv_number_kind kind;
    /* QKV_NEEDS_... */
    unsigned needs;
    /* Numbers with a small rank are shown first where not all have room. */
    int rank;
    /* 1: the number counts in qkv_heads_unlike. */
    int alike;
} qkv_head_number;

/** Returns the index-th number; NULL past the end. Arrays of numbers have this order. */
QKV_API const qkv_head_number *qkv_head_number_at(int index);

/** Returns the number of numbers. */
QKV_API int qkv_head_number_count(void);

/** Returns the index of a name of n_bytes; -1 if there is none. */
QKV_API int qkv_head_number_find(const char *name, size_t n_bytes);

/** Returns the number with this name, of the numbers of one head; NaN if there is none. */
QKV_API double qkv_head_number_value(const double *numbers, const char *name);

/* ---- Labels ---------------------------------------------------------------------------------- */

/**
 * A head has the label if its number is above the threshold or, with or_equal, at least the
 * threshold. The rule is not applied to inputs so short that random heads would fulfil it.
 */
typedef struct qkv_head_rule {
    const char *label;
    const char *number;
    double threshold;
    int or_equal;
    /* The number that counts the queries behind `number`. NULL: there is no limit. */
    const char *queries;
    /* The rule needs so many of them, and so many keys. */
    int min_queries, min_keys;
} qkv_head_rule;

/** Returns the index-th rule, in the order in which rules are tried; NULL past the end. */
QKV_API const qkv_head_rule *qkv_head_rule_at(int index);

/**
 * Returns the label of the first rule that holds for the numbers of a head. It is "" if none holds,
 * if entropy is NaN, and for NULL.
 */
QKV_API const char *qkv_heads_label(const double *numbers);

/**
 * Computes how unlike n heads are to one of them, with the definition of `qkv heads --like`
 * (docs/statistics.md).
 *
 * @param numbers    [n][n_numbers].
 * @param to         the head that all are compared with.
 * @param distances  [n]: receives the distance of each.
 */
QKV_API void qkv_heads_unlike(int64_t n, const double *numbers, int64_t to, double *distances);

/* ---- Opening --------------------------------------------------------------------------------- */

typedef struct qkv_heads qkv_heads;

/** Tokens, and the tokenizer that made them: NULL for those of an image (qkv/vision.h). */
typedef struct qkv_token_list {
    const qkv_tokenizer *tokenizer;
    const qkv_encoding *tokens;
} qkv_token_list;

/** Facts about the heads. The qkv_heads owns it. Fields may be added at its end. */
typedef struct qkv_heads_info {
    int64_t n_layers, n_heads;
    int64_t n_queries, n_keys, head_dim;
    /* 1: queries and keys are tokens of one text. */
    int one_text;
    /* 1: query i sees keys j <= i + q_offset. */
    int causal;
    int64_t q_offset;
    /* 1: a query sees all keys of the input, in every layer. */
    int sees_all;
    /* The number of inputs of a mean; 1 otherwise. */
    int64_t n_inputs;
    /* 1: queries of some layers see a window of the keys that others see. */
    int windows;
    /* c, where scores s become c tanh(s / c); 0: they do not. */
    float softcap;
} qkv_heads_info;

/**
 * Opens the heads of input b of a run that captured. The run, the tokens and the context must
 * outlive the result, whose calls compute with the context.
 *
 * @param queries  the tokens of the queries: decoder inputs, or of QKV_SELF the input.
 * @param keys     the tokens of the keys. Read for QKV_CROSS only; may be NULL otherwise.
 * @param heads    receives the heads; NULL after an error.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_SHAPE for tokens that are not those of the run;
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_open_run(qkv_ctx *ctx, const qkv_run *run,
                                                    qkv_attention_kind which, int64_t b,
                                                    const qkv_token_list *queries,
                                                    const qkv_token_list *keys, qkv_heads **heads,
                                                    qkv_error *error);

/** Bins of offsets, and classes of tokens, from which numbers of heads are made. */
enum { QKV_HEADS_N_OFFSETS = 5, QKV_HEADS_N_KINDS = 5 };

/** Returns [QKV_HEADS_N_OFFSETS + 1] bounds of key - query, as `offsets` of qkv/stats.h. */
QKV_API const int64_t *qkv_heads_offsets(void);

/**
 * Sorts n tokens into QKV_HEADS_N_KINDS kinds by their names, as `classes` of qkv/stats.h.
 *
 * @param names  [n].
 * @param kinds  [n]: receives the kinds. Nothing is written if a pointer is NULL or n below 1.
 */
QKV_API void qkv_heads_kinds(const char *const *names, int64_t n, uint8_t *kinds);

/**
 * Statistics of rows (qkv/stats.h) and of keys (qkv/columns.h) that a forward pass has computed.
 * NULL stands for what is not known; numbers that need it are NaN. Made by qkv_heads_rows_init().
 */
typedef struct qkv_heads_rows {
    size_t struct_size;
    /* [n_heads][n_queries]. Required. */
    const float *entropy, *largest, *effective_keys;
    /* [n_heads][n_queries]. Not read if there are two texts, otherwise required. */
    const float *mean_distance;
    /* [n_heads][n_queries][QKV_HEADS_N_OFFSETS], over qkv_heads_offsets. As mean_distance. */
    const float *offset_mass;
    /* NULL, or [n_heads][n_queries][QKV_HEADS_N_KINDS], over qkv_heads_kinds of the keys. */
    const float *class_mass;
    /* NULL, or [n_heads][n_queries]: all three. */
    const float *same_token, *duplicate, *induction;
    /* NULL, or [n_heads][n_keys]: both. */
    const float *received;
    const int64_t *n_queries;
} qkv_heads_rows;

QKV_DEFINE_INIT(qkv_heads_rows)

/** Queries and keys of any model. qkv_heads_arrays_init sets the defaults. */
typedef struct qkv_heads_arrays {
    size_t struct_size;
    /*
     * [n_heads][n_queries][head_dim] and [n_kv_heads][n_keys][head_dim]. They must outlive the
     * result.
     */
    const float *q, *k;
    int64_t n_heads, n_kv_heads, n_queries, n_keys, head_dim;
    /* NULL: all heads. Otherwise [n_list]: only these heads. */
    const int64_t *list;
    int64_t n_list;
    /* The factor on q.k. 0: 1 / sqrt(head_dim). */
    float scale;
    /* 1: query i sees keys j <= i + q_offset. */
    int causal;
    int64_t q_offset;
    /*
     * Query i sees keys from i + q_offset - window_left to i + q_offset + window_right. A value of
     * -1 sets no bound.
     */
    int64_t window_left, window_right;
    /* 1: queries have no places among the keys. */
    int two_texts;
    /*
     * NULL, or tokens: [n_keys] and [n_queries]. If queries is NULL and n_queries = n_keys, queries
     * are the tokens of the keys.
     */
    const char *const *keys;
    const char *const *queries;
    /* A score s becomes softcap tanh(s / softcap). 0: it stays. */
    float softcap;
    /* NULL, or [n_heads]: a score without a key, as `sinks` of qkv/qkv.h. */
    const float *sinks;
    /* NULL, or [n_heads][n_queries][n_keys]: added to scores, as the position bias of T5 is. */
    const float *added;
    /*
     * NULL, or what is known of the rows of all n_heads. Then q and k are not read, and the heads
     * have numbers, but neither weights nor views. Its arrays must outlive qkv_heads_measure.
     */
    const qkv_heads_rows *rows;
    /*
     * NULL: this process alone. Otherwise ranks, as qkvmpi_ranks makes them, that share the
     * passes over queries and keys. All have the same arrays, and make the same calls on these
     * heads in the same order. Results are the same on all, with the bits of one process. A failure
     * within a pass is that of all. Not together with rows. It is copied; its user stays.
     */
    const qkv_ranks *ranks;
    /*
     * With ranks: 1: q and k hold this rank's rows alone, [n_heads][own_queries][head_dim] and
     * [n_kv_heads][own_keys][head_dim], which are those behind the rows of lower ranks. A rank may
     * have none. Other sizes are those of all ranks together. Each pass brings a rank the rows of
     * one head that its part reads. Then a rank has statistics of all queries, and of q and k its
     * own rows, and those for as long as the pass takes. 0: all ranks have all rows.
     */
    int pieces;
    int64_t own_queries, own_keys;
    /* NULL, or [n_heads]: slope (j - i - q_offset) is added to scores (ALiBi). */
    const float *alibi_slopes;
    /*
     * Keys that exist: those from kv_len on are padding, which no query sees. 0: all exist. Not
     * together with added, rows, or pieces of several ranks.
     */
    int64_t kv_len;
} qkv_heads_arrays;

/** Returns arrays that are not set: all 0 or NULL, and a window without bounds. */
static inline qkv_heads_arrays qkv_heads_arrays_init(void) {
    qkv_heads_arrays arrays;
    memset(&arrays, 0, sizeof arrays);
    arrays.struct_size = sizeof arrays;
    arrays.window_left = arrays.window_right = -1;
    return arrays;
}

/**
 * Opens the heads of arrays. The context must outlive the result, whose calls compute with it.
 *
 * @param heads  receives the heads; NULL after an error.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_VERSION; QKV_ERR_SHAPE; QKV_ERR_UNSUPPORTED for fields
 *         that do not go together; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_open_arrays(qkv_ctx *ctx, const qkv_heads_arrays *arrays,
                                                       qkv_heads **heads, qkv_error *error);

/**
 * Opens means over inputs, which qkv_heads_add adds one after another. Numbers are means and
 * standard deviations. With `like`, weights have a mean, too. All inputs must then have the shape
 * of `like`, and n_inputs must be their number. The mean takes over its rules of visibility.
 *
 * @param max_keys  the length of the longest input.
 * @param n_inputs  0: unknown.
 * @param like      NULL: weights have no mean.
 * @param mean      receives the mean; NULL after an error.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_open_mean(int64_t n_layers, int64_t n_heads,
                                                     int64_t max_keys, int64_t n_inputs,
                                                     const qkv_heads *like, qkv_heads **mean,
                                                     qkv_error *error);

/** Adds an input to a mean. `one` must be measured. */
QKV_API QKV_NODISCARD qkv_status qkv_heads_add(qkv_heads *mean, qkv_heads *one, qkv_error *error);

/**
 * Adds an input of which only the numbers of its heads are known, as another process measured them.
 * The mean is that of qkv_heads_add, bit by bit.
 *
 * @param mean     has no mean of weights: it was opened without `like`.
 * @param numbers  [n_layers][n_heads][qkv_head_number_count()]: of each head what qkv_heads_numbers
 *                 returns.
 * @return QKV_OK; QKV_ERR_ARGUMENT.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_add_numbers(qkv_heads *mean, const double *numbers,
                                                       qkv_error *error);

/** Frees the heads. NULL is allowed. */
QKV_API void qkv_heads_free(qkv_heads *heads);

/** Returns facts about the heads; NULL for NULL. */
QKV_API const qkv_heads_info *qkv_heads_get_info(const qkv_heads *heads);

/* ---- Measuring ------------------------------------------------------------------------------- */

enum {
    /* Also measures what keys receive. It is a second pass over all weights. */
    QKV_HEADS_RECEIVED = 1 << 0,
    /* Also finds the largest weight of each head. qkv_heads_sharpest then needs no pass for it. */
    QKV_HEADS_SHARPEST = 1 << 1
};

/**
 * Measures the numbers of all heads. Means are over the queries that are neither [CLS], [SEP] nor
 * [PAD], or over all if there are no others. A query that sees no key is left out.
 *
 * Special values: a NaN weight makes each number NaN that it enters.
 * Accuracy: means are within 1e-6 of those over the weights.
 * Determinism: the same bits for any number of threads and any instruction set.
 * Memory: O(n).
 *
 * @param flags  QKV_HEADS_...
 * @param call   NULL: the defaults. Its workspace is ignored.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_BUSY; QKV_ERR_MEMORY; QKV_ERR_CANCELLED.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_measure(qkv_heads *heads, unsigned flags,
                                                   const qkv_call_options *call, qkv_error *error);

/** Returns the numbers of the index-th head, layer by layer; NULL before they are measured. */
QKV_API const double *qkv_heads_numbers(const qkv_heads *heads, int64_t index);

/**
 * Returns the standard deviations of the numbers of a mean. They are NaN for fewer than two inputs.
 * NULL if there are none.
 */
QKV_API const double *qkv_heads_spread(const qkv_heads *heads, int64_t index);

/** Returns the share of the inputs of a mean that give a head this label by themselves. */
QKV_API double qkv_heads_label_share(const qkv_heads *heads, int64_t index, const char *label);

/** Returns how many queries of a head see no key. */
QKV_API int64_t qkv_heads_empty_rows(const qkv_heads *heads, int64_t index);

/** Returns how many queries of a head have weights that are no numbers. */
QKV_API int64_t qkv_heads_nan_rows(const qkv_heads *heads, int64_t index);

/** What a head does on inputs that were made to test heads: see qkv_inspect_probes. */
typedef struct qkv_head_probes {
    int64_t layer, head;
    /*
     * On random tokens that are repeated once: the mean weight of the same token, over the queries
     * of the second time.
     */
    double duplicate;
    /* The same for the token after it. */
    double induction;
    /*
     * The share of pronoun probes in which, of all content words, the antecedent has the largest
     * weight. The query is the [MASK] in place of the pronoun. NaN without pronoun probes.
     */
    double antecedent;
} qkv_head_probes;

/**
 * Returns [n_queries]: of each query, the sum of p |i + q_offset - j| over the keys. Only for
 * arrays that are measured; NULL otherwise.
 */
QKV_API const float *qkv_heads_distance(const qkv_heads *heads, int64_t index);

/**
 * Puts probes, [heads], among the numbers of heads that are measured. probe_bytes is
 * sizeof(qkv_head_probes); with any size that is none, nothing is put.
 */
QKV_API void qkv_heads_set_probes(qkv_heads *heads, const qkv_head_probes *probes,
                                  size_t probe_bytes);

/* ---- Weights --------------------------------------------------------------------------------- */

/** Returns 1 if a query of the index-th head may see a key, 0 otherwise. */
QKV_API int qkv_head_sees(const qkv_heads *heads, int64_t index, int64_t query, int64_t key);

/**
 * Returns the head as qkv/patterns.h takes it. It is valid as long as `heads`. For arrays, lse is
 * computed now if it is not known. QKV_ERR_UNSUPPORTED for means. Of pieces the first rank gets all
 * rows of the head, which it keeps; on others q and k are NULL.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_view(qkv_heads *heads, int64_t index,
                                                qkv_head_view *view, qkv_error *error);

/**
 * Returns the weights of queries i0 to i1 - 1 and keys j0 to j1 - 1, with the bits of
 * qkv_attention_weights. qkv_heads_measure need not be called before.
 *
 * @param index  layer * n_heads + head, as everywhere in this header.
 * @param row  elements from one row to the next, at least j1 - j0.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_weights(qkv_heads *heads, int64_t index, int64_t i0,
                                                   int64_t i1, int64_t j0, int64_t j1,
                                                   float *weights, int64_t row, qkv_error *error);

typedef enum qkv_tile_kind {
    /* The largest weight of a tile. */
    QKV_TILE_PEAK,
    /* The weight of a query on the keys of a tile, mean over its queries that see a key. */
    QKV_TILE_MASS
} qkv_tile_kind;

/** The cell of a tile in which no query may see a key. */
#define QKV_CELL_HIDDEN (-1.0f)

/**
 * Computes a map of tiles of `tile` queries by `tile` keys. It has the shape
 * [ceil(n_queries / tile)][ceil(n_keys / tile)], at most QKV_COLUMNS_MAX_TILES a side. With tile 1,
 * cells are the weights, without that limit.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_cells(qkv_heads *heads, int64_t index, int64_t tile,
                                                 qkv_tile_kind pooling, float *cells,
                                                 const qkv_call_options *call, qkv_error *error);

/**
 * What one head does at each position. Made by qkv_heads_profile_init(). An array that is NULL is
 * not written.
 */
typedef struct qkv_heads_profile {
    size_t struct_size;
    /* [n_queries]: entropy in nats and largest weight; NaN for a query that sees no key. */
    double *entropy, *largest;
    /* [n_keys]: the sum of the weights on a key. */
    double *received;
    /*
     * [n_queries + n_keys - 1]: the mean of the weights of keys j = i + d, over the pairs that may
     * be seen. d ascends from -(n_queries - 1), whatever q_offset is. 0 without such pairs.
     */
    double *by_offset;
} qkv_heads_profile;

QKV_DEFINE_INIT(qkv_heads_profile)

/**
 * Computes the arrays of the profile that are not NULL. A row that is NaN has NaN in `entropy` and
 * `largest`, and takes part in nothing else.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_position(qkv_heads *heads, int64_t index,
                                                    const qkv_heads_profile *profile,
                                                    const qkv_call_options *call, qkv_error *error);

/* ---- What a head looks at most --------------------------------------------------------------- */

/** One weight. Made by qkv_sharpest_init(). */
typedef struct qkv_sharpest {
    size_t struct_size;
    int64_t layer, head, query, key;
    float weight;
} qkv_sharpest;

QKV_DEFINE_INIT(qkv_sharpest)

/**
 * Finds the largest weight over the heads that `of` marks, from a query that `from` marks to a key
 * that `to` marks. NULL marks all. A query of one text does not look at itself. Of equal weights
 * the one with the smaller layer, head, query, key is taken. query = key = -1 if nothing is left.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_sharpest(qkv_heads *heads, const uint8_t *of,
                                                    const uint8_t *from, const uint8_t *to,
                                                    qkv_sharpest *sharpest, qkv_error *error);

/**
 * Finds the key with the largest weight of a query, of all keys that it sees. Special tokens and
 * the query itself count.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_look(qkv_heads *heads, int64_t index, int64_t query,
                                                int64_t *key, float *weight, qkv_error *error);

/** Which head and query to show first. Made by qkv_heads_choice_init(). */
typedef struct qkv_heads_choice {
    size_t struct_size;
    int64_t layer, head;
    /* The query that is shown, and its key with the largest weight. -1: none. */
    int64_t query, key;
    float weight;
    /* The key for which the rule chose the head and the query, and its weight. -1: none. */
    int64_t rule_key;
    float rule_weight;
    /* The rule in words. It says which tokens it leaves out. */
    const char *rule;
} qkv_heads_choice;

QKV_DEFINE_INIT(qkv_heads_choice)

/**
 * Chooses a head and a query of a run that is measured. With index >= 0 the head is given, and only
 * the query is chosen. docs/statistics.md has the rules.
 */
QKV_API QKV_NODISCARD qkv_status qkv_heads_choose(qkv_heads *heads, int64_t index,
                                                  qkv_heads_choice *choice, qkv_error *error);

#ifdef __cplusplus
}
#endif

#endif
