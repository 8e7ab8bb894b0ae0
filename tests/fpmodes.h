/*
 * Floating-point modes n = 0 … 15 that a caller may have set. Bits 0 and 1: rounding, in the
 * processor's order. Bit 2: flush-to-zero (and denormals-are-zero). Bit 3: exceptions trap, where
 * the processor can. Odd modes without traps have all exception flags raised; with traps these
 * would trap at once.
 */
#ifndef QKV_TESTS_FPMODES_H
#define QKV_TESTS_FPMODES_H

#include "core/fpstate.h"

enum { FPMODES = 16 };

#if defined(__x86_64__)
#define FPMODES_BITS(rounding) ((rounding) << 13)
#define FPMODES_FLUSH          0x8040u
#define FPMODES_NO_TRAPS       0x1F80u
#define FPMODES_TRAPS          0u
#define FPMODES_FLAGS          0x3Fu
#elif defined(__aarch64__)
#define FPMODES_BITS(rounding) ((rounding) << 22)
#define FPMODES_FLUSH          0x1000000u
#define FPMODES_NO_TRAPS       0u
#define FPMODES_TRAPS          0x6009F00u /* and one NaN only, and another kind of f16 */
#define FPMODES_FLAGS          ((uint64_t)0x9F << 32)
#else
#define FPMODES_BITS(rounding) ((rounding)&0u)
#define FPMODES_FLUSH          0u
#define FPMODES_NO_TRAPS       0u
#define FPMODES_TRAPS          0u
#define FPMODES_FLAGS          0u
#endif

static inline qkvi_fpstate fpmode(int n) {
    qkvi_fpstate mode = FPMODES_BITS((qkvi_fpstate)(n & 3));
    if (n & 4) mode |= FPMODES_FLUSH;
    if (n & 8) return mode | FPMODES_TRAPS;
    return mode | FPMODES_NO_TRAPS | (n & 1 ? FPMODES_FLAGS : 0);
}

/* Sets a mode; returns the mode that the processor has then, which may lack traps. */
static inline qkvi_fpstate fpmode_set(int n) {
    qkvi_fpstate_set(fpmode(n));
    return qkvi_fpstate_get();
}

#endif
