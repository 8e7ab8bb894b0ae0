/*
 * Attention, forward: scores of a block of queries and 256 keys (docs/numerics.md, steps 1 to 3).
 *
 * A tile of scores that all its rows see wholly, without soft cap or additive mask, is finished in
 * registers, its row maxima too. Any other is stored raw and edited row by row: soft cap, mask, and
 * -inf in place of the scores of hidden keys, whatever they were. Tiles of which no query sees
 * anything are not computed. Causal masks, windows and lengths come as an interval of keys for each
 * row (attn/mask.h), explicit masks as bits (mask_bits.h).
 */
#ifndef QKVI_TMPL_ATTEND_SCORES_H
#define QKVI_TMPL_ATTEND_SCORES_H

#include <math.h>
#include <string.h>

#include "kernels/tmpl/attend_class.h"
#include "kernels/tmpl/dp.h"

#define ATTEND_LOG2E 1.44269504f
#define ATTEND_LN2   0.693147181f
#define ATTEND_RISE  8.0f /* log2 by which a maximum must exceed m to become it */
/*
 * From here on x = s c - m in one rounding could differ from (s c) - m by so much that 2^x over- or
 * underflows.
 */
#define ATTEND_LARGE 1048576.0f

V_INLINE int attend_rows(const attend *a, int i) {
    return a->n_queries - i < V_MR ? a->n_queries - i : V_MR;
}

/*
 * Stored scores are finished: scale, soft cap and mask are in them. Their m is a score; that of raw
 * ones is in log2 units.
 */
V_INLINE bool attend_edits(const attend *a) { return a->softcap > 0 || mask_biases(&a->mask); }

/* The factor from a stored score to log2 units. */
V_INLINE float attend_factor(const attend *a) {
    return attend_edits(a) ? ATTEND_LOG2E : a->scale * ATTEND_LOG2E;
}

/* ---- Panels of a block of keys --------------------------------------------------------------- */

/* The first of the runs that panels form, taken off them; they are not 0. */
V_INLINE attend_run attend_next_run(uint32_t *panels) {
    const int first = __builtin_ctz(*panels), end = first + __builtin_ctz(~(*panels >> first));
    *panels &= UINT32_MAX << end;
    return (attend_run){ 32 * first, 32 * end };
}

V_INLINE attend_run attend_clip(attend_run run, attend_run in) {
    return (attend_run){ run.from > in.from ? run.from : in.from, run.to < in.to ? run.to : in.to };
}

/* Keys [begin, end) of the sequence in the block from key0 on. */
V_INLINE attend_run attend_within(int64_t begin, int64_t end, int64_t key0) {
    return (attend_run){ begin > key0 ? (int)(begin - key0) : 0,
                         end < key0 + QKVI_KEY_BLOCK ? (int)(end - key0) : QKVI_KEY_BLOCK };
}

/* ---- Who sees whom --------------------------------------------------------------------------- */

/*
 * scratch->begin and ->end have the keys that a row sees by position: causal, windows, chunks and
 * lengths are in them (attn/mask.h). Bits of the explicit mask narrow that. A hidden key gets the
 * score -INFINITY in attend_end_of, or where scores are edited row by row.
 */

/* Which of the 32 keys from j on row i sees. */
V_INLINE uint32_t attend_sees(const attend *a, int i, int64_t j) {
    const uint32_t bits = mask_range(a->scratch->begin[i] - j, a->scratch->end[i] - j);
    if (!(a->scratch->panels[i / 32] >> (j / 32 & 7) & 1)) return 0;
    if (!bits || !mask_hides(&a->mask)) return bits;
    const int64_t left = a->scratch->end[i] - j;
    return bits & mask_bits(&a->mask, i, j, left < 32 ? (int)left : 32);
}

typedef enum attend_show { ATTEND_SHOW_NONE, ATTEND_SHOW_SOME, ATTEND_SHOW_ALL } attend_show;

