/*
 * Attention of a block of queries: the f32 class in the written order of docs/numerics.md.
 *
 *   for each block of 256 keys                                       rows in tiles of V_MR, keys in panels of 32
 *       S = Q K^T        per tile and panel; hidden scores become -inf; 16 running maxima per row
 *       m, alpha         16 rows in lanes: m rises when the block's maximum exceeds it by more than 8
 *       P = 2^(c S - m)  per row, with 32 partial sums;  l = l alpha + sum
 *       O = O alpha + P V   per tile and strip of 32 channels
 *   o = O / l,  lse = (m + log2 l) ln 2
 *
 * Scores are in units where c turns them into log2: the plain dot product with c = |scale| log2 e (a negative scale negates
 * q), or, with a soft cap or an additive mask, the finished score with c = log2 e.
 *
 * Invariants. Panels that no row of a tile sees are neither computed nor read. In a panel that is computed every hidden score
 * is -inf, so its p is +0, and a value that is not finite is never multiplied by such a 0. m = -inf says that no score above
 * -inf was seen; p is then formed with m = 0, which gives 0 for -inf and NaN for NaN.
 */
#ifndef QKVI_TMPL_ATTEND_H
#define QKVI_TMPL_ATTEND_H

#include <stdbool.h>
#include <string.h>

#include "kernels/attend.h"

#define ATTEND_INF   __builtin_inff()
#define ATTEND_LOG2E 1.44269504f
#define ATTEND_LN2   0.693147182f
#define ATTEND_RISE  8.0f

/* The state of one call: pointers into its scratch, and what its options come to. */
typedef struct attend {
    const qkvi_attend *a;
    float c;         /* score to log2 units */
    bool finished;   /* scores carry scale, cap and mask: c = log2 e */
    int n_tile_rows; /* n_rows, rounded up to tiles; the rows beyond are zeros and never leave */
    float *q, *s, *o;
    float *max, *sum;     /* [row][16] */
    float *m, *l, *alpha; /* [row] */
    float *seen;          /* [row]: 1 when the row has a visible key */
    int64_t q_row, o_row; /* strides of q and o above */
    bool open; /* in this block every row sees every key, and scores are used as they come */
} attend;

typedef struct attend_span {
    int64_t begin, end;
} attend_span;

V_INLINE int64_t attend_clip(int64_t x, int64_t lo, int64_t hi) {
    return x < lo ? lo : x > hi ? hi : x;
}
/* Keys that the rows [r0, r1) may see by position, within [lo, hi). */
V_INLINE attend_span attend_keys(const qkvi_attend *a, int r0, int r1, int64_t lo, int64_t hi) {
    const int64_t end = hi < a->n_keys ? hi : a->n_keys;
    if (end <= lo) return (attend_span){ lo, lo };
    const int64_t first = attend_clip(a->position + r0 - a->left, lo, end);
    const int64_t last = attend_clip(a->position + r1 - 1 + a->right + 1, first, end);
    return (attend_span){ first, last };
}

