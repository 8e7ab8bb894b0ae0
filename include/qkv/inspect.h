/** qkv inspection: numbers about what heads do, from captured q, k and lse. */
#ifndef QKV_INSPECT_H
#define QKV_INSPECT_H

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Means over the queries of one head (natural logarithms; docs/statistics.md has each formula). */
typedef struct qkv_head_stats {
    int64_t layer, head;
    double entropy;            /* mean over queries of -sum p ln p */
    double entropy_normalized; /* entropy / ln n */
    double confidence;         /* mean of the largest weight */
    double mean_distance;      /* mean of sum p |i - j| */
    double mass_cls, mass_sep, mass_punctuation, mass_self, mass_previous, mass_next;
    char label[24]; /* by the written rules; "" if none holds */
} qkv_head_stats;

/** Statistics and label of every head for one input of a run that captured: [n_layers *
 * n_heads]. */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_heads(const qkv_model *model, const qkv_run *run,
                                                   int64_t b, const qkv_encoding *input,
                                                   qkv_head_stats *stats, qkv_error *error);

/** 1 for tokens that are content words: not special, not punctuation, not in our list of function
 *  words; pieces follow the word they continue. content is [n]. */
QKV_API void qkv_inspect_content(const qkv_tokenizer *tokenizer, const qkv_encoding *input,
                                 uint8_t *content);

/** The layer, head and key where a query puts its largest weight on a content word; key = -1 if
 * there is no such word. */
typedef struct qkv_sharpest {
    int64_t layer, head, key;
    float weight;
} qkv_sharpest;

QKV_API QKV_NODISCARD qkv_status qkv_inspect_sharpest(const qkv_model *model, const qkv_run *run,
                                                      int64_t b, const qkv_encoding *input,
                                                      int64_t query, qkv_sharpest *sharpest,
                                                      qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
