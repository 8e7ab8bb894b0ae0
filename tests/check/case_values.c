/*
 * Values of cases: difficult patterns, and NaN and infinities where nothing may be read.
 */
#include <math.h>
#include <string.h>

#include "check/cases.h"
#include "check/outputs.h"
#include "check/rules.h"

/* ---- Patterns -------------------------------------------------------------------------------- */

enum { NORMAL, EQUAL, ONE_HOT, LARGE, DOMINATING, SUBNORMAL, CANCELLING, PATTERNS };
static const char *const PATTERN_NAMES[] = { "normal",          "equal",      "one-hot",
                                             "scores in +-100", "dominating", "subnormal",
                                             "cancelling" };

/* x times what makes it subnormal in v, and its products in q and k. */
static float subnormal(float x, char which, elem_type type) {
    if (type == ELEMENT_F16) return x * 1e-6f;
    return x * (which == 'q' || which == 'k' ? 1e-25f : 1e-39f);
}

static float pattern_value(rng *r, int pattern, char which, int64_t token, int64_t c, int64_t dim,
                           elem_type type) {
    const float x = rng_normal(r);
    switch (pattern) {
    case EQUAL: return which == 'q' || which == 'k' ? 0.5f : x;
    case ONE_HOT: return which == 'v' || which == 'o' ? x : c == token % (dim ? dim : 1) ? 1.0f : 0;
    case LARGE: return which == 'q' ? 10 * x : which == 'k' ? 3 * x : x;
    case DOMINATING:
        return which == 'k' && token == 1 ? 300 * fabsf(x) : which == 'q' ? fabsf(x) * 4 : x;
    case SUBNORMAL: return subnormal(x, which, type);
    case CANCELLING: return c % 2 ? x * 0.01f - 4 : x * 0.01f + 4;
    default: return x;
    }
}

static guarded input_new(rng *r, check_case *c, char which, const int64_t stride[3], int pattern) {
    const elem_type type = output_element(&c->d, which);
    int64_t size[4];
    layout_storage(&c->d, which, size);
    guarded g = output_new(&c->d, which, stride, c->at_end);
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = 0; i < size[2]; i++) {
                const int64_t at = b * stride[0] + h * stride[1] + i * stride[2];
                for (int64_t ch = 0; ch < size[3]; ch++)
                    element_set(g.data, type, at + ch,
                                (double)pattern_value(r, pattern, which, i, ch, size[3], type));
            }
    return g;
}

guarded case_array(rng *r, check_case *c, char which, const int64_t stride[3]) {
    return input_new(r, c, which, stride, NORMAL);
}

static void values_of(rng *r, check_case *c, int pattern, bool wants_d_lse) {
    c->q = input_new(r, c, 'q', c->d.q_stride, pattern);
    c->k = input_new(r, c, 'k', c->d.k_stride, pattern);
    c->v = input_new(r, c, 'v', c->d.v_stride, pattern);
    c->d_o = input_new(r, c, 'o', c->d_o_stride, pattern);
    if (wants_d_lse) c->d_lse = input_new(r, c, 'l', c->d.lse_stride, NORMAL);
}

const char *case_values(rng *r, check_case *c) {
    const int pattern = rng_chance(r, 50) ? NORMAL : (int)rng_between(r, 0, PATTERNS - 1);
    values_of(r, c, pattern, rng_chance(r, 40));
    return PATTERN_NAMES[pattern];
}

void case_dense(check_case *c, const qkv_attention_desc *d, uint64_t seed, bool at_end) {
    qkv_attention_grads g;
    rng r = { seed };
    *c = (check_case){ .seed = seed, .d = *d, .at_end = at_end };
    qkv_attention_grads_contiguous(&g, d);
    memcpy(c->d_o_stride, g.d_o_stride, sizeof c->d_o_stride);
    memcpy(c->d_q_stride, g.d_q_stride, sizeof c->d_q_stride);
    memcpy(c->d_k_stride, g.d_k_stride, sizeof c->d_k_stride);
    memcpy(c->d_v_stride, g.d_v_stride, sizeof c->d_v_stride);
    values_of(&r, c, NORMAL, true);
}

/* ---- Values that are not finite -------------------------------------------------------------- */

/* Does an array use the same row for more than one (batch, head, token)? */
static bool repeats(const qkv_attention_desc *d, char which, const int64_t stride[3]) {
    int64_t size[4];
    layout_storage(d, which, size);
    for (int n = 0; n < 3; n++)
        if (size[n] > 1 && stride[n] == 0) return true;
    return false;
}

static void poison_row(rng *r, const guarded *g, elem_type type, int64_t at, int64_t n) {
    for (int64_t c = 0; c < n; c++) {
        if (!rng_chance(r, 60)) continue;
        const int64_t kind = rng_between(r, 0, 2);
        if (kind == 0)
            element_set_nan(g->data, type, at + c, rng_next(r));
        else
            element_set(g->data, type, at + c, kind == 1 ? INFINITY : -INFINITY);
    }
}

static void poison_array(rng *r, const check_case *c, char which, const guarded *g,
                         const int64_t stride[3], int64_t b, int64_t h, int64_t i) {
    int64_t size[4];
    layout_shape(&c->d, which, size);
    if (!repeats(&c->d, which, stride))
        poison_row(r, g, output_element(&c->d, which), layout_place(&c->d, which, stride, b, h, i),
                   size[3]);
}

static bool seen_by_any(const qkv_attention_desc *d, int64_t b, int64_t g, int64_t j) {
    const int64_t per_group = d->n_heads / d->n_kv_heads;
    for (int64_t h = g * per_group; h < (g + 1) * per_group; h++)
        for (int64_t i = 0; i < layout_queries(d, b); i++)
            if (rule_sees(d, b, h, i, j)) return true;
    return false;
}

void case_poison_hidden(rng *r, check_case *c) {
    const qkv_attention_desc *const d = &c->d;
    for (int64_t b = 0; b < d->n_batch; b++) {
        for (int64_t g = 0; g < d->n_kv_heads; g++)
            for (int64_t j = 0; j < layout_rows(d, 'k', b); j++) {
                if (seen_by_any(d, b, g, j)) continue;
                poison_array(r, c, 'k', &c->k, d->k_stride, b, g, j);
                poison_array(r, c, 'v', &c->v, d->v_stride, b, g, j);
            }
        for (int64_t h = 0; h < d->n_heads; h++)
            for (int64_t i = layout_queries(d, b); i < layout_rows(d, 'q', b); i++) {
                poison_array(r, c, 'q', &c->q, d->q_stride, b, h, i);
                poison_array(r, c, 'o', &c->d_o, c->d_o_stride, b, h, i);
            }
    }
}

void case_poison_one(rng *r, check_case *c) {
    static const char letters[] = "kvqo";
    const char which = letters[rng_between(r, 0, 3)];
    const int64_t *const stride = which == 'k'   ? c->d.k_stride
                                  : which == 'v' ? c->d.v_stride
                                  : which == 'q' ? c->d.q_stride
                                                 : c->d_o_stride;
    const guarded *const g = which == 'k'   ? &c->k
                             : which == 'v' ? &c->v
                             : which == 'q' ? &c->q
                                            : &c->d_o;
    int64_t size[4], at = 0;
    layout_storage(&c->d, which, size);
    if (!g->bytes) return;
    for (int n = 0; n < 3; n++) at += stride[n] * rng_between(r, 0, size[n] - 1);
    poison_row(r, g, output_element(&c->d, which), at, size[3]);
    c->visible_nan = true;
}
