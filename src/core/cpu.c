/*
 * CPUID leaves 1, 4 and 7 with the XCR0 register (Intel SDM vol. 1, 13 and 14.3; the same on AMD),
 * on AArch64 what the kernel says in AT_HWCAP, in WebAssembly a product that tells how it was
 * rounded; the affinity mask, and cpu.max (control groups 2) or cpu.cfs_quota_us (version 1) from
 * here up to the root.
 */
#include "core/cpu.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/cgroup.h"
#include "core/os.h"

#if defined(__x86_64__)
#include <cpuid.h>

static bool has(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

/* The register state that the system saves: bit 1 xmm, 2 ymm, 5…7 mask and zmm registers. */
static uint32_t saved_state(void) {
    uint32_t eax, edx;
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    return eax;
}

static bool is_amd(void) {
    uint32_t a, b, c, d;
    return __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx &&
           d == signature_AMD_edx;
}

/* Of leaf 7, sub-leaf 1, eax: gcc and clang have different names for them. */
enum { AVX_VNNI = 1 << 4, AVX512_BF16 = 1 << 5 };

uint32_t qkvi_cpu_features(void) {
    uint32_t a, b, c, d, features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, bit_OSXSAVE | bit_AVX)) return 0;
    const uint32_t state = saved_state();
    const bool fma = has(c, bit_FMA | bit_F16C);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    uint32_t more = 0; /* of leaf 7, sub-leaf 1 */
    const bool vnni = has(c, bit_AVX512VNNI);
    if (fma && has(b, bit_AVX2) && has(state, 0x06)) features |= QKVI_CPU_AVX2;
    if (features && has(state, 0xE6) &&
        has(b, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ))
        features |= QKVI_CPU_AVX512 | (vnni ? QKVI_CPU_AVX512VNNI : 0);
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) more = a;
    if ((features & QKVI_CPU_AVX512VNNI) && has(more, AVX512_BF16))
        features |= QKVI_CPU_AVX512BF16 | (is_amd() ? QKVI_CPU_FAST_DP : 0);
    if (features && has(more, AVX_VNNI)) features |= QKVI_CPU_AVXVNNI;
    return features;
}

/* Intel SDM vol. 2, CPUID leaf 4; AMD has the same fields in a leaf of its own. */
int qkvi_cpu_l1_ways(void) {
    enum { INTEL = 4, AMD = (int)0x8000001D, CACHES = 8, DATA = 1, UNIFIED = 3 };
    const uint32_t leaf = is_amd() ? (uint32_t)AMD : INTEL;
    uint32_t a, b, c, d;
    for (uint32_t n = 0; n < CACHES && __get_cpuid_count(leaf, n, &a, &b, &c, &d); n++) {
        const uint32_t type = a & 0x1F, level = a >> 5 & 7;
        if (type == 0) return 0;
        if (level == 1 && (type == DATA || type == UNIFIED)) return (int)(b >> 22) + 1;
    }
    return 0;
}

/* Of leaf 7, edx. */
enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };

bool qkvi_cpu_amx(void) {
    uint32_t a, b, c, d;
    if (!(qkvi_cpu_features() & QKVI_CPU_AVX512BF16)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(d, AMX_BF16 | AMX_TILE)) return false;
    return qkvi_os_grants_amx();
}
#elif defined(__aarch64__)
uint32_t qkvi_cpu_features(void) {
    if (!qkvi_os_has_neon()) return 0;
    return QKVI_CPU_NEON | (qkvi_os_has_dotprod() ? QKVI_CPU_DOTPROD : 0);
}
#elif defined(__wasm_relaxed_simd__)
#include <wasm_simd128.h>

/*
 * Engines may round the product first: then nothing is left of (1 + 2^-12)^2 - (1 + 2^-11). They
 * choose once for all instructions, but for each of the two.
 */
uint32_t qkvi_cpu_features(void) {
    volatile float factor = 0x1.001p0f, addend = 0x1.002p0f; /* not computed by the compiler */
    const v128_t x = wasm_f32x4_splat(factor), y = wasm_f32x4_splat(addend);
    const v128_t sum = wasm_f32x4_relaxed_madd(x, x, wasm_f32x4_neg(y)),
                 difference = wasm_f32x4_relaxed_nmadd(x, x, y);
    const v128_t left = wasm_f32x4_splat(0x1p-24f);
    return wasm_i32x4_all_true(wasm_f32x4_eq(sum, left)) &&
                   wasm_i32x4_all_true(wasm_f32x4_eq(difference, wasm_f32x4_neg(left)))
               ? QKVI_CPU_WASM
               : 0;
}
#elif defined(__wasm_simd128__)
uint32_t qkvi_cpu_features(void) { return QKVI_CPU_WASM; } /* no engine without it loads us */
#else
uint32_t qkvi_cpu_features(void) { return 0; }
#endif

#if !defined(__x86_64__)
bool qkvi_cpu_amx(void) { return false; }
int qkvi_cpu_l1_ways(void) { return 0; }
#endif

/* quota microseconds of processor time in every period, as processors; 0 for "no limit". */
static int64_t processors(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return 0;
    return quota / period + (quota % period != 0);
}

static int64_t quota_v2(const char *root, const char *group) {
    char line[128];
    long long quota = 0, period = 0;
    if (!qkvi_cgroup_line(line, sizeof line, "%s/sys/fs/cgroup%s/cpu.max", root, group)) return 0;
    return sscanf(line, "%lld %lld", &quota, &period) == 2 ? processors(quota, period) : 0;
}

static int64_t quota_v1(const char *root, const char *group) {
    char quota[64], period[64];
    const char *const path = "%s/sys/fs/cgroup/cpu%s/cpu.cfs_%s_us";
    if (!qkvi_cgroup_line(quota, sizeof quota, path, root, group, "quota") ||
        !qkvi_cgroup_line(period, sizeof period, path, root, group, "period"))
        return 0;
    return processors(atoll(quota), atoll(period));
}

int qkvi_cpu_quota(const char *root) {
    const int64_t least = qkvi_cgroup_least(root, "cpu", quota_v2, quota_v1);
    return least > INT_MAX ? INT_MAX : (int)least;
}

int qkvi_cpu_count(void) {
    const int count = qkvi_os_processors(), quota = qkvi_cpu_quota("");
    return quota && quota < count ? quota : count;
}
