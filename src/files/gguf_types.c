/*
 * Blocks of a GGUF file as floats: see gguf_types.h. e is the index of an element in its block; i
 * is its index in its group g, 16 or 32 elements with a scale of their own. Layouts are those of
 * ggml-common.h, formulas those of ggml-quants.c. memcpy reads unaligned bytes.
 */
#include "files/gguf_types.h"

#include "core/half.h"
#include "files/elems.h"

static uint16_t u16_at(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }
static uint32_t u32_at(const uint8_t *at) { return u16_at(at) | (uint32_t)u16_at(at + 2) << 16; }
static float half_at(const uint8_t *at) { return qkvi_f32_of_f16(u16_at(at)); }

/* ---- Plain numbers --------------------------------------------------------------------------- */

static void f32(const uint8_t *b, float *y) { qkvi_elems_to_f32(QKVI_F32, b, 1, y); }
static void f16(const uint8_t *b, float *y) { qkvi_elems_to_f32(QKVI_F16, b, 1, y); }
static void bf16(const uint8_t *b, float *y) { qkvi_elems_to_f32(QKVI_BF16, b, 1, y); }
static void f64(const uint8_t *b, float *y) { qkvi_elems_to_f32(QKVI_F64, b, 1, y); }

/* ---- Blocks of 32 ---------------------------------------------------------------------------- */

/* 16 bytes: the low halves are the first 16 numbers. */
static void nibbles(const uint8_t *qs, int8_t q[32]) {
    for (int i = 0; i < 16; i++) {
        q[i] = (int8_t)(qs[i] & 15);
        q[16 + i] = (int8_t)(qs[i] >> 4);
    }
}

/* A fifth bit for each. */
static void add_high(uint32_t bits, int8_t q[32]) {
    for (int e = 0; e < 32; e++) q[e] = (int8_t)(q[e] | (int)(bits >> e & 1) << 4);
}

static void scaled(float d, const int8_t q[32], int from, float *y) {
    for (int e = 0; e < 32; e++) y[e] = d * (float)(q[e] - from);
}

static void shifted(float d, const int8_t q[32], float m, float *y) {
    for (int e = 0; e < 32; e++) y[e] = d * (float)q[e] + m;
}

static void q4_0(const uint8_t *b, float *y) {
    int8_t q[32];
    nibbles(b + 2, q);
    scaled(half_at(b), q, 8, y);
}

static void q4_1(const uint8_t *b, float *y) {
    int8_t q[32];
    nibbles(b + 4, q);
    shifted(half_at(b), q, half_at(b + 2), y);
}

static void q5_0(const uint8_t *b, float *y) {
    int8_t q[32];
    nibbles(b + 6, q);
    add_high(u32_at(b + 2), q);
    scaled(half_at(b), q, 16, y);
}

static void q5_1(const uint8_t *b, float *y) {
    int8_t q[32];
    nibbles(b + 8, q);
    add_high(u32_at(b + 4), q);
    shifted(half_at(b), q, half_at(b + 2), y);
}

static void q8_0(const uint8_t *b, float *y) {
    const float d = half_at(b);
    for (int e = 0; e < 32; e++) y[e] = d * (float)(int8_t)b[2 + e];
}

/* A table of 16 numbers in place of nibbles. */
static void looked_up(float d, const uint8_t *qs, const int8_t values[16], float *y) {
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float)values[qs[i] & 15];
        y[16 + i] = d * (float)values[qs[i] >> 4];
    }
}

static const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113 };

static void iq4_nl(const uint8_t *b, float *y) { looked_up(half_at(b), b + 2, iq4_values, y); }

/* 2^(exponent - 128), the half of what the byte stands for, as the numbers are doubled. */
static float mxfp4_scale(uint8_t exponent) {
    return qkvi_float_of_bits(exponent < 2 ? 0x00200000u << exponent
                                           : (uint32_t)(exponent - 1) << 23);
}