/* Does the block mask show these rows, V_MR at most, the panel from key j on? */
V_INLINE attend_show attend_show_panel(const attend *a, int i, int rows, int64_t j) {
    const uint32_t *panels = a->scratch->panels, bit = 1u << (j / 32 & 7);
    const bool first = panels[i / 32] & bit, last = panels[(i + rows - 1) / 32] & bit;
    return first && last ? ATTEND_SHOW_ALL : first || last ? ATTEND_SHOW_SOME : ATTEND_SHOW_NONE;
}

/* Is what rows see of the panel from key j on in the mask alone, and all of that will be read? */
V_INLINE bool attend_is_dense(const attend *a, int i, int rows, int64_t j) {
    const int64_t *begin = a->scratch->begin + i, *end = a->scratch->end + i;
    return begin[rows - 1] <= j && end[0] >= j + 32 && mask_is_dense(&a->mask) &&
           attend_show_panel(a, i, rows, j) == ATTEND_SHOW_ALL;
}

/* What the next tile will read of the mask: rows below, or the first ones of the next panel. */
V_INLINE void attend_announce_mask(const attend *a, int i, int64_t j) {
    const int next = i + V_MR < a->n_queries ? i + V_MR : 0, rows = attend_rows(a, next);
    const int64_t at = next ? j : j + 32;
    if (at % QKVI_KEY_BLOCK == 0 && !next) return; /* the next block of keys is not known yet */
    if (attend_is_dense(a, next, rows, at)) mask_announce_rows(&a->mask, next, rows, at);
}

/* What several rows see of a panel. true: s->adds has the additive mask, if there is one. */
V_INLINE bool attend_see_rows(const attend *a, int i, int rows, int64_t j, mask_sight *s) {
    if (attend_is_dense(a, i, rows, j)) {
        mask_see_rows(&a->mask, i, rows, j, s);
        attend_announce_mask(a, i, j);
        return true;
    }
    s->any = 0, s->all = UINT32_MAX;
    for (int r = 0; r < rows; r++) {
        const uint32_t bits = attend_sees(a, i + r, j);
        s->see[r] = bits;
        s->any |= bits;
        s->all &= bits;
    }
    return false;
}

/* Which panels of the block from key0 on the block mask shows 32 rows. */
V_INLINE void attend_panels(const attend *a, qkvi_block_list *blocks, int group, int64_t key0) {
    a->scratch->panels[group] =
        a->block_len ? qkvi_block_panels(blocks, a->block_len, key0) : UINT32_MAX;
}

static bool attend_sees_any(const attend *a, int i) {
    const int64_t begin = a->scratch->begin[i] / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK;
    qkvi_block_list blocks = a->blocks[i / 32];
    for (int64_t key0 = begin; key0 < a->scratch->end[i]; key0 += QKVI_KEY_BLOCK) {
        attend_panels(a, &blocks, i / 32, key0);
        for (int64_t j = key0; j < key0 + QKVI_KEY_BLOCK; j += 32)
            if (attend_sees(a, i, j)) return true;
    }
    return false;
}

/* ---- Words of k and v: kernels/attend.h ------------------------------------------------------ */

V_INLINE const uint32_t *attend_k(const attend *a, int64_t key) {
    return (const uint32_t *)a->k + (key - a->first_key) * a->k_words;
}

/* Words of n keys in v, a channel or all of them. */
V_INLINE int64_t attend_v_words(const attend *a, int64_t n, int64_t channels) {
    return n * channels / qkvi_classes[a->class].per_word;
}

/* The channel panels of the block of keys from key0 on. */
V_INLINE const uint32_t *attend_v(const attend *a, int64_t key0) {
    const int64_t channels = qkvi_round_up(a->head_dim_v, 32);
    return (const uint32_t *)a->v + attend_v_words(a, key0 - a->first_key, channels);
}

/* ---- What comes next ------------------------------------------------------------------------- */

