/* See stored_case.h. */
#include "check/stored_case.h"

#include <string.h>

#include "check/pairs.h"

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
static recipe recipe_of(rng *r, const pair_column *of) {
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

static void make_laid_out(stored_case *x, const recipe *y, int layout, elem_type type,
                          uint64_t seed) {
    rng random = { seed ^ 0xDEC0DE }, *r = &random;
    check_case *const c = &x->c;
    int64_t ring_len;
    memset(x, 0, sizeof *x);
    c->seed = seed;
    c->at_end = rng_chance(r, 60);
    x->layout = layout;
    case_choose_sizes(r, c, y);
    c->whole = type == ELEMENT_I8;
    if (c->whole && c->q_sizes.high > 100) /* or a sum, yet without scale, is no float */
        c->q_sizes = (size_band){ -149, 100, true };
    case_shape(r, c, y);
    case_options(r, c, y);
    stored_limits(r, c, layout, &ring_len);
    case_strides(r, c);
    case_mask(r, c, y);
    case_modifiers(r, c, y);
    c->q = case_array(r, c, 'q', c->d.q_stride);
    x->kv = stored_new(r, c, type, layout, ring_len);
    case_resize(r, c);
    c->k_dense = x->kv.k_dense;
    c->v_dense = x->kv.v_dense;
    case_seal(c);
    case_describe(c, y, "");
}

void stored_case_free(stored_case *x) {
    case_free(&x->c);
    stored_free(&x->kv);
}

recipe stored_recipe(uint64_t seed, elem_type *stored) {
    rng r = { seed };
    const pair_column *const of = random_column(&r);
    *stored = of->stored;
    return recipe_of(&r, of);
}

void stored_case_make_of(stored_case *x, const recipe *y, elem_type stored, uint64_t seed) {
    rng r = { seed ^ 0x1A40 };
    make_laid_out(x, y, (int)rng_between(&r, 0, LAYOUTS - 1), stored, seed);
}