static void mxfp4(const uint8_t *b, float *y) {
    static const int8_t values[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    looked_up(mxfp4_scale(b[0]), b + 1, values, y);
}

/* ---- Blocks of 256 --------------------------------------------------------------------------- */

/*
 * Two bits of each of the 16 numbers of group g: those of a half of the block lie in its 32 bytes,
 * a quarter of it above the other.
 */
static void two_bits(const uint8_t *qs, int g, int8_t q[16]) {
    const uint8_t *const from = qs + g / 8 * 32 + g % 2 * 16;
    const int shift = g % 8 / 2 * 2;
    for (int i = 0; i < 16; i++) q[i] = from[i] >> shift & 3;
}

static void q2_k(const uint8_t *b, float *y) {
    const uint8_t *const scales = b, *const qs = b + 16;
    const float d = half_at(b + 80), m = half_at(b + 82);
    for (int g = 0; g < 16; g++) {
        const float step = d * (float)(scales[g] & 15), from = m * (float)(scales[g] >> 4);
        int8_t q[16];
        two_bits(qs, g, q);
        for (int i = 0; i < 16; i++) y[16 * g + i] = step * (float)q[i] - from;
    }
}

static void q3_k(const uint8_t *b, float *y) {
    const uint8_t *const high = b, *const qs = b + 32, *const s = b + 96;
    const float d = half_at(b + 108);
    for (int g = 0; g < 16; g++) {
        const int low = s[g % 8] >> (g / 8 * 4) & 15, top = s[8 + g % 4] >> (g / 4 * 2) & 3;
        const float step = d * (float)((low | top << 4) - 32);
        int8_t q[16];
        two_bits(qs, g, q);
        for (int i = 0; i < 16; i++) {
            const int less = (high[g % 2 * 16 + i] >> (g / 2) & 1) ? 0 : 4;
            y[16 * g + i] = step * (float)(q[i] - less);
        }
    }
}

/* The six bits of scale and minimum of a group of 32, of Q4_K and Q5_K. */
static void k_scale(const uint8_t *s, int g, int *scale, int *least) {
    *scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
    *least = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | (s[g] >> 6) << 4;
}

/* high: a fifth bit for each element; NULL: there is none. */
static void q45_k(const uint8_t *b, const uint8_t *high, const uint8_t *qs, float *y) {
    const float d = half_at(b), m = half_at(b + 2);
    for (int g = 0; g < 8; g++) {
        int scale, least;
        k_scale(b + 4, g, &scale, &least);
        const float step = d * (float)scale, from = m * (float)least;
        for (int i = 0; i < 32; i++) {
            const int q = qs[32 * (g / 2) + i] >> (g % 2 * 4) & 15;
            y[32 * g + i] = step * (float)(q | (high ? (high[i] >> g & 1) << 4 : 0)) - from;
        }
    }
}

static void q4_k(const uint8_t *b, float *y) { q45_k(b, NULL, b + 16, y); }
static void q5_k(const uint8_t *b, float *y) { q45_k(b, b + 16, b + 48, y); }

static void q6_k(const uint8_t *b, float *y) {
    const uint8_t *const scales = b + 192;
    const float d = half_at(b + 208);
    for (int g = 0; g < 16; g++) { /* of 16 numbers, half of a quarter l of a half of the block */
        const int half = g / 8, l = g % 8 / 2, first = g % 2 * 16;
        const uint8_t *const low = b + 64 * half + 32 * (l & 1) + first;
        const uint8_t *const high = b + 128 + 32 * half + first;
        const float step = d * (float)(int8_t)scales[g];
        for (int i = 0; i < 16; i++) {
            const int q = (low[i] >> (l / 2 * 4) & 15) | (high[i] >> (2 * l) & 3) << 4;
            y[16 * g + i] = step * (float)(q - 32);
        }
    }
}

static void iq4_xs(const uint8_t *b, float *y) {
    const float d = half_at(b);
    const int high = u16_at(b + 2);
    for (int g = 0; g < 8; g++) {
        const int scale = ((b[4 + g / 2] >> (g % 2 * 4) & 15) | (high >> (2 * g) & 3) << 4) - 32;
        looked_up(d * (float)scale, b + 8 + 16 * g, iq4_values, y + 32 * g);
    }
}

/* ---- The table ------------------------------------------------------------------------------- */

/* Those without a function have a size, so that what lies behind them is found. */
static const qkvi_gguf_type types[] = {
    { QKVI_GGUF_F32, "F32", 1, 4, f32, false },
    { QKVI_GGUF_F16, "F16", 1, 2, f16, false },
    { 2, "Q4_0", 32, 18, q4_0, true },
    { 3, "Q4_1", 32, 20, q4_1, true },
    { 6, "Q5_0", 32, 22, q5_0, true },
    { 7, "Q5_1", 32, 24, q5_1, false },
    { 8, "Q8_0", 32, 34, q8_0, true },
    { 9, "Q8_1", 32, 36, NULL, false },
    { 10, "Q2_K", 256, 84, q2_k, false },
    { 11, "Q3_K", 256, 110, q3_k, false },
    { 12, "Q4_K", 256, 144, q4_k, true },
    { 13, "Q5_K", 256, 176, q5_k, true },
    { 14, "Q6_K", 256, 210, q6_k, true },
    { 15, "Q8_K", 256, 292, NULL, false },
    { 16, "IQ2_XXS", 256, 66, NULL, false },
    { 17, "IQ2_XS", 256, 74, NULL, false },
    { 18, "IQ3_XXS", 256, 98, NULL, false },
    { 19, "IQ1_S", 256, 50, NULL, false },
    { 20, "IQ4_NL", 32, 18, iq4_nl, false },
    { 21, "IQ3_S", 256, 110, NULL, false },
    { 22, "IQ2_S", 256, 82, NULL, false },
    { 23, "IQ4_XS", 256, 136, iq4_xs, false },
    { 24, "I8", 1, 1, NULL, false },
    { 25, "I16", 1, 2, NULL, false },
    { 26, "I32", 1, 4, NULL, false },
    { 27, "I64", 1, 8, NULL, false },
    { QKVI_GGUF_F64, "F64", 1, 8, f64, false },
    { 29, "IQ1_M", 256, 56, NULL, false },
    { QKVI_GGUF_BF16, "BF16", 1, 2, bf16, false },
    { 34, "TQ1_0", 256, 54, NULL, false },
    { 35, "TQ2_0", 256, 66, NULL, false },
    { 39, "MXFP4", 32, 17, mxfp4, false },
    { 40, "NVFP4", 64, 36, NULL, false },
    { 41, "Q1_0", 128, 18, NULL, false },
    { 42, "Q2_0", 64, 18, NULL, false },
};

const qkvi_gguf_type *qkvi_gguf_type_of(uint32_t id) {
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        if (types[t].id == id) return &types[t];
    return NULL;
}

/* Numbers that are no blocks all at once. */
static bool plain_type(uint32_t id, qkvi_elem_type *type) {
    *type = id == QKVI_GGUF_F16    ? QKVI_F16
            : id == QKVI_GGUF_BF16 ? QKVI_BF16
            : id == QKVI_GGUF_F64  ? QKVI_F64
                                   : QKVI_F32;
    return id == QKVI_GGUF_F32 || *type != QKVI_F32;
}

void qkvi_gguf_to_f32(const qkvi_gguf_type *type, const uint8_t *blocks, size_t n_blocks,
                      float *values) {
    qkvi_elem_type plain;
    if (plain_type(type->id, &plain)) {
        qkvi_elems_to_f32(plain, blocks, n_blocks, values);
        return;
    }
    for (size_t b = 0; b < n_blocks; b++)
        type->to_f32(blocks + b * (size_t)type->n_bytes, values + b * (size_t)type->n_elems);
}
