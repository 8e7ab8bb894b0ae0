/*
 * The argument of attend_block, the hot call of the forward pass: one block of query rows of one head against all keys that
 * they may see. Keys and values come packed, in the workspace of the head that shares them:
 *
 *     k_panels  [panel][head_dim][32 keys]                  panel = (key - first_key) / 32
 *     v_panels  [block][strip][256 keys][32 channels]       block = (key - first_key) / 256, strip = channel / 32
 *
 * with zeros in columns without a key or channel; rows of values without a key are not read. first_key is a multiple of 256, so that blocks are those of the written
 * order (docs/numerics.md), aligned to key 0 of the sequence.
 */
#ifndef QKVI_KERNELS_ATTEND_H
#define QKVI_KERNELS_ATTEND_H

#include <stdint.h>

enum {
    QKVI_PANEL = 32,
    QKVI_KEY_BLOCK = 256,  /* keys of a block: part of the written order */
    QKVI_QUERY_BLOCK = 96, /* most rows of a call: 8 tiles of 12, 6 groups of 16 lanes; free */
    QKVI_SCORE_ROW = QKVI_KEY_BLOCK + 16 /* a power of two would put all rows into one cache set */
};

typedef enum qkvi_mask_kind { QKVI_MASK_NONE, QKVI_MASK_BYTES, QKVI_MASK_FLOATS } qkvi_mask_kind;

typedef struct qkvi_attend {
    int n_rows; /* 1 … QKVI_QUERY_BLOCK */
    int64_t head_dim, head_dim_v;
    const float *q;
    int64_t q_row; /* stride of rows */
    float *o;
    int64_t o_row;
    float *lse; /* nullable */
    int64_t lse_row;

    /* Row r sees the keys [position + r - left, position + r + right] of [0, n_keys). */
    int64_t position, left, right, n_keys;

    int64_t first_key;  /* of the panels */
    int64_t keys_begin; /* keys [keys_begin, n_keys) are packed: all that a row sees */
    const float *k_panels, *v_panels;
    const uint8_t *v_nonfinite; /* [block]: some value of the block is infinite or NaN */

    float scale, softcap; /* softcap 0: none */

    qkvi_mask_kind mask_kind; /* bytes: non-zero may see; floats: added, -inf may not */
    const void *mask;         /* element [row 0][key 0] */
    int64_t mask_row, mask_key;

    float *scratch; /* qkvi_attend_scratch_elems, aligned to 64 */
} qkvi_attend;

static inline int64_t qkvi_round_up(int64_t x, int64_t multiple) {
    return (x + multiple - 1) / multiple * multiple;
}

/* q, scores, output, then vectors and numbers of each row. */
static inline int64_t qkvi_attend_scratch_elems(int64_t head_dim, int64_t head_dim_v) {
    const int64_t row =
        qkvi_round_up(head_dim, 16) + QKVI_SCORE_ROW + qkvi_round_up(head_dim_v, 32) + 2 * 16 + 4;
    return QKVI_QUERY_BLOCK * row;
}

#endif