/* A panel of 32 keys that the rows of a block go through, within the block of keys from key0 on. */
typedef struct attend_panel {
    int64_t key0, j, to; /* keys from j on, of those below `to` */
    bool told;           /* that some row takes it, so that its values will be read: */
    qkvi_ahead values;
} attend_panel;

/* Rows from i on take the panel: their products and those after them announce its values. */
static void attend_tell(const attend *a, attend_panel *x, int i) {
    if (x->told) return;
    x->told = true;
    const int64_t n_keys = x->to - x->j < 32 ? x->to - x->j : 32;
    const int64_t n_tiles = (a->n_queries - i + V_MR - 1) / V_MR,
                  strips = (a->head_dim_v + 31) / 32;
    const int64_t lines = 2 * qkvi_ceil_div(n_keys, qkvi_classes[a->class].per_word);
    if (strips == 0) return;
    x->values = (qkvi_ahead){
        .at = (const char *)(attend_v(a, x->key0) + attend_v_words(a, x->j - x->key0, 32)),
        .left = lines,
        .step = QKVI_LINE,
        .more = strips - 1,
        .lines = lines,
        .jump = 4 * attend_v_words(a, QKVI_KEY_BLOCK, 32) - lines * QKVI_LINE,
    };
    qkvi_ahead_spread(&x->values, strips * lines, n_tiles * a->k_words * (2 / V_NV));
}

/*
 * What the caller wants to be announced, where the products of values have so many steps: two
 * vectors are multiplied by all rows of a tile from a line to the next, or the product would wait
 * for lines.
 */
static void attend_spread_fetch(qkvi_attend_scratch *w, int64_t steps) {
    int64_t lines = 0;
    for (int n = 0; n < QKVI_FETCHES; n++) lines += qkvi_ahead_left(&w->fetch[n]);
    for (int n = 0; n < QKVI_FETCHES; n++) {
        qkvi_ahead_spread(&w->fetch[n], lines, steps);
        if (w->fetch[n].every < 2 / V_NV) w->fetch[n].every = 2 / V_NV;
    }
}

/* The first of it that is left, or the last. */
V_INLINE qkvi_ahead *attend_fetch(qkvi_attend_scratch *w) {
    qkvi_ahead *f = w->fetch;
    while (f < w->fetch + QKVI_FETCHES - 1 && qkvi_ahead_left(f) == 0) f++;
    return f;
}

/*
 * The key panels of the block after the one from key0 on, if it is known that they will be read,
 * and so are packed: of those that an explicit mask or a block mask may hide it is not.
 */
V_INLINE qkvi_ahead attend_next_keys(const attend *a, int64_t key0, int64_t end) {
    const int64_t next = key0 + QKVI_KEY_BLOCK;
    const int64_t n = end - next < QKVI_KEY_BLOCK ? end - next : QKVI_KEY_BLOCK;
    const int64_t n_tiles = (a->n_queries + V_MR - 1) / V_MR * ((a->head_dim_v + 31) / 32);
    if (n <= 0 || a->block_len || mask_hides(&a->mask))
        return (qkvi_ahead){ .at = (const char *)a->k };
    qkvi_ahead keys = qkvi_ahead_bytes(attend_k(a, next), 4 * qkvi_round_up(n, 32) * a->k_words);
    qkvi_ahead_spread(&keys, keys.left,
                      n_tiles * attend_v_words(a, QKVI_KEY_BLOCK, 1) * (2 / V_NV));
    return keys;
}

/* ---- Maxima of rows -------------------------------------------------------------------------- */

/*
 * scratch->max holds 16 partial maxima of each row, or 4 of each where four rows share a vector
 * (V_TOPS 4): tiles and groups of 16 rows begin at multiples of four then.
 */
#ifndef V_TOPS
#define V_TOPS 1
#endif

V_INLINE float *attend_max(qkvi_attend_scratch *w, int i) { return w->max + 16 / V_TOPS * i; }

