/**
 * Limits of time that do not depend on how fast the machine is.
 *
 * A limit is written in reference seconds, CPU seconds of the reference processor (pace.c). It is
 * multiplied by the pace of this machine, which pace.c measures before the tests of a run and
 * bounded.c passes to each of them in QKV_TEST_PACE. Limits are many times what the work takes:
 * they are to find quadratic and endless loops. They are CPU time, because the wall clock also
 * counts other work; bounded.c finds tests that hang.
 */
#ifndef QKV_TESTS_LIMITS_H
#define QKV_TESTS_LIMITS_H

#include <stdlib.h>

/** The pace of a test that is run by hand, without QKV_TEST_PACE. */
#define LIMIT_PACE_UNKNOWN 4.0

/** The CPU seconds on this machine for a limit in reference seconds. */
static inline double limit_seconds(double reference_seconds) {
    const char *const pace = getenv("QKV_TEST_PACE");
    const double measured = pace ? strtod(pace, NULL) : 0;
    return reference_seconds * (measured > 0 ? measured : LIMIT_PACE_UNKNOWN);
}

#endif
