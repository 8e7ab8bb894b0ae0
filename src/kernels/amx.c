/*
 * Class amx by AMX tiles: see amx.h. The one file that is compiled for them.
 *
 * Registers: tmm0…3 are sums of 32 rows x 32 columns, tmm4 and tmm5 32 rows of A, tmm6 and tmm7 the
 * halves of a panel of B; each is 16 rows of 64 bytes. Two by two is what lets four products share
 * four loads. Sums stay in a buffer in the first-level cache from one chunk of k to the next, and
 * leave it with bias and activation, as floats or rounded; what is beyond the edges stays.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS.
 */
#include "kernels/amx.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdalign.h>
#include <string.h>

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* Constant: gcc 12 does not know that _tile_loadconfig reads more than 8 bytes. */
static const tile_config config = {
    .palette = 1,
    .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
    .rows = { 16, 16, 16, 16, 16, 16, 16, 16 },
};

void qkvi_amx_begin(void) { _tile_loadconfig(&config); }

void qkvi_amx_end(void) {
    _mm_sfence(); /* what went past the caches is seen before what this thread does next */
    _tile_release();
}

/* Sixteen floats to bf16, to nearest even; NaN stays NaN (core/half.h). */
static __m256i rounded(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    const __m512i near = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), last);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(near, nan, quiet), 16));
}

static __m512 some(const float *x, int64_t left) {
    if (left >= 16) return _mm512_loadu_ps(x);
    return left > 0 ? _mm512_maskz_loadu_ps((__mmask16)((1u << left) - 1), x) : _mm512_setzero_ps();
}

void qkvi_amx_round(int n_rows, int64_t k, const float *x, int64_t x_row, const qkvi_amx_tiles *to,
                    int64_t row) {
    for (int64_t c = 0; c < k; c += 32) {
        uint16_t *const tiles = qkvi_amx_tile(to, row, c);
        for (int i = 0; i < 16; i++) {
            const int64_t left = i < n_rows ? k - c : 0;
            const float *const from = x + i * x_row + c;
            _mm256_store_si256((__m256i *)(tiles + 32 * i), rounded(some(from, left)));
            _mm256_store_si256((__m256i *)(tiles + 32 * i + 16),
                               rounded(some(from + 16, left - 16)));
        }
    }
}

static inline void fetch(const char *from, int lines) {
    for (int i = 0; i < lines; i++) _mm_prefetch(from + 64 * i, _MM_HINT_T1);
}

enum { TILE = 16 * 32, BLOCK = 32 * 32, K_STEP = 32 };

/* Lines of what comes next, to be fetched into the second-level cache step by step. */
typedef struct ahead {
    const char *at;
    int lines;
} ahead;

/* sums [32][32] = a b, or sums += a b. a: the tiles of 16 rows, and a_block further the next. */
static inline void product_32(int64_t k, const uint16_t *a, int64_t a_block, const uint32_t *b,
                              bool first, float *sums, ahead *next) {
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, sums, 128);
        _tile_loadd(1, sums + 16, 128);
        _tile_loadd(2, sums + BLOCK / 2, 128);
        _tile_loadd(3, sums + BLOCK / 2 + 16, 128);
    }
    for (; k > 0; k -= K_STEP, a += TILE, b += TILE, next->at += 64 * next->lines) {
        _tile_loadd(6, b, 128);
        _tile_loadd(4, a, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + 16, 128);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + a_block, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        fetch(next->at, next->lines);
    }
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + 16, 128);
    _tile_stored(2, sums + BLOCK / 2, 128);
    _tile_stored(3, sums + BLOCK / 2 + 16, 128);
}

static inline void product_16(int64_t k, const uint16_t *a, const uint32_t *b, bool first,
                              float *sums, ahead *next) {
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
    } else {
        _tile_loadd(0, sums, 128);
        _tile_loadd(1, sums + 16, 128);
    }
    for (; k > 0; k -= K_STEP, a += TILE, b += TILE, next->at += 64 * next->lines) {
        _tile_loadd(6, b, 128);
        _tile_loadd(4, a, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + 16, 128);
        _tile_dpbf16ps(1, 4, 7);
        fetch(next->at, next->lines);
    }
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + 16, 128);
}

/* The lower and upper lanes of n_cols columns. */
typedef struct halves {
    __mmask16 low, high;
} halves;

static halves mask_of(int n_cols) {
    const uint32_t mask = n_cols < 32 ? (1u << n_cols) - 1 : UINT32_MAX;
    return (halves){ (__mmask16)(mask & 0xFFFF), (__mmask16)(mask >> 16) };
}

