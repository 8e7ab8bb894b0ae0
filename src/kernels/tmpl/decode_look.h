/*
 * Decode: where keys lie, who sees whom, and what is announced. kernels/decode.h has the layout.
 *
 * For each group of 16 keys of a block: the address of its rows in K and V, and a bit for each key
 * that a row sees. A block that all rows see wholly is looked at once.
 */
#ifndef QKVI_TMPL_DECODE_LOOK_H
#define QKVI_TMPL_DECODE_LOOK_H

#include <string.h>

#include "kernels/decode.h"
#include "kernels/tmpl/attend.h"

enum {
    DECODE_AHEAD = 16384, /* bytes of the stream being read that are on their way; of int8, */
    DECODE_AHEAD_INT8 = 8192,
    DECODE_ALL = 0xFFFF
};

/*
 * Register tiles: rows, vectors of channels of V, those beside four rows, sums of scores at a time.
 * With V_HALVES four rows have halves of eight sums.
 */
#if V_MR == 12
enum { DECODE_R = 4, DECODE_W = 4, DECODE_W4 = 4, DECODE_SUMS = 16, DECODE_HALVES = false };
#elif defined(V_HALVES)
enum { DECODE_R = 4, DECODE_W = 2, DECODE_W4 = 1, DECODE_SUMS = 4, DECODE_HALVES = true };
#else
enum { DECODE_R = 2, DECODE_W = 2, DECODE_W4 = 2, DECODE_SUMS = 4, DECODE_HALVES = false };
#endif

typedef qkvi_decode decode;

/* 16 elements from channel c on. */
V_INLINE vf decode_load(const char *row, int64_t c, const qkvi_storage type) {
    if (type == QKVI_STORE_BF16) return vf_loadu_bf16((const uint16_t *)row + c);
    if (type == QKVI_STORE_F16) return vf_loadu_f16((const uint16_t *)row + c);
    if (type == QKVI_STORE_I8) return vf_loadu_i8((const int8_t *)row + c);
    return vf_loadu((const float *)row + c);
}

#ifdef V_HALVES
/* 8 elements from channel c on. */
V_INLINE vh decode_load_half(const char *row, int64_t c, const qkvi_storage type) {
    if (type == QKVI_STORE_BF16) return vh_loadu_bf16((const uint16_t *)row + c);
    if (type == QKVI_STORE_F16) return vh_loadu_f16((const uint16_t *)row + c);
    if (type == QKVI_STORE_I8) return vh_loadu_i8((const int8_t *)row + c);
    return vh_loadu((const float *)row + c);
}
#endif

V_INLINE int64_t decode_elem_bytes(const qkvi_storage type) {
    return type == QKVI_STORE_F32 ? 4 : type == QKVI_STORE_I8 ? 1 : 2;
}

/* ---- Where and who --------------------------------------------------------------------------- */

/* The row of K or V of key j, and which scale it has. */
V_INLINE const char *decode_row_at(const decode *a, const qkvi_kv_rows *x, int64_t j,
                                   int64_t *scale_at) {
    const int64_t n = j - a->place.first;
    const int64_t slot = a->place.ring_len ? n % a->place.ring_len : n;
    int64_t page = 0, token = slot;
    if (a->place.pages) {
        page = a->place.pages[slot / a->place.page_len];
        token = slot % a->place.page_len;
    }
    *scale_at = page * x->scale_page + token * x->scale_row;
    return x->at + page * x->page_bytes + token * x->row_bytes;
}

/* Do all rows see all keys of [begin, end)? */
static bool decode_all_see(const decode *a, int64_t begin, int64_t end) {
    if (a->block_len) return false;
    for (int r = 0; r < a->n_rows; r++) {
        const qkvi_decode_row *row = &a->rows[r];
        if (row->begin > begin || row->end < end || mask_hides(&row->mask)) return false;
    }
    return true;
}