static void attend_begin(attend *t, const qkvi_attend *a) {
    const int64_t q_row = qkvi_round_up(a->head_dim, 16), o_row = qkvi_round_up(a->head_dim_v, 32);
    float *next = a->scratch;
    *t = (attend){ .a = a, .q_row = q_row, .o_row = o_row };
    t->n_tile_rows = (a->n_rows + V_MR - 1) / V_MR * V_MR;
    t->q = next, next += QKVI_QUERY_BLOCK * q_row;
    t->s = next, next += QKVI_QUERY_BLOCK * QKVI_SCORE_ROW;
    t->o = next, next += QKVI_QUERY_BLOCK * o_row;
    t->max = next, next += QKVI_QUERY_BLOCK * 16;
    t->sum = next, next += QKVI_QUERY_BLOCK * 16;
    t->m = next, next += QKVI_QUERY_BLOCK;
    t->l = next, next += QKVI_QUERY_BLOCK;
    t->alpha = next, next += QKVI_QUERY_BLOCK;
    t->seen = next;

    const float magnitude = a->scale < 0.0f ? -a->scale : a->scale;
    t->c = magnitude * ATTEND_LOG2E;
    t->finished = a->softcap > 0.0f || a->mask_kind == QKVI_MASK_FLOATS ||
                  !(t->c >= 1.17549435e-38f && t->c < ATTEND_INF);
    if (t->finished) t->c = ATTEND_LOG2E;

    for (int r = 0; r < a->n_rows; r++) {
        float *to = t->q + r * q_row;
        memcpy(to, a->q + r * a->q_row, (size_t)a->head_dim * sizeof *to);
        if (a->scale < 0.0f)
            for (int64_t d = 0; d < a->head_dim; d++) to[d] = -to[d];
    }
    const int n_spare = t->n_tile_rows - a->n_rows;
    memset(t->q + a->n_rows * q_row, 0, (size_t)(n_spare * q_row) * sizeof(float));
    memset(t->o, 0, (size_t)(t->n_tile_rows * o_row) * sizeof(float));
    for (int r = 0; r < QKVI_QUERY_BLOCK; r += 16) {
        vf_store(t->m + r, vf_set1(-ATTEND_INF));
        vf_store(t->l + r, vf_set1(0.0f));
        vf_store(t->seen + r, vf_set1(0.0f));
    }
}

/* ---- scores ---- */

/* Bits of the 16 keys from `key` on that row r may see by position. */
V_INLINE uint32_t attend_bits(attend_span row, int64_t key) {
    const int64_t lo = attend_clip(row.begin - key, 0, 16), hi = attend_clip(row.end - key, 0, 16);
    return hi <= lo ? 0u : ((1u << hi) - 1u) & ~((1u << lo) - 1u);
}

static uint32_t attend_mask_bits(const qkvi_attend *a, int r, int64_t key) {
    const uint8_t *p = (const uint8_t *)a->mask + r * a->mask_row + key * a->mask_key;
    const int64_t left = a->n_keys - key;
    if (a->mask_key == 1 && left >= 16) return v_nonzero_bytes(p);
    uint32_t bits = 0;
    for (int e = 0; e < 16 && e < left; e++) bits |= (uint32_t)(p[e * a->mask_key] != 0) << e;
    return bits;
}

V_INLINE vf attend_mask_floats(const qkvi_attend *a, int r, int64_t key) {
    const float *p = (const float *)a->mask + r * a->mask_row + key * a->mask_key;
    const int64_t left = a->n_keys - key;
    if (a->mask_key == 1 && left >= 16) return vf_loadu(p);
    float lanes[16] = { 0 };
    for (int e = 0; e < 16 && e < left; e++) lanes[e] = p[e * a->mask_key];
    return vf_loadu(lanes);
}

/* Which of 16 keys row r may see, by position and by a mask of either kind. */
static uint32_t attend_visible(const qkvi_attend *a, int r, attend_span row, int64_t key) {
    uint32_t bits = attend_bits(row, key);
    if (bits && a->mask_kind == QKVI_MASK_BYTES) bits &= attend_mask_bits(a, r, key);
    if (bits && a->mask_kind == QKVI_MASK_FLOATS)
        bits &= vm_to_bits(vm_ne(attend_mask_floats(a, r, key), vf_set1(-ATTEND_INF)));
    return bits;
}

/* scale, soft cap and additive mask, in this order */
V_INLINE vf attend_finish(const qkvi_attend *a, vf x, int r, int64_t key, uint32_t visible) {
    x = vf_mul(x, vf_set1(a->scale < 0.0f ? -a->scale : a->scale));
    if (a->softcap > 0.0f) {
        const vf cap = vf_set1(a->softcap);
        x = vf_mul(cap, vf_tanh(vf_div(x, cap)));
    }
    if (visible && a->mask_kind == QKVI_MASK_FLOATS) x = vf_add(x, attend_mask_floats(a, r, key));
    return x;
}

