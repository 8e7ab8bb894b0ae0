/*
 * Whole calls: forward and backward of one random problem. The scalar build against the oracle,
 * everything else against the scalar build.
 */
#include <cpuid.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <xmmintrin.h>

#include "check/check.h"

static const double EPSILON = 0x1p-24;

typedef struct outputs {
    guarded o, lse, d_q, d_k, d_v;
    guarded d_sinks; /* [n_heads]; zeros without sinks */
} outputs;

typedef struct setup {
    const char *isa;
    int n_threads;
    unsigned mxcsr; /* the host's modes during the calls */
} setup;

static outputs outputs_new(const check_case *c) {
    int64_t size[5][4];
    for (int n = 0; n < 5; n++) case_shape(&c->d, "olqkv"[n], size[n]);
    return (outputs){ .o = output_new(size[0], c->d.o_stride, c->at_end),
                      .lse = output_new(size[1], c->d.lse_stride, c->at_end),
                      .d_q = output_new(size[2], c->d_q_stride, c->at_end),
                      .d_k = output_new(size[3], c->d_k_stride, c->at_end),
                      .d_v = output_new(size[4], c->d_v_stride, c->at_end),
                      .d_sinks = guarded_new((size_t)c->d.n_heads * sizeof(float), c->at_end) };
}

static void outputs_free(outputs *x) {
    guarded_free(&x->o);
    guarded_free(&x->lse);
    guarded_free(&x->d_q);
    guarded_free(&x->d_k);
    guarded_free(&x->d_v);
    guarded_free(&x->d_sinks);
}

/* ---- Running --------------------------------------------------------------------------------- */

/*
 * XGETBV with ECX = 1 tells which register state is not at its initial value; component 2 is the
 * upper halves of ymm0 to ymm15.
 */
bool upper_halves_in_use(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    if (!__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a >> 2 & 1)) return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    return a >> 2 & 1;
}

static bool check_status(qkv_status status, const char *call, const setup *s, const qkv_ctx *ctx,
                         check_report *report) {
    if (_mm_getcsr() != s->mxcsr)
        check_failed(report, "%s on %s changed MXCSR from 0x%x to 0x%x", call, s->isa, s->mxcsr,
                     _mm_getcsr());
    if (upper_halves_in_use())
        check_failed(report, "%s on %s left upper halves of registers in use", call, s->isa);
    if (status != QKV_OK)
        check_failed(report, "%s on %s: %s: %s", call, s->isa, qkv_status_name(status),
                     qkv_ctx_message(ctx));
    return status == QKV_OK;
}

static void check_untouched(const check_case *c, const outputs *x, const char *isa,
                            check_report *report) {
    const int64_t *const rows = c->d.flags & QKV_SET_Q_LEN ? c->d.q_len : NULL;
    const struct {
        char shape;
        const guarded *g;
        const int64_t *stride, *rows;
    } list[] = { { 'o', &x->o, c->d.o_stride, rows },
                 { 'l', &x->lse, c->d.lse_stride, rows },
                 { 'q', &x->d_q, c->d_q_stride, rows },
                 { 'k', &x->d_k, c->d_k_stride, NULL },
                 { 'v', &x->d_v, c->d_v_stride, NULL } };
    static const char *const names[] = { "o", "lse", "d_q", "d_k", "d_v" };
    for (int n = 0; n < 5; n++) {
        int64_t size[4];
        case_shape(&c->d, list[n].shape, size);
        if (!output_intact(list[n].g, size, list[n].stride, list[n].rows))
            check_failed(report, "%s wrote outside of the rows of %s", isa, names[n]);
    }
}

static bool run(const check_case *c, const setup *s, outputs *x, check_report *report) {
    qkv_ctx *ctx = NULL;
    qkv_error error = { QKV_OK, "" };
    qkv_ctx_options options = QKV_CTX_OPTIONS_INIT;
    options.isa = s->isa;
    options.n_threads = s->n_threads;
    if (qkv_ctx_create(&options, &ctx, &error) != QKV_OK) {
        check_failed(report, "qkv_ctx_create for %s: %s", s->isa, error.message);
        return false;
    }
    *x = outputs_new(c);
    qkv_attention_grads grads;
    qkv_attention_grads_contiguous(&grads, &c->d);
    memcpy(grads.d_o_stride, c->d_o_stride, sizeof c->d_o_stride);
    memcpy(grads.d_q_stride, c->d_q_stride, sizeof c->d_q_stride);
    memcpy(grads.d_k_stride, c->d_k_stride, sizeof c->d_k_stride);
    memcpy(grads.d_v_stride, c->d_v_stride, sizeof c->d_v_stride);
    grads.d_o = c->d_o.data;
    grads.d_lse = c->d_lse.data;
    grads.d_q = x->d_q.data;
    grads.d_k = x->d_k.data;
    grads.d_v = x->d_v.data;
    if (c->d.flags & QKV_SET_SINKS) grads.d_sinks = x->d_sinks.data;

    const unsigned saved = _mm_getcsr();
    _mm_setcsr(s->mxcsr);
    qkv_status status = qkv_attention_forward(ctx, &c->d, c->q.data, c->k.data, c->v.data,
                                              x->o.data, x->lse.data, NULL);
    bool ok = check_status(status, "forward", s, ctx, report);
    if (ok) {
        status = qkv_attention_backward(ctx, &c->d, c->q.data, c->k.data, c->v.data, x->o.data,
                                        x->lse.data, &grads, NULL);
        ok = check_status(status, "backward", s, ctx, report);
    }
    _mm_setcsr(saved);
    qkv_ctx_destroy(ctx);
    if (ok) check_untouched(c, x, s->isa, report);
    return ok;
}

