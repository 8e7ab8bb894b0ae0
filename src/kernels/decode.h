/*
 * Decode: what its kernel works on. A few query rows of all heads that share a key/value head go
 * through K and V as they lie, once. docs/numerics.md states the order of every sum.
 *
 *     decode_split    keys of one split (1024)    m, l and the sum of p v of each row
 *     decode_join     two splits become one
 *     decode_finish   o and lse
 *
 * Keys are taken in groups of 16, aligned to key 0, which lie one after the other in memory
 * wherever they are: pages and rings have lengths that are multiples of 16. Their address is looked
 * up once per group.
 */
#ifndef QKVI_KERNELS_DECODE_H
#define QKVI_KERNELS_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/attend.h"

enum {
    QKVI_DECODE_SPLIT = 1024, /* part of the written order */
    QKVI_DECODE_BLOCK = 512,  /* part of the written order */
    QKVI_DECODE_GROUP = 16,
    QKVI_DECODE_GROUPS = QKVI_DECODE_BLOCK / QKVI_DECODE_GROUP,
    QKVI_DECODE_ROWS = 32,                         /* most rows of a call; free */
    QKVI_DECODE_SCORE_ROW = QKVI_DECODE_BLOCK + 16 /* a power of two would share sets of L1 */
};

/* How K and V are stored: the numbers of qkv_dtype. */
typedef enum qkvi_storage {
    QKVI_STORE_F32 = 0,
    QKVI_STORE_BF16 = 1,
    QKVI_STORE_F16 = 2,
    QKVI_STORE_I8 = 3, /* with a scale for each token */
    QKVI_STORES
} qkvi_storage;

/* Rows of K or of V of one key/value head of one sequence. */
typedef struct qkvi_kv_rows {
    const char *at;     /* token 0, or token 0 of page 0 */
    int64_t row_bytes;  /* from a token to the next */
    int64_t page_bytes; /* from a page to the next */
    const float *scale; /* of token 0; NULL: the storage has none */
    int64_t scale_row, scale_page;
} qkvi_kv_rows;

/*
 * Where they lie: token first + j in slot j mod ring_len, or j; slot s in page pages[s / page_len].
 * first is 0 but of keys that lie on several ranks.
 */
typedef struct qkvi_kv_place {
    int64_t first;
    int64_t ring_len;     /* 0: none */
    const int32_t *pages; /* NULL: contiguous */
    int64_t page_len;
} qkvi_kv_place;

/* One query of one head. */
typedef struct qkvi_decode_row {
    int64_t begin, end;     /* keys that it may see by position */
    qkvi_mask mask;         /* from its own query and key 0 on */
    qkvi_block_list blocks; /* with block_len: those of keys that it sees */
    bool has_sink;
    float sink; /* a score of no key */
    float *o;
    float *lse; /* nullable */
} qkvi_decode_row;

/* What rows have of the keys so far; see decode_split. */
typedef struct qkvi_decode_part {
    _Alignas(64) float m[QKVI_DECODE_ROWS];
    float l[QKVI_DECODE_ROWS];
    uint32_t seen;          /* a bit for each row that sees a key of it */
    _Alignas(64) float o[]; /* [row][o_row], sums of p v; after it, what statistics have */
} qkvi_decode_part;

/* Scratch of one thread. */
typedef struct qkvi_decode_scratch {
    _Alignas(64) float s[QKVI_DECODE_ROWS * QKVI_DECODE_SCORE_ROW]; /* scores, then weights */
    float max[QKVI_DECODE_ROWS * 16], sum[QKVI_DECODE_ROWS * 16];
    float m[QKVI_DECODE_ROWS], l[QKVI_DECODE_ROWS], shift[QKVI_DECODE_ROWS],
        alpha[QKVI_DECODE_ROWS];
    bool whole;                                         /* all rows see all keys of the block */
    uint16_t see[QKVI_DECODE_ROWS][QKVI_DECODE_GROUPS]; /* which keys of a group a row sees */
    uint16_t any[QKVI_DECODE_GROUPS], all[QKVI_DECODE_GROUPS];
    const char *k_at[QKVI_DECODE_GROUPS], *v_at[QKVI_DECODE_GROUPS], *next_at[QKVI_DECODE_GROUPS];
    int64_t k_scale_at[QKVI_DECODE_GROUPS], v_scale_at[QKVI_DECODE_GROUPS];
} qkvi_decode_scratch;

typedef struct qkvi_decode {
    int64_t head_dim, head_dim_v;
    int n_rows;     /* 1 ... QKVI_DECODE_ROWS */
    const float *q; /* [row][q_row], zeros beyond head_dim; aligned to 64 */
    int64_t q_row;  /* head_dim rounded up to 16 */
    const qkvi_decode_row *rows;

    /* Keys [first_key, end_key), of one split, not empty; no row sees another one of it. */
    int64_t first_key, end_key;
    int64_t n_held; /* keys from here on may have no place */
    qkvi_storage storage;
    qkvi_kv_rows k, v;
    qkvi_kv_place place;

    float scale;       /* not negative, scale log2 e normal: the caller has put the rest into q */
    float softcap;     /* 0: none */
    int64_t block_len; /* of the block mask, a multiple of 32; 0: none */

    qkvi_decode_scratch *scratch;
    float *block;  /* [row][o_row], for the sums of a block */
    char *stage;   /* 16 rows of K or V, padded to 16 elements; aligned to 64 */
    int64_t o_row; /* head_dim_v rounded up to 16 */
    qkvi_decode_part *part;
    struct qkvi_decode_stats *stats; /* kernels/decode_stats.h; NULL: none */
} qkvi_decode;

#endif
