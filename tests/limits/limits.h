/**
 * Limits of time that do not depend on how fast the machine is.
 *
 * A limit is written in reference seconds: seconds of CPU of the reference processor (pace.c).
 * Elsewhere it is that many times the pace, which pace.c measures before the tests of a run and
 * bounded.c hands to each of them in QKV_TEST_PACE. Limits are there to catch what is of another
 * order, quadratic or endless, so they are many times what the work takes; and they are of CPU,
 * because seconds by the clock also pass while others compute. What waits for ever is found by
 * bounded.c.
 */
#ifndef QKV_TESTS_LIMITS_H
#define QKV_TESTS_LIMITS_H

#include <stdlib.h>

/** Of a test that is run by hand, which is told no pace. */
#define LIMIT_PACE_UNKNOWN 4.0

/** Seconds of CPU here, for a limit in reference seconds. */
static inline double limit_seconds(double reference_seconds) {
    const char *const pace = getenv("QKV_TEST_PACE");
    const double measured = pace ? strtod(pace, NULL) : 0;
    return reference_seconds * (measured > 0 ? measured : LIMIT_PACE_UNKNOWN);
}

#endif
