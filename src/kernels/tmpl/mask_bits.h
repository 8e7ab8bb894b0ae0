/*
 * Masks, segments, ALiBi and distance bias, 32 keys of a row at a time: which may be seen, what is
 * added. Reads no element but those of the keys asked for, and of the distance bias.
 */
#ifndef QKVI_TMPL_MASK_BITS_H
#define QKVI_TMPL_MASK_BITS_H

#include <math.h>
#include <string.h>

#include "kernels/attend.h"
#include "kernels/tmpl/pack.h"

V_INLINE bool mask_hides(const qkvi_mask *m) { return m->bools || m->bits || m->adds || m->seg_k; }
V_INLINE bool mask_biases(const qkvi_mask *m) {
    return m->adds || m->slope != 0 || m->distance_bias;
}

/* The bits [begin, end) of 32. */
V_INLINE uint32_t mask_range(int64_t begin, int64_t end) {
    const int from = begin < 0 ? 0 : begin > 32 ? 32 : (int)begin;
    const int to = end < 0 ? 0 : end > 32 ? 32 : (int)end;
    return from < to ? UINT32_MAX >> (32 - (to - from)) << from : 0;
}

/* n <= 16 elements of the additive mask, of any type, as floats; zeros after them. */
V_INLINE vf mask_load_16(const qkvi_mask *m, const void *p, int n) {
    if (m->adds_type == QKV_F32) return pack_load(QKV_F32, p, n);
    return m->adds_type == QKV_BF16 ? pack_load(QKV_BF16, p, n) : pack_load(QKV_F16, p, n);
}

/* The additive mask of row i and the n keys from j on, 1 <= n <= 32; zeros after them. */
V_INLINE void mask_load(const qkvi_mask *m, int64_t i, int64_t j, int n, vf add[2]) {
    const void *p = pack_at(m->adds_type, m->adds, i * m->row + j * m->key);
    float x[32] = { 0 }, one[16];
    if (m->key == 1) {
        add[0] = mask_load_16(m, p, pack_left(n));
        add[1] = n > 16 ? mask_load_16(m, pack_at(m->adds_type, p, 16), n - 16) : vf_set1(0);
        return;
    }
    for (int e = 0; e < n; e++) {
        vf_storeu(one, mask_load_16(m, pack_at(m->adds_type, p, e * m->key), 1));
        x[e] = one[0];
    }
    add[0] = vf_loadu(x);
    add[1] = vf_loadu(x + 16);
}