/* ---- Against the scalar build ---------------------------------------------------------------- */

int64_t first_difference(const float *x, const float *y, size_t n) {
    if (n == 0 || memcmp(x, y, n * sizeof *x) == 0) return -1;
    for (size_t i = 0; i < n; i++)
        if (memcmp(x + i, y + i, sizeof *x) != 0 && !(isnan(x[i]) && isnan(y[i])))
            return (int64_t)i;
    return -1;
}

static void compare_bits(const outputs *x, const outputs *y, const setup *s, check_report *report) {
    const guarded *const a[] = { &x->o, &x->lse, &x->d_q, &x->d_k, &x->d_v, &x->d_sinks };
    const guarded *const b[] = { &y->o, &y->lse, &y->d_q, &y->d_k, &y->d_v, &y->d_sinks };
    for (int n = 0; n < 6; n++) {
        const float *const ours = a[n]->data, *const scalar = b[n]->data;
        const int64_t at = first_difference(ours, scalar, a[n]->bytes / sizeof(float));
        if (at >= 0)
            check_failed(report,
                         "%s with %d threads, mxcsr 0x%x: %s at element %" PRId64
                         " is %.9g, on scalar %.9g",
                         s->isa, s->n_threads, s->mxcsr, check_bound_names[n], at, (double)ours[at],
                         (double)scalar[at]);
    }
}

/* ---- Against the oracle ---------------------------------------------------------------------- */

/* Position of element (b, h, i, c) in an array of the case. */
static int64_t place(const int64_t stride[3], int64_t b, int64_t h, int64_t i) {
    return b * stride[0] + h * stride[1] + i * stride[2];
}

static void within(check_report *report, int which, double ours, double exact, double bound,
                   const int64_t at[4]) {
    const double error = fabs(ours - exact);
    bool good = isnan(exact) ? isnan(ours) : !isfinite(exact) ? !isfinite(ours) : isfinite(ours);
    if (exact == -INFINITY && which == BOUND_LSE) good = ours == -INFINITY;
    if (good && isfinite(exact)) {
        good = error <= bound;
        if (error > 0) report->fraction[which] = fmax(report->fraction[which], error / bound);
    }
    if (!good)
        check_failed(report,
                     "%s[%" PRId64 "][%" PRId64 "][%" PRId64 "][%" PRId64
                     "] = %.9g, exactly %.17g; error %.3g, bound %.3g",
                     check_bound_names[which], at[0], at[1], at[2], at[3], ours, exact, error,
                     bound);
}

static void compare_forward(const check_case *c, const outputs *x, check_report *report) {
    const qkv_attention_desc *d = &c->d;
    const oracle_inputs in = case_inputs(c);
    oracle_forward f = oracle_forward_new(d);
    oracle_forward_run(d, &in, &f);
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t h = 0; h < d->n_heads; h++)
            for (int64_t i = 0; i < (d->flags & QKV_SET_Q_LEN ? d->q_len[b] : d->len_q); i++) {
                const int64_t n = (b * d->n_heads + h) * d->len_q + i;
                int64_t at[4] = { b, h, i, 0 };
                const float *o = (float *)x->o.data + place(d->o_stride, b, h, i);
                const float *lse = (float *)x->lse.data + place(d->lse_stride, b, h, i);
                within(report, BOUND_LSE, (double)*lse, f.lse[n], f.lse_bound[n], at);
                for (; at[3] < d->head_dim_v; at[3]++)
                    within(report, BOUND_O, (double)o[at[3]], f.o[n * d->head_dim_v + at[3]],
                           f.o_bound[n], at);
            }
    oracle_forward_free(&f);
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

