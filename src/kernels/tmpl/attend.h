/*
 * Attention, forward: the block kernel. kernels/attend.h has the layout, docs/numerics.md the
 * order, whose steps are quoted.
 *
 *     for each block of 256 keys:   scores S (attend_scores.h)   m, P = 2^(S - m), l   O = O alpha + P V
 *     at the end:                   o = O / l,   lse
 *
 * A hidden key has the score -inf and so p = 0 exactly. It adds 0 v to the sums of a row, which is
 * nothing as long as v is finite; a partly visible tile of a key block with other values in V walks
 * the visible keys only.
 */
#ifndef QKVI_TMPL_ATTEND_H
#define QKVI_TMPL_ATTEND_H

#include <string.h>

#include "kernels/tmpl/attend_exp.h"
#include "kernels/tmpl/attend_stats.h"
#include "kernels/tmpl/attend_stats_end.h"
#include "kernels/tmpl/dropout.h"
#include "kernels/tmpl/stats_kept.h"

/* ---- Softmax: steps 4 to 6 ------------------------------------------------------------------- */

/* Step 4 for 16 rows whose greatest u is `top`: *m becomes their new reference; returns alpha. */
V_INLINE vf attend_raise(bool edits, vf top, vf *m) {
    const vf rise_by = vf_set1(edits ? ATTEND_RISE * ATTEND_LN2 : ATTEND_RISE);
    const vf to_log2 = vf_set1(edits ? ATTEND_LOG2E : 1), before = *m;
    const vm rise = vm_lt(vf_add(before, rise_by), top);
    *m = vf_select(rise, top, before);
    const vf fall = vf_mul(vf_sub(before, *m), to_log2);
    return vf_select(rise, vf_exp2_below_128(fall), vf_set1(1));
}

/* 16 rows at a time: new references, weights, sums. */
static void attend_softmax(const attend *a) {
    qkvi_attend_scratch *w = a->scratch;
    const float factor = attend_factor(a);
    const bool edits = attend_edits(a);
    const vf unit = vf_set1(edits ? 1 : factor);
    for (int g = 0; g < a->n_queries; g += 16) {
        const int end = g + 16 < a->n_queries ? g + 16 : a->n_queries;
        bool any = false;
        for (int i = g; i < end; i += V_TOPS) {
            const bool active = w->tile[i / V_MR].panels;
            if (!active) attend_no_max(w, i, i + 1);
            any |= active;
        }
        if (!any) continue;
        const vf score = attend_max_rows(w, g), top = vf_mul(score, unit);
        vf m = vf_load(w->m + g);
        const vf before = m, alpha = attend_raise(edits, top, &m);
        vf_store(w->m + g, m);
        vf_store(w->alpha + g, alpha);
        vf_store(w->shift + g, attend_shift(m));
        if (a->stats) {
            attend_stats_raise(a, g, score, before);
            attend_stats_rows(a, g, end, factor);
        } else {
            attend_exp_rows(a, g, end, factor, attend_class_of(a)->exp);
        }
        vf_store(w->l + g, vf_fma(vf_load(w->l + g), alpha, vf_sum_rows(w->sum + 16 * g)));
        if (qkvi_classes[a->class].rounds)
            vf_store(w->l_rounded + g,
                     vf_fma(vf_load(w->l_rounded + g), alpha, vf_sum_rows(w->rounded)));
    }
}

/* ---- Dropout --------------------------------------------------------------------------------- */

/* As dropout_row, of weights in pairs. */
static void dp_drop_row(const qkvi_dropout *d, int64_t i, int64_t j, int n, float *p) {
    for (int e = 0; e < n; e += 32, p += 16) {
        uint32_t kept = dropout_bits(d, i, j + e);
        for (int w = 0; w < 16; w++, kept >>= 2) dp_keep(p + w, kept & 3);
    }
}