/* The maxima of the rows of a tile that share one vector. */
V_INLINE void attend_keep_max(const vf top[V_TOPS], float *max, bool begin) {
#if V_TOPS == 4
    vf x = vf_max_four(top[0], top[1], top[2], top[3]);
#else
    vf x = top[0];
#endif
    if (!begin) x = vf_max(vf_load(max), x);
    vf_store(max, x);
}

/* Rows from i to end, whose vectors they share with no other rows, have none. */
V_INLINE void attend_no_max(qkvi_attend_scratch *w, int i, int end) {
    for (; i < end; i += V_TOPS) vf_store(attend_max(w, i), vf_set1(-INFINITY));
}

/* Lane e: the maximum of row g + e, g a multiple of 16. */
V_INLINE vf attend_max_rows(qkvi_attend_scratch *w, int g) {
#if V_TOPS == 4
    return vf_max_rest(attend_max(w, g));
#else
    return vf_max_rows(attend_max(w, g));
#endif
}

/* ---- Scores ---------------------------------------------------------------------------------- */

/* One vector of row r: the 16 keys from `at` on of a panel. */
V_INLINE vf attend_end_of(vf c, const mask_sight *sight, int r, int at, vf scale, attend_end end) {
    if (end == ATTEND_ADD) c = vf_fma(c, scale, vf_load(sight->adds[r] + at));
    return vf_select(vm_of_bits(sight->see[r] >> at & 0xFFFF), c, vf_set1(-INFINITY));
}

/* R rows times the panel of keys, stored. */
V_INLINE void attend_score_tile(const bool dp, const int R, const attend *a, int i,
                                const uint32_t *panel, float *s, float *max, attend_end end,
                                const mask_sight *sight, bool begin, qkvi_ahead *ahead) {
    for (int at = 0; at < 32; at += 16 * V_NV) {
        vf c[V_MR][V_NV];
        tile_zero(c);
        if (dp)
            dp_product(R, a->head_dim, (const uint16_t *)a->q + i * a->q_row, 2 * a->q_row,
                       panel + at, c, ahead);
        else
            tile_product_ahead(R, a->head_dim, (const float *)a->q + i * a->q_row, a->q_row, 1,
                               (const float *)panel + at, c, 1, ahead);
        if (end == ATTEND_HIDE) {
            V_UNROLL(12) for (int r = 0; r < R; r++) {
                V_UNROLL(2)
                for (int v = 0; v < V_NV; v++)
                    c[r][v] = attend_end_of(c[r][v], sight, r, at + 16 * v, c[r][v], ATTEND_HIDE);
            }
        } else if (end == ATTEND_ADD) {
            const vf scale = vf_set1(a->scale);
            V_UNROLL(12) for (int r = 0; r < R; r++) {
                V_UNROLL(2)
                for (int v = 0; v < V_NV; v++)
                    c[r][v] = attend_end_of(c[r][v], sight, r, at + 16 * v, scale, ATTEND_ADD);
            }
        }
        V_UNROLL(12)
        for (int r = 0; r < R; r++) tile_store_row(c[r], s + r * QKVI_SCORE_ROW + at);
        if (end == ATTEND_EDIT) continue;
        V_UNROLL(12) for (int r = 0; r < R; r += V_TOPS) {
            vf top[V_TOPS];
            V_UNROLL(4) for (int n = 0; n < V_TOPS; n++) {
                const vf *row = c[r + n];
                top[n] = V_NV == 1 ? row[0] : vf_max(row[0], row[V_NV - 1]);
            }
            attend_keep_max(top, max + 16 / V_TOPS * r, begin && !at);
        }
    }
}

/*
 * A stored row of 32 raw scores: soft cap, additive mask, -inf for hidden keys. Returns 16 maxima.
 */
