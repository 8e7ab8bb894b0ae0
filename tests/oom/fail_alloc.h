/*
 * Memory that runs out on demand. This program's malloc and its sisters stand before those of the C
 * library (or of AddressSanitizer, which calls its own __interceptor_malloc), so that every library
 * in the process asks here. The n-th request after fail_alloc_arm gets NULL, or every one from the
 * n-th on; blocks that are not freed are counted.
 *
 * Requests on behalf of some shared libraries are always granted, as if the failure were only ever
 * ours or that of a library that reports it. The list, with the reasons, is in fail_alloc.c.
 */
#ifndef OOM_FAIL_ALLOC_H
#define OOM_FAIL_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* 0 with a C library whose malloc cannot be replaced: nothing fails, nothing is counted. */
extern const bool fail_alloc_works;

/* Call once, when the libraries are loaded. */
void fail_alloc_start(void);

/*
 * Requests of this thread are numbered from 0 now; that of number n fails, and all after it if
 * from_on. pango has threads of its own, whose requests come in any order.
 */
void fail_alloc_arm(int64_t n, bool from_on);

/*
 * No request fails any more. *n_requests (nullable): how many there were. Returns how many failed.
 */
int64_t fail_alloc_disarm(int64_t *n_requests);

/* Prints the calls that led to the first failure, for addr2line. */
void fail_alloc_say_where(void);

/* Blocks that are not freed. */
int64_t fail_alloc_live(void);

#endif
