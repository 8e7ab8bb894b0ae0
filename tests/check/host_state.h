/*
 * What a host may have set in a processor, and must find again after a call: floating-point modes
 * and, on x86, vector registers whose upper halves are not in use (they would slow down SSE code).
 */
#ifndef QKV_TESTS_HOST_STATE_H
#define QKV_TESTS_HOST_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum { HOST_MODES = 8 }; /* those without traps */
/* Number n of fpmodes.h. */
uint64_t host_modes_of(int n);
uint64_t host_modes(void);
void host_modes_set(uint64_t modes);

bool upper_halves_in_use(void);

#endif