/* Zeros in place of a bias would turn -0 into +0. */
static void add_bias(int n_rows, halves mask, const float *bias, float *sums) {
    const __m512 bias0 = _mm512_maskz_loadu_ps(mask.low, bias);
    const __m512 bias1 = _mm512_maskz_loadu_ps(mask.high, mask.high ? bias + 16 : bias);
    for (int i = 0; i < n_rows; i++, sums += 32) {
        _mm512_store_ps(sums, _mm512_add_ps(_mm512_load_ps(sums), bias0));
        _mm512_store_ps(sums + 16, _mm512_add_ps(_mm512_load_ps(sums + 16), bias1));
    }
}

static void store_rows(int n_rows, halves mask, const float *sums, float *c, int64_t c_row) {
    for (int i = 0; i < n_rows; i++, sums += 32, c += c_row) {
        _mm512_mask_storeu_ps(c, mask.low, _mm512_load_ps(sums));
        if (mask.high) _mm512_mask_storeu_ps(c + 16, mask.high, _mm512_load_ps(sums + 16));
    }
}

/* Whole lines past the caches. */
static void stream_rows(int n_rows, const float *sums, float *c, int64_t c_row) {
    for (int i = 0; i < n_rows; i++, sums += 32, c += c_row) {
        _mm512_stream_ps(c, _mm512_load_ps(sums));
        _mm512_stream_ps(c + 16, _mm512_load_ps(sums + 16));
    }
}

static void put_rows(const qkvi_amx_panel *p, int n_rows, halves mask, const float *sums,
                     float *c) {
    const bool lines = p->n_cols == 32 && (uintptr_t)c % 64 == 0 && p->c_row % 16 == 0;
    if (p->past_caches && lines)
        stream_rows(n_rows, sums, c, p->c_row);
    else
        store_rows(n_rows, mask, sums, c, p->c_row);
}

/* One tile, zeros beyond the columns. */
static void round_tile(halves mask, const float *sums, uint16_t *tile) {
    for (int i = 0; i < 16; i++, sums += 32, tile += 32) {
        const __m512 x0 = _mm512_maskz_mov_ps(mask.low, _mm512_load_ps(sums));
        const __m512 x1 = _mm512_maskz_mov_ps(mask.high, _mm512_load_ps(sums + 16));
        _mm256_store_si256((__m256i *)tile, rounded(x0));
        _mm256_store_si256((__m256i *)(tile + 16), rounded(x1));
    }
}

static void round_rows(int n_rows, halves mask, const float *sums, uint16_t *to, int64_t row) {
    for (int i = 0; i < n_rows; i++, sums += 32, to += row) {
        _mm256_mask_storeu_epi16(to, mask.low, rounded(_mm512_load_ps(sums)));
        if (mask.high)
            _mm256_mask_storeu_epi16(to + 16, mask.high, rounded(_mm512_load_ps(sums + 16)));
    }
}

/* Finishes n_rows sums from row i on, while they are in the first-level cache. */
static void finish(const qkvi_amx_panel *p, int64_t i, int n_rows, float *sums) {
    const halves mask = mask_of(p->n_cols);
    if (p->bias) add_bias(n_rows, mask, p->bias, sums);
    if (p->rows) {
        round_rows(n_rows, mask, sums, p->rows + i * p->n_row, p->n_row);
        return;
    }
    if (!p->rounded.at) put_rows(p, n_rows, mask, sums, p->c + i * p->c_row);
    if (p->map) p->map(n_rows * 32, sums, sums);
    if (p->map && !p->rounded.at) put_rows(p, n_rows, mask, sums, p->mapped + i * p->c_row);
    if (!p->rounded.at) return;
    for (int at = 0; at < n_rows; at += 16)
        round_tile(mask, sums + 32 * at, qkvi_amx_tile(&p->rounded, i + at, p->first_col));
}

/* Rows i0 … i1 - 1 of the panel, with sums for as many. */
static void multiply_rows(const qkvi_amx_panel *p, int64_t i0, int64_t i1, float *sums,
                          ahead *next) {
    const int64_t depth = p->tiles.depth;
    int64_t k0 = 0;
    do { /* once, if there is no k */
        const int64_t k = qkvi_min_i64(depth - k0, QKVI_AMX_CHUNK);
        for (int64_t i = i0; i < i1; i += 32) {
            const int n_rows = (int)qkvi_min_i64(i1 - i, 32);
            const uint16_t *const a = qkvi_amx_tile(&p->tiles, i, k0);
            float *const to = sums + (i - i0) * 32;
            if (n_rows > 16)
                product_32(k, a, 16 * k, p->b + k0 * 16, k0 == 0, to, next);
            else
                product_16(k, a, p->b + k0 * 16, k0 == 0, to, next);
            if (k0 + k == depth) finish(p, i, n_rows, to);
        }
        k0 += k;
    } while (k0 < depth);
}

