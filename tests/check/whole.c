/*
 * Whole calls: forward and backward of one problem. The scalar build against the oracle, everything
 * else against the scalar build.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "check/check.h"
#include "check/host_state.h"

/* ---- Running --------------------------------------------------------------------------------- */

bool check_status(qkv_status status, const char *call, const check_setup *s, const qkv_ctx *ctx,
                  check_report *report) {
    if (host_modes() != s->modes)
        check_failed(report,
                     "%s on %s changed the floating-point modes from 0x%" PRIx64 " to 0x%" PRIx64,
                     call, s->isa, s->modes, host_modes());
    if (upper_halves_in_use())
        check_failed(report, "%s on %s left upper halves of registers in use", call, s->isa);
    if (status != QKV_OK)
        check_failed(report, "%s on %s: %s: %s", call, s->isa, qkv_status_name(status),
                     qkv_ctx_message(ctx));
    return status == QKV_OK;
}

qkv_attention_grads outputs_grads(const check_case *c, const outputs *x) {
    qkv_attention_grads grads;
    qkv_attention_grads_contiguous(&grads, &c->d);
    memcpy(grads.d_o_stride, c->d_o_stride, sizeof c->d_o_stride);
    memcpy(grads.d_q_stride, c->d_q_stride, sizeof c->d_q_stride);
    memcpy(grads.d_k_stride, c->d_k_stride, sizeof c->d_k_stride);
    memcpy(grads.d_v_stride, c->d_v_stride, sizeof c->d_v_stride);
    memcpy(grads.d_mask_stride, c->d_mask_stride, sizeof c->d_mask_stride);
    grads.d_o = c->d_o.data;
    grads.d_lse = c->d_lse.data;
    grads.d_q = x->d_q.data;
    grads.d_k = x->d_k.data;
    grads.d_v = x->d_v.data;
    grads.d_mask = x->d_mask.data;
    grads.d_distance_bias = x->d_distance.data;
    grads.d_distance_bias_stride = c->d_distance_stride;
    if (c->d.flags & QKV_SET_SINKS) grads.d_sinks = x->d_sinks.data;
    return grads;
}

/* Floats of these arrays are sums whose zeros are +0, whatever was skipped. */
static void check_zeros(const check_case *c, const check_setup *s, const outputs *x,
                        check_report *report) {
    static const int sums[] = { BOUND_O, BOUND_D_Q };
    for (size_t e = 0; e < sizeof sums / sizeof *sums; e++) {
        const bool floats = outputs_element(&c->d, sums[e]) == ELEMENT_F32;
        const int64_t at = floats ? first_negative_zero(outputs_at(x, sums[e])) : -1;
        if (at >= 0)
            check_failed(report, "%s: %s is -0 at element %" PRId64, s->isa,
                         check_bound_names[sums[e]], at);
    }
}

static bool call_both(qkv_ctx *ctx, const check_case *c, const check_setup *s, const outputs *x,
                      check_report *report) {
    const qkv_attention_grads grads = outputs_grads(c, x);
    const uint64_t saved = host_modes();
    host_modes_set(s->modes);
    qkv_status status = qkv_attention_forward(ctx, &c->d, c->q.data, c->k.data, c->v.data,
                                              x->o.data, x->lse.data, NULL);
    bool ok = check_status(status, "forward", s, ctx, report);
    if (ok) {
        status = qkv_attention_backward(ctx, &c->d, c->q.data, c->k.data, c->v.data, x->o.data,
                                        x->lse.data, &grads, NULL);
        ok = check_status(status, "backward", s, ctx, report);
    }
    host_modes_set(saved);
    return ok;
}

qkv_ctx *check_context(const check_setup *s, check_report *report) {
    qkv_ctx *ctx = NULL;
    qkv_error error = { QKV_OK, "" };
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = s->isa;
    options.n_threads = s->n_threads;
    if (qkv_ctx_create(&options, &ctx, &error) != QKV_OK)
        check_failed(report, "qkv_ctx_create for %s: %s", s->isa, error.message);
    return ctx;
}

bool check_call(const check_case *c, const check_setup *s, outputs *x, check_report *report) {
    qkv_ctx *const ctx = check_context(s, report);
    if (!ctx) return false;
    *x = outputs_new(c);
    const bool ok = call_both(ctx, c, s, x, report);
    qkv_ctx_free(ctx);
    const char *const spoilt = ok ? outputs_spoilt(c, x) : NULL;
    if (spoilt) check_failed(report, "%s wrote outside of the rows of %s", s->isa, spoilt);
    if (ok) check_zeros(c, s, x, report);
    if (!ok) outputs_free(x);
    return ok;
}

