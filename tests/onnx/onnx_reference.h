/*
 * ONNX's Attention by its specification, in long double, one element at a time: past keys joined,
 * bias from mask, causal, window and padding, softmax, product. Only the struct of the node comes
 * from the library.
 *
 * Each result has the largest error that the loop in double may have, and Y also that of
 * qkv_attention_forward (qkv/onnx.h, qkv/qkv.h).
 */
#ifndef QKV_TESTS_ONNX_REFERENCE_H
#define QKV_TESTS_ONNX_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check/elements.h"
#include "qkv/onnx.h"

static inline size_t onnx_bytes(qkv_onnx_type type) {
    switch (type) {
    case QKV_ONNX_UINT8:
    case QKV_ONNX_INT8:
    case QKV_ONNX_BOOL: return 1;
    case QKV_ONNX_UINT16:
    case QKV_ONNX_INT16:
    case QKV_ONNX_FLOAT16:
    case QKV_ONNX_BFLOAT16: return 2;
    case QKV_ONNX_FLOAT:
    case QKV_ONNX_INT32:
    case QKV_ONNX_UINT32: return 4;
    default: return 8;
    }
}

/* The type of elements.h for a type of floats. */
static inline elem_type onnx_elem(qkv_onnx_type type) {
    return type == QKV_ONNX_FLOAT      ? ELEMENT_F32
           : type == QKV_ONNX_FLOAT16  ? ELEMENT_F16
           : type == QKV_ONNX_BFLOAT16 ? ELEMENT_BF16
                                       : ELEMENT_F64;
}

static inline double onnx_get(const qkv_onnx_tensor *t, int64_t at) {
    switch (t->type) {
    case QKV_ONNX_UINT8: return ((const uint8_t *)t->data)[at];
    case QKV_ONNX_INT8: return ((const int8_t *)t->data)[at];
    case QKV_ONNX_UINT16: return ((const uint16_t *)t->data)[at];
    case QKV_ONNX_INT16: return ((const int16_t *)t->data)[at];
    case QKV_ONNX_UINT32: return ((const uint32_t *)t->data)[at];
    case QKV_ONNX_INT32: return ((const int32_t *)t->data)[at];
    case QKV_ONNX_UINT64: return (double)((const uint64_t *)t->data)[at];
    case QKV_ONNX_INT64: return (double)((const int64_t *)t->data)[at];
    case QKV_ONNX_BOOL: return ((const uint8_t *)t->data)[at] != 0;
    default: return element_get(t->data, onnx_elem(t->type), at);
    }
}

static inline int64_t onnx_count(const qkv_onnx_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->dims[i];
    return n;
}

/* The sizes of a valid node. */
typedef struct onnx_sizes {
    int64_t b, hq, hkv, sq, sk, p, t, d, dv;
} onnx_sizes;

static inline onnx_sizes onnx_sizes_of(const qkv_onnx_attention_node *n) {
    const bool four = n->Q.rank == 4;
    onnx_sizes s = { .b = n->Q.dims[0] };
    s.hq = four ? n->Q.dims[1] : n->q_num_heads;
    s.hkv = four ? n->K.dims[1] : n->kv_num_heads;
    s.sq = n->Q.dims[four ? 2 : 1];
    s.sk = n->K.dims[four ? 2 : 1];
    s.d = four ? n->Q.dims[3] : n->Q.dims[2] / s.hq;
    s.dv = four ? n->V.dims[3] : n->V.dims[2] / s.hkv;
    s.p = n->past_key.type ? n->past_key.dims[2] : 0;
    s.t = s.p + s.sk;
    return s;
}

/* Element (b, h, i, c) of [b][heads][len][dim], or with rank 3 of [b][len][heads dim]. */
static inline int64_t onnx_at(int rank, int64_t heads, int64_t len, int64_t dim, int64_t b,
                              int64_t h, int64_t i, int64_t c) {
    return rank == 4 ? ((b * heads + h) * len + i) * dim + c
                     : (b * len + i) * heads * dim + h * dim + c;
}

/* Key (or value) j, the past first. */
static inline double onnx_key(const qkv_onnx_attention_node *n, const onnx_sizes *s, bool value,
                              int64_t b, int64_t g, int64_t j, int64_t c) {
    const int64_t dim = value ? s->dv : s->d;
    if (j < s->p)
        return onnx_get(value ? &n->past_value : &n->past_key,
                        onnx_at(4, s->hkv, s->p, dim, b, g, j, c));
    return onnx_get(value ? &n->V : &n->K,
                    onnx_at(n->Q.rank, s->hkv, s->sk, dim, b, g, j - s->p, c));
}

