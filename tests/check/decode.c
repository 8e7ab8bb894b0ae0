/*
 * Decode: a few queries over stored keys and values. The scalar build against the oracle, within
 * the bound of forward; every instruction set, any number of threads, a contiguous copy of the same
 * tokens, and each batch alone against the scalar build, bit by bit.
 */
#include <inttypes.h>
#include <string.h>

#include "check/check.h"
#include "check/host_state.h"
#include "check/stored.h"

/* ---- Cases ----------------------------------------------------------------------------------- */

typedef struct decode_case {
    check_case c; /* without k and v */
    kv_stored kv;
    int layout;
} decode_case;

/* Around a block of 512 keys and a split of 1024, and small ones. */
static int64_t random_len_k(rng *r) {
    const int64_t kind = rng_between(r, 0, 99);
    if (kind < 5) return rng_between(r, 0, 1);
    if (kind < 45) return rng_between(r, 2, 100);
    if (kind < 70) return rng_between(r, 101, 700);
    if (kind < 85) return 1024 + rng_between(r, -2, 40);
    return rng_between(r, 1100, 3000);
}

/* A column of the pairs: types of queries, and of what is stored. */
static const pair_column *random_column(rng *r) {
    for (;;) {
        const pair_column *const x = &check_columns[rng_between(r, 0, COLUMNS - 1)];
        if (x->exists && x->decode) return x;
    }
}

/* Decode has no dropout and no packed sequences. */
static recipe random_decode(rng *r, const pair_column *of) {
    static const feature without[] = { FEATURE_DROPOUT, FEATURE_VARLEN };
    recipe x = recipe_random(r);
    x.type = of->type;
    x.o_f32 = check_types[of->type].type != ELEMENT_F32 && rng_chance(r, 30);
    for (size_t n = 0; n < sizeof without / sizeof *without; n++) x.features &= ~(1u << without[n]);
    if (rng_chance(r, 40)) x.features |= 1u << FEATURE_KV_LEN;
    x.len_q = rng_chance(r, 50) ? 1 : rng_between(r, 0, rng_chance(r, 80) ? 8 : 20);
    x.len_k = random_len_k(r);
    return x;
}

static void decode_make(decode_case *x, const recipe *y, int layout, elem_type type,
                        uint64_t seed) {
    rng random = { seed ^ 0xDEC0DE }, *r = &random;
    check_case *const c = &x->c;
    int64_t ring_len;
    memset(x, 0, sizeof *x);
    c->seed = seed;
    c->at_end = rng_chance(r, 60);
    x->layout = layout;
    case_shape(r, c, y);
    case_options(r, c, y);
    stored_limits(r, c, layout, &ring_len);
    case_strides(r, c);
    case_mask(r, c, y);
    case_modifiers(r, c, y);
    c->q = case_array(r, c, 'q', c->d.q_stride);
    x->kv = stored_new(r, c, type, layout, ring_len);
    c->k_dense = x->kv.k_dense;
    c->v_dense = x->kv.v_dense;
    case_seal(c);
    case_describe(c, y, "");
}

static void decode_free(decode_case *x) {
    case_free(&x->c);
    stored_free(&x->kv);
}

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
    qkv_ctx_destroy(ctx);
    if (ok && !output_intact(&c->d, 'o', &x->o, c->d.o_stride))
        check_failed(report, "decode on %s wrote outside of the rows of o", s->isa);
    if (ok && !output_intact(&c->d, 'l', &x->lse, c->d.lse_stride))
        check_failed(report, "decode on %s wrote outside of the rows of lse", s->isa);
    if (!ok) outputs_free(x);
    return ok;
}

/* The same tokens, contiguous. */
static void check_contiguous(const decode_case *x, const check_setup *s, const outputs *scalar,
                             check_report *report) {
    kv_stored copy = stored_contiguous(&x->c, &x->kv);
    outputs other;
    if (decode_call(&x->c, &copy.view, s, &other, report)) {
        compare_bits(&x->c, &other, scalar, s, report);
        outputs_free(&other);
    }
    stored_free(&copy);
}

static void decode_everywhere(const check_options *options, const decode_case *x, uint64_t seed,
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
        if (n == n_isas - 1 && x->layout != LAYOUT_CONTIGUOUS)
            check_contiguous(x, &s, &scalar, report);
    }
    outputs_free(&scalar);
}

void check_decode_of(const check_options *options, const recipe *y, elem_type stored, uint64_t seed,
                     check_report *report) {
    rng r = { seed ^ 0x1A40 };
    decode_case x;
    decode_make(&x, y, (int)rng_between(&r, 0, LAYOUTS - 1), stored, seed);
    if (options->one) printf("layout %d: %s\n", x.layout, x.c.text);
    decode_everywhere(options, &x, seed, report);
    check_tell_case(report, &x.c);
    decode_free(&x);
}

void check_decode(const check_options *options, uint64_t seed, check_report *report) {
    rng r = { seed };
    const pair_column *const of = random_column(&r);
    const recipe y = random_decode(&r, of);
    check_decode_of(options, &y, of->stored, seed, report);
}
