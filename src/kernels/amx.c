/*
 * Class amx by AMX tiles: see gemm_bf16.h. The one file that is compiled for them.
 *
 * Registers: tmm0…3 are sums of 32 rows x 32 columns, tmm4 and tmm5 32 rows of A, tmm6 and tmm7 the
 * halves of a panel of B; each is 16 rows of 64 bytes. Two by two is what lets four products share
 * four loads. Sums leave through a buffer in the first-level cache, where the bias is added and what
 * is beyond the edges stays.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS.
 */
#include "kernels/gemm_bf16.h"

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

void qkvi_amx_end(void) { _tile_release(); }

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

void qkvi_amx_round(int n_rows, int64_t k, const float *x, int64_t x_row, uint16_t *tiles) {
    for (int64_t c = 0; c < k; c += 32, tiles += 16 * 32)
        for (int i = 0; i < 16; i++) {
            const int64_t left = i < n_rows ? k - c : 0;
            const float *const from = x + i * x_row + c;
            _mm256_store_si256((__m256i *)(tiles + 32 * i), rounded(some(from, left)));
            _mm256_store_si256((__m256i *)(tiles + 32 * i + 16),
                               rounded(some(from + 16, left - 16)));
        }
}

static inline void fetch(const char *from, int lines) {
    for (int i = 0; i < lines; i++) _mm_prefetch(from + 64 * i, _MM_HINT_T1);
}

/* What the next steps need of A comes from the second-level cache. */
static inline void fetch_tile(const uint16_t *tile) {
    for (int i = 0; i < 16; i++) _mm_prefetch((const char *)(tile + 32 * i), _MM_HINT_T0);
}

enum { TILE = 16 * 32, TILES_AHEAD = 3 };

/* Sums of 32 rows, or of 16. a: the tiles of 16 rows, and then those of the next. */
static void product_32(int64_t k, const uint16_t *a, int64_t a_block, const uint32_t *b,
                       float *sums, const char *ahead, int lines) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t step = 0; step < k; step += 32, a += TILE, b += TILE, ahead += 64 * lines) {
        _tile_loadd(6, b, 128);
        _tile_loadd(4, a, 64);
        fetch_tile(a + TILES_AHEAD * TILE);
        fetch_tile((const uint16_t *)(b + TILES_AHEAD * TILE));
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + 16, 128);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + a_block, 64);
        fetch_tile(a + a_block + TILES_AHEAD * TILE);
        fetch_tile((const uint16_t *)(b + TILES_AHEAD * TILE + TILE / 2));
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        fetch(ahead, lines);
    }
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + 16, 128);
    _tile_stored(2, sums + 16 * 32, 128);
    _tile_stored(3, sums + 16 * 32 + 16, 128);
}

static void product_16(int64_t k, const uint16_t *a, const uint32_t *b, float *sums,
                       const char *ahead, int lines) {
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t step = 0; step < k; step += 32, a += TILE, b += TILE, ahead += 64 * lines) {
        _tile_loadd(6, b, 128);
        _tile_loadd(4, a, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + 16, 128);
        _tile_dpbf16ps(1, 4, 7);
        fetch(ahead, lines);
    }
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + 16, 128);
}

/* Zeros in place of a bias would turn -0 into +0. */
static void store_rows(int n_rows, int n_cols, const float *sums, const float *bias, float *c,
                       int64_t c_row) {
    const uint32_t mask = n_cols < 32 ? (1u << n_cols) - 1 : UINT32_MAX;
    const __mmask16 low = (__mmask16)(mask & 0xFFFF), high = (__mmask16)(mask >> 16);
    __m512 bias0 = _mm512_setzero_ps(), bias1 = bias0;
    if (bias) {
        bias0 = _mm512_maskz_loadu_ps(low, bias);
        bias1 = _mm512_maskz_loadu_ps(high, high ? bias + 16 : bias);
    }
    for (int i = 0; i < n_rows; i++, sums += 32, c += c_row) {
        __m512 x0 = _mm512_load_ps(sums), x1 = _mm512_load_ps(sums + 16);
        if (bias) x0 = _mm512_add_ps(x0, bias0), x1 = _mm512_add_ps(x1, bias1);
        _mm512_mask_storeu_ps(c, low, x0);
        if (high) _mm512_mask_storeu_ps(c + 16, high, x1);
    }
}

void qkvi_amx_panel(int64_t n_rows, int n_cols, int64_t k, const uint16_t *tiles, const uint32_t *b,
                    float *c, int64_t c_row, const float *bias, const char *ahead, int lines) {
    alignas(64) float sums[32 * 32];
    for (int64_t i = 0; i < n_rows; i += 32, ahead += 64 * lines * (k / 32)) {
        const int rows = n_rows - i < 32 ? (int)(n_rows - i) : 32;
        if (rows > 16)
            product_32(k, tiles + i * k, 16 * k, b, sums, ahead, lines);
        else
            product_16(k, tiles + i * k, b, sums, ahead, lines);
        store_rows(rows, n_cols, sums, bias, c + i * c_row, c_row);
    }
}

#else

void qkvi_amx_begin(void) {}
void qkvi_amx_end(void) {}
void qkvi_amx_round(int n_rows, int64_t k, const float *x, int64_t x_row, uint16_t *tiles) {
    (void)n_rows, (void)k, (void)x, (void)x_row, (void)tiles;
}
void qkvi_amx_panel(int64_t n_rows, int n_cols, int64_t k, const uint16_t *tiles, const uint32_t *b,
                    float *c, int64_t c_row, const float *bias, const char *ahead, int lines) {
    (void)n_rows, (void)n_cols, (void)k, (void)tiles, (void)b, (void)c, (void)c_row;
    (void)bias, (void)ahead, (void)lines;
}

#endif
