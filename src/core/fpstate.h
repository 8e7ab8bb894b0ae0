/*
 * The floating-point environment. Results must not depend on what the host has set: flush-to-zero,
 * denormals-are-zero and rounding modes are common in audio and game code, and new threads inherit
 * them. So code that computes does
 *
 *     const qkvi_fpstate saved = qkvi_fpstate_enter();
 *     …
 *     qkvi_fpstate_leave(saved);
 *
 * qkvi_pool_run does it around every task, qkvi_ctx_begin and _end around every call. The exception
 * flags of the host come back as they were, too.
 */
#ifndef QKVI_CORE_FPSTATE_H
#define QKVI_CORE_FPSTATE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

typedef uint32_t qkvi_fpstate;       /* MXCSR */
#define QKVI_FPSTATE_DEFAULT 0x1F80u /* to nearest, all exceptions masked, FTZ and DAZ off */

static inline qkvi_fpstate qkvi_fpstate_get(void) { return _mm_getcsr(); }
static inline void qkvi_fpstate_set(qkvi_fpstate state) { _mm_setcsr(state); }

#elif defined(__aarch64__)

typedef uint64_t qkvi_fpstate; /* FPCR, modes and traps, and above it FPSR, flags */
#define QKVI_FPSTATE_DEFAULT 0u /* to nearest, no traps, FZ and FZ16 off, NaNs keep their payload */

static inline qkvi_fpstate qkvi_fpstate_get(void) {
    uint64_t modes, flags;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    return (modes & UINT32_MAX) | flags << 32;
}
static inline void qkvi_fpstate_set(qkvi_fpstate state) {
    const uint64_t modes = state & UINT32_MAX, flags = state >> 32;
    __asm__ volatile("msr fpcr, %0" : : "r"(modes));
    __asm__ volatile("msr fpsr, %0" : : "r"(flags));
}

#else
/* Elsewhere the host has to leave the modes as they are. */
typedef uint32_t qkvi_fpstate;
#define QKVI_FPSTATE_DEFAULT 0u

static inline qkvi_fpstate qkvi_fpstate_get(void) { return QKVI_FPSTATE_DEFAULT; }
static inline void qkvi_fpstate_set(qkvi_fpstate state) { (void)state; }
#endif

/*
 * The fences keep the compiler from moving loads and stores of results over the change; calls do
 * the rest.
 */
static inline qkvi_fpstate qkvi_fpstate_enter(void) {
    const qkvi_fpstate saved = qkvi_fpstate_get();
    qkvi_fpstate_set(QKVI_FPSTATE_DEFAULT);
    __asm__ volatile("" ::: "memory");
    return saved;
}
static inline void qkvi_fpstate_leave(qkvi_fpstate saved) {
    __asm__ volatile("" ::: "memory");
    qkvi_fpstate_set(saved);
}

#endif