/* Dropped weights become 0, after their sum; where a value is not finite they are left out. */
static void attend_drop(const attend *a, int64_t key0) {
    qkvi_attend_scratch *w = a->scratch;
    for (int i = 0; i < a->n_queries; i++) {
        qkvi_attend_tile *tile = &w->tile[i / V_MR];
        tile->partial |= tile->panels != 0;
        for (uint32_t panels = tile->panels; panels;) {
            const attend_run run = attend_next_run(&panels);
            const int from = run.from / qkvi_classes[a->class].per_word;
            attend_class_of(a)->drop(a->dropout, i, key0 + run.from, run.to - run.from,
                                     w->s + i * QKVI_SCORE_ROW + from);
        }
    }
}

/* ---- Values: step 7 -------------------------------------------------------------------------- */

/*
 * O = fma(O, alpha, P V) for R rows and 32 channels, over the keys of the panels that lie in `in`;
 * in class dp its ends are even.
 */
V_INLINE void attend_value_tile(const bool dp, const int R, const float *p, uint32_t panels,
                                attend_run in, const uint32_t *v, const float *alpha, float *o,
                                int64_t o_row, bool begin, tile_ahead ahead) {
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
            V_UNROLL(2) for (int u = 0; u < V_NV; u++) {
                float *to = o + r * o_row + at + 16 * u;
                vf_store(to, begin ? c[r][u] : vf_fma(vf_load(to), x, c[r][u]));
            }
        }
    }
}

typedef void attend_values_function(const float *p, uint32_t panels, attend_run in,
                                    const uint32_t *v, const float *alpha, float *o, int64_t o_row,
                                    bool begin, tile_ahead ahead);

