/*
 * Allocations that fail on demand. malloc, calloc and so on of this program replace those of the C
 * library (and call those of AddressSanitizer, __interceptor_malloc, if it is there) for all
 * libraries of the process. The n-th request after fail_alloc_arm gets NULL, or every one from the
 * n-th on; blocks that are not freed are counted.
 *
 * Requests by some shared libraries, which do not report failures, never fail. The list, with the
 * reasons, is in fail_alloc.c.
 */
#ifndef OOM_FAIL_ALLOC_H
#define OOM_FAIL_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* False with a C library whose malloc cannot be replaced: nothing fails, nothing is counted. */
extern const bool fail_alloc_works;

/* To be called once, after all libraries are loaded. */
void fail_alloc_start(void);

/*
 * Starts to count the requests of this thread from 0; request n fails, with from_on all after it,
 * too. (Other threads are not counted: those of pango make requests in any order.)
 */
void fail_alloc_arm(int64_t n, bool from_on);

/*
 * Ends the failures. *n_requests (nullable): how many requests there were. Returns how many failed.
 */
int64_t fail_alloc_disarm(int64_t *n_requests);

/* Prints the addresses of the stack at the first failure, for addr2line. */
void fail_alloc_say_where(void);

/* The number of blocks that are not freed. */
int64_t fail_alloc_live(void);

#endif