V_INLINE vf attend_edit_row(const attend *a, int i, int64_t j, uint32_t see, float *s) {
    vf x[2] = { vf_load(s), vf_load(s + 16) }, bias[2] = { vf_set1(0), vf_set1(0) };
    const vf scale = vf_set1(a->scale);
    const int64_t left = a->scratch->end[i] - j;
    const bool biases = mask_biases(&a->mask);
    if (biases && see) mask_adds(&a->mask, i, j, left < 32 ? (int)left : 32, bias);
    for (int v = 0; v < 2; v++) {
        if (a->softcap > 0) {
            const vf cap = vf_set1(a->softcap);
            x[v] = vf_mul(cap, vf_tanh(vf_div(vf_mul(x[v], scale), cap)));
            if (biases) x[v] = vf_add(x[v], bias[v]);
        } else if (biases) {
            x[v] = vf_fma(x[v], scale, bias[v]);
        }
        x[v] = vf_select(vm_of_bits(see >> 16 * v & 0xFFFF), x[v], vf_set1(-INFINITY));
        vf_store(s + 16 * v, x[v]);
    }
    return vf_max(x[0], x[1]);
}

#define ATTEND_SCORES(R)                                                                           \
    static void attend_scores_##R(const attend *a, int i, const uint32_t *panel, float *s,         \
                                  float *max, attend_end end, const mask_sight *sight, bool begin, \
                                  qkvi_ahead *ahead) {                                             \
        attend_score_tile(false, R, a, i, panel, s, max, end, sight, begin, ahead);                \
    }                                                                                              \
    static void dp_scores_##R(const attend *a, int i, const uint32_t *panel, float *s, float *max, \
                              attend_end end, const mask_sight *sight, bool begin,                 \
                              qkvi_ahead *ahead) {                                                 \
        attend_score_tile(true, R, a, i, panel, s, max, end, sight, begin, ahead);                 \
    }
TILE_EACH(ATTEND_SCORES)
#define ATTEND_SCORES_NAME(R) attend_scores_##R,
#define DP_SCORES_NAME(R)     dp_scores_##R,
static attend_scores_function *const attend_scores_of[] = { NULL, TILE_EACH(ATTEND_SCORES_NAME) };
static attend_scores_function *const dp_scores_of[] = { NULL, TILE_EACH(DP_SCORES_NAME) };

/* Whole tiles of rows [rows.from, rows.to) against a panel that they see wholly, nothing edited. */
V_INLINE void attend_score_tiles(const bool dp, const attend *a, attend_run rows,
                                 const uint32_t *panel, float *s, bool begin, qkvi_ahead *ahead) {
    for (int i = rows.from; i < rows.to; i += V_MR)
        attend_score_tile(dp, V_MR, a, i, panel, s + i * QKVI_SCORE_ROW, attend_max(a->scratch, i),
                          ATTEND_AS_IT_IS, NULL, begin, ahead);
}

static void attend_scores_whole(const attend *a, attend_run rows, const uint32_t *panel, float *s,
                                bool begin, qkvi_ahead *ahead) {
    attend_score_tiles(false, a, rows, panel, s, begin, ahead);
}

static void dp_scores_whole(const attend *a, attend_run rows, const uint32_t *panel, float *s,
                            bool begin, qkvi_ahead *ahead) {
    attend_score_tiles(true, a, rows, panel, s, begin, ahead);
}

/* What is to be done with a tile whose rows see it so; dense: sight has the additive mask. */
V_INLINE attend_end attend_end_for(const attend *a, const mask_sight *sight, bool dense) {
    if (!attend_edits(a)) return sight->all == UINT32_MAX ? ATTEND_AS_IT_IS : ATTEND_HIDE;
    const qkvi_mask *const m = &a->mask;
    const bool only_adds = m->adds && m->slope == 0 && !m->distance_bias && !(a->softcap > 0);
    return dense && only_adds ? ATTEND_ADD : ATTEND_EDIT;
}

