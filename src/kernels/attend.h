/*
 * The forward pass of attention: what its kernel works on. One block of at most 96 queries of one
 * head against all keys that they may see, K and V packed by the caller. docs/numerics.md states
 * the order of every sum.
 *
 *   product      rows    columns   depth     A (broadcast)       B (32 columns wide)
 *   S  = Q K^T   query   key       channel   q, as it lies       key panel [channel][32 keys]
 *   O += P V     query   channel   key       P, by rows          channel panel [key][32 channels]
 *
 * Keys are taken in blocks of 256, aligned to key 0 of the sequence. Within one, three sweeps over
 * the queries: scores (a key panel of 128 head_dim bytes stays in L1 while all row tiles pass),
 * softmax, values (a channel panel of 32 KiB does).
 *
 *     k   [panel][head_dim][32 keys]               panel = (key - first_key) / 32
 *     v   [block][panel][256 keys][32 channels]    block = (key - first_key) / 256
 *                                                  panel = channel / 32
 *
 * In classes whose words are pairs (kernels/class.h) there are half as many words:
 *
 *     k   [panel][ceil(head_dim / 2)][32 keys]
 *     v   [block][panel][128 pairs of keys][32 channels]
 *
 * Zeros fill up the depth to a multiple of the class's step: head_dim in q and k, keys in v.
 */
#ifndef QKVI_KERNELS_ATTEND_H
#define QKVI_KERNELS_ATTEND_H

#include "core/ints.h"
#include "kernels/ahead.h"
#include "kernels/class.h"

enum {
    QKVI_PANEL = 32,
    QKVI_KEY_BLOCK = 256,  /* part of the written order */
    QKVI_QUERY_BLOCK = 96, /* most rows of a call: 8 tiles of 12, 6 groups of 16 lanes; free */
    QKVI_SCORE_ROW = QKVI_KEY_BLOCK + 16, /* a power of two would put all rows into one set of L1 */
    QKVI_FETCHES = 4,
    QKVI_ATTEND_TILES = 16 /* most row tiles of a call, of 6 rows or more */
};

/*
 * What hides keys and biases scores beside positions, of one head, from query 0 and key 0 of a
 * block on. At most one of the first three is set.
 */
typedef struct qkvi_mask {
    const uint8_t *bools; /* 0: may not see */
    const uint8_t *bits;  /* least significant first, 0: may not see; row in bytes, key 1 or 0 */
    const void *adds;     /* -inf: may not see */
    qkv_dtype adds_type;
    int64_t row, key;             /* strides, for either */
    const int32_t *seg_q, *seg_k; /* equal: may see; NULL: no segments */
    float slope;                  /* slope (distance + j - i) is added: ALiBi; 0: nothing is */
    int64_t distance;
    /*
     * Element distance + j - i + before is added, the first or the last one where there is none;
     * NULL: nothing is.
     */
    const float *distance_bias;
    int64_t before, n_distances;
} qkvi_mask;

/*
 * Dropout of one head: which weights become 0. tmpl/dropout.h makes the words; a weight whose word
 * is at most `last` is dropped.
 */
typedef struct qkvi_dropout {
    uint32_t key[10][2]; /* of each round */
    uint32_t last;
    uint32_t head[2]; /* b n_heads + h, low and high half */
    int64_t row, col; /* query 0 and key 0 of the block; col is a multiple of 32 */
    float kept;       /* 1 - dropout; 0: nothing is left */
    float factor;     /* 1 / kept, or 0 */
} qkvi_dropout;

/* Ascending numbers of blocks of keys: those that a block of queries sees. */
typedef struct qkvi_block_list {
    const int32_t *at, *end;
} qkvi_block_list;

/*
 * Panels of 32 keys, of the 8 from key0 on, that lie in listed blocks, a bit each. Takes blocks off
 * the list that end there; block_len is a multiple of 32.
 */
static inline uint32_t qkvi_block_panels(qkvi_block_list *list, int64_t block_len, int64_t key0) {
    uint32_t panels = 0;
    for (; list->at < list->end; list->at++) {
        const int64_t from = (*list->at * block_len - key0) / 32, to = from + block_len / 32;
        if (from >= 8) break;
        for (int64_t n = from < 0 ? 0 : from; n < to && n < 8; n++) panels |= 1u << n;
        if (to > 8) break;
    }
    return panels;
}

/* What a row tile did in the current block of keys. */
typedef struct qkvi_attend_tile {
    uint32_t panels; /* of the block that it computed, a bit each: the others no row sees */
    bool partial;    /* some row did not see some key of them */
    bool started;    /* an earlier block has written its rows of o_sum */
} qkvi_attend_tile;

/*
 * Scratch of one thread. Lanes and rows beyond the queries of the block hold numbers of no
 * consequence.
 */
