/* See host_state.h. */
#include "check/host_state.h"

#include "fpmodes.h"

uint64_t host_modes_of(int n) { return fpmode(n); }
uint64_t host_modes(void) { return qkvi_fpstate_get(); }
void host_modes_set(uint64_t modes) { qkvi_fpstate_set((qkvi_fpstate)modes); }

#if defined(__x86_64__)
#include <cpuid.h>

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

#else
bool upper_halves_in_use(void) { return false; }
#endif
