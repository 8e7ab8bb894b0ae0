/*
 * Elementary functions on 16 lanes, by polynomials of ours: no libm, so that every instruction set
 * has the same bits. Coefficients are weighted minimax fits in double, rounded to float;
 * docs/numerics.md has the errors measured.
 *
 * exp2: x = n + f with n the nearest integer, 2^f by degree 6, n added to the exponent. log2: x =
 * 2^e m, m in [√½, √2); f = m - 1; log2 m = f P(f), degree 9. erf, tanh: odd polynomials near 0;
 * beyond, 1 - erfc(a) with log2 erfc by a polynomial, and 1 - 2/(e^2a + 1).
 */
#ifndef QKVI_TMPL_VMATH_H
#define QKVI_TMPL_VMATH_H

/* 2^x for x < 128 (beyond: undefined). Exactly 0 below 2^-126 and for -inf; NaN stays NaN. */
V_INLINE vf vf_exp2_below_128(vf x) {
    const vf n = vf_round(x);
    const vf f = vf_sub(x, n);
    vf p = vf_set1(1.534580806e-04f);
    p = vf_fma(p, f, vf_set1(1.339993090e-03f));
    p = vf_fma(p, f, vf_set1(9.618489072e-03f));
    p = vf_fma(p, f, vf_set1(5.550328642e-02f));
    p = vf_fma(p, f, vf_set1(2.402264625e-01f));
    p = vf_fma(p, f, vf_set1(6.931471825e-01f));
    p = vf_fma(p, f, vf_set1(1.0f));
    return vf_scale_if(vm_nlt(x, vf_set1(-126.0f)), p, n);
}

/* The same for all x: 128 and more give +inf. */
V_INLINE vf vf_exp2(vf x) { return vf_exp2_below_128(vf_min(vf_set1(128.0f), x)); }

/* log2 x for normal x > 0; 0 and subnormals: -inf; +inf: +inf; negative and NaN: NaN. */
V_INLINE vf vf_log2(vf x) {
    const vi bits = vf_as_vi(x);
    const vi half = vi_set1(0x3f3504f3); /* √½ */
    const vi e = vi_sar(vi_sub(bits, half), 23);
    const vf m = vi_as_vf(vi_sub(bits, vi_shl(e, 23)));
    const vf f = vf_sub(m, vf_set1(1.0f));
    vf p = vf_set1(-1.099480614e-01f);
    p = vf_fma(p, f, vf_set1(1.861741394e-01f));
    p = vf_fma(p, f, vf_set1(-1.910629719e-01f));
    p = vf_fma(p, f, vf_set1(2.046007663e-01f));
    p = vf_fma(p, f, vf_set1(-2.396173924e-01f));
    p = vf_fma(p, f, vf_set1(2.885673940e-01f));
    p = vf_fma(p, f, vf_set1(-3.606966436e-01f));
    p = vf_fma(p, f, vf_set1(4.808982313e-01f));
    p = vf_fma(p, f, vf_set1(-7.213473320e-01f));
    p = vf_fma(p, f, vf_set1(1.442695022e+00f));
    vf y = vf_fma(p, f, vi_to_vf(e));
    y = vf_select(vm_lt(x, vf_set1(1.17549435e-38f)), vf_set1(-__builtin_inff()), y);
    y = vf_select(vm_nlt(x, vf_set1(0.0f)), y, vf_set1(__builtin_nanf("")));
    y = vf_select(vm_eq(x, vf_set1(__builtin_inff())), x, y);
    return vf_select(vm_ne(x, x), x, y);
}

V_INLINE vf vf_abs(vf x) { return vi_as_vf(vi_and(vf_as_vi(x), vi_set1(0x7fffffff))); }
V_INLINE vf vf_copysign(vf a, vf sign) {
    return vi_as_vf(vi_or(vf_as_vi(vf_abs(a)), vi_and(vf_as_vi(sign), vi_set1(INT32_MIN))));
}

/* erf x; NaN stays NaN. */
V_INLINE vf vf_erf(vf x) {
    const vf a = vf_min(vf_set1(4.0f), vf_abs(x)); /* erf 4 rounds to 1 */
    const vf u = vf_mul(a, a);
    vf s = vf_set1(7.853857824e-05f);
    s = vf_fma(s, u, vf_set1(-8.010192541e-04f));
    s = vf_fma(s, u, vf_set1(5.188327748e-03f));
    s = vf_fma(s, u, vf_set1(-2.685381100e-02f));
    s = vf_fma(s, u, vf_set1(1.128358543e-01f));
    s = vf_fma(s, u, vf_set1(-3.761262596e-01f));
    s = vf_fma(s, u, vf_set1(1.283791065e-01f)); /* 2/√π - 1: the 1 is added with the last fma */
    vf t = vf_set1(-3.016611117e-05f);
    t = vf_fma(t, a, vf_set1(6.236814079e-04f));
    t = vf_fma(t, a, vf_set1(-6.002371665e-03f));
    t = vf_fma(t, a, vf_set1(3.619937971e-02f));
    t = vf_fma(t, a, vf_set1(-1.561524272e-01f));
    t = vf_fma(t, a, vf_set1(-9.137837887e-01f));
    t = vf_fma(t, a, vf_set1(-1.629517078e+00f));
    t = vf_fma(t, a, vf_set1(2.460545511e-04f));
    const vf large = vf_copysign(vf_sub(vf_set1(1.0f), vf_exp2(t)), x);
    return vf_select(vm_lt(a, vf_set1(1.0f)), vf_fma(s, x, x), large);
}

/* tanh x; NaN stays NaN. */
V_INLINE vf vf_tanh(vf x) {
    const vf a = vf_min(vf_set1(10.0f), vf_abs(x)); /* tanh 10 rounds to 1 */
    const vf u = vf_mul(a, a);
    vf s = vf_set1(-5.659984890e-03f);
    s = vf_fma(s, u, vf_set1(2.059098333e-02f));
    s = vf_fma(s, u, vf_set1(-5.372106656e-02f));
    s = vf_fma(s, u, vf_set1(1.333112717e-01f));
    s = vf_fma(s, u, vf_set1(-3.333325982e-01f));
    const vf e = vf_exp2(vf_mul(a, vf_set1(2.885390082f))); /* e^2a */
    const vf large = vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), vf_add(e, vf_set1(1.0f))));
    const vf small = vf_fma(s, vf_mul(u, x), x);
    return vf_select(vm_lt(a, vf_set1(0.625f)), small, vf_copysign(large, x));
}

#endif
