/*
 * Numbers of any magnitude, from 1e-45 to 1e38: each array gets a band of its own, such that most
 * products under- or overflow somewhere. The scale often makes scores of some units nevertheless.
 */
#include <math.h>

#include "check/cases.h"
#include "check/rules.h"

enum { LEAST = -149, MOST = 126, FLUSHED = 23 /* LEAST + FLUSHED: the least normal number */ };

/* ---- Bands ----------------------------------------------------------------------------------- */

/* The part of a band that the type has numbers for; all of them, if there is none. */
static size_band within(const size_band *s, elem_type type) {
    const int least = type == ELEMENT_F16 ? -24 : LEAST, most = type == ELEMENT_F16 ? 15 : MOST;
    const size_band part = { s->low < least ? least : s->low, s->high > most ? most : s->high,
                             s->zeros };
    return part.low <= part.high ? part : (size_band){ least, most, s->zeros };
}

/* Often ordinary ones, so that much is odd in one array alone. */
static size_band any_sizes(rng *r, elem_type type) {
    const size_band all = { LEAST, MOST, false }, of = within(&all, type);
    return rng_chance(r, 40) ? (size_band){ -3, 0, false } : band_random(r, of.low, of.high);
}

/* Such that 2^by times the greatest is around the least float, where sums become zeros. */
static size_band vanishing_sizes(rng *r, int by) {
    const int high = LEAST - by + (int)rng_between(r, -2, 10);
    return (size_band){ high - (int)rng_between(r, 0, 8), high, rng_chance(r, 40) };
}

void case_choose_sizes(rng *r, check_case *c, const recipe *x) {
    const elem_type type = check_types[x->type].type;
    c->any_size = x->any_size;
    if (!c->any_size) return;
    c->q_sizes = any_sizes(r, type);
    c->k_sizes = any_sizes(r, type);
    if (rng_chance(r, 20)) /* sums of q k do, or are flushed in classes dp and amx */
        c->k_sizes = vanishing_sizes(r, c->q_sizes.high - (rng_chance(r, 50) ? FLUSHED : 0));
    c->v_sizes = rng_chance(r, 25) ? vanishing_sizes(r, 0) : any_sizes(r, type);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

void case_resize_array(rng *r, const guarded *g, elem_type type, const size_band *of) {
    const size_band s = within(of, type);
    for (size_t n = 0; g->map && n < g->bytes / element_bytes(type); n++)
        if (isfinite(element_get(g->data, type, (int64_t)n)))
            element_set(g->data, type, (int64_t)n, band_draw(r, &s));
}

/* Half of the time as it is. */
static void resize_perhaps(rng *r, const guarded *g, elem_type type) {
    const size_band s = any_sizes(r, type);
    if (rng_chance(r, 50)) case_resize_array(r, g, type, &s);
}

static float any_number(rng *r) {
    const size_band s = { LEAST, MOST, false };
    return (float)band_draw(r, &s);
}

/* Of any size, or what makes of the greatest products numbers around 1. */
static void choose_scale(rng *r, check_case *c) {
    const int size = c->q_sizes.high + c->k_sizes.high + (int)rng_between(r, -3, 6);
    const int exponent = size < -127 ? 127 : size > -LEAST ? LEAST : -size;
    c->d.flags |= QKV_SET_SCALE;
    c->d.scale = rng_chance(r, 30) ? any_number(r) : ldexpf(rng_chance(r, 70) ? 1 : -1, exponent);
}

/* Of any size, or such that d_q vanishes: it is a sum of d_o v k scale. */
static void resize_d_o(rng *r, const check_case *c) {
    const elem_type type = element_of_o(&c->d);
    const double scale = rule_scale(&c->d);
    const int by = c->v_sizes.high + c->k_sizes.high + (scale == 0 ? 0 : ilogb(scale));
    const size_band s = rng_chance(r, 50) ? vanishing_sizes(r, by) : any_sizes(r, type);
    case_resize_array(r, &c->d_o, type, &s);
}

static elem_type type_of_mask(const qkv_attention_desc *d) {
    return d->mask_type == QKV_MASK_BF16  ? ELEMENT_BF16
           : d->mask_type == QKV_MASK_F16 ? ELEMENT_F16
                                          : ELEMENT_F32;
}

void case_resize(rng *r, check_case *c) {
    const elem_type type = (elem_type)c->d.dtype;
    if (!c->any_size) return;
    case_resize_array(r, &c->q, type, &c->q_sizes);
    case_resize_array(r, &c->k, type, &c->k_sizes);
    case_resize_array(r, &c->v, type, &c->v_sizes);
    choose_scale(r, c);
    resize_d_o(r, c);
    resize_perhaps(r, &c->d_lse, ELEMENT_F32);
    resize_perhaps(r, &c->slopes, ELEMENT_F32);
    resize_perhaps(r, &c->distances, ELEMENT_F32);
    resize_perhaps(r, &c->sinks, ELEMENT_F32);
    if (rule_adds(&c->d)) resize_perhaps(r, &c->mask, type_of_mask(&c->d));
    if (rng_chance(r, 50)) c->d.softcap = fabsf(any_number(r));
}
