/*
 * The caller's flag of a call that can be cancelled: another thread, or a signal handler, writes it
 * atomically.
 */
#ifndef QKVI_CORE_CANCEL_H
#define QKVI_CORE_CANCEL_H

/* NULL is never raised. */
static inline int qkvi_is_raised(const int *flag) {
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

#endif