#define ATTEND_VALUES(R)                                                                           \
    static void attend_values_##R(const float *p, uint32_t panels, attend_run in,                  \
                                  const uint32_t *v, const float *alpha, float *o, int64_t o_row,  \
                                  bool begin, tile_ahead ahead) {                                  \
        attend_value_tile(false, R, p, panels, in, v, alpha, o, o_row, begin, ahead);              \
    }                                                                                              \
    static void dp_values_##R(const float *p, uint32_t panels, attend_run in, const uint32_t *v,   \
                              const float *alpha, float *o, int64_t o_row, bool begin,             \
                              tile_ahead ahead) {                                                  \
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
    tile_ahead ahead = attend_next_keys(a, key0, end);
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
                const int64_t n = attend_depth(tile->panels, in) >> dp;
                if (last_block) ahead = attend_fetch(w, n);
                (dp ? dp_values_of : attend_values_of)[rows](w->s + i * QKVI_SCORE_ROW,
                                                             tile->panels, in, v, w->alpha + i, o,
                                                             a->o_sum_row, !tile->started, ahead);
                ahead.at += ahead.step * n * (2 / V_NV);
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

/* ---- The block ------------------------------------------------------------------------------- */

static void attend_begin(const attend *a) {
    qkvi_attend_scratch *w = a->scratch;
    const int end = (a->n_queries + 15) / 16 * 16;
    for (int i = 0; i < end; i += 16) {
        vf_store(w->m + i, vf_set1(-INFINITY));
        vf_store(w->l + i, vf_set1(0));
        vf_store(w->l_rounded + i, vf_set1(0));
    }
    /* rows that only fill the last group */
    attend_no_max(w, (a->n_queries + V_TOPS - 1) / V_TOPS * V_TOPS, end);
    for (int i = a->n_queries; i < end; i++) {
        vf_store(w->sum + 16 * i, vf_set1(0));
        vf_store(w->rounded + i % 16 * 16, vf_set1(0));
    }
    for (int t = 0; t * V_MR < a->n_queries; t++) w->tile[t].started = false;
    if (a->stats) attend_stats_begin(a);
}

/* Of the first call statistics are as they begin. */
static void attend_move_stats(const bool load, const attend *a) {
    if (!a->stats || (load && a->state->begin == 0)) return;
    for (int i = 0; i < a->n_queries; i++)
        stats_move_row(
            load, a->stats, i,
            (qkvi_stats_kept *)(void *)(a->state->stats + (size_t)i * a->state->stats_bytes));
}

/* What earlier calls of the same queries came to; a sum that begins as +0 has the same bits. */
static void attend_resume(const attend *a) {
    qkvi_attend_scratch *w = a->scratch;
    const size_t bytes = (size_t)a->n_queries * sizeof *w->m;
    memcpy(w->m, a->state->m, bytes);
    memcpy(w->l, a->state->l, bytes);
    memcpy(w->l_rounded, a->state->l_rounded, bytes);
    for (int t = 0; t * V_MR < a->n_queries; t++) w->tile[t].started = true;
    attend_move_stats(true, a);
}

static void attend_pause(const attend *a) {
    const qkvi_attend_scratch *w = a->scratch;
    const size_t bytes = (size_t)a->n_queries * sizeof *w->m;
    memcpy(a->state->m, w->m, bytes);
    memcpy(a->state->l, w->l, bytes);
    memcpy(a->state->l_rounded, w->l_rounded, bytes);
    attend_move_stats(false, a);
}

/* Step 8: the sink is a last block of one score and no value. m and alpha of 16 rows become its. */
V_INLINE vf attend_sink_weight(bool edits, float sink, vf *m, vf *alpha) {
    const vf u = vf_set1(edits ? sink : sink * ATTEND_LOG2E);
    *alpha = attend_raise(edits, u, m);
    const vf to_log2 = vf_set1(edits ? ATTEND_LOG2E : 1);
    return vf_exp2_below_128(vf_mul(vf_sub(u, attend_shift(*m)), to_log2));
}

/* And l; returns alpha. */
V_INLINE vf attend_sink(bool edits, float sink, vf *m, vf *l) {
    vf alpha;
    const vf p = attend_sink_weight(edits, sink, m, &alpha);
    *l = vf_fma(*l, alpha, p);
    return alpha;
}

/* Step 9: lse of 16 rows. */
V_INLINE vf attend_lse(bool edits, vf m, vf l) {
    const vf ln2 = vf_set1(ATTEND_LN2), log_l = vf_log2(l);
    return edits ? vf_fma(log_l, ln2, m) : vf_mul(vf_add(m, log_l), ln2);
}

/* o = O alpha / l + 0: a zero is positive, whatever was skipped. */
V_INLINE void attend_finish_row(const attend *a, int i, const float *sum, float alpha, float l) {
    float *o = a->o + i * a->o_row;
    for (int64_t d = 0; d < a->head_dim_v; d += 16) {
        vf x = vf_load(sum + d);
        if (a->has_sink) x = vf_mul(x, vf_set1(alpha));
        x = vf_add(vf_div(x, vf_set1(l)), vf_set1(0));
        if (a->head_dim_v - d >= 16)
            vf_storeu(o + d, x);
        else
            vf_store_n(o + d, x, (int)(a->head_dim_v - d));
    }
}

static void attend_fill_row(const attend *a, int i, float x) {
    for (int64_t d = 0; d < a->head_dim_v; d++) a->o[i * a->o_row + d] = x;
}

/*
 * A row whose every score is -inf, or that has none. Returns its lse. With a sink keys at -inf have
 * the weight 0, so their values are summed like those of other rows.
 */
static __attribute__((noinline)) float attend_finish_empty(const attend *a, int i) {
    const bool seen = attend_sees_any(a, i), sink = a->has_sink && !(a->sink == -INFINITY);
    if (seen && sink && a->sink < INFINITY) {
        attend_finish_row(a, i, a->o_sum + i * a->o_sum_row, 0, 1);
        return a->sink;
    }
    attend_fill_row(a, i, seen ? NAN : 0);
    return seen ? NAN : sink ? a->sink : -INFINITY;
}

/* Step 9. */
static void attend_finish(const attend *a) {
    qkvi_attend_scratch *w = a->scratch;
    const bool rounds = qkvi_classes[a->class].rounds;
    for (int g = 0; g < a->n_queries; g += 16) {
        float lse[16], sums[16], alphas[16];
        vf l = vf_load(w->l + g), m = vf_load(w->m + g), alpha = vf_set1(1);
        vf sum = rounds ? vf_load(w->l_rounded + g) : l; /* what o is divided by */
        if (a->has_sink) {
            const vf p = attend_sink_weight(attend_edits(a), a->sink, &m, &alpha);
            l = vf_fma(l, alpha, p);
            sum = vf_fma(sum, alpha, p);
        }
        vf_storeu(alphas, alpha);
        vf_storeu(sums, a->dropout ? vf_mul(sum, vf_set1(a->dropout->kept)) : sum);
        vf_storeu(lse, attend_lse(attend_edits(a), m, l));
        for (int i = g; i < g + 16 && i < a->n_queries; i++) {
            if (w->m[i] == -INFINITY && w->l[i] == 0)
                lse[i - g] = attend_finish_empty(a, i);
            else
                attend_finish_row(a, i, a->o_sum + i * a->o_sum_row, alphas[i - g], sums[i - g]);
            if (a->dropout && a->dropout->kept == 0) attend_fill_row(a, i, 0);
            if (a->lse) a->lse[i * a->lse_row] = lse[i - g];
        }
        if (a->stats) attend_stats_end(a, g, (const vf[]){ m, l, alpha }, lse);
    }
}

/*
 * What the block mask shows of the block of keys from key0 on. Returns the first key from which on
 * it shows something: key0, or that of a later block.
 */
static int64_t attend_next_shown(const attend *a, qkvi_block_list *blocks, int64_t key0) {
    int64_t next = INT64_MAX;
    bool any = false;
    for (int g = 0; 32 * g < a->n_queries; g++) {
        attend_panels(a, &blocks[g], g, key0);
        any |= a->scratch->panels[g] != 0;
        if (a->block_len && blocks[g].at < blocks[g].end && *blocks[g].at * a->block_len < next)
            next = *blocks[g].at * a->block_len;
    }
    return any ? key0 : next;
}

/* All keys of the call that the queries may see. */
static void attend_keys(const attend *a) {
    qkvi_block_list blocks[QKVI_QUERY_BLOCK / 32];
    const attend_class *const class = attend_class_of(a);
    int64_t begin = a->scratch->begin[0] / 32 * 32, end = a->scratch->end[a->n_queries - 1];
    if (a->state) {
        begin = begin > a->state->begin ? begin : a->state->begin;
        end = end < a->state->end ? end : a->state->end;
    }
    if (class->begin) class->begin();
    memcpy(blocks, a->blocks, sizeof blocks);
    for (int64_t key0 = begin / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK; key0 < end;
         key0 += QKVI_KEY_BLOCK) {
        const int64_t from = begin > key0 ? begin : key0;
        const int64_t to = end < key0 + QKVI_KEY_BLOCK ? end : key0 + QKVI_KEY_BLOCK;
        const int64_t shown = attend_next_shown(a, blocks, key0);
        if (shown >= end) break;
        if (shown > key0) {
            key0 = shown / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK - QKVI_KEY_BLOCK;
            continue;
        }
        for (int t = 0; t * V_MR < a->n_queries; t++) {
            a->scratch->tile[t].panels = 0;
            a->scratch->tile[t].partial = false;
        }
        attend_scores(a, key0, from, to);
        if (a->stats) attend_stats_block(a, key0, from, to);
        attend_softmax(a);
        if (a->dropout) attend_drop(a, key0);
        class->values(a, key0, end);
        for (int t = 0; t * V_MR < a->n_queries; t++)
            a->scratch->tile[t].started |= a->scratch->tile[t].panels != 0;
    }
    if (class->end) class->end();
}

static void attend_block(const qkvi_attend *a) {
    attend_begin(a);
    if (a->state) attend_resume(a);
    attend_keys(a);
    if (a->state && !a->state->last)
        attend_pause(a);
    else
        attend_finish(a);
}

#endif
