/*
 * Attention, forward: the block kernel. kernels/attend.h has the layout, docs/numerics.md the
 * order, whose steps are quoted.
 *
 *     for each block of 256 keys:   scores S (attend_scores.h)   m, P = 2^(S - m), l
 *                                   O = O alpha + P V (attend_values.h)
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
#include "kernels/tmpl/attend_values.h"
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
