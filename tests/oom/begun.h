/*
 * Threads of our libraries that were made and may not have begun: under a sanitizer a new thread
 * asks the C library for its stack, which allocates and frees, at a time of its own.
 */
#ifndef QKV_TESTS_OOM_BEGUN_H
#define QKV_TESTS_OOM_BEGUN_H

/* Returns once all threads that were made run their own function. */
void oom_await_threads(void);

#endif
