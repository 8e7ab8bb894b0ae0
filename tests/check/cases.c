/*
 * A case from a recipe and a seed. See cases.h.
 */
#include "check/cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check/rules.h"

static int add_text(check_case *c, int used, const char *text) {
    const int room = (int)sizeof c->text - used;
    return used + (room > 1 ? snprintf(c->text + used, (size_t)room, "%s", text) : 0);
}

void case_describe(check_case *c, const recipe *x, const char *pattern) {
    const qkv_attention_desc *d = &c->d;
    int used = snprintf(
        c->text, sizeof c->text,
        "%s%s B %" PRId64 " H %" PRId64 ":%" PRId64 " len %" PRId64 " x %" PRId64 " dim %" PRId64
        ",%" PRId64 " scale %g softcap %g window %" PRId64 ",%" PRId64 " offset %" PRId64
        "%s mask %d (%" PRId64 ") block %" PRId64 " dropout %g; %s%s%s;",
        check_types[x->type].name, x->o_f32 ? " to f32" : "", d->n_batch, d->n_heads, d->n_kv_heads,
        d->len_q, d->len_k, d->head_dim, d->head_dim_v, (double)d->scale, (double)d->softcap,
        d->window_left, d->window_right, d->q_offset, d->q_offsets ? "s" : "", (int)d->mask_type,
        d->mask_len_k, d->block_len, (double)d->dropout, pattern, c->any_size ? ", any size" : "",
        c->visible_nan ? ", NaN" : "");
    for (feature f = 0; f < FEATURES; f++)
        if (recipe_has(x, f)) used = add_text(c, add_text(c, used, " "), feature_name(f));
}

enum { CASE_INPUTS = 15 };
static void inputs_of(check_case *c, guarded *list[CASE_INPUTS]) {
    guarded *const all[CASE_INPUTS] = {
        &c->q,     &c->k,     &c->v,     &c->d_o,           &c->d_lse,
        &c->mask,  &c->seg_q, &c->seg_k, &c->slopes,        &c->distances,
        &c->sinks, &c->cu_q,  &c->cu_k,  &c->block_offsets, &c->block_index
    };
    memcpy(list, all, sizeof all);
}

void case_make_of(check_case *c, const recipe *x, uint64_t seed) {
    rng random = { seed }, *r = &random;
    memset(c, 0, sizeof *c);
    c->seed = seed;
    c->at_end = rng_chance(r, 60);
    case_choose_sizes(r, c, x);
    case_shape(r, c, x);
    case_options(r, c, x);
    case_strides(r, c);
    const char *const pattern = case_values(r, c);
    case_mask(r, c, x);
    case_modifiers(r, c, x);
    case_poison_hidden(r, c);
    if (rng_chance(r, 12)) case_poison_one(r, c);
    case_resize(r, c);
    case_seal(c);
    case_describe(c, x, pattern);
}

void case_make(check_case *c, uint64_t seed) {
    rng r = { seed };
    const recipe x = recipe_random(&r);
    case_make_of(c, &x, seed);
}

void case_seal(check_case *c) {
    guarded *inputs[CASE_INPUTS];
    inputs_of(c, inputs);
    for (int n = 0; n < CASE_INPUTS; n++)
        if (inputs[n]->map) guarded_read_only(inputs[n]);
}

void case_free(check_case *c) {
    guarded *inputs[CASE_INPUTS];
    inputs_of(c, inputs);
    for (int n = 0; n < CASE_INPUTS; n++) guarded_free(inputs[n]);
}

oracle_inputs case_inputs(const check_case *c) {
    oracle_inputs in = { .q = c->q.data, .k = c->k.data, .v = c->v.data };
    in.k_dense = c->k_dense;
    in.v_dense = c->v_dense;
    in.whole = c->whole;
    in.d_o = c->d_o.data;
    in.d_lse = c->d_lse.data;
    memcpy(in.d_o_stride, c->d_o_stride, sizeof in.d_o_stride);
    return in;
}
