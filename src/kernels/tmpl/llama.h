/*
 * What the graph of Llama has besides the layers of BERT: RMSNorm (Zhang and Sennrich 2019), rotary
 * positions by halves (Su et al. 2021), soft caps (Gemma 2). See kernels/layer.h for what each does
 * and docs/numerics.md, section Layers, for the order of operations.
 */
#ifndef QKVI_TMPL_LLAMA_H
#define QKVI_TMPL_LLAMA_H

#include <math.h>

#include "kernels/layer.h"
#include "kernels/tmpl/row.h"

/* ---- RMSNorm ---- */

/* a times what the row is multiplied with: gamma, or 1 + gamma, whose sum is not rounded. */
V_INLINE vf rms_gain(vf a, vf gamma, int from_one) {
    return from_one ? vf_fma(a, gamma, a) : vf_mul(a, gamma);
}

static void rms_forward_row(int64_t n, int from_one, const float *gamma, float eps, const float *x,
                            float *y, float *stats) {
    row_sums sum = row_sums_zero();
    ROW_EACH(n) {
        const vf a = row_load(x + j, left);
        sum = row_sums_fma(sum, a, a);
    }
    const float rstd = 1.0f / sqrtf(row_sums_join(sum) / (float)n + eps);
    ROW_EACH(n) {
        const vf normal = vf_mul(row_load(x + j, left), vf_set1(rstd));
        row_store(y + j, rms_gain(normal, row_load(gamma + j, left), from_one), left);
    }
    if (!stats) return;
    stats[0] = 0;
    stats[1] = rstd;
}

static void rms_forward(int64_t n_rows, int64_t n, int from_one, const float *gamma, float eps,
                        const float *x, float *y, float *stats) {
    for (int64_t r = 0; r < n_rows; r++)
        rms_forward_row(n, from_one, gamma, eps, x + r * n, y + r * n,
                        stats ? stats + 2 * r : NULL);
}

/*
 * With x̂ = x rstd and g = d_y gamma:
 *     d_x = rstd (g - x̂ mean(g x̂))      d_gamma += d_y x̂
 */
static void rms_backward_row(int64_t n, int from_one, const float *x, float rstd_of,
                             const float *gamma, const float *d_y, float *d_x, float *d_gamma) {
    const vf rstd = vf_set1(rstd_of);
    row_sums sum = row_sums_zero();
    ROW_EACH(n) { /* y = x̂ gamma */
        const vf dy = row_load(d_y + j, left), normal = vf_mul(row_load(x + j, left), rstd);
        sum = row_sums_fma(sum, rms_gain(dy, row_load(gamma + j, left), from_one), normal);
        row_store(d_gamma + j, vf_fma(dy, normal, row_load(d_gamma + j, left)), left);
    }
    const vf mean = vf_set1(row_sums_join(sum) / (float)n);
    ROW_EACH(n) { /* x̂ = x rstd */
        const vf normal = vf_mul(row_load(x + j, left), rstd);
        const vf g = rms_gain(row_load(d_y + j, left), row_load(gamma + j, left), from_one);
        row_store(d_x + j, vf_mul(vf_fnma(normal, mean, g), rstd), left);
    }
}

static void rms_backward(int64_t n_rows, int64_t n, int from_one, const float *x,
                         const float *stats, const float *gamma, const float *d_y, float *d_x,
                         float *d_gamma) {
    for (int64_t r = 0; r < n_rows; r++)
        rms_backward_row(n, from_one, x + r * n, stats[2 * r + 1], gamma, d_y + r * n, d_x + r * n,
                         d_gamma);
}

/* ---- Rotary positions ---- */

static void rotate_head(int64_t half, vf sign, const float *turns, float *x) {
    ROW_EACH(half) {
        const vf c = row_load(turns + j, left);
        const vf s = vf_mul(sign, row_load(turns + half + j, left));
        const vf a = row_load(x + j, left), b = row_load(x + half + j, left);
        row_store(x + j, vf_fms(c, a, vf_mul(s, b)), left);
        row_store(x + half + j, vf_fma(c, b, vf_mul(s, a)), left);
    }
}

static void rotary_rotate(int64_t n_rows, int64_t n_heads, int64_t n, int back, const float *turns,
                          float *x) {
    const vf sign = vf_set1(back ? -1.0f : 1.0f);
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t h = 0; h < n_heads; h++)
            rotate_head(n / 2, sign, turns + r * n, x + (r * n_heads + h) * n);
}

/* ---- Soft caps ---- */

static void soft_cap_forward(int64_t n, float cap, float *x) {
    const vf c = vf_set1(cap);
    ROW_EACH(n) row_store(x + j, vf_mul(c, vf_tanh(vf_div(row_load(x + j, left), c))), left);
}

static void soft_cap_backward(int64_t n, float cap, const float *y, float *d) {
    const vf c = vf_set1(cap);
    ROW_EACH(n) {
        const vf t = vf_div(row_load(y + j, left), c);
        row_store(d + j, vf_mul(row_load(d + j, left), vf_fnma(t, t, vf_set1(1.0f))), left);
    }
}

#endif
