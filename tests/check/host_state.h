/*
 * The state of the processor that a caller has, and that a call must not change: floating-point
 * modes and, on x86, unused upper halves of vector registers (in use, they slow down SSE code).
 */
#ifndef QKV_TESTS_HOST_STATE_H
#define QKV_TESTS_HOST_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum { HOST_MODES = 8 }; /* the modes without traps */
/* Mode n of fpmodes.h. */
uint64_t host_modes_of(int n);
uint64_t host_modes(void);
void host_modes_set(uint64_t modes);

bool upper_halves_in_use(void);

#endif
