/*
 * Results of the scalar build against the oracle, within the bounds of docs/numerics.md.
 *
 * Forward: the bound of the operands, plus the rounding to o's type. Gradients: 4 times the largest
 * error of the textbook's f32 formulas, plus 16 epsilon of the largest value, plus the rounding.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "check/check.h"
#include "check/mask_gradient.h"
#include "check/rules.h"

static const double EPSILON = 0x1p-24;

/* ---- One number ------------------------------------------------------------------------------ */

static void within(check_report *report, int which, elem_type type, double ours, double exact,
                   double bound, const int64_t at[4]) {
    /*
     * f32 has its rounding in the bound; an infinity is right if the bound reaches beyond the range
     * of the type there.
     */
    const double end = exact + copysign(bound, ours);
    double rounding = 0;
    report->numbers++;
    if (isfinite(exact) && type != ELEMENT_F32) {
        if (isinf(ours) && element_rounded(type, end) == ours) return;
        rounding = element_ulp(type, fabs(exact) + bound) / 2;
    }
    const double error = fmax(fabs(ours - exact) - rounding, 0);
    bool good = isnan(exact) ? isnan(ours) : !isfinite(exact) ? !isfinite(ours) : isfinite(ours);
    if (exact == -INFINITY && which == BOUND_LSE) good = ours == -INFINITY;
    if (good && isfinite(exact)) {
        good = error <= bound;
        if (error > 0) report->fraction[which] = fmax(report->fraction[which], error / bound);
    }
    if (!good)
        check_failed(report,
                     "%s[%" PRId64 "][%" PRId64 "][%" PRId64 "][%" PRId64
                     "] = %.9g, exactly %.17g; error %.3g beyond rounding, bound %.3g",
                     check_bound_names[which], at[0], at[1], at[2], at[3], ours, exact, error,
                     bound);
}

/* Which of infinity and NaN a gradient is depends on what underflows: both are right. */
static double either_way(double got, double exact) {
    return !isfinite(exact) && !isfinite(got) ? got : exact;
}

/* ---- Forward --------------------------------------------------------------------------------- */

void compare_forward(const check_case *c, const outputs *x, check_report *report) {
    const qkv_attention_desc *d = &c->d;
    const oracle_inputs in = case_inputs(c);
    const elem_type type = element_of_o(d);
    oracle_forward f = oracle_forward_new(d);
    oracle_forward_run(d, &in, &f);
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t h = 0; h < d->n_heads; h++)
            for (int64_t i = 0; i < layout_queries(d, b); i++) {
                const int64_t n = (b * d->n_heads + h) * d->len_q + i;
                int64_t at[4] = { b, h, i, 0 };
                if (c->any_size && !f.has_bound[n]) continue;
                const int64_t o = layout_place(d, 'o', d->o_stride, b, h, i);
                const int64_t lse = layout_place(d, 'l', d->lse_stride, b, h, i);
                within(report, BOUND_LSE, ELEMENT_F32, element_get(x->lse.data, ELEMENT_F32, lse),
                       f.lse[n], f.lse_bound[n], at);
                for (; at[3] < d->head_dim_v; at[3]++)
                    within(report, BOUND_O, type, element_get(x->o.data, type, o + at[3]),
                           f.o[n * d->head_dim_v + at[3]], f.o_bound[n], at);
            }
    oracle_forward_free(&f);
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* The gradients of a call as dense arrays of n doubles, in the order of the bounds from d_q on. */
enum { GRADIENTS = BOUNDS - BOUND_D_Q };
typedef struct gradients {
    const double *x[GRADIENTS];
} gradients;

static gradients gradients_of(const oracle_backward *g) {
    return (gradients){ { g->d_q, g->d_k, g->d_v, g->d_sinks, g->d_mask_sum, g->d_distance } };
}

static void sizes_of(const check_case *c, int64_t n[GRADIENTS]) {
    for (int a = 0; a < 3; a++) {
        int64_t size[4];
        layout_shape(&c->d, "qkv"[a], size);
        n[a] = size[0] * size[1] * size[2] * size[3];
    }
    n[3] = c->d.flags & QKV_SET_SINKS ? c->d.n_heads : 0;
    n[4] = c->wants_d_mask ? mask_gradient_elems(c) : 0;
    n[5] = distance_gradient_elems(c);
}

/* The textbook's error, largest over its results; those that are not finite do not count. */
static double largest_error(const double *textbook, const double *exact, int64_t n) {
    double error = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(exact[i]) && isfinite(textbook[i]))
            error = fmax(error, fabs(textbook[i] - exact[i]));
    return error;
}

