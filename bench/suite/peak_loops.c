/*
 * The loops that measure peaks. TDPBF16PS: 2 x 2 tiles of sums, as in a matrix product. FMA and
 * VDPBF16PS: independent chains in registers, more than are needed to hide the latency (2 a cycle x
 * 4 cycles): 24 of 32 zmm, 12 of 16 ymm, 24 of 32 NEON registers. Each loop is compiled for its
 * instruction set by an attribute, and chosen by the features of the processor, so that the tool is
 * portable. Reading: four loads of a cache line at a time into as many sums, with a prefetch
 * farther ahead than that of the hardware.
 */
#include "suite/peak.h"

/*
 * The body of a loop of n chains c[i] of a vector type: a step of each in every round. set makes a
 * vector of a number, first takes a number out of it, registers are the assembler's letter for
 * them.
 */
#define RUN_CHAINS(vector, n, set, step, first, registers)                                         \
    vector c[n];                                                                                   \
    _Pragma("GCC unroll 24") for (int i = 0; i < (n); i++) c[i] = set((float)i);                   \
    for (int64_t r = 0; r < rounds; r++) {                                                         \
        _Pragma("GCC unroll 24") for (int i = 0; i < (n); i++) c[i] = step;                        \
        __asm__ volatile("" : "+" registers(c[0])); /* keeps rounds apart */                       \
    }                                                                                              \
    float sum = 0;                                                                                 \
    _Pragma("GCC unroll 24") for (int i = 0; i < (n); i++) sum += first(c[i]);                     \
    return sum

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include "core/os.h"

enum { CHAINS_512 = 24, CHAINS_256 = 12 };

__attribute__((target("avx512f"))) static float fma_512(int64_t rounds) {
    const __m512 a = _mm512_set1_ps(1.0000001F), b = _mm512_set1_ps(1e-9F);
    RUN_CHAINS(__m512, CHAINS_512, _mm512_set1_ps, _mm512_fmadd_ps(a, c[i], b), _mm512_cvtss_f32,
               "x");
}

__attribute__((target("avx2,fma"))) static float fma_256(int64_t rounds) {
    const __m256 a = _mm256_set1_ps(1.0000001F), b = _mm256_set1_ps(1e-9F);
    RUN_CHAINS(__m256, CHAINS_256, _mm256_set1_ps, _mm256_fmadd_ps(a, c[i], b), _mm256_cvtss_f32,
               "x");
}

__attribute__((target("avx512f,avx512bf16"))) static float dp_512(int64_t rounds) {
    const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f803f80); /* 1, 1 */
    RUN_CHAINS(__m512, CHAINS_512, _mm512_set1_ps, _mm512_dpbf16_ps(c[i], a, a), _mm512_cvtss_f32,
               "x");
}

/* As kernels/amx.c has them: four sums, two tiles of either factor. */
__attribute__((target("amx-tile,amx-bf16,avx512f"))) static float tiles(int64_t rounds) {
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {
        1, 0, { 0 }, { 64, 64, 64, 64, 64, 64, 64, 64 }, { 16, 16, 16, 16, 16, 16, 16, 16 }
    };
    _tile_loadconfig(&config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (int64_t r = 0; r < rounds; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
    return 0;
}

/* CPUID leaf 7, edx; and the system has to grant the tiles. */
static bool has_tiles(void) {
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & AMX_BF16) || !(d & AMX_TILE))
        return false;
    return qkvi_os_grants_amx();
}

struct peak_loop peak_loop(enum peak_kind kind) {
    if (kind == PEAK_FMA && __builtin_cpu_supports("avx512f"))
        return (struct peak_loop){ "FMA avx512", CHAINS_512 * 16 * 2, fma_512 };
    if (kind == PEAK_FMA && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct peak_loop){ "FMA avx2", CHAINS_256 * 8 * 2, fma_256 };
    if (kind == PEAK_DP && __builtin_cpu_supports("avx512bf16"))
        return (struct peak_loop){ "VDPBF16PS", CHAINS_512 * 32 * 2, dp_512 };
    if (kind == PEAK_AMX && has_tiles())
        return (struct peak_loop){ "TDPBF16PS", 4.0 * 16 * 16 * 32 * 2, tiles };
    return (struct peak_loop){ NULL, 0, NULL };
}

#elif defined(__aarch64__)
#include <arm_neon.h>

#define FIRST_LANE(v) vgetq_lane_f32(v, 0)

enum { CHAINS = 24 };

static float fma_neon(int64_t rounds) {
    const float32x4_t a = vdupq_n_f32(1.0000001F), b = vdupq_n_f32(1e-9F);
    RUN_CHAINS(float32x4_t, CHAINS, vdupq_n_f32, vfmaq_f32(c[i], a, b), FIRST_LANE, "w");
}

struct peak_loop peak_loop(enum peak_kind kind) {
    if (kind == PEAK_FMA) return (struct peak_loop){ "FMA neon", CHAINS * 4 * 2, fma_neon };
    return (struct peak_loop){ NULL, 0, NULL };
}

#else

struct peak_loop peak_loop(enum peak_kind kind) {
    (void)kind;
    return (struct peak_loop){ NULL, 0, NULL };
}

#endif

enum { LINE = 64, AHEAD = 8192, STEP = 256 };

/* One word of each cache line brings all of it. */
uint64_t peak_read(const char *bytes, size_t n) {
    uint64_t sums[4] = { 0 };
    for (size_t i = 0; i < n; i += STEP)
        for (int line = 0; line < STEP / LINE; line++) {
            const char *at = bytes + i + line * LINE;
            __builtin_prefetch(at + AHEAD);
            sums[line] += *(const uint64_t *)(const void *)at;
        }
    return sums[0] + sums[1] + sums[2] + sums[3];
}
