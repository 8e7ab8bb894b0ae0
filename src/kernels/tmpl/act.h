/*
 * Activations and their derivatives, elementwise: see kernels/layer.h for what each does and
 * docs/numerics.md, section Layers, for the order of operations.
 *
 * GELU in its tanh form is x σ(z), because (1 + tanh(z / 2)) / 2 = σ(z), the logistic function; so
 * it differs from SiLU, x σ(x), in z alone. 1 - σ is computed beside σ, without a subtraction, and
 * no exponential overflows: small values keep their relative accuracy.
 */
#ifndef QKVI_TMPL_ACT_H
#define QKVI_TMPL_ACT_H

#include "kernels/layer.h"
#include "kernels/tmpl/row.h"

#define SQRT_HALF     0x1.6a09e6p-1f /* 1/√2 */
#define HALF_LOG2_E   0x1.715476p-1f /* log2(e)/2 */
#define INV_SQRT_2_PI 0x1.988454p-2f /* 1/√(2π) */
#define MINUS_LOG2_E  -0x1.715476p+0f
#define GELU_Z1       0x1.988454p+0f /* z = x (Z1 + Z3 x²): 2√(2/π) */
#define GELU_Z3       0x1.2444f2p-4f /* 0.044715 times that */
#define GELU_3_Z3     0x1.b6676cp-3f
#define QUICK_Z       0x1.b3b646p+0f /* 1.702 */

/* ---- the normal distribution: GELU ---- */

/* Φ(x) = (1 + erf(x / √2)) / 2 */
V_INLINE vf normal_cdf(vf x) {
    return vf_fma(vf_erf(vf_mul(x, vf_set1(SQRT_HALF))), vf_set1(0.5f), vf_set1(0.5f));
}
/* φ(x) = exp(-x²/2) / √(2π) */
V_INLINE vf normal_pdf(vf x) {
    const vf square = vf_mul(x, x);
    return vf_mul(vf_exp2(vf_mul(square, vf_set1(-HALF_LOG2_E))), vf_set1(INV_SQRT_2_PI));
}

V_INLINE vf gelu_of(vf x) { return vf_mul(x, normal_cdf(x)); }
V_INLINE vf gelu_gradient(vf x, vf d_y) {
    return vf_mul(d_y, vf_fma(x, normal_pdf(x), normal_cdf(x)));
}

/* ---- the logistic distribution: GELU in its tanh form, SiLU, quick GELU ---- */

typedef struct logistic {
    vf at, rest; /* σ(z) and 1 - σ(z) = σ(-z) */
} logistic;

V_INLINE logistic logistic_of(vf z) {
    const vf e = vf_exp2(vf_mul(vf_abs(z), vf_set1(MINUS_LOG2_E))); /* exp(-|z|) */
    const vf more = vf_div(vf_set1(1.0f), vf_add(vf_set1(1.0f), e)), less = vf_mul(e, more);
    const vm below = vm_lt(z, vf_set1(0.0f));
    return (logistic){ vf_select(below, less, more), vf_select(below, more, less) };
}

/* x² up to 256: from there on σ is 0 or 1, and a factor that is finite keeps 0 what is 0. */
V_INLINE vf gelu_square(vf x) { return vf_min(vf_set1(256.0f), vf_mul(x, x)); }
V_INLINE vf gelu_z(vf x, vf square) {
    return vf_mul(x, vf_fma(square, vf_set1(GELU_Z3), vf_set1(GELU_Z1)));
}
/* d_y (σ + x σ (1 - σ) slope), slope the derivative of σ's argument */
V_INLINE vf logistic_gradient(vf x, logistic s, vf slope, vf d_y) {
    const vf bell = vf_mul(x, vf_mul(s.at, s.rest));
    return vf_mul(d_y, vf_fma(bell, slope, s.at));
}

V_INLINE vf gelu_tanh_of(vf x) { return vf_mul(x, logistic_of(gelu_z(x, gelu_square(x))).at); }
V_INLINE vf gelu_tanh_gradient(vf x, vf d_y) {
    const vf square = gelu_square(x);
    const vf slope = vf_fma(square, vf_set1(GELU_3_Z3), vf_set1(GELU_Z1));
    return logistic_gradient(x, logistic_of(gelu_z(x, square)), slope, d_y);
}

V_INLINE vf silu_of(vf x) { return vf_mul(x, logistic_of(x).at); }
V_INLINE vf silu_gradient(vf x, vf d_y) {
    return logistic_gradient(x, logistic_of(x), vf_set1(1.0f), d_y);
}

V_INLINE vf quick_gelu_of(vf x) { return vf_mul(x, logistic_of(vf_mul(x, vf_set1(QUICK_Z))).at); }
V_INLINE vf quick_gelu_gradient(vf x, vf d_y) {
    const vf z = vf_mul(x, vf_set1(QUICK_Z));
    return logistic_gradient(x, logistic_of(z), vf_set1(QUICK_Z), d_y);
}

/* ---- tanh ---- */

V_INLINE vf tanh_of(vf x) { return vf_tanh(x); }
/* d_y (1 - y²) */
V_INLINE vf tanh_slope(vf y, vf d_y) { return vf_mul(d_y, vf_fnma(y, y, vf_set1(1.0f))); }
V_INLINE vf tanh_gradient(vf x, vf d_y) { return tanh_slope(vf_tanh(x), d_y); }

/* ---- ReLU ---- */

/* NaN stays. Both zeros become 0 by the sum: which of them a maximum is, clang does not keep. */
V_INLINE vf relu_of(vf x) { return vf_add(vf_max(vf_set1(0.0f), x), vf_set1(0.0f)); }
V_INLINE vf relu_gradient(vf x, vf d_y) {
    return vf_select(vm_le(x, vf_set1(0.0f)), vf_set1(0.0f), d_y);
}

/* ---- rows ---- */

#define ACT_ROWS(name)                                                                             \
    static void act_##name##_forward(int64_t n, const float *x, float *y) {                        \
        ROW_EACH(n) row_store(y + j, name##_of(row_load(x + j, left)), left);                      \
    }                                                                                              \
    static void act_##name##_backward(int64_t n, const float *x, const float *d_y, float *d_x) {   \
        ROW_EACH(n) {                                                                              \
            const vf d = name##_gradient(row_load(x + j, left), row_load(d_y + j, left));          \
            row_store(d_x + j, d, left);                                                           \
        }                                                                                          \
    }
ACT_ROWS(gelu)
ACT_ROWS(gelu_tanh)
ACT_ROWS(relu)
ACT_ROWS(silu)
ACT_ROWS(quick_gelu)
ACT_ROWS(tanh)

/* From y = tanh(x) itself, which poolers keep. */
static void layer_tanh_backward(int64_t n, const float *y, const float *d_y, float *d_x) {
    ROW_EACH(n) {
        const vf d = tanh_slope(row_load(y + j, left), row_load(d_y + j, left));
        row_store(d_x + j, d, left);
    }
}

#define ACT_EACH(pass)                                                                             \
    {                                                                                              \
        [QKVI_GELU] = act_gelu_##pass, [QKVI_GELU_TANH] = act_gelu_tanh_##pass,                    \
        [QKVI_RELU] = act_relu_##pass, [QKVI_SILU] = act_silu_##pass,                              \
        [QKVI_QUICK_GELU] = act_quick_gelu_##pass, [QKVI_TANH] = act_tanh_##pass,                  \
    }
#define ACT_KERNELS .act_forward = ACT_EACH(forward), .act_backward = ACT_EACH(backward)

#undef ACT_ROWS
#endif
