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

enum { QKV_MAP_MAX_POINTS = 4096, QKV_MAP_MAX_HEAD_DIM = 512, QKV_MAP_MAX_RUNS = 10000 };

/** Zeros are the defaults. */
typedef struct qkv_map_options {
    size_t struct_size;
    qkv_map_metric metric;
    double perplexity; /* 1 <= perplexity < points; 0: 5 up to 60 points, else 30, at most a third
                          of the other points and at least 1 */
    int64_t n_iters;   /* 0: 1000 */
    int64_t n_runs; /* from different starts; 0: 32 up to 512 points and 10^5 iterations, else 1 */
    qkv_map_init init; /* of the first run; all others begin at random */
    uint64_t seed;
    int no_early_stop; /* else: gradient <= 1e-7, or 300 iterations without a smaller KL */
    int center_keys; /* k - mean(k) + mean(q) in place of k: moves every row's scores by one sum */
    double balance;  /* > 0: q times it, k divided by it; 0: as they are */
    int pca_only;    /* no t-SNE: the map is the two principal components */
    const double *start; /* [points][2], the start of the first run; NULL: init */
} qkv_map_options;

#define QKV_MAP_OPTIONS_INIT                                                                       \
    { sizeof(qkv_map_options), QKV_MAP_COSINE, 0, 0, 0, QKV_MAP_INIT_PCA, 0, 0, 0, 0, 0, NULL }

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
        rank_correlation; /* Spearman, of map distance and q.k, over all pairs of query and key */
} qkv_map_report;

/**
 * t-SNE (van der Maaten and Hinton 2008) of queries and keys together, in double, by its exact
 * gradient: the method 'exact' of scikit-learn, with restarts.
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
 *   q       [n_queries][head_dim]           k  [n_keys][head_dim]             read; dense
 *   xy      [n_queries + n_keys][2]         the map: queries, then keys       written
 *   pca     [n_queries + n_keys][2]         principal components; nullable    written
 *   agree   [n_queries]: in how many runs the query's nearest key is the one
 *           of the returned map; nullable                                    written
 *
 * Special values: NaN and infinity in q or k are refused by name. Equal points are legal. One point
 * lies at 0.
 * Accuracy: entropies within 1e-10; KL as exact as sums of doubles. Where a run ends depends on its
 * start: maps of different seeds are to be compared by KL only.
 * Determinism: the same bits for any number of threads and any instruction set.
 * Memory: 8 points^2 bytes, and 8 head_dim (2 points + head_dim). Threads: those of ctx.
 * call: cancel ends the descent; then the best map so far is there, complete with its report, and
 * the status is QKV_ERR_CANCELLED. progress counts iterations of all runs. workspace is not used.
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