static void compare_gradient(const check_case *c, int which, const guarded *ours,
                             const int64_t stride[3], const double *exact, double bound,
                             check_report *report) {
    int64_t size[4];
    case_shape(&c->d, "??qkv"[which], size);
    const bool has_q_len = which == BOUND_D_Q && c->d.flags & QKV_SET_Q_LEN;
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = 0; i < (has_q_len ? c->d.q_len[b] : size[2]); i++) {
                const float *x = (float *)ours->data + place(stride, b, h, i);
                const double *y = exact + ((b * size[1] + h) * size[2] + i) * size[3];
                int64_t at[4] = { b, h, i, 0 };
                for (; at[3] < size[3]; at[3]++) {
                    const double got = (double)x[at[3]];
                    /* which of inf and NaN it is depends on what underflows: both are right */
                    const double want = !isfinite(y[at[3]]) && !isfinite(got) ? got : y[at[3]];
                    within(report, which, got, want, bound, at);
                }
            }
}

static void compare_sinks(const check_case *c, const float *ours, const double *exact, double bound,
                          check_report *report) {
    bound += 16 * EPSILON * largest_value(exact, c->d.n_heads);
    for (int64_t h = 0; h < c->d.n_heads; h++) {
        const int64_t at[4] = { 0, h, 0, 0 };
        const double got = (double)ours[h];
        const double want = !isfinite(exact[h]) && !isfinite(got) ? got : exact[h];
        within(report, BOUND_D_SINKS, got, want, bound, at);
    }
}

/*
 * 4 times the largest error of the textbook's f32 formulas, plus 16 epsilon of the largest value.
 */
static void compare_backward(const check_case *c, const outputs *x, check_report *report) {
    oracle_inputs in = case_inputs(c);
    int64_t size[3][4], n[3];
    double error[3] = { 0 }, sinks_error = 0;
    in.o = x->o.data;
    in.lse = x->lse.data;
    for (int a = 0; a < 3; a++) {
        case_shape(&c->d, "qkv"[a], size[a]);
        n[a] = size[a][0] * size[a][1] * size[a][2] * size[a][3];
    }
    oracle_backward exact = oracle_backward_new(&c->d), textbook = oracle_backward_new(&c->d);
    oracle_backward_run(&c->d, &in, &exact);
    const double *const right[3] = { exact.d_q, exact.d_k, exact.d_v };
    const double *const f32[3] = { textbook.d_q, textbook.d_k, textbook.d_v };
    for (int which = 0; which < ORACLE_TEXTBOOKS; which++) {
        oracle_textbook_f32(&c->d, &in, which, &textbook);
        for (int a = 0; a < 3; a++)
            error[a] = fmax(error[a], largest_error(f32[a], right[a], n[a]));
        sinks_error =
            fmax(sinks_error, largest_error(textbook.d_sinks, exact.d_sinks, c->d.n_heads));
    }
    const guarded *const ours[3] = { &x->d_q, &x->d_k, &x->d_v };
    const int64_t *const stride[3] = { c->d_q_stride, c->d_k_stride, c->d_v_stride };
    for (int a = 0; a < 3; a++) {
        const double bound =
            4 * error[a] + 16 * EPSILON * largest_value(right[a], n[a]) + exact.flushed;
        compare_gradient(c, BOUND_D_Q + a, ours[a], stride[a], right[a], bound, report);
    }
    if (c->d.flags & QKV_SET_SINKS)
        compare_sinks(c, x->d_sinks.data, exact.d_sinks, 4 * sinks_error + exact.flushed, report);
    oracle_backward_free(&exact);
    oracle_backward_free(&textbook);
}

/* ---- One case -------------------------------------------------------------------------------- */

void check_case_everywhere(const check_options *options, const check_case *c, uint64_t seed,
                           check_report *report) {
    /* to nearest, down, up, to zero; each without and with flush-to-zero and denormals-are-zero */
    static const unsigned modes[] = {
        0x1F80, 0x3F80, 0x5F80, 0x7F80, 0x9FC0, 0xBFC0, 0xDFC0, 0xFFC0
    };
    rng r = { seed ^ 0x5EED };
    outputs scalar, other;
    const char *isas[CHECK_MAX_ISAS];
    const int n_isas = check_isas(options, isas);
    const setup first = { isas[0], 1, modes[0] };
    if (run(c, &first, &scalar, report)) {
        compare_forward(c, &scalar, report);
        if (!c->forward_only) compare_backward(c, &scalar, report);
        for (int n = 0; n < n_isas; n++) {
            const setup s = { isas[n], (int)rng_between(&r, 1, 16), modes[rng_between(&r, 0, 7)] };
            if (!run(c, &s, &other, report)) continue;
            compare_bits(&other, &scalar, &s, report);
            outputs_free(&other);
        }
        outputs_free(&scalar);
    }
}

void check_whole(const check_options *options, uint64_t seed, check_report *report) {
    check_case c;
    case_make(&c, seed);
    if (options->one) printf("%s\n", c.text);
    check_case_everywhere(options, &c, seed, report);
    if (report->failures && report->message[0]) {
        const size_t used = strlen(report->message);
        snprintf(report->message + used, sizeof report->message - used, "\n    %s", c.text);
    }
    case_free(&c);
}
