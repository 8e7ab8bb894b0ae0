/*
 * Decode: a few queries over stored keys and values. The scalar build against the oracle, within
 * the bound of forward; every instruction set, any number of threads, a contiguous copy of the same
 * tokens, and each batch alone against the scalar build, bit by bit.
 */
#include <inttypes.h>
#include <string.h>

#include "check/check.h"
#include "check/host_state.h"
#include "check/stored_case.h"

/* ---- Calls ----------------------------------------------------------------------------------- */

static bool decode_call(const check_case *c, const qkv_kv_view *view, const check_setup *s,
                        outputs *x, check_report *report) {
    qkv_ctx *const ctx = check_context(s, report);
    if (!ctx) return false;
    *x = (outputs){ .o = output_new(&c->d, 'o', c->d.o_stride, c->at_end),
                    .lse = output_new(&c->d, 'l', c->d.lse_stride, c->at_end) };
    const uint64_t saved = host_modes();
    host_modes_set(s->modes);
    const qkv_status status =
        qkv_attention_decode(ctx, &c->d, c->q.data, view, x->o.data, x->lse.data, NULL);
    const bool ok = check_status(status, "decode", s, ctx, report);
    host_modes_set(saved);
    qkv_ctx_free(ctx);
    if (ok && !output_intact(&c->d, 'o', &x->o, c->d.o_stride))
        check_failed(report, "decode on %s wrote outside of the rows of o", s->isa);
    if (ok && !output_intact(&c->d, 'l', &x->lse, c->d.lse_stride))
        check_failed(report, "decode on %s wrote outside of the rows of lse", s->isa);
    if (!ok) outputs_free(x);
    return ok;
}

/* The same tokens, contiguous. */
static void check_contiguous(const stored_case *x, const check_setup *s, const outputs *scalar,
                             check_report *report) {
    kv_stored copy = stored_contiguous(&x->c, &x->kv);
    outputs other;
    if (decode_call(&x->c, &copy.view, s, &other, report)) {
        compare_bits(&x->c, &other, scalar, s, report);
        outputs_free(&other);
    }
    stored_free(&copy);
}

static void check_decoded_queries(const stored_case *x, const check_setup *s, const outputs *all,
                                  rng *r, check_report *report) {
    check_case some;
    outputs other;
    int64_t first;
    if (!case_of_queries(&x->c, r, &first, &some) ||
        !decode_call(&some, &x->kv.view, s, &other, report))
        return;
    compare_queries(&x->c, all, first, &some, &other, report);
    outputs_free(&other);
}

void check_decode_everywhere(const check_options *options, const stored_case *x, uint64_t seed,
                             check_report *report) {
    rng r = { seed ^ 0x5EED };
    outputs scalar, other;
    const char *isas[CHECK_MAX_ISAS];
    const int n_isas = check_isas(options, isas);
    const check_setup first = { isas[0], 1, host_modes_of(0) };
    if (!decode_call(&x->c, &x->kv.view, &first, &scalar, report)) return;
    digest_outputs(report, &x->c, &scalar);
    compare_forward(&x->c, &scalar, report);
    for (int n = 0; n < n_isas; n++) {
        const check_setup s = { isas[n], (int)rng_between(&r, 1, 16),
                                host_modes_of((int)rng_between(&r, 0, HOST_MODES - 1)) };
        if (!decode_call(&x->c, &x->kv.view, &s, &other, report)) continue;
        compare_bits(&x->c, &other, &scalar, &s, report);
        outputs_free(&other);
        if (n == n_isas - 1) check_decoded_queries(x, &s, &scalar, &r, report);
        if (n == n_isas - 1 && x->layout != LAYOUT_CONTIGUOUS)
            check_contiguous(x, &s, &scalar, report);
    }
    outputs_free(&scalar);
}

void check_decode_of(const check_options *options, const recipe *y, elem_type stored, uint64_t seed,
                     check_report *report) {
    stored_case x;
    stored_case_make_of(&x, y, stored, seed);
    if (options->one) printf("layout %d: %s\n", x.layout, x.c.text);
    check_decode_everywhere(options, &x, seed, report);
    check_tell_case(report, &x.c);
    stored_case_free(&x);
}

void check_decode(const check_options *options, uint64_t seed, check_report *report) {
    elem_type stored;
    const recipe y = stored_recipe(seed, &stored);
    check_decode_of(options, &y, stored, seed, report);
}
