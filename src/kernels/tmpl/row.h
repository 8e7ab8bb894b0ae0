/*
 * A row of any length, 16 elements at a time, and sums along it.
 *
 * A sum has 32 partial sums, index mod 32: two vectors, joined as 16 + 16 and then by the tree of
 * vf_sum. Lanes past the end of a row add a zero, which changes no partial sum but a -0 that
 * products made by underflow: it may become +0, on every instruction set alike. Elementwise results
 * do not depend on their lane at all.
 */
#ifndef QKVI_TMPL_ROW_H
#define QKVI_TMPL_ROW_H

/* 16 elements of which `left` > 0 are there: the rest read as 0 and are not written. */
V_INLINE vf row_load(const float *p, int64_t left) {
    return left >= 16 ? vf_loadu(p) : vf_load_n(p, (int)left);
}
V_INLINE void row_store(float *p, vf a, int64_t left) {
    if (left >= 16)
        vf_storeu(p, a);
    else
        vf_store_n(p, a, (int)left);
}
/* a, with zeros in the lanes past the end */
V_INLINE vf row_keep(vf a, int64_t left) {
    return left >= 16 ? a : vf_select(vm_of_bits((1u << left) - 1u), a, vf_set1(0.0f));
}

/* Every 16 elements of a row: j is the first, left what there is. */
#define ROW_EACH(n) for (int64_t j = 0, left = (n); left > 0; j += 16, left -= 16)

/* The 32 partial sums of a row: two vectors take turns. */
typedef struct row_sums {
    vf next, other;
} row_sums;

V_INLINE row_sums row_sums_zero(void) { return (row_sums){ vf_set1(0.0f), vf_set1(0.0f) }; }
V_INLINE row_sums row_sums_turn(row_sums s, vf sum) { return (row_sums){ s.other, sum }; }
V_INLINE row_sums row_sums_add(row_sums s, vf a) { return row_sums_turn(s, vf_add(s.next, a)); }
V_INLINE row_sums row_sums_fma(row_sums s, vf a, vf b) {
    return row_sums_turn(s, vf_fma(a, b, s.next));
}
V_INLINE float row_sums_join(row_sums s) { return vf_sum(vf_add(s.next, s.other)); }

#endif
