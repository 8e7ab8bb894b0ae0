/* See host_state.h. */
#include "check/host_state.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>

uint64_t host_modes_of(int n) {
    /* each without and with flush-to-zero and denormals-are-zero; exceptions are masked */
    static const unsigned modes[HOST_MODES] = { 0x1F80, 0x3F80, 0x5F80, 0x7F80,
                                                0x9FC0, 0xBFC0, 0xDFC0, 0xFFC0 };
    return modes[n];
}

uint64_t host_modes(void) { return _mm_getcsr(); }
void host_modes_set(uint64_t modes) { _mm_setcsr((unsigned)modes); }

/*
 * XGETBV with ECX = 1 tells which register state is not at its initial value; component 2 is the
 * upper halves of ymm0 to ymm15.
 */
bool upper_halves_in_use(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    if (!__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a >> 2 & 1)) return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    return a >> 2 & 1;
}

#elif defined(__aarch64__)

/* FPCR: rounding in bits 23:22 (1 is up, 2 down), flush-to-zero in bit 24. */
uint64_t host_modes_of(int n) {
    static const uint64_t rounding[] = { 0, 2, 1, 3 };
    return rounding[n % 4] << 22 | (uint64_t)(n / 4) << 24;
}

uint64_t host_modes(void) {
    uint64_t modes;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
    return modes;
}

void host_modes_set(uint64_t modes) { __asm__ volatile("msr fpcr, %0" : : "r"(modes)); }
bool upper_halves_in_use(void) { return false; }

#else
uint64_t host_modes_of(int n) { return (void)n, 0; }
uint64_t host_modes(void) { return 0; }
void host_modes_set(uint64_t modes) { (void)modes; }
bool upper_halves_in_use(void) { return false; }
#endif