/* Finishes and hides the 32 scores of row r from `key` on, and takes their maximum. */
static void attend_fix_row(const attend *t, int r, int64_t key, float *s) {
    const qkvi_attend *a = t->a;
    const attend_span row = attend_keys(a, r, r + 1, 0, a->n_keys);
    vf top = vf_load(t->max + 16 * r);
    for (int v = 0; v < 2; v++, key += 16, s += 16) {
        const uint32_t visible = attend_visible(a, r, row, key);
        vf x = vf_load(s);
        if (t->finished) x = attend_finish(a, x, r, key, visible);
        x = vf_select(vm_of_bits(visible), x, vf_set1(-ATTEND_INF));
        if (visible) t->seen[r] = 1.0f;
        top = vf_max(x, top);
        vf_store(s, x);
    }
    vf_store(t->max + 16 * r, top);
}

/* One tile of S: V_MR rows against one panel. */
V_INLINE void attend_score_tile(const attend *t, int r0, const float *panel, float *s) {
    const float *q = t->q + r0 * t->q_row;
    for (int j = 0; j < QKVI_PANEL; j += 16 * V_NV) {
        vf acc[V_MR][V_NV];
        tile_product(V_MR, t->a->head_dim, q, t->q_row, 1, panel + j, acc);
        _Pragma("GCC unroll 12") for (int i = 0; i < V_MR; i++) {
            vf top = vf_load(t->max + 16 * (r0 + i));
            _Pragma("GCC unroll 2") for (int v = 0; v < V_NV; v++) {
                vf_store(s + i * QKVI_SCORE_ROW + j + 16 * v, acc[i][v]);
                top = vf_max(acc[i][v], top);
            }
            vf_store(t->max + 16 * (r0 + i), top);
        }
    }
}

static void attend_plain_tile(const attend *t, int r0, const float *panel, float *s) {
    attend_score_tile(t, r0, panel, s);
    _Pragma("GCC unroll 12") for (int i = 0; i < V_MR; i++) t->seen[r0 + i] = 1.0f;
}

/* A tile whose scores must be finished or partly hidden: their maxima are taken again. */
static void attend_other_tile(const attend *t, int r0, int64_t key, const float *panel, float *s) {
    float before[V_MR * 16];
    memcpy(before, t->max + 16 * r0, sizeof before);
    attend_score_tile(t, r0, panel, s);
    memcpy(t->max + 16 * r0, before, sizeof before);
    for (int i = 0; i < V_MR && r0 + i < t->a->n_rows; i++)
        attend_fix_row(t, r0 + i, key, s + i * QKVI_SCORE_ROW);
}

/* The panels of [block, block + 256) that some row of the tile sees, as keys. */
V_INLINE attend_span attend_tile_panels(const attend *t, int r0, int64_t block) {
    if (t->open) return (attend_span){ block, block + QKVI_KEY_BLOCK };
    const int r1 = r0 + V_MR < t->a->n_rows ? r0 + V_MR : t->a->n_rows;
    const attend_span keys = attend_keys(t->a, r0, r1, block, block + QKVI_KEY_BLOCK);
    if (keys.begin >= keys.end) return (attend_span){ block, block };
    return (attend_span){ keys.begin / QKVI_PANEL * QKVI_PANEL,
                          qkvi_round_up(keys.end, QKVI_PANEL) };
}

/* Whether all rows [r0, r1) see all of the n keys, and scores are used as they come. */
V_INLINE bool attend_is_plain(const attend *t, int r0, int r1, int64_t key, int64_t n) {
    const qkvi_attend *a = t->a;
    if (t->finished || a->mask_kind != QKVI_MASK_NONE) return false;
    if (r1 > a->n_rows) r1 = a->n_rows;
    const attend_span first = attend_keys(a, r0, r0 + 1, key, key + n);
    const attend_span last = attend_keys(a, r1 - 1, r1, key, key + n);
    return first.end == key + n && last.begin == key && last.end == key + n;
}

