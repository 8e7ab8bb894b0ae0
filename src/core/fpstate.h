/*
 * The floating-point environment. Results must not depend on what the host has set: flush-to-zero,
 * denormals-are-zero and rounding modes are common in audio and game code, and new threads inherit
 * them. So whoever computes does
 *
 *     const uint32_t saved = qkvi_fpstate_enter();
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

enum { QKVI_MXCSR_DEFAULT = 0x1F80 }; /* round to nearest, all exceptions masked, FTZ and DAZ off */

/*
 * The fences keep the compiler from moving loads and stores of results over the change; calls do
 * the rest.
 */
static inline uint32_t qkvi_fpstate_enter(void) {
    const uint32_t saved = _mm_getcsr();
    _mm_setcsr(QKVI_MXCSR_DEFAULT);
    __asm__ volatile("" ::: "memory");
    return saved;
}
static inline void qkvi_fpstate_leave(uint32_t saved) {
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(saved);
}
#else
/* not yet on other processors */

static inline uint32_t qkvi_fpstate_enter(void) { return 0; }
static inline void qkvi_fpstate_leave(uint32_t saved) { (void)saved; }
#endif

#endif