typedef struct qkvi_attend_scratch {
    _Alignas(64) float s[QKVI_QUERY_BLOCK * QKVI_SCORE_ROW]; /* scores, then weights */
    float max[QKVI_QUERY_BLOCK * 16];                        /* 16 or 4 partial maxima a row */
    float sum[QKVI_QUERY_BLOCK * 16];                        /* 16 partial sums of p a row */
    float m[QKVI_QUERY_BLOCK];     /* the reference, in log2 units; -inf: no score above it yet */
    float shift[QKVI_QUERY_BLOCK]; /* m, or 0 for -inf */
    float l[QKVI_QUERY_BLOCK];     /* sum of p */
    float l_rounded[QKVI_QUERY_BLOCK]; /* sum of p as they were rounded, where they are */
    float rounded[16 * 16];            /* 16 partial sums of those, of 16 rows */
    float alpha[QKVI_QUERY_BLOCK];     /* 2^(m before - m now), of this block of keys */
    int64_t begin[QKVI_QUERY_BLOCK], end[QKVI_QUERY_BLOCK]; /* filled by the caller: see below */
    qkvi_attend_tile tile[QKVI_ATTEND_TILES];
    uint32_t panels[QKVI_QUERY_BLOCK / 32]; /* of the block of keys, that 32 rows may see */

    /*
     * What is announced in the last block of keys, while values are summed: filled by the caller,
     * eaten by attend_block.
     */
    qkvi_ahead fetch[QKVI_FETCHES];
} qkvi_attend_scratch;

/*
 * Where the keys of a block of queries come in several calls, in ascending order: what the sums
 * have come to. Before the first call m is -inf, l, l_rounded and a->o_sum are 0; a->o_sum is kept,
 * too. What statistics have of a row is a qkvi_stats_kept.
 */
typedef struct qkvi_attend_state {
    int64_t begin, end;       /* keys of this call, whole blocks of 256 or up to the last key */
    float *m, *l, *l_rounded; /* [n_queries] */
    char *stats;              /* [n_queries], stats_bytes each */
    size_t stats_bytes;
    bool last; /* false: o, lse and statistics are not written yet */
} qkvi_attend_state;

typedef struct qkvi_attend {
    qkvi_arithmetic class; /* how q, k and v lie; rows of q beyond n_queries have any contents */
    int64_t head_dim, head_dim_v;
    int64_t k_words; /* of a key in k */
    int n_queries;   /* 1 ... QKVI_QUERY_BLOCK */
    const void *q;   /* rows of the caller's array */
    int64_t q_row;   /* in elements */
    const void *k, *v;
    int64_t first_key;    /* of the packed ones, a multiple of 256 */
    const bool *v_finite; /* [block]: all of v that a query sees is */

    /*
     * scratch->begin and end: query i may see the keys [begin[i], end[i]), begin <= end; neither
     * ever falls. Panels of k outside of them are not read; nor are rows of v before the first
     * begin or from the last end on.
     */
    qkvi_attend_scratch *scratch;
    float *o_sum;      /* [n_queries][o_sum_row], aligned to 64, contents undefined */
    int64_t o_sum_row; /* a multiple of 16, at least head_dim_v rounded up to 32 */

    qkvi_mask mask;    /* from query 0 of the block and key 0 of the sequence on */
    int64_t block_len; /* of the block mask; 0: none */
    qkvi_block_list blocks[QKVI_QUERY_BLOCK / 32]; /* of 32 queries each */
    const qkvi_dropout *dropout;                   /* likewise; NULL: none */

    float scale;   /* not negative, scale log2 e normal: the caller has put the rest into k */
    float softcap; /* 0: none */
    bool has_sink;
    float sink; /* a score of no key */

    float *o;
    int64_t o_row;
    float *lse; /* nullable */
    int64_t lse_row;
    struct qkvi_attend_stats *stats; /* kernels/attend_stats.h; NULL: none */
    const qkvi_attend_state *state;  /* NULL: all keys are here */
} qkvi_attend;

/*
 * A head with at most 16 queries and 16 keys, from arrays that are not packed
 * (tmpl/attend_small.h): no explicit mask, no soft cap, every key seen by some query of the head.
 */
enum {
    QKVI_SMALL = 16,
    QKVI_SMALL_WORK = 16 * QKVI_SCORE_ROW + 16 * 16 + 4 * 16 /* and 32 head_dim floats */
};

typedef struct qkvi_attend_small {
    int64_t head_dim, head_dim_v; /* multiples of 16 and of 32 */
    qkvi_arithmetic class;        /* one that knows of no reason against it */
    int n_queries, n_keys;        /* 1 ... 16 */
    const void *q, *k;            /* rows of the class's type */
    const void *v;                /* such rows; in pairs channel panels [8 words][32 channels] */
    int64_t q_row, k_row, v_row;  /* of v where it lies in rows */
    const uint16_t *see;          /* [key]: bit i: query i sees it; set beyond the last query */
    float *work;                  /* QKVI_SMALL_WORK + 32 head_dim, aligned to 64 */
    float factor;                 /* scale log2 e, a positive normal number */
    float *o_sum;                 /* in pairs: [n_queries][o_sum_row], aligned to 64; may be o */
    int64_t o_sum_row;
    float *o;
    int64_t o_row;
    float *lse; /* nullable */
    int64_t lse_row;
} qkvi_attend_small;

#endif