static void attend_scores(const attend *t, int64_t block) {
    const qkvi_attend *a = t->a;
    for (int r = 0; r < t->n_tile_rows; r++) vf_store(t->max + 16 * r, vf_set1(-ATTEND_INF));
    for (int64_t key = block; key < block + QKVI_KEY_BLOCK; key += QKVI_PANEL) {
        const float *panel = a->k_panels + (key - a->first_key) * a->head_dim;
        for (int r0 = 0; r0 < t->n_tile_rows; r0 += V_MR) {
            const attend_span span = attend_tile_panels(t, r0, block);
            if (key < span.begin || key >= span.end) continue;
            float *s = t->s + r0 * QKVI_SCORE_ROW + (key - block);
            if (t->open || attend_is_plain(t, r0, r0 + V_MR, key, QKVI_PANEL))
                attend_plain_tile(t, r0, panel, s);
            else
                attend_other_tile(t, r0, key, panel, s);
        }
    }
}

/* ---- softmax ---- */

/* m and alpha of 16 rows from the block's maxima. */
V_INLINE void attend_raise(const attend *t, int r) {
    const vf old = vf_load(t->m + r);
    const vf top = vf_mul(vf_max_rows(t->max + 16 * r), vf_set1(t->c));
    const vm rises = vm_lt(vf_set1(ATTEND_RISE), vf_sub(top, old)); /* -inf - -inf: NaN, no */
    vf_store(t->alpha + r, vf_select(rises, vf_exp2(vf_sub(old, top)), vf_set1(1.0f)));
    vf_store(t->m + r, vf_select(rises, top, old));
}

/* p of one row over the panels of its tile, and the 16 + 16 partial sums. No exponent passes 8, but for rounding. */
V_INLINE void attend_exp_row(float *s, int64_t n, float c, float m, float *sum) {
    const vf shift = vf_set1(m > -ATTEND_INF ? -m : 0.0f), factor = vf_set1(c);
    vf sum0 = vf_set1(0.0f), sum1 = vf_set1(0.0f);
    for (int64_t j = 0; j < n; j += 32) {
        const vf p0 = vf_exp2_below_128(vf_fma(vf_load(s + j), factor, shift));
        const vf p1 = vf_exp2_below_128(vf_fma(vf_load(s + j + 16), factor, shift));
        vf_store(s + j, p0);
        vf_store(s + j + 16, p1);
        sum0 = vf_add(sum0, p0);
        sum1 = vf_add(sum1, p1);
    }
    vf_store(sum, vf_add(sum0, sum1));
}

static void attend_softmax(const attend *t, int64_t block) {
    for (int r = 0; r < t->n_tile_rows; r += 16) attend_raise(t, r);
    for (int r = 0; r < t->n_tile_rows; r++) {
        const attend_span span = attend_tile_panels(t, r / V_MR * V_MR, block);
        float *s = t->s + r * QKVI_SCORE_ROW + (span.begin - block);
        attend_exp_row(s, span.end - span.begin, t->c, t->m[r], t->sum + 16 * r);
    }
    for (int r = 0; r < t->n_tile_rows; r += 16) {
        const vf sum = vf_sum_rows(t->sum + 16 * r);
        vf_store(t->l + r, vf_fma(vf_load(t->l + r), vf_load(t->alpha + r), sum));
    }
}

/* ---- values ---- */

V_INLINE void attend_value_tile(const attend *t, int r0, const float *p, int64_t n,
                                const float *v_strip, int64_t channel) {
    for (int j = 0; j < QKVI_PANEL; j += 16 * V_NV) {
        vf acc[V_MR][V_NV];
        tile_product(V_MR, n, p, QKVI_SCORE_ROW, 1, v_strip + j, acc);
        _Pragma("GCC unroll 12") for (int i = 0; i < V_MR; i++) {
            const vf alpha = vf_set1(t->alpha[r0 + i]);
            _Pragma("GCC unroll 2") for (int v = 0; v < V_NV; v++) {
                float *o = t->o + (r0 + i) * t->o_row + channel + j + 16 * v;
                vf_store(o, vf_fma(vf_load(o), alpha, acc[i][v]));
            }
        }
    }
}