void qkvi_amx_multiply(const qkvi_amx_panel *p) {
    alignas(64) float own[BLOCK];
    ahead next = { p->ahead, p->lines };
    const int64_t end = p->first_row + p->n_rows, at_once = p->sums ? QKVI_AMX_ROWS : 32;
    for (int64_t i = p->first_row; i < end; i += at_once)
        multiply_rows(p, i, qkvi_min_i64(end, i + at_once), p->sums ? p->sums : own, &next);
}

/* ---- Attention ------------------------------------------------------------------------------- */

/* A depth of 64: the panel stays in registers. */
static void scores_64(int n_rows, const uint16_t *q, int64_t q_row, const uint32_t *keys, float *s,
                      int64_t s_row) {
    _tile_loadd(4, keys, 128);
    _tile_loadd(5, keys + 16, 128);
    _tile_loadd(6, keys + TILE, 128);
    _tile_loadd(7, keys + TILE + 16, 128);
    for (int i = 0; i < n_rows; i += 16, q += 16 * q_row, s += 16 * s_row) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_loadd(2, q, 2 * q_row);
        _tile_dpbf16ps(0, 2, 4);
        _tile_dpbf16ps(1, 2, 5);
        _tile_loadd(3, q + K_STEP, 2 * q_row);
        _tile_dpbf16ps(0, 3, 6);
        _tile_dpbf16ps(1, 3, 7);
        _tile_stored(0, s, 4 * s_row);
        _tile_stored(1, s + 16, 4 * s_row);
    }
}

void qkvi_amx_scores(int n_rows, int64_t depth, const uint16_t *q, int64_t q_row,
                     const uint32_t *keys, float *s, int64_t s_row) {
    if (depth == 2 * K_STEP) {
        scores_64(n_rows, q, q_row, keys, s, s_row);
        return;
    }
    for (int i = 0; i < n_rows; i += 16, q += 16 * q_row, s += 16 * s_row) {
        _tile_zero(0);
        _tile_zero(1);
        for (int64_t d = 0; d < depth; d += K_STEP) {
            _tile_loadd(2, q + d, 2 * q_row);
            _tile_loadd(4, keys + 16 * d, 128);
            _tile_dpbf16ps(0, 2, 4);
            _tile_loadd(5, keys + 16 * d + 16, 128);
            _tile_dpbf16ps(1, 2, 5);
        }
        _tile_stored(0, s, 4 * s_row);
        _tile_stored(1, s + 16, 4 * s_row);
    }
}

void qkvi_amx_values(uint32_t panels, const uint16_t *p, int64_t p_row, const uint32_t *v,
                     float *sums, const char *soon, int64_t soon_step) {
    _tile_zero(0);
    _tile_zero(1);
    for (; panels; panels &= panels - 1) {
        const int panel = __builtin_ctz(panels);
        _tile_loadd(2, p + 32 * panel, 2 * p_row);
        _tile_loadd(4, v + TILE * panel, 128);
        _tile_dpbf16ps(0, 2, 4);
        _tile_loadd(5, v + TILE * panel + 16, 128);
        _tile_dpbf16ps(1, 2, 5);
        for (int n = 0; n < 16 && soon_step; n++, soon += soon_step)
            _mm_prefetch(soon, _MM_HINT_T1);
    }
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + 16, 128);
}

#else

void qkvi_amx_begin(void) {}
void qkvi_amx_end(void) {}
void qkvi_amx_round(int n_rows, int64_t k, const float *x, int64_t x_row, const qkvi_amx_tiles *to,
                    int64_t row) {
    (void)n_rows, (void)k, (void)x, (void)x_row, (void)to, (void)row;
}
void qkvi_amx_multiply(const qkvi_amx_panel *p) { (void)p; }
void qkvi_amx_scores(int n_rows, int64_t depth, const uint16_t *q, int64_t q_row,
                     const uint32_t *keys, float *s, int64_t s_row) {
    (void)n_rows, (void)depth, (void)q, (void)q_row, (void)keys, (void)s, (void)s_row;
}
void qkvi_amx_values(uint32_t panels, const uint16_t *p, int64_t p_row, const uint32_t *v,
                     float *sums, const char *ahead, int64_t ahead_step) {
    (void)panels, (void)p, (void)p_row, (void)v, (void)sums, (void)ahead, (void)ahead_step;
}

#endif
