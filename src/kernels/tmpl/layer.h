/*
 * Row kernels of the layers, one body for every instruction set: see kernels/layer.h for what each
 * does and docs/numerics.md, section Layers, for the order of operations.
 * Activations are in act.h, RMSNorm, rotation and soft caps in llama.h, how a row is walked and
 * summed in row.h.
 */
#ifndef QKVI_TMPL_LAYER_H
#define QKVI_TMPL_LAYER_H

#include <math.h>

#include "kernels/layer.h"
#include "kernels/tmpl/act.h"
#include "kernels/tmpl/dropout.h"
#include "kernels/tmpl/llama.h"
#include "kernels/tmpl/row.h"

/* ---- sums ---- */

static void layer_add(int64_t n, const float *x, float *y) {
    ROW_EACH(n) row_store(y + j, vf_add(row_load(y + j, left), row_load(x + j, left)), left);
}

static void layer_mul(int64_t n, const float *x, float *y) {
    ROW_EACH(n) row_store(y + j, vf_mul(row_load(y + j, left), row_load(x + j, left)), left);
}

static void layer_add3(int64_t n, float scale, const float *a, const float *b, const float *c,
                       float *y) {
    ROW_EACH(n) {
        const vf ab = vf_fma(vf_set1(scale), row_load(a + j, left), row_load(b + j, left));
        row_store(y + j, vf_add(ab, row_load(c + j, left)), left);
    }
}

static float layer_sum(int64_t n, const float *x) {
    row_sums sum = row_sums_zero();
    ROW_EACH(n) sum = row_sums_add(sum, row_load(x + j, left));
    return row_sums_join(sum);
}

static float layer_sum_squares(int64_t n, const float *x) {
    row_sums sum = row_sums_zero();
    ROW_EACH(n) {
        const vf a = row_load(x + j, left);
        sum = row_sums_fma(sum, a, a);
    }
    return row_sums_join(sum);
}

/*
 * Eight vectors of a row at a time: the chains of eight times 16 columns hide each other's latency.
 */
static void layer_sum_rows(int64_t n_rows, const int32_t *index, int64_t n, float scale,
                           const float *x, float *y) {
    const vf factor = vf_set1(scale);
    int64_t c = 0;
    for (; c + 128 <= n; c += 128) {
        vf sum[8];
        V_UNROLL(8) for (int e = 0; e < 8; e++) sum[e] = vf_set1(0.0f);
        for (int64_t r = 0; r < n_rows; r++) {
            const float *row = x + (index ? index[r] : r) * n + c;
            V_UNROLL(8) for (int e = 0; e < 8; e++) sum[e] = vf_add(sum[e], vf_loadu(row + 16 * e));
        }
        V_UNROLL(8)
        for (int e = 0; e < 8; e++)
            vf_storeu(y + c + 16 * e, vf_fma(factor, sum[e], vf_loadu(y + c + 16 * e)));
    }
    for (int64_t left = n - c; left > 0; c += 16, left -= 16) {
        vf sum = vf_set1(0.0f);
        for (int64_t r = 0; r < n_rows; r++)
            sum = vf_add(sum, row_load(x + (index ? index[r] : r) * n + c, left));
        row_store(y + c, vf_fma(factor, sum, row_load(y + c, left)), left);
    }
}

/* ---- dropout ---- */

V_INLINE void dropout_16(vm kept, vf factor, float *x, int64_t left) {
    const vf scaled = vf_mul(row_load(x, left), factor);
    row_store(x, vf_select(kept, scaled, vf_set1(0.0f)), left);
}

static void layer_dropout(int64_t n_rows, int64_t n, const qkvi_dropout *d, float *x) {
    const vf factor = vf_set1(d->factor);
    for (int64_t r = 0; r < n_rows; r++, x += n)
        for (int64_t j = 0, left = n; left > 0; j += 32, left -= 32) {
            vm kept[2];
            dropout_keeps(d, r, j, kept);
            dropout_16(kept[0], factor, x + j, left);
            if (left > 16) dropout_16(kept[1], factor, x + j + 16, left - 16);
        }
}

