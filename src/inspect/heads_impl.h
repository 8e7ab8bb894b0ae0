/** What a qkv_heads is. */
#ifndef QKVI_INSPECT_HEADS_IMPL_H
#define QKVI_INSPECT_HEADS_IMPL_H

#include "attn/mask.h"
#include "inspect/head_rows.h"
#include "inspect/share.h"
#include "qkv/heads.h"

/** Queries and keys of one head. */
typedef struct qkvi_head_source {
    const float *q, *k;
    float *lse; /* of a run it is only read */
    int64_t kv; /* of arrays: the head of k */
    float scale;
    const float *sink, *added; /* [1] and [n_queries][n_keys]; NULL: none */
} qkvi_head_source;

/** The largest weight of a head; query -1: there is none. */
typedef struct qkvi_head_peak {
    int64_t query, key;
} qkvi_head_peak;

struct qkvi_heads_mean;

struct qkv_heads {
    qkv_ctx *ctx;
    qkv_heads_info info;
    int64_t n_all;             /* heads of all layers */
    qkvi_head_source *sources; /* [n_all]; NULL: a mean */
    int dense;                 /* the heads of a layer lie side by side, as do their lse */
    qkv_attention_desc desc;   /* of one head; scale aside */
    qkvi_rules rules;
    qkvi_rules *layer_rules;          /* [n_layers] where layers differ; NULL: rules, of all */
    int64_t n_kv_heads;               /* of a layer whose heads are dense; 0: n_heads */
    const uint8_t *seen;              /* [n_keys] 0: no query sees the key; NULL */
    int32_t *ids;                     /* [n] of queries and keys; NULL: they do not compare */
    uint8_t *query_kinds, *key_kinds; /* qkvi_token_kind; NULL: unknown */
    qkv_token_list queries, keys;     /* of a run */
    qkv_attention_kind which;
    int decodes;                 /* queries are causal as the model is */
    double *numbers;             /* [n_all][n_numbers]; NULL: not measured */
    int64_t *empty, *nan;        /* [n_all] with numbers */
    qkvi_head_peak *peaks;       /* [n_all]; NULL: not found */
    int64_t n_lse;               /* sources whose lse is there (arrays), from the first on */
    float *own_lse;              /* [n_all][n_queries] of arrays */
    float *distance;             /* the same */
    float softcap;               /* 0: none */
    qkv_heads_rows rows;         /* what `given` is, if it is there */
    const qkv_heads_rows *given; /* statistics, no queries and keys; NULL: there are these */
    qkv_attention_desc *descs;   /* [n_all] of the views */
    struct qkvi_heads_mean *mean;
    qkv_ranks ranks;
    qkvi_peers peers;        /* of ranks, that share passes over arrays; else one */
    qkvi_head_pieces pieces; /* of these, if each has its rows alone */
    float *
        *whole[2]; /* [n_whole] queries of heads, keys of kv heads: of views, on the first rank */
    int64_t n_whole;
};

/** Sizes, rules and arrays for n_all heads; the sources are the caller's to fill. */
qkv_status qkvi_heads_make(qkv_ctx *ctx, const qkv_heads_info *info, qkv_heads **heads,
                           qkv_error *error);
/** What the index-th head's queries see. */
static inline const qkvi_rules *qkvi_heads_rules(const qkv_heads *heads, int64_t index) {
    return heads->layer_rules ? &heads->layer_rules[index / heads->info.n_heads] : &heads->rules;
}

/** The description of n_heads heads that lie side by side, from the first-th on. */
void qkvi_heads_describe(const qkv_heads *heads, int64_t first, int64_t n_heads,
                         qkv_attention_desc *desc);
/** A pass over a head whose lse is there, or over what stands for it. */
qkvi_share qkvi_heads_share(qkv_heads *heads, int64_t index, const qkv_head_view *view,
                            const qkv_call_options *call);
/** Of pieces; else NULL. */
static inline qkvi_head_pieces *qkvi_heads_pieces(qkv_heads *heads) {
    return heads->pieces.peers ? &heads->pieces : NULL;
}
qkv_status qkvi_heads_check(const qkv_heads *heads, int64_t index, qkv_error *error);

/** Of means (heads_mean.c). */
void qkvi_heads_mean_free(struct qkvi_heads_mean *mean);
const double *qkvi_heads_mean_numbers(const qkv_heads *heads, int64_t index);
/** [n_queries][n_keys]; NULL: there are none. */
const float *qkvi_heads_mean_weights(const qkv_heads *heads, int64_t index);

/** Profile of weights that are there (profile.c). */
void qkvi_profile(const qkv_heads *heads, int64_t index, const float *weights,
                  const qkv_heads_profile *profile);

/** Rules of labels with their numbers looked up once, for those who label many heads. */

enum { QKVI_MOST_RULES = 16 };

/** Indices of numbers. */
typedef struct qkvi_rule_places {
    int entropy, n_keys;
    int number[QKVI_MOST_RULES], queries[QKVI_MOST_RULES];
} qkvi_rule_places;

#endif
