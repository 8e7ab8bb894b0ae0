/*
 * What this machine lets us use: instruction sets, with the operating system's support, and
 * processors.
 */
#ifndef QKVI_CORE_CPU_H
#define QKVI_CORE_CPU_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Groups of features as the kernels need them. A bit is set only if the system also saves the
 * registers.
 */
enum {
    QKVI_CPU_AVX2 = 1u << 0,       /* AVX2, FMA, F16C */
    QKVI_CPU_AVX512 = 1u << 1,     /* AVX-512 F, BW, VL, DQ, and all of QKVI_CPU_AVX2 */
    QKVI_CPU_AVX512BF16 = 1u << 2, /* VDPBF16PS, VPDPBUSD, and all of QKVI_CPU_AVX512 */
    /* VDPBF16PS does the work of two FMAs in the time of one: on AMD, measured on Zen 5. */
    QKVI_CPU_FAST_DP = 1u << 3,
    QKVI_CPU_AVX512VNNI = 1u << 4, /* VPDPBUSD of 512 bits, and all of QKVI_CPU_AVX512 */
    QKVI_CPU_AVXVNNI = 1u << 5,    /* VPDPBUSD of 256 bits by VEX, and all of QKVI_CPU_AVX2 */
    QKVI_CPU_NEON = 1u << 8,       /* AArch64: Advanced SIMD */
    QKVI_CPU_DOTPROD = 1u << 9,    /* SDOT, and all of QKVI_CPU_NEON */
    QKVI_CPU_WASM = 1u << 12 /* WebAssembly: simd128; of relaxed SIMD, that its madd is an FMA */
};

/*
 * The features of this processor. Asks it every time (microseconds under a hypervisor): keep the
 * answer.
 */
uint32_t qkvi_cpu_features(void);

/*
 * Ways of the first-level data cache: how many lines whose addresses differ by multiples of 4 KiB
 * it holds. 0: not known (asked of x86 alone). As slow as features: keep the answer.
 */
int qkvi_cpu_l1_ways(void);

/*
 * Do rows so many elements apart share a set of such a cache: 64 sets of lines of 64 bytes? An
 * element has a power of two of bytes. Strides that lead nowhere may be any number: no product.
 */
static inline bool qkvi_rows_meet(int64_t stride, int64_t element_bytes) {
    return stride > 0 && stride % (4096 / element_bytes) == 0;
}

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/*
 * Whether this processor has TDPBF16PS and the system lets this process use its tiles; asks for
 * that, which lasts as long as the process. Takes microseconds: keep the answer.
 */
bool qkvi_cpu_amx(void);

#pragma GCC visibility pop

/*
 * Processors that this process may use: its affinity mask, and the quotas of its control groups. At
 * least 1.
 */
int qkvi_cpu_count(void);

/*
 * The smallest processor quota on the path of this process's control group (version 1 or 2),
 * rounded up; 0 if there is none. root is put before /proc and /sys: "" but in tests.
 */
int qkvi_cpu_quota(const char *root);

#endif
