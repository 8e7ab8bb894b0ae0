/*
 * Attention, forward: step 7, the sums of values O = O alpha + P V of a block of keys. See
 * attend.h.
 */
#ifndef QKVI_TMPL_ATTEND_VALUES_H
#define QKVI_TMPL_ATTEND_VALUES_H

#include "kernels/tmpl/attend_scores.h"
#include "kernels/tmpl/dropout.h"

/*
 * O = fma(O, alpha, P V) for R rows and 32 channels, over the keys of the panels that lie in `in`;
 * in class dp its ends are even.
 */
V_INLINE void attend_value_tile(const bool dp, const int R, const float *p, uint32_t panels,
                                attend_run in, const uint32_t *v, const float *alpha, float *o,
                                int64_t o_row, bool begin, qkvi_ahead *ahead) {
    for (int at = 0; at < 32; at += 16 * V_NV) {
        vf c[V_MR][V_NV];
        tile_zero(c);
        for (uint32_t left = panels; left;) {
            const attend_run run = attend_clip(attend_next_run(&left), in);
            if (dp)
                dp_product(R, run.to - run.from, p + run.from / 2,
                           QKVI_SCORE_ROW * (int64_t)sizeof *p, v + 16 * run.from + at, c, ahead);
            else
                tile_product_ahead(R, run.to - run.from, p + run.from, QKVI_SCORE_ROW, 1,
                                   (const float *)v + 32 * run.from + at, c, 1, ahead);
        }
        V_UNROLL(12) for (int r = 0; r < R; r++) {
            const vf x = vf_set1(alpha[r]);
            float *const to = o + r * o_row + at;
            if (!begin) {
                V_UNROLL(2)
                for (int u = 0; u < V_NV; u++) c[r][u] = vf_fma(vf_load(to + 16 * u), x, c[r][u]);
            }
            tile_store_row(c[r], to);
        }
    }
}

typedef void attend_values_function(const float *p, uint32_t panels, attend_run in,
                                    const uint32_t *v, const float *alpha, float *o, int64_t o_row,
                                    bool begin, qkvi_ahead *ahead);

#define ATTEND_VALUES(R)                                                                           \
    static void attend_values_##R(const float *p, uint32_t panels, attend_run in,                  \
                                  const uint32_t *v, const float *alpha, float *o, int64_t o_row,  \
                                  bool begin, qkvi_ahead *ahead) {                                 \
        attend_value_tile(false, R, p, panels, in, v, alpha, o, o_row, begin, ahead);              \
    }                                                                                              \
    static void dp_values_##R(const float *p, uint32_t panels, attend_run in, const uint32_t *v,   \
                              const float *alpha, float *o, int64_t o_row, bool begin,             \
                              qkvi_ahead *ahead) {                                                 \
        attend_value_tile(true, R, p, panels, in, v, alpha, o, o_row, begin, ahead);               \
    }
TILE_EACH(ATTEND_VALUES)
#define ATTEND_VALUES_NAME(R) attend_values_##R,
#define DP_VALUES_NAME(R)     dp_values_##R,
static attend_values_function *const attend_values_of[] = { NULL, TILE_EACH(ATTEND_VALUES_NAME) };
static attend_values_function *const dp_values_of[] = { NULL, TILE_EACH(DP_VALUES_NAME) };

/* Which of the 32 keys from j on take part in the sum of values of row i. */
V_INLINE uint32_t attend_takes(const attend *a, int i, int64_t j) {
    const uint32_t see = attend_sees(a, i, j);
    return see && a->dropout ? see & dropout_bits(a->dropout, i, j) : see;
}

/* c + P V over those of 32 keys that take part. */
static vf attend_selected(uint32_t take, const float *p, const uint32_t *v, vf c) {
    for (; take; take &= take - 1) {
        const int key = __builtin_ctz(take);
        c = vf_fma(vf_set1(p[key]), vf_load((const float *)v + 32 * key), c);
    }
    return c;
}

/* The same of pairs: of one that takes part by half, the other half is a zero. */
static vf dp_selected(uint32_t take, const float *p, const uint32_t *v, vf c) {
    for (int pair = 0; take; pair++, take >>= 2) {
        if (!(take & 3)) continue;
        const vi half = vi_set1((int32_t)dp_half(take));
        c = v_dp(c, dp_set1(p + pair), vi_and(dp_load(v + 32 * pair), half));
    }
    return c;
}

/* The same for one row, over the keys of the panels that take part. */
static void attend_values_selected(const attend *a, int i, int64_t key0, uint32_t panels,
                                   const uint32_t *v, float *o, bool begin) {
    const float *p = a->scratch->s + i * QKVI_SCORE_ROW;
    const attend_class *const class = attend_class_of(a);
    for (int at = 0; at < 32; at += 16) {
        vf c = vf_set1(0);
        for (uint32_t left = panels; left; left &= left - 1) {
            const int first = 32 * __builtin_ctz(left);
            const uint32_t take = attend_takes(a, i, key0 + first);
            const int word = first / qkvi_classes[a->class].per_word;
            c = class->selected(take, p + word, v + 32 * word + at, c);
        }
        if (!begin) c = vf_fma(vf_load(o + at), vf_set1(a->scratch->alpha[i]), c);
        vf_store(o + at, c);
    }
}

V_INLINE void attend_values_by(const bool dp, const attend *a, int64_t key0, int64_t end) {
    qkvi_attend_scratch *w = a->scratch;
    const bool finite = a->v_finite[(key0 - a->first_key) / QKVI_KEY_BLOCK];
    const uint32_t *block = attend_v(a, key0);
    const bool last_block = key0 + QKVI_KEY_BLOCK >= end;
    const int64_t n_tiles = (a->n_queries + V_MR - 1) / V_MR * ((a->head_dim_v + 31) / 32);
    qkvi_ahead keys = attend_next_keys(a, key0, end);
    if (last_block) attend_spread_fetch(w, n_tiles * attend_v_words(a, end - key0, 1) * (2 / V_NV));
    for (int64_t d = 0; d < a->head_dim_v; d += 32) {
        const uint32_t *v = block + (d * QKVI_KEY_BLOCK >> dp);
        for (int i = 0; i < a->n_queries; i += V_MR) {
            const qkvi_attend_tile *tile = &w->tile[i / V_MR];
            if (!tile->panels) continue;
            const int rows = attend_rows(a, i);
            float *o = a->o_sum + i * a->o_sum_row + d;
            if (finite || !tile->partial) {
                attend_run in = attend_within(w->begin[i], w->end[i + rows - 1], key0);
                if (dp) in.from -= in.from % 2, in.to += in.to % 2; /* others have weight 0 */
                qkvi_ahead *const ahead = last_block ? attend_fetch(w) : &keys;
                (dp ? dp_values_of : attend_values_of)[rows](w->s + i * QKVI_SCORE_ROW,
                                                             tile->panels, in, v, w->alpha + i, o,
                                                             a->o_sum_row, !tile->started, ahead);
            } else {
                for (int r = 0; r < rows; r++)
                    attend_values_selected(a, i + r, key0, tile->panels, v, o + r * a->o_sum_row,
                                           !tile->started);
            }
        }
    }
}

static void attend_values(const attend *a, int64_t key0, int64_t end) {
    attend_values_by(false, a, key0, end);
}

static void dp_values(const attend *a, int64_t key0, int64_t end) {
    attend_values_by(true, a, key0, end);
}

#endif