/* slope times the distance of keys from j on, each rounded to a float first. */
V_INLINE void mask_alibi(const qkvi_mask *m, int64_t i, int64_t j, vf add[2]) {
    enum { EXACT = (1 << 24) - 32 }; /* up to here all integers are floats */
    static const float lane[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const int64_t first = m->distance + j - i;
    float x[16];
    for (int v = 0; v < 2; v++) {
        const int64_t from = first + 16 * v;
        vf distance = vf_add(vf_set1((float)from), vf_loadu(lane));
        if (from > EXACT || from < -EXACT) {
            for (int e = 0; e < 16; e++) x[e] = (float)(from + e);
            distance = vf_loadu(x);
        }
        add[v] = vf_mul(vf_set1(m->slope), distance);
    }
}

/* The distance bias of 32 keys from j on, whether they exist or not. */
V_INLINE void mask_distances(const qkvi_mask *m, int64_t i, int64_t j, vf add[2]) {
    const int64_t first = m->distance + j - i + m->before, last = m->n_distances - 1;
    float x[32];
    if (first >= 0 && first + 31 <= last) {
        add[0] = vf_loadu(m->distance_bias + first);
        add[1] = vf_loadu(m->distance_bias + first + 16);
    } else if (first >= last || first + 31 <= 0) {
        add[0] = add[1] = vf_set1(m->distance_bias[first >= last ? last : 0]);
    } else {
        for (int e = 0; e < 32; e++) {
            const int64_t at = first + e;
            x[e] = m->distance_bias[at < 0 ? 0 : at > last ? last : at];
        }
        add[0] = vf_loadu(x);
        add[1] = vf_loadu(x + 16);
    }
}

/* add becomes x, or add + x where something was added before. */
V_INLINE void mask_add(bool before, const vf x[2], vf add[2]) {
    for (int v = 0; v < 2; v++) add[v] = before ? vf_add(add[v], x[v]) : x[v];
}

/* What is added to the scores of row i and the n keys from j on, 1 <= n <= 32. */
V_INLINE void mask_adds(const qkvi_mask *m, int64_t i, int64_t j, int n, vf add[2]) {
    vf x[2];
    if (m->adds) mask_load(m, i, j, n, add);
    if (m->slope != 0) {
        mask_alibi(m, i, j, x);
        mask_add(m->adds, x, add);
    }
    if (m->distance_bias) {
        mask_distances(m, i, j, x);
        mask_add(m->adds || m->slope != 0, x, add);
    }
}

V_INLINE uint32_t mask_explicit(const qkvi_mask *m, int64_t i, int64_t j, int n) {
    uint32_t bits = 0;
    if (m->adds) {
        const vf none = vf_set1(-INFINITY);
        vf add[2];
        mask_load(m, i, j, n, add);
        return (vm_to_bits(vm_ne(add[0], none)) | vm_to_bits(vm_ne(add[1], none)) << 16);
    }
    if (m->bits) {
        const uint8_t *p = m->bits + i * m->row;
        if (m->key == 0) return p[0] & 1 ? UINT32_MAX : 0;
        for (int e = 0; e < n; e += 8) bits |= (uint32_t)p[(j + e) / 8] << e;
        return bits;
    }
    const uint8_t *p = m->bools + i * m->row + j * m->key;
    if (m->key == 1 && n == 32) return v_nonzero_bytes(p) | v_nonzero_bytes(p + 16) << 16;
    for (int e = 0; e < n; e++) bits |= (uint32_t)(p[e * m->key] != 0) << e;
    return bits;
}

/* Which of the n keys from j on, a multiple of 8, row i may see, 1 <= n <= 32. */
V_INLINE uint32_t mask_bits(const qkvi_mask *m, int64_t i, int64_t j, int n) {
    uint32_t bits = mask_range(0, n);
    if (m->seg_k) bits &= v_equal(m->seg_k + j, m->seg_q[i], n);
    if (bits && (m->bools || m->bits || m->adds)) bits &= mask_explicit(m, i, j, n);
    return bits;
}

/* Is there nothing to repeat along keys? */
V_INLINE bool mask_is_dense(const qkvi_mask *m) {
    return m->key == 1 || !(m->bools || m->bits || m->adds);
}

/*
 * What several rows see of the 32 keys from j on, dense along keys: each, some of them, all of
 * them. With an additive mask its values, too.
 */
typedef struct mask_sight {
    uint32_t any, all, see[V_MR];
    _Alignas(64) float adds[V_MR][32];
} mask_sight;

/* Row i of the explicit mask; its values go to `adds`. */
V_INLINE uint32_t mask_dense_row(const qkvi_mask *m, int64_t i, int64_t j, float *adds) {
    const vf none = vf_set1(-INFINITY);
    if (m->bools) {
        const uint8_t *p = m->bools + i * m->row + j;
        return v_nonzero_bytes(p) | v_nonzero_bytes(p + 16) << 16;
    }
    if (m->bits) {
        uint32_t bits;
        memcpy(&bits, m->bits + i * m->row + j / 8, sizeof bits);
        return bits;
    }
    const void *p = pack_at(m->adds_type, m->adds, i * m->row + j);
    const vf x = mask_load_16(m, p, 16), y = mask_load_16(m, pack_at(m->adds_type, p, 16), 16);
    vf_store(adds, x);
    vf_store(adds + 16, y);
    return vm_to_bits(vm_ne(x, none)) | vm_to_bits(vm_ne(y, none)) << 16;
}

/*
 * Neighbours often are of one segment. Everything in one loop: a vector that is loaded from words
 * just stored would wait for them.
 */
V_INLINE void mask_see_rows(const qkvi_mask *m, int64_t i, int rows, int64_t j, mask_sight *s) {
    const bool is_explicit = m->bools || m->bits || m->adds;
    uint32_t same = UINT32_MAX, any = 0, all = UINT32_MAX;
    for (int r = 0; r < rows; r++) {
        if (m->seg_k && (r == 0 || m->seg_q[i + r] != m->seg_q[i + r - 1]))
            same = v_equal(m->seg_k + j, m->seg_q[i + r], 32);
        const uint32_t bits = is_explicit ? same & mask_dense_row(m, i + r, j, s->adds[r]) : same;
        s->see[r] = bits;
        any |= bits;
        all &= bits;
    }
    s->any = any;
    s->all = all;
}

/*
 * Announces what mask_see_rows will read, where rows lie apart: the lines that begin in these 32
 * keys of each, so that of those that other keys share none is announced twice.
 */
V_INLINE void mask_announce_rows(const qkvi_mask *m, int64_t i, int rows, int64_t j) {
    const int64_t size = m->adds ? qkvi_dtype_bytes(m->adds_type) : 1, row = m->row * size;
    const char *const at = m->adds ? m->adds : (const char *)(m->bools ? m->bools : m->bits);
    const int64_t bytes = m->bits ? 4 : 32 * size;
    if (!at || row < QKVI_LINE) return;
    const char *p = at + i * row + (m->bits ? j / 8 : j * size);
    for (int r = 0; r < rows; r++, p += row) {
        const int64_t skip = (int64_t)(-(uintptr_t)p % QKVI_LINE);
        for (int64_t b = skip; b < bytes; b += QKVI_LINE) v_prefetch(p + b);
    }
}

/* table.h */
static uint32_t mask_any(const qkvi_mask *m, int64_t n_rows, int n_keys, int64_t begin,
                         int64_t end) {
    const uint32_t all = mask_range(0, n_keys);
    uint32_t any = 0;
    for (int64_t i = 0; i < n_rows && any != all; i++) {
        const uint32_t bits = mask_range(begin + i, end + i) & all & ~any;
        if (bits) any |= bits & mask_bits(m, i, 0, n_keys);
    }
    return any;
}

#endif
