/*
 * Sixteen lanes as four vectors of 128 bits, x.a to x.d: what vec_neon.h and vec_wasm.h share.
 * The includer defines V_INLINE, and vf as a struct of four.
 */
#ifndef QKVI_VEC_QUARTERS_H
#define QKVI_VEC_QUARTERS_H

#define V_UNARY(type, name, from, op)                                                              \
    V_INLINE type name(from x) { return (type){ op(x.a), op(x.b), op(x.c), op(x.d) }; }
#define V_BINARY(type, name, from, op)                                                             \
    V_INLINE type name(from x, from y) {                                                           \
        return (type){ op(x.a, y.a), op(x.b, y.b), op(x.c, y.c), op(x.d, y.d) };                   \
    }
#define V_TERNARY(name, op)                                                                        \
    V_INLINE vf name(vf x, vf y, vf z) {                                                           \
        return (vf){ op(x.a, y.a, z.a), op(x.b, y.b, z.b), op(x.c, y.c, z.c), op(x.d, y.d, z.d) }; \
    }

/* The first n lanes of a 16-bit type, by its vf_loadu_ and vf_storeu_. */
#define V_HALF_N(type)                                                                             \
    V_INLINE vf vf_load_##type##_n(const uint16_t *p, int n) {                                     \
        uint16_t all[16] = { 0 };                                                                  \
        for (int e = 0; e < n; e++) all[e] = p[e];                                                 \
        return vf_loadu_##type(all);                                                               \
    }                                                                                              \
    V_INLINE void vf_store_##type##_n(uint16_t *p, vf x, int n) {                                  \
        uint16_t all[16];                                                                          \
        vf_storeu_##type(all, x);                                                                  \
        for (int e = 0; e < n; e++) p[e] = all[e];                                                 \
    }

#endif