static double largest_value(const double *exact, int64_t n) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(exact[i])) largest = fmax(largest, fabs(exact[i]));
    return largest;
}

static void compare_rows(const check_case *c, char which, const outputs *x, const double *exact,
                         double bound, check_report *report) {
    const qkv_attention_desc *const d = &c->d;
    const int bound_of = which == 'q' ? BOUND_D_Q : which == 'k' ? BOUND_D_K : BOUND_D_V;
    const guarded *const g = outputs_at(x, bound_of);
    const int64_t *const stride = which == 'q'   ? c->d_q_stride
                                  : which == 'k' ? c->d_k_stride
                                                 : c->d_v_stride;
    const elem_type type = (elem_type)d->dtype;
    int64_t size[4];
    layout_shape(d, which, size);
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++) {
            const int64_t rows = which == 'q' ? layout_queries(d, b) : layout_rows(d, which, b);
            for (int64_t i = 0; i < rows; i++) {
                const int64_t from = layout_place(d, which, stride, b, h, i);
                const double *y = exact + ((b * size[1] + h) * size[2] + i) * size[3];
                int64_t at[4] = { b, h, i, 0 };
                for (; at[3] < size[3]; at[3]++) {
                    const double got = element_get(g->data, type, from + at[3]);
                    within(report, bound_of, type, got, either_way(got, y[at[3]]), bound, at);
                }
            }
        }
}

static void compare_sinks(const check_case *c, const outputs *x, const double *exact, double bound,
                          check_report *report) {
    for (int64_t h = 0; c->d.flags & QKV_SET_SINKS && h < c->d.n_heads; h++) {
        const int64_t at[4] = { 0, h, 0, 0 };
        const double got = element_get(x->d_sinks.data, ELEMENT_F32, h);
        within(report, BOUND_D_SINKS, ELEMENT_F32, got, either_way(got, exact[h]), bound, at);
    }
}

/* Each of n elements that there is, once: of d_mask, d_distance_bias. */
static void compare_bias(int which, const guarded *x, const double *exact, int64_t n, double bound,
                         check_report *report) {
    for (int64_t e = 0; e < n; e++) {
        const int64_t at[4] = { 0, 0, 0, e };
        const double got = element_get(x->data, ELEMENT_F32, e);
        if (!mask_gradient_gap(exact[e]))
            within(report, which, ELEMENT_F32, got, either_way(got, exact[e]), bound, at);
        else if (((const uint32_t *)x->data)[e] != UINT32_MAX)
            check_failed(report, "%s was written in a gap, at element %" PRId64,
                         check_bound_names[which], e);
    }
}

/*
 * 4 times the largest error of the textbook, plus 16 epsilon of the largest value, for each array.
 */
void compare_backward(const check_case *c, const outputs *x, check_report *report) {
    const qkv_attention_desc *const d = &c->d;
    oracle_inputs in = case_inputs(c);
    double bound[GRADIENTS] = { 0 };
    int64_t n[GRADIENTS];
    in.o = x->o.data;
    in.lse = x->lse.data;
    oracle_backward exact = oracle_backward_new(d), textbook = oracle_backward_new(d);
    oracle_backward_run(d, &in, &exact);
    mask_gradient_sum(c, &exact, false);
    distance_gradient_sum(c, &exact, false);
    sizes_of(c, n);
    for (int which = 0; which < ORACLE_TEXTBOOKS; which++) {
        oracle_textbook_f32(d, &in, which, &textbook);
        mask_gradient_sum(c, &textbook, true);
        distance_gradient_sum(c, &textbook, true);
        const gradients right = gradients_of(&exact), f32 = gradients_of(&textbook);
        for (int a = 0; a < GRADIENTS; a++)
            bound[a] = fmax(bound[a], 4 * largest_error(f32.x[a], right.x[a], n[a]));
    }
    const gradients right = gradients_of(&exact);
    for (int a = 0; a < GRADIENTS; a++)
        bound[a] += 16 * EPSILON * largest_value(right.x[a], n[a]) + exact.flushed;
    for (int a = 0; a < 3; a++) compare_rows(c, "qkv"[a], x, right.x[a], bound[a], report);
    compare_sinks(c, x, right.x[3], bound[3], report);
    compare_bias(BOUND_D_MASK, &x->d_mask, right.x[4], n[4], bound[4], report);
    compare_bias(BOUND_D_DISTANCE, &x->d_distance, right.x[5], n[5], bound[5], report);
    oracle_backward_free(&exact);
    oracle_backward_free(&textbook);
}