/* ---- Against the scalar build ---------------------------------------------------------------- */

int64_t first_difference(const float *x, const float *y, size_t n) {
    return first_difference_of(ELEMENT_F32, x, y, n);
}

int64_t first_difference_of(elem_type type, const void *x, const void *y, size_t n) {
    const size_t bytes = element_bytes(type);
    const char *const a = x, *const b = y;
    if (n == 0 || memcmp(x, y, n * bytes) == 0) return -1;
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i * bytes, b + i * bytes, bytes) != 0 &&
            !(isnan(element_get(x, type, (int64_t)i)) && isnan(element_get(y, type, (int64_t)i))))
            return (int64_t)i;
    return -1;
}

void compare_bits(const check_case *c, const outputs *x, const outputs *y, const check_setup *s,
                  check_report *report) {
    for (int n = 0; n < OUTPUTS; n++) {
        const elem_type type = outputs_element(&c->d, n);
        const guarded *const ours = outputs_at(x, n), *const scalar = outputs_at(y, n);
        if (!ours->bytes) continue;
        report->compared++;
        const int64_t at =
            first_difference_of(type, ours->data, scalar->data, ours->bytes / element_bytes(type));
        if (at < 0) continue;
        report->mismatches++;
        check_failed(report,
                     "%s with %d threads, modes 0x%" PRIx64 ": %s at element %" PRId64
                     " is %.9g, on scalar %.9g",
                     s->isa, s->n_threads, s->modes, check_bound_names[n], at,
                     element_get(ours->data, type, at), element_get(scalar->data, type, at));
    }
}

void compare_elements(const check_case *c, int output, const outputs *x, int64_t at_x,
                      const outputs *y, int64_t at_y, int64_t size, const char *where,
                      check_report *report) {
    const elem_type type = outputs_element(&c->d, output);
    const int64_t bytes = (int64_t)element_bytes(type);
    const char *const a = (const char *)outputs_at(x, output)->data + at_x * bytes;
    const char *const b = (const char *)outputs_at(y, output)->data + at_y * bytes;
    const int64_t at = first_difference_of(type, a, b, (size_t)size);
    if (at < 0) return;
    report->mismatches++;
    check_failed(report, "%s: %s at element %" PRId64 " is %.9g, among others %.9g", where,
                 check_bound_names[output], at, element_get(b, type, at), element_get(a, type, at));
}

/* ---- One case -------------------------------------------------------------------------------- */

void check_case_everywhere(const check_options *options, const check_case *c, uint64_t seed,
                           check_report *report) {
    rng r = { seed ^ 0x5EED };
    outputs scalar, other;
    const char *isas[CHECK_MAX_ISAS];
    const int n_isas = check_isas(options, isas);
    const check_setup first = { isas[0], 1, host_modes_of(0) };
    if (!check_call(c, &first, &scalar, report)) return;
    digest_outputs(report, c, &scalar);
    compare_forward(c, &scalar, report);
    if (!c->any_size && !c->forward_only) compare_backward(c, &scalar, report);
    for (int n = 0; n < n_isas; n++) {
        const check_setup s = { isas[n], (int)rng_between(&r, 1, 16),
                                host_modes_of((int)rng_between(&r, 0, HOST_MODES - 1)) };
        if (!check_call(c, &s, &other, report)) continue;
        compare_bits(c, &other, &scalar, &s, report);
        if (n == n_isas - 1) check_alone(c, &s, &other, &r, report);
        if (n == n_isas - 1) check_queries(c, &s, &other, &r, report);
        outputs_free(&other);
    }
    outputs_free(&scalar);
}

void check_whole_of(const check_options *options, const recipe *x, uint64_t seed,
                    check_report *report) {
    check_case c;
    case_make_of(&c, x, seed);
    if (options->one) printf("%s\n", c.text);
    check_case_everywhere(options, &c, seed, report);
    check_tell_case(report, &c);
    case_free(&c);
}

void check_whole(const check_options *options, uint64_t seed, check_report *report) {
    rng r = { seed };
    const recipe x = recipe_random(&r);
    check_whole_of(options, &x, seed, report);
}

void check_tell_case(check_report *report, const check_case *c) {
    if (!report->failures || !report->message[0] || strchr(report->message, '\n')) return;
    const size_t used = strlen(report->message);
    snprintf(report->message + used, sizeof report->message - used, "\n    %s", c->text);
}