/* ---- layer normalization ---- */

static void norm_forward_row(int64_t n, const float *residual, const float *gamma,
                             const float *beta, float eps, float *s, float *y, float *stats) {
    row_sums sum = row_sums_zero();
    ROW_EACH(n) {
        vf a = row_load(s + j, left);
        if (residual) {
            a = vf_add(a, row_load(residual + j, left));
            row_store(s + j, a, left);
        }
        sum = row_sums_add(sum, a);
    }
    const float mean = row_sums_join(sum) / (float)n;

    sum = row_sums_zero();
    ROW_EACH(n) {
        const vf d = row_keep(vf_sub(row_load(s + j, left), vf_set1(mean)), left);
        sum = row_sums_fma(sum, d, d);
    }
    const float rstd = 1.0f / sqrtf(row_sums_join(sum) / (float)n + eps);

    ROW_EACH(n) {
        const vf d = vf_sub(row_load(s + j, left), vf_set1(mean));
        const vf normal = vf_mul(d, vf_set1(rstd));
        const vf shift = beta ? row_load(beta + j, left) : vf_set1(0.0f);
        row_store(y + j, vf_fma(normal, row_load(gamma + j, left), shift), left);
    }
    stats[0] = mean;
    stats[1] = rstd;
}

static void layer_norm_forward(int64_t n_rows, int64_t n, const float *residual, const float *gamma,
                               const float *beta, float eps, float *s, float *y, float *stats) {
    for (int64_t r = 0; r < n_rows; r++)
        norm_forward_row(n, residual ? residual + r * n : NULL, gamma, beta, eps, s + r * n,
                         y + r * n, stats + 2 * r);
}

/*
 * With x̂ = (s - mu) rstd and g = d_y gamma:
 *     d_s = rstd (g - mean(g) - x̂ mean(g x̂))      d_gamma += d_y x̂      d_beta += d_y
 */
static void norm_backward_row(int64_t n, const float *s, const float *stats, const float *gamma,
                              const float *d_y, float *d_s, float *d_gamma, float *d_beta) {
    const vf mean = vf_set1(stats[0]), rstd = vf_set1(stats[1]);
    row_sums sum_g = row_sums_zero(), sum_gx = row_sums_zero();
    ROW_EACH(n) { /* y = x̂ gamma + beta */
        const vf dy = row_load(d_y + j, left);
        const vf x = vf_mul(vf_sub(row_load(s + j, left), mean), rstd);
        const vf g = vf_mul(dy, row_load(gamma + j, left));
        sum_g = row_sums_add(sum_g, g);
        sum_gx = row_sums_fma(sum_gx, g, x);
        row_store(d_gamma + j, vf_fma(dy, x, row_load(d_gamma + j, left)), left);
        row_store(d_beta + j, vf_add(dy, row_load(d_beta + j, left)), left);
    }
    const vf mean_g = vf_set1(row_sums_join(sum_g) / (float)n);
    const vf mean_gx = vf_set1(row_sums_join(sum_gx) / (float)n);
    ROW_EACH(n) { /* x̂ = (s - mu) rstd */
        const vf x = vf_mul(vf_sub(row_load(s + j, left), mean), rstd);
        const vf g = vf_mul(row_load(d_y + j, left), row_load(gamma + j, left));
        const vf centred = vf_fnma(x, mean_gx, vf_sub(g, mean_g));
        row_store(d_s + j, vf_mul(centred, rstd), left);
    }
}

static void layer_norm_backward(int64_t n_rows, int64_t n, const float *s, const float *stats,
                                const float *gamma, const float *d_y, float *d_s, float *d_gamma,
                                float *d_beta) {
    for (int64_t r = 0; r < n_rows; r++)
        norm_backward_row(n, s + r * n, stats + 2 * r, gamma, d_y + r * n, d_s + r * n, d_gamma,
                          d_beta);
}

/* ---- softmax ---- */

#define LOG2_E 0x1.715476p+0f
#define LN_2   0x1.62e430p-1f