/* Is block n in the list? By bisection: rows see few of the groups that others see. */
static bool decode_lists(const qkvi_block_list *list, int64_t n) {
    const int32_t *low = list->at, *high = list->end;
    while (low < high) {
        const int32_t *const middle = low + (high - low) / 2;
        if (*middle == n) return true;
        if (*middle < n)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* What each row sees of group g, whose first key is j: all of it lies in one block of the mask. */
static void decode_look_at(const decode *a, int64_t j, int g) {
    qkvi_decode_scratch *w = a->scratch;
    uint32_t any = 0, all = DECODE_ALL;
    for (int r = 0; r < a->n_rows; r++) {
        const qkvi_decode_row *row = &a->rows[r];
        uint32_t see = mask_range(row->begin - j, row->end - j) & DECODE_ALL;
        const int64_t left = row->end - j;
        if (see && a->block_len && !decode_lists(&row->blocks, j / a->block_len)) see = 0;
        if (see && mask_hides(&row->mask))
            see &= mask_bits(&row->mask, 0, j, left < 16 ? (int)left : 16);
        w->see[r][g] = (uint16_t)see;
        any |= see;
        all &= see;
        if (see) a->part->seen |= 1u << r;
    }
    w->any[g] = (uint16_t)any;
    w->all[g] = (uint16_t)all;
}

/* The places of groups [from, to) of the block from key0 on. */
static void decode_places(const decode *a, int64_t key0, int from, int to) {
    qkvi_decode_scratch *w = a->scratch;
    for (int g = from; g < to; g++) {
        const int64_t j = key0 + QKVI_DECODE_GROUP * g;
        if (!a->place.pages && !a->place.ring_len && g > from) {
            w->k_at[g] = w->k_at[g - 1] + QKVI_DECODE_GROUP * a->k.row_bytes;
            w->v_at[g] = w->v_at[g - 1] + QKVI_DECODE_GROUP * a->v.row_bytes;
            w->k_scale_at[g] = w->k_scale_at[g - 1] + QKVI_DECODE_GROUP * a->k.scale_row;
            w->v_scale_at[g] = w->v_scale_at[g - 1] + QKVI_DECODE_GROUP * a->v.scale_row;
            continue;
        }
        w->k_at[g] = decode_row_at(a, &a->k, j, &w->k_scale_at[g]);
        w->v_at[g] = decode_row_at(a, &a->v, j, &w->v_scale_at[g]);
    }
}

/*
 * Groups [from, to) of the block from key0 on: their places, and what each row sees of them. Does
 * any row see a key?
 */
static bool decode_look(const decode *a, int64_t key0, int from, int to) {
    qkvi_decode_scratch *w = a->scratch;
    bool some = false;
    decode_places(a, key0, from, to);
    w->whole = decode_all_see(a, key0 + QKVI_DECODE_GROUP * from, key0 + QKVI_DECODE_GROUP * to);
    if (w->whole) {
        for (int r = 0; r < a->n_rows; r++) memset(w->see[r], 0xFF, sizeof w->see[r]);
        memset(w->any, 0xFF, sizeof w->any);
        memset(w->all, 0xFF, sizeof w->all);
        a->part->seen = UINT32_MAX >> (QKVI_DECODE_ROWS - a->n_rows);
        return true;
    }
    for (int g = from; g < to; g++) {
        decode_look_at(a, key0 + QKVI_DECODE_GROUP * g, g);
        some |= w->any[g] != 0;
    }
    return some;
}

/* ---- What comes next ------------------------------------------------------------------------- */

/*
 * What is read after groups of a stream: others of it, then of the next one. Streams are K of a
 * block, V of it, K of the next block. Groups are announced (kernels/ahead.h) where all of their
 * keys are read.
 */
typedef struct decode_ahead {
    const char *const *at,
        *const *next; /* groups of this stream and of the next; of that NULL: not read */
    const uint16_t *any, *next_any; /* keys that are read of them, nullable */
    int to, next_from, next_to, distance;
    int64_t row_bytes, next_row_bytes;
} decode_ahead;

/* n keys from `at` on. row_bytes: from one to the next; 0: side by side. */
typedef struct decode_soon {
    const char *at;
    int n;
    int64_t row_bytes;
} decode_soon;

/*
 * What is announced beside n_groups from group g on, whose rows have so many bytes: as many groups,
 * `distance` further on, as long as they lie one after the other.
 */
V_INLINE decode_soon decode_next(const decode_ahead *x, int g, int n_groups, int64_t bytes) {
    const bool over = g + x->distance >= x->to;
    const char *const *const at = over ? x->next : x->at;
    const uint16_t *const any = over ? x->next_any : x->any;
    const int first = g + x->distance + (over ? x->next_from - x->to : 0);
    const int64_t row_bytes = over ? x->next_row_bytes : x->row_bytes;
    const int to = (int)qkvi_min_i64(first + n_groups, over ? x->next_to : x->to);
    decode_soon soon = { NULL, 0, row_bytes == bytes ? 0 : row_bytes };
    for (int n = first; n < to && at[n] && (!any || any[n] == DECODE_ALL); n++) {
        if (n > first && at[n] != at[n - 1] + QKVI_DECODE_GROUP * row_bytes) break;
        soon.n += QKVI_DECODE_GROUP;
    }
    if (soon.n) soon.at = at[first];
    return soon;
}

/*
 * A line of the stream. While it waits for memory, a prefetch into L1 holds one of the few buffers
 * that misses of L1 have. Into L2 more are on their way at once, and from there L1 has a line in
 * time. int8 is bound by arithmetic rather than by memory, and loses by it.
 */
V_INLINE void decode_announce(const char *at, const qkvi_storage type) {
    if (type == QKVI_STORE_I8)
        v_prefetch_near(at);
    else
        v_prefetch(at);
}

V_INLINE int decode_distance(const decode *a, int64_t row_bytes) {
    const int64_t ahead = a->storage == QKVI_STORE_I8 ? DECODE_AHEAD_INT8 : DECODE_AHEAD;
    const int64_t groups = ahead / (QKVI_DECODE_GROUP * (row_bytes ? row_bytes : 1));
    return groups < 1 ? 1 : groups > QKVI_DECODE_GROUPS ? QKVI_DECODE_GROUPS : (int)groups;
}

/* Rows at a time, of so many that are left. */
V_INLINE int decode_rows_of(int left) { return DECODE_R >= 4 && left >= 4 ? 4 : left >= 2 ? 2 : 1; }

#endif