/* The bias of one element; -INFINITY hides. */
static inline double onnx_bias(const qkv_onnx_attention_node *n, const onnx_sizes *s, int64_t b,
                               int64_t h, int64_t i, int64_t j) {
    const int64_t at[4] = { b, h, i, j };
    const qkv_onnx_tensor *m = &n->attn_mask;
    double bias = 0;
    int64_t offset = s->p, valid = s->t;
    if (n->nonpad_kv_seqlen.type) {
        valid = ((const int64_t *)n->nonpad_kv_seqlen.data)[b];
        offset = valid - s->sq;
    }
    const int64_t p = i + offset;
    if (j >= valid || (n->is_causal && j > p)) return -INFINITY;
    if (n->flags & QKV_ONNX_SET_LEFT_WINDOW_SIZE && n->left_window_size >= 0 &&
        p - j > n->left_window_size)
        return -INFINITY;
    if (n->flags & QKV_ONNX_SET_RIGHT_WINDOW_SIZE && n->right_window_size >= 0 &&
        j - p > n->right_window_size)
        return -INFINITY;
    if (!m->type) return 0;
    int64_t where = 0;
    for (int k = 0; k < m->rank; k++) {
        const int64_t full = at[4 - m->rank + k], size = m->dims[k];
        if (k == m->rank - 1 && n->opset >= 24 && full >= size) return -INFINITY; /* padded */
        where = where * size + (size == 1 ? 0 : full);
    }
    bias = onnx_get(m, where);
    return m->type == QKV_ONNX_BOOL ? (bias != 0 ? 0 : -INFINITY) : bias;
}

typedef struct onnx_expected {
    int64_t n_y, n_qk;
    double *y, *qk;
    /* How far the loop's numbers may be before they are rounded to the type; forward's Y. */
    double *y_loop, *y_forward, *qk_loop;
} onnx_expected;

/* One row: scores of all stages. */
typedef struct onnx_row {
    long double *s[4], *size; /* size: |scale| sum |q k| */
    double *bias;
} onnx_row;

static inline void onnx_scores(const qkv_onnx_attention_node *n, const onnx_sizes *s, int64_t b,
                               int64_t h, int64_t i, onnx_row *r) {
    const int64_t g = h / (s->hq / s->hkv);
    const long double scale = n->flags & QKV_ONNX_SET_SCALE ? (long double)n->scale
                              : s->d                        ? 1 / sqrtl((long double)s->d)
                                                            : 1;
    long double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < s->t; j++) {
        long double dot = 0, size = 0;
        for (int64_t c = 0; c < s->d; c++) {
            const double q = onnx_get(&n->Q, onnx_at(n->Q.rank, s->hq, s->sq, s->d, b, h, i, c));
            const long double product = (long double)q * onnx_key(n, s, false, b, g, j, c);
            dot += product;
            size += fabsl(product);
        }
        r->bias[j] = onnx_bias(n, s, b, h, i, j);
        r->size[j] = fabsl(scale) * size;
        r->s[0][j] = scale * dot;
        r->s[1][j] = n->softcap > 0 ? n->softcap * tanhl(r->s[0][j] / n->softcap) : r->s[0][j];
        r->s[2][j] = r->bias[j] == -INFINITY ? -INFINITY : r->s[1][j] + r->bias[j];
        if (r->bias[j] != -INFINITY) largest = fmaxl(largest, r->s[2][j]);
    }
    for (int64_t j = 0; j < s->t; j++)
        sum += r->bias[j] == -INFINITY ? 0 : expl(r->s[2][j] - largest);
    for (int64_t j = 0; j < s->t; j++)
        r->s[3][j] = r->bias[j] == -INFINITY ? 0 : expl(r->s[2][j] - largest) / sum;
}

