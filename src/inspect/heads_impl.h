/** The insides of a qkv_heads, and helpers that its files share. */
#ifndef QKVI_INSPECT_HEADS_IMPL_H
#define QKVI_INSPECT_HEADS_IMPL_H

#include "attn/mask.h"
#include "inspect/head_rows.h"
#include "inspect/share.h"
#include "qkv/heads.h"

/** Queries and keys of one head. */
typedef struct qkvi_head_source {
    const float *q, *k;
    float *lse; /* of arrays it is written when it is needed, of a run only read */
    int64_t kv; /* of arrays: the index of the key head */
    float scale;
    const float *sink, *added; /* [1] and [n_queries][n_keys]; NULL: none */
    const float *slope;        /* [1] of ALiBi; NULL: none */
} qkvi_head_source;

/** What is left of a layer's edges: [n_heads or 1][n_queries][n_keys]; NULL: all of them. */
typedef struct qkvi_layer_uncut {
    const uint8_t *sees;
    int64_t stride; /* of heads */
} qkvi_layer_uncut;

/** Where the largest weight of a head is; query -1: no query sees a key. */
typedef struct qkvi_head_peak {
    int64_t query, key;
} qkvi_head_peak;

struct qkvi_heads_mean;

struct qkv_heads {
    qkv_ctx *ctx;
    qkv_heads_info info;
    int64_t n_all;             /* heads of all layers */
    qkvi_head_source *sources; /* [n_all]; NULL: a mean */
    int dense;                 /* heads of a layer are one array, and so are their lse */
    qkv_attention_desc desc;   /* of one head, without its scale */
    qkvi_rules rules;
    qkvi_rules *layer_rules;          /* [n_layers] where layers differ; NULL: rules, for all */
    int64_t n_kv_heads;               /* of a layer whose heads are dense; 0: n_heads */
    qkvi_layer_uncut *uncut;          /* [n_layers], where edges are cut; NULL: nowhere */
    const uint8_t *seen;              /* [n_keys] 0: no query sees the key; NULL: all may be seen */
    int32_t *ids;                     /* [n] tokens of both sides; NULL: they do not compare */
    uint8_t *query_kinds, *key_kinds; /* qkvi_token_kind; NULL: unknown */
    qkv_token_list queries, keys;     /* of a run */
    qkv_attention_kind which;
    int decodes;                 /* causal because the model is, not by a what-if */
    double *numbers;             /* [n_all][n_numbers]; NULL: not measured */
    int64_t *empty, *nan;        /* [n_all] numbers of such rows; set with numbers */
    qkvi_head_peak *peaks;       /* [n_all]; NULL: not found */
    int64_t n_lse;               /* of arrays: the first n_lse sources have their lse */
    float *own_lse;              /* [n_all][n_queries] of arrays */
    uint8_t *own_seen;           /* [n_keys] of arrays with a kv_len; then it is seen */
    float *distance;             /* [n_all][n_queries] of arrays: mean distances of rows */
    float softcap;               /* 0: none */
    qkv_heads_rows rows;         /* a copy that `given` points to */
    const qkv_heads_rows *given; /* the caller's statistics, without q and k; NULL: q and k */
    qkv_attention_desc *descs;   /* [n_all], which views of heads point to */
    struct qkvi_heads_mean *mean;
    qkv_ranks ranks;
    qkvi_peers peers;        /* the ranks that share passes over arrays; else this one */
    qkvi_head_pieces pieces; /* if each of these ranks has only its own rows */
    /* [n_whole] on the first rank, for views: all rows of query heads, and of key heads */
    float **whole[2];
    int64_t n_whole;
};

/** Sets sizes and rules, and allocates arrays for n_all heads; the caller fills the sources. */
qkv_status qkvi_heads_make(qkv_ctx *ctx, const qkv_heads_info *info, qkv_heads **heads,
                           qkv_error *error);
/** The rules by which queries of the index-th head see keys. */
static inline const qkvi_rules *qkvi_heads_rules(const qkv_heads *heads, int64_t index) {
    return heads->layer_rules ? &heads->layer_rules[index / heads->info.n_heads] : &heads->rules;
}

/** Rows of the mask of a head, of queries from i on; NULL: no edge of it is cut. */
static inline const uint8_t *qkvi_heads_uncut(const qkv_heads *heads, int64_t index, int64_t i) {
    if (!heads->uncut) return NULL;
    const int64_t n_heads = heads->info.n_heads;
    const qkvi_layer_uncut *const of = &heads->uncut[index / n_heads];
    return of->sees ? of->sees + index % n_heads * of->stride + i * heads->info.n_keys : NULL;
}

/** Is key j hidden from query i of a head, though the rules let it see the key? */
static inline bool qkvi_heads_hide(const qkv_heads *heads, int64_t index, int64_t i, int64_t j) {
    const uint8_t *const uncut = qkvi_heads_uncut(heads, index, i);
    return uncut ? !uncut[j] : heads->seen && !heads->seen[j];
}

/** The descriptor of n_heads heads of one array, from the first-th on. */
void qkvi_heads_describe(const qkv_heads *heads, int64_t first, int64_t n_heads,
                         qkv_attention_desc *desc);
/** A pass over the head of a view, which ranks share. */
qkvi_share qkvi_heads_share(qkv_heads *heads, int64_t index, const qkv_head_view *view,
                            const qkv_call_options *call);
/** The pieces, if rows are distributed over ranks; else NULL. */
static inline qkvi_head_pieces *qkvi_heads_pieces(qkv_heads *heads) {
    return heads->pieces.peers ? &heads->pieces : NULL;
}
qkv_status qkvi_heads_check(const qkv_heads *heads, int64_t index, qkv_error *error);

/** For heads that are means over inputs (heads_mean.c): free them; numbers of a head. */
void qkvi_heads_mean_free(struct qkvi_heads_mean *mean);
const double *qkvi_heads_mean_numbers(const qkv_heads *heads, int64_t index);
/** [n_queries][n_keys]; NULL: there are none. */
const float *qkvi_heads_mean_weights(const qkv_heads *heads, int64_t index);

/** The profile of a head whose weights are stored (profile.c). */
void qkvi_profile(const qkv_heads *heads, int64_t index, const float *weights,
                  const qkv_heads_profile *profile);

enum { QKVI_MOST_RULES = 16 };

/** The indices of the numbers that rules of labels compare, looked up once for many heads. */
typedef struct qkvi_rule_places {
    int entropy, n_keys;
    int number[QKVI_MOST_RULES], queries[QKVI_MOST_RULES];
} qkvi_rule_places;

#endif