/* The same for one row of a block whose values are not all finite: hidden keys are left out, not multiplied by 0. */
static void attend_value_row(const attend *t, int r, int64_t block, attend_span span,
                             const float *v_strip, int64_t channel) {
    const attend_span row = attend_keys(t->a, r, r + 1, 0, t->a->n_keys);
    const float *p = t->s + r * QKVI_SCORE_ROW - block;
    vf acc[2] = { vf_set1(0.0f), vf_set1(0.0f) };
    for (int64_t key = span.begin / 16 * 16; key < span.end; key += 16) {
        const uint32_t visible = attend_visible(t->a, r, row, key);
        for (int e = 0; e < 16; e++)
            if (visible >> e & 1)
                for (int v = 0; v < 2; v++)
                    acc[v] =
                        vf_fma(vf_set1(p[key + e]),
                               vf_load(v_strip + (key + e - block) * QKVI_PANEL + 16 * v), acc[v]);
    }
    for (int v = 0; v < 2; v++) {
        float *o = t->o + r * t->o_row + channel + 16 * v;
        vf_store(o, vf_fma(vf_load(o), vf_set1(t->alpha[r]), acc[v]));
    }
}

static void attend_values(const attend *t, int64_t block) {
    const qkvi_attend *a = t->a;
    const int64_t at = (block - a->first_key) / QKVI_KEY_BLOCK;
    const float *values = a->v_panels + at * QKVI_KEY_BLOCK * t->o_row;
    for (int64_t channel = 0; channel < t->o_row; channel += QKVI_PANEL) {
        const float *strip = values + channel * QKVI_KEY_BLOCK;
        for (int r0 = 0; r0 < t->n_tile_rows; r0 += V_MR) {
            const int r1 = r0 + V_MR < a->n_rows ? r0 + V_MR : a->n_rows;
            const attend_span span = attend_keys(a, r0, r1, block, block + QKVI_KEY_BLOCK);
            if (span.begin >= span.end) continue; /* no panel: keys beside the span are not packed */
            const int64_t n = span.end - span.begin, skip = span.begin - block;
            if (!a->v_nonfinite[at])
                attend_value_tile(t, r0, t->s + r0 * QKVI_SCORE_ROW + skip, n,
                                  strip + skip * QKVI_PANEL, channel);
            else
                for (int r = r0; r < r0 + V_MR && r < a->n_rows; r++)
                    attend_value_row(t, r, block, span, strip, channel);
        }
    }
}

/* ---- the end of a row ---- */

static void attend_end(const attend *t) {
    const qkvi_attend *a = t->a;
    for (int r0 = 0; r0 < a->n_rows; r0 += 16) {
        float lse[16];
        const vf m = vf_load(t->m + r0), l = vf_load(t->l + r0);
        vf_storeu(lse, vf_mul(vf_add(m, vf_log2(l)), vf_set1(ATTEND_LN2)));
        for (int r = r0; r < r0 + 16 && r < a->n_rows; r++) {
            float *o = a->o + r * a->o_row;
            const float *sum = t->o + r * t->o_row;
            const bool blind = t->seen[r] == 0.0f, lost = !(t->m[r] > -ATTEND_INF);
            const float nan = __builtin_nanf("");
            for (int64_t d = 0; d < a->head_dim_v; d += 16) {
                vf x = vf_div(vf_load(sum + d), vf_set1(t->l[r]));
                if (lost) x = vf_set1(blind ? 0.0f : nan);
                const int64_t left = a->head_dim_v - d;
                if (left >= 16)
                    vf_storeu(o + d, x);
                else
                    vf_store_n(o + d, x, (int)left);
            }
            if (a->lse) a->lse[r * a->lse_row] = !lost ? lse[r - r0] : blind ? -ATTEND_INF : nan;
        }
    }
}

static void attend_block(const qkvi_attend *a) {
    attend t;
    attend_begin(&t, a);
    const attend_span keys = attend_keys(a, 0, a->n_rows, 0, a->n_keys);
    const int64_t first = keys.begin / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK;
    for (int64_t block = first; block < keys.end; block += QKVI_KEY_BLOCK) {
        t.open = attend_is_plain(&t, 0, a->n_rows, block, QKVI_KEY_BLOCK);
        attend_scores(&t, block);
        attend_softmax(&t, block);
        attend_values(&t, block);
    }
    attend_end(&t);
}

#endif
