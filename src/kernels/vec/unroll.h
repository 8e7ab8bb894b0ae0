/*
 * Unrolling, in the words of either compiler. A register tile is an array of vectors: it lives in
 * registers only if every index is a constant early on, so its loops must vanish. clang 14 takes
 * "GCC unroll" for a hint to a later pass, which leaves the tile in memory. Where the loops are no
 * business of the compiler's (scalar code), the includer says V_UNROLL_HINT. A loop with a
 * condition in it is left as it is by clang (V_UNROLL_BRANCHED): unrolled, it would move sums to
 * the stack.
 */
#ifndef QKVI_VEC_UNROLL_H
#define QKVI_VEC_UNROLL_H

#define V_PRAGMA(words) _Pragma(#words)

#ifdef __clang__
#define V_UNROLL_BRANCHED(n)
#else
#define V_UNROLL_BRANCHED(n) V_PRAGMA(GCC unroll n)
#endif

#if defined(__clang__) && defined(V_UNROLL_HINT) /* it would warn of each that it leaves alone */
#define V_UNROLL(n)
#define V_UNROLL_BY(n)
#elif defined(__clang__)
#define V_UNROLL(n)    V_PRAGMA(clang loop unroll(full))    /* a loop of n turns at most */
#define V_UNROLL_BY(n) V_PRAGMA(clang loop unroll_count(n)) /* n turns at a time */
#else
#define V_UNROLL(n)    V_PRAGMA(GCC unroll n)
#define V_UNROLL_BY(n) V_PRAGMA(GCC unroll n)
#endif

#endif
