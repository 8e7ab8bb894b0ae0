/** qkv inspection: numbers about what heads do, from captured q, k and lse. */
#ifndef QKV_INSPECT_H
#define QKV_INSPECT_H

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Numbers about one head: means over the queries that are neither [CLS], [SEP] nor [PAD] (over all
 * queries if there are no others), natural logarithms. docs/statistics.md has each formula. A NaN
 * weight makes what it enters NaN.
 */
typedef struct qkv_head_stats {
    int64_t layer, head;
    double entropy;            /* mean over queries of -sum p ln p */
    double entropy_normalized; /* entropy / ln n */
    double confidence;         /* mean of the largest weight */
    double mean_distance;      /* mean of sum p |i - j| */
    double mass_cls, mass_sep, mass_punctuation, mass_self, mass_previous, mass_next;
    /* The first rule of docs/statistics.md that holds: "next", "prev", "[CLS]", "[SEP]",
     * "punctuation", "broad", "sink", "same-token"; "" if none does. */
    char label[24];
} qkv_head_stats;

/**
 * Statistics and label of every head for input b of a run that captured. stats is [n_layers *
 * n_heads], layer by layer. input is the encoding that the run was made from. Memory: one n x n
 * array of floats.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_heads(const qkv_model *model, const qkv_run *run,
                                                   int64_t b, const qkv_encoding *input,
                                                   qkv_head_stats *stats, qkv_error *error);

/**
 * 1 for tokens of content words: not special, not [UNK], not punctuation, not in our list of
 * English function words; pieces follow the word they continue. content is [input->n].
 */
QKV_API void qkv_inspect_content(const qkv_tokenizer *tokenizer, const qkv_encoding *input,
                                 uint8_t *content);

/**
 * Where one token looks most sharply at another: the largest weight over the heads that `heads`
 * marks ([n_layers * n_heads], layer by layer), from a query that `from` marks to a key that `to`
 * marks ([n] of the run's input b), the query itself aside. NULL marks all. Of equal weights the
 * one with the smaller layer, head, query, key; query = key = -1, the rest 0, if nothing is left.
 * qkv_inspect_content gives marks of words that say something. Memory: one n x n array of floats.
 */
typedef struct qkv_sharpest {
    int64_t layer, head, query, key;
    float weight;
} qkv_sharpest;

QKV_API QKV_NODISCARD qkv_status qkv_inspect_sharpest(const qkv_model *model, const qkv_run *run,
                                                      int64_t b, const uint8_t *heads,
                                                      const uint8_t *from, const uint8_t *to,
                                                      qkv_sharpest *sharpest, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
