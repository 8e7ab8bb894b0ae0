/*
 * What comes next: memory that the same call will read or write soon, announced to the processor a
 * cache line at a time while it computes something else. Three rules, which
 * tests/attn/test_attention_announced.c holds:
 *
 *   - what is announced will be read or written by the same call;
 *   - each line at most once, spread over the steps of the products that go on meanwhile (two
 *     exceptions: docs/kernels.md);
 *   - nothing else is. In a page that nothing has touched a line cannot be fetched, so that the
 *     processor walks the page tables each time: 132 cycles on a Zen 1, 1.6 for any other line.
 *
 * Lines lie in stretches of as many lines each: in one where memory is dense, in one for each of
 * the lines of a row where rows lie apart.
 */
#ifndef QKVI_KERNELS_AHEAD_H
#define QKVI_KERNELS_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

enum { QKVI_LINE = 64 }; /* bytes */

typedef struct qkvi_ahead {
    const char *at; /* the next line */
    int64_t left;   /* lines of its stretch, from it on; 0: none */
    int64_t step;   /* bytes from one to the next */
    int64_t more;   /* stretches after it, */
    int64_t lines;  /* of so many lines each, */
    int64_t jump;   /* and bytes from the end of one (at, when none is left) to the next */
    int64_t every;  /* steps of a product from a line to the next, at least 1 */
} qkvi_ahead;

/* The lines that begin in a stretch of bytes: those of two that do not overlap differ. */
static inline qkvi_ahead qkvi_ahead_bytes(const void *p, int64_t bytes) {
    const int64_t skip = (int64_t)(-(uintptr_t)p % QKVI_LINE);
    const int64_t lines = bytes > skip ? (bytes - skip + QKVI_LINE - 1) / QKVI_LINE : 0;
    return (qkvi_ahead){
        .at = (const char *)p + skip, .left = lines, .step = QKVI_LINE, .lines = lines
    };
}

/* n rows of so many bytes, stride bytes apart: one stretch, unless a line may lie between them. */
static inline qkvi_ahead qkvi_ahead_rows(const void *p, int64_t n, int64_t stride, int64_t bytes) {
    const int64_t lines = (bytes + QKVI_LINE - 1) / QKVI_LINE;
    if (n <= 0 || bytes <= 0) return (qkvi_ahead){ .at = p };
    if (n == 1 || stride < bytes + QKVI_LINE) return qkvi_ahead_bytes(p, (n - 1) * stride + bytes);
    return (qkvi_ahead){ .at = p,
                         .left = n,
                         .step = stride,
                         .more = lines - 1,
                         .lines = n,
                         .jump = QKVI_LINE - n * stride };
}

static inline int64_t qkvi_ahead_left(const qkvi_ahead *x) { return x->left + x->more * x->lines; }

/* So that so many lines are spread over so many steps of products: one a step at most. */
static inline void qkvi_ahead_spread(qkvi_ahead *x, int64_t lines, int64_t steps) {
    x->every = lines > 0 && steps > lines ? steps / lines : 1;
}

/* At the end of a stretch, on to the next, if there is one. */
static inline void qkvi_ahead_turn(qkvi_ahead *x) {
    if (x->left > 0 || x->more == 0) return;
    x->at += x->jump;
    x->left = x->lines;
    x->more--;
}

/* Outside of kernels. QKVI_ANNOUNCED: a test's function, which is told of all lines. */
#ifdef QKVI_ANNOUNCED
void QKVI_ANNOUNCED(const void *p);
static inline void qkvi_announce(const void *p) { QKVI_ANNOUNCED(p); }
#else
static inline void qkvi_announce(const void *p) { __builtin_prefetch(p); }
#endif

#endif