/* The tile of rows from i on against the panel. */
static void attend_scores_tile(const attend *a, int i, attend_panel *x) {
    qkvi_attend_scratch *w = a->scratch;
    qkvi_attend_tile *tile = &w->tile[i / V_MR];
    const int64_t j = x->j;
    const int rows = attend_rows(a, i), panel = (int)(j - x->key0) / 32;
    float *s = w->s + i * QKVI_SCORE_ROW + (j - x->key0), *max = attend_max(w, i);
    mask_sight sight;
    bool dense = false;
    const attend_show show = attend_show_panel(a, i, rows, j);
    if (show == ATTEND_SHOW_NONE) return;
    if (mask_hides(&a->mask) || show == ATTEND_SHOW_SOME || w->begin[i + rows - 1] > j ||
        w->end[i] < j + 32) {
        dense = attend_see_rows(a, i, rows, j, &sight);
        if (sight.any == 0) return;
    } else {
        sight.all = UINT32_MAX;
        for (int r = 0; attend_edits(a) && r < rows; r++) sight.see[r] = UINT32_MAX;
    }
    const attend_end end = attend_end_for(a, &sight, dense);
    const bool begin = tile->panels == 0;
    tile->panels |= 1u << panel;
    tile->partial |= sight.all != UINT32_MAX;
    attend_tell(a, x, i);
    attend_class_of(a)->scores[rows](a, i, attend_k(a, j), s, max, end, &sight, begin, &x->values);
    if (end != ATTEND_EDIT) return;
    vf top[V_MR];
    for (int r = 0; r < rows; r++)
        top[r] = attend_edit_row(a, i + r, j, sight.see[r], s + r * QKVI_SCORE_ROW);
    for (int r = rows; r < V_MR; r++) top[r] = vf_set1(0);
    for (int r = 0; r < rows; r += V_TOPS) attend_keep_max(top + r, max + 16 / V_TOPS * r, begin);
}

/*
 * Rows of whole tiles that see the keys from `from` to `to` wholly, nothing edited: one run, since
 * begin and end of rows never fall.
 */
static attend_run attend_whole_rows(const attend *a, int64_t key0, int64_t from, int64_t to) {
    qkvi_attend_scratch *w = a->scratch;
    const uint32_t panels = mask_range((from - key0) / 32, (to - key0) / 32);
    attend_run rows = { 0, a->n_queries / V_MR * V_MR };
    if (attend_edits(a) || mask_hides(&a->mask)) return (attend_run){ 0, 0 };
    for (int i = 0; i < rows.to; i += 32)
        if (panels & ~w->panels[i / 32]) return (attend_run){ 0, 0 };
    while (rows.from < rows.to && w->end[rows.from] < to) rows.from += V_MR;
    while (rows.from < rows.to && w->begin[rows.to - 1] > from) rows.to -= V_MR;
    for (int i = rows.from; i < rows.to; i += V_MR) w->tile[i / V_MR].panels = panels;
    return rows;
}

static void attend_scores(const attend *a, int64_t key0, int64_t from, int64_t to) {
    const attend_class *const class = attend_class_of(a);
    const int64_t whole_to = to / 32 * 32; /* a last panel that is not full is hidden in part */
    const attend_run whole = attend_whole_rows(a, key0, from, whole_to);
    for (int64_t j = from; j < to; j += 32) {
        attend_panel panel = { .key0 = key0, .j = j, .to = to };
        if (class->sweep) class->sweep(a, key0, j);
        for (int i = 0; i < a->n_queries; i += V_MR) {
            const int last = i + attend_rows(a, i) - 1;
            if (i == whole.from && i < whole.to && j < whole_to) {
                attend_tell(a, &panel, i);
                class->whole(a, whole, attend_k(a, j), a->scratch->s + (j - key0), j == from,
                             &panel.values);
                i = whole.to - V_MR;
            } else if (a->scratch->begin[i] < j + 32 && a->scratch->end[last] > j) {
                attend_scores_tile(a, i, &panel);
            }
        }
    }
}

#endif
