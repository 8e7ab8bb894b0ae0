/*
 * Attention, forward: weights of scores (docs/numerics.md, step 5) and the partial sums of step 6.
 * The scores of a row in scratch->s become its weights; in classes of bf16 these are rounded.
 */
#ifndef QKVI_TMPL_ATTEND_EXP_H
#define QKVI_TMPL_ATTEND_EXP_H

#include "kernels/tmpl/attend_scores.h"
#include "kernels/tmpl/dp.h"

/*
 * The exponent of p. Finished scores: (s - m) c, since s c may overflow where s is a number, as in
 * a mask of -FLT_MAX. Raw ones: s c - m.
 */
typedef enum attend_kind { ATTEND_RAW, ATTEND_RAW_LARGE, ATTEND_FINISHED } attend_kind;

V_INLINE vf attend_exponent(vf s, vf c, vf m, const attend_kind kind) {
    if (kind == ATTEND_FINISHED) return vf_mul(vf_sub(s, m), c);
    return kind == ATTEND_RAW_LARGE ? vf_sub(vf_mul(s, c), m) : vf_fms(s, c, m);
}

/* The reference as step 5 subtracts it: 0 while there is none. */
V_INLINE vf attend_shift(vf m) { return vf_select(vm_eq(m, vf_set1(-INFINITY)), vf_set1(0), m); }

/* p over the scores of these panels; returns 16 + 16 of the 32 partial sums. */
V_INLINE vf attend_exp_row(float *s, uint32_t panels, vf c, vf m, const attend_kind kind) {
    vf sum0 = vf_set1(0), sum1 = sum0;
    while (panels) {
        const attend_run run = attend_next_run(&panels);
        V_UNROLL_BY(2) for (int j = run.from; j < run.to; j += 32) {
            const vf x0 = vf_load(s + j), x1 = vf_load(s + j + 16);
            const vf p0 = vf_exp2_below_128(attend_exponent(x0, c, m, kind));
            const vf p1 = vf_exp2_below_128(attend_exponent(x1, c, m, kind));
            vf_store(s + j, p0);
            vf_store(s + j + 16, p1);
            sum0 = vf_add(sum0, p0);
            sum1 = vf_add(sum1, p1);
        }
    }
    return vf_add(sum0, sum1);
}

/*
 * The same in class dp, where weights are rounded to bf16 after they were summed: the pair of keys
 * j, j + 1 becomes word j / 2 of the row, over scores that have been read. They are summed once
 * more as they are then: 16 partial sums.
 */
V_INLINE vf dp_exp_row(float *s, uint32_t panels, vf c, vf m, const attend_kind kind,
                       float *rounded) {
    vf sum0 = vf_set1(0), sum1 = sum0, sum = sum0;
    while (panels) {
        const attend_run run = attend_next_run(&panels);
        V_UNROLL_BY(2) for (int j = run.from; j < run.to; j += 32) {
            const vf x0 = vf_load(s + j), x1 = vf_load(s + j + 16);
            const vf p0 = dp_exp2_below_128(attend_exponent(x0, c, m, kind));
            const vf p1 = dp_exp2_below_128(attend_exponent(x1, c, m, kind));
            sum = v_dp(sum, dp_store((uint16_t *)s + j, p0, p1), vi_set1(DP_ONES));
            sum0 = vf_add(sum0, p0);
            sum1 = vf_add(sum1, p1);
        }
    }
    vf_store(rounded, sum);
    return vf_add(sum0, sum1);
}

V_INLINE void attend_exp_rows_of(const bool rounds, const attend_kind kind, const attend *a,
                                 int from, int to, float factor) {
    qkvi_attend_scratch *w = a->scratch;
    const vf c = vf_set1(factor);
    for (int i = from; i < to; i++) {
        const uint32_t panels = w->tile[i / V_MR].panels;
        float *s = w->s + i * QKVI_SCORE_ROW;
        const vf m = vf_set1(w->shift[i]);
        vf_store(w->sum + 16 * i, rounds
                                      ? dp_exp_row(s, panels, c, m, kind, w->rounded + i % 16 * 16)
                                      : attend_exp_row(s, panels, c, m, kind));
    }
}

/* Each a function of its own, or there are not enough registers for the constants of all. */
#define ATTEND_EXP(name, rounds, kind)                                                             \
    static __attribute__((noinline)) void name(const attend *a, int from, int to, float factor) {  \
        attend_exp_rows_of(rounds, kind, a, from, to, factor);                                     \
    }
ATTEND_EXP(attend_exp_raw, false, ATTEND_RAW)
ATTEND_EXP(attend_exp_large, false, ATTEND_RAW_LARGE)
ATTEND_EXP(attend_exp_finished, false, ATTEND_FINISHED)
ATTEND_EXP(dp_exp_raw, true, ATTEND_RAW)
ATTEND_EXP(dp_exp_large, true, ATTEND_RAW_LARGE)
ATTEND_EXP(dp_exp_finished, true, ATTEND_FINISHED)
static attend_exp_function *const attend_exp_of[] = { attend_exp_raw, attend_exp_large,
                                                      attend_exp_finished };
static attend_exp_function *const dp_exp_of[] = { dp_exp_raw, dp_exp_large, dp_exp_finished };

/* Rows from g, a multiple of 16, to end: runs of one kind, of which these are the functions. */
static void attend_exp_rows(const attend *a, int g, int end, float factor,
                            attend_exp_function *const *of) {
    if (attend_edits(a)) {
        of[ATTEND_FINISHED](a, g, end, factor);
        return;
    }
    const vf size = vf_abs(vf_load(a->scratch->shift + g));
    const uint32_t raw = vm_to_bits(vm_lt(size, vf_set1(ATTEND_LARGE)));
    for (int i = g, next; i < end; i = next) {
        const bool is_raw = raw >> (i - g) & 1;
        const uint64_t others = (is_raw ? ~(uint64_t)raw : raw | UINT64_C(1) << 16) >> (i - g);
        next = i + __builtin_ctzll(others);
        if (next > end) next = end;
        of[is_raw ? ATTEND_RAW : ATTEND_RAW_LARGE](a, i, next, factor);
    }
}

#endif