V_INLINE float row_max(int64_t n, const float *x) {
    float lanes[16], top = x[0];
    vf max = vf_set1(x[0]);
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) max = vf_max(max, vf_loadu(x + j));
    vf_storeu(lanes, max);
    for (int e = 0; e < 16; e++) top = lanes[e] > top ? lanes[e] : top;
    for (; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

V_INLINE float log2_of(float x) {
    float lanes[16];
    vf_storeu(lanes, vf_log2(vf_set1(x)));
    return lanes[0];
}

static void layer_softmax_forward(int64_t n, float *x, float *sum, float *lse) {
    const float top = row_max(n, x) * LOG2_E;
    row_sums partial = row_sums_zero();
    ROW_EACH(n) {
        const vf a = row_load(x + j, left);
        const vf e = row_keep(vf_exp2(vf_fma(a, vf_set1(LOG2_E), vf_set1(-top))), left);
        partial = row_sums_add(partial, e);
        row_store(x + j, e, left);
    }
    *sum = row_sums_join(partial);
    *lse = (top + log2_of(*sum)) * LN_2;
}

static void layer_softmax_backward(int64_t n, int64_t target, float on, float off, float factor,
                                   float sum, float *e) {
    const float at_target = e[target] / sum;
    const vf scale = vf_set1(factor / sum), less = vf_set1(factor * off);
    ROW_EACH(n) row_store(e + j, vf_fms(row_load(e + j, left), scale, less), left);
    e[target] = factor * (at_target - on);
}

static void layer_weights(int64_t n, float scale, float lse, float *s) {
    const vf factor = vf_set1(scale * LOG2_E), shift = vf_set1(-(lse * LOG2_E));
    ROW_EACH(n) row_store(s + j, vf_exp2(vf_fma(row_load(s + j, left), factor, shift)), left);
}

/* ---- AdamW ---- */

/*
 *     g = grad_scale d      m = beta1 m + (1 - beta1) g      v = beta2 v + (1 - beta2) g²
 *     p = decay p - rate m / (root_scale √v + eps)
 */
static void layer_adamw(int64_t n, const qkvi_adamw_step *step, const float *g, float *p, float *m,
                        float *v) {
    const vf beta1 = vf_set1(step->beta1), beta2 = vf_set1(step->beta2);
    const vf rest1 = vf_set1(step->one_minus_beta1), rest2 = vf_set1(step->one_minus_beta2);
    const vf decay = vf_set1(step->decay), rate = vf_set1(step->rate);
    const vf root_scale = vf_set1(step->root_scale), eps = vf_set1(step->eps);
    ROW_EACH(n) {
        const vf d = vf_mul(row_load(g + j, left), vf_set1(step->grad_scale));
        const vf mean = vf_fma(beta1, row_load(m + j, left), vf_mul(rest1, d));
        const vf square = vf_fma(beta2, row_load(v + j, left), vf_mul(rest2, vf_mul(d, d)));
        const vf root = vf_fma(vf_sqrt(square), root_scale, eps);
        const vf kept = vf_mul(decay, row_load(p + j, left));
        row_store(m + j, mean, left);
        row_store(v + j, square, left);
        row_store(p + j, vf_fnma(rate, vf_div(mean, root), kept), left);
    }
}

/* ---- the table's part ---- */

#define LAYER_KERNELS                                                                              \
    {                                                                                              \
        .add = layer_add, .add3 = layer_add3, .sum = layer_sum, .dropout = layer_dropout,          \
        .sum_squares = layer_sum_squares, .sum_rows = layer_sum_rows, .mul = layer_mul,            \
        .norm_forward = layer_norm_forward, .norm_backward = layer_norm_backward,                  \
        .rms_forward = rms_forward, .rms_backward = rms_backward, .rotate = rotary_rotate,         \
        .soft_cap = soft_cap_forward, .soft_cap_backward = soft_cap_backward, ACT_KERNELS,         \
        .tanh_forward = act_tanh_forward, .tanh_backward = layer_tanh_backward,                    \
        .softmax_forward = layer_softmax_forward, .softmax_backward = layer_softmax_backward,      \
        .weights = layer_weights, .adamw = layer_adamw,                                            \
    }

#endif