static inline void onnx_row_results(const qkv_onnx_attention_node *n, const onnx_sizes *s,
                                    int64_t b, int64_t h, int64_t i, const onnx_row *r,
                                    onnx_expected *e) {
    const int64_t g = h / (s->hq / s->hkv), row = (b * s->hq + h) * s->sq + i;
    const double dim = (double)s->d, len = (double)s->t;
    double scores = 0, scores_root = 0, added = 0, v_max = 0;
    for (int64_t j = 0; j < s->t; j++) {
        if (r->bias[j] == -INFINITY) continue;
        scores = fmax(scores, (dim + 8) * (double)r->size[j]);
        scores_root = fmax(scores_root, 4 * sqrt(dim) * (double)r->size[j]);
        added = fmax(added, fabs(r->bias[j]));
        for (int64_t c = 0; c < s->dv; c++)
            v_max = fmax(v_max, fabs(onnx_key(n, s, true, b, g, j, c)));
    }
    for (int64_t c = 0; c < s->dv; c++) {
        const int64_t at = onnx_at(n->Q.rank, s->hq, s->sq, s->dv, b, h, i, c);
        long double y = 0;
        for (int64_t j = 0; j < s->t; j++)
            if (r->bias[j] != -INFINITY) y += r->s[3][j] * onnx_key(n, s, true, b, g, j, c);
        e->y[at] = (double)y;
        e->y_loop[at] = 0x1p-53 * (scores + 4 * added + len + 16) * v_max;
        e->y_forward[at] = 0x1p-24 * (scores_root + 4 * added + 4 * sqrt(len) + 16) * v_max;
    }
    const int mode = (int)n->qk_matmul_output_mode;
    for (int64_t j = 0; j < s->t; j++) {
        const double x = (double)r->s[mode][j], size = (dim + 8) * (double)r->size[j];
        const double shift = mode == 2 && isfinite(r->bias[j]) ? fabs(r->bias[j]) : 0;
        e->qk[row * s->t + j] = x;
        e->qk_loop[row * s->t + j] =
            0x1p-53 * (mode == 3 ? (2 * scores + 4 * added + len + 16) * x : size + shift) +
            0x1p-1074;
    }
}

static inline double *onnx_doubles(int64_t n) {
    double *x = calloc((size_t)n + 1, sizeof *x);
    if (!x) abort();
    return x;
}

static inline onnx_expected onnx_reference(const qkv_onnx_attention_node *n) {
    const onnx_sizes s = onnx_sizes_of(n);
    onnx_expected e = { .n_y = s.b * s.hq * s.sq * s.dv, .n_qk = s.b * s.hq * s.sq * s.t };
    onnx_row r = { .bias = onnx_doubles(s.t) };
    long double *block = calloc((size_t)(5 * s.t + 1), sizeof *block);
    if (!block) abort();
    for (int k = 0; k < 4; k++) r.s[k] = block + k * s.t;
    r.size = block + 4 * s.t;
    e.y = onnx_doubles(e.n_y), e.y_loop = onnx_doubles(e.n_y), e.y_forward = onnx_doubles(e.n_y);
    e.qk = onnx_doubles(e.n_qk), e.qk_loop = onnx_doubles(e.n_qk);
    for (int64_t b = 0; b < s.b; b++)
        for (int64_t h = 0; h < s.hq; h++)
            for (int64_t i = 0; i < s.sq; i++) {
                onnx_scores(n, &s, b, h, i, &r);
                onnx_row_results(n, &s, b, h, i, &r, &e);
            }
    free(block);
    free(r.bias);
    return e;
}

static inline void onnx_expected_free(onnx_expected *e) {
    double *const all[] = { e->y, e->qk, e->y_loop, e->y_forward, e->qk_loop };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
}

/* Does qkv_attention_forward compute Y? */
static inline bool onnx_by_forward(const qkv_onnx_attention_node *n) {
    const qkv_onnx_type m = n->attn_mask.type;
    return n->Q.type == n->V.type && n->Q.type != QKV_ONNX_DOUBLE &&
           n->softmax_precision != QKV_ONNX_DOUBLE &&
           (!m || m == QKV_ONNX_BOOL || m == QKV_ONNX_FLOAT || m == QKV_ONNX_FLOAT16 ||
            m == QKV_ONNX_BFLOAT16);
}

/*
 * The error |x - exact| as a share of the bound plus half a unit in the last place. If exact is out
 * of the range of the type, x must be infinity. INFINITY if only one of the two is NaN.
 */
static inline double onnx_share(qkv_onnx_type type, double x, double exact, double bound) {
    const elem_type elem = onnx_elem(type);
    if (x == exact) return 0;
    if (isinf(x) && isfinite(exact) &&
        isinf(element_rounded(elem, exact + copysign(bound, exact))) &&
        signbit(x) == signbit(exact))
        return 0;
    if (!isfinite(x) || !isfinite(exact)) return isnan(x) && isnan(exact) ? 0 : INFINITY;
    const double half = type == QKV_ONNX_DOUBLE ? 0 : element_ulp(elem, exact) / 2;
    return fabs(x - exact) / (bound + half + 0x1p-1074);
}

#endif
