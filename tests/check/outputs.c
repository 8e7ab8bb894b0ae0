/* See outputs.h. */
#include "check/outputs.h"

#include <stdlib.h>
#include <string.h>

#include "check/mask_gradient.h"

elem_type output_element(const qkv_attention_desc *d, char which) {
    return which == 'l' ? ELEMENT_F32 : which == 'o' ? element_of_o(d) : (elem_type)d->dtype;
}

guarded output_new(const qkv_attention_desc *d, char which, const int64_t stride[3], bool at_end) {
    int64_t size[4];
    layout_storage(d, which, size);
    return guarded_new((size_t)layout_elems(size, stride) * element_bytes(output_element(d, which)),
                       at_end);
}

bool output_intact(const qkv_attention_desc *d, char which, const guarded *g,
                   const int64_t stride[3]) {
    const size_t bytes = element_bytes(output_element(d, which)), n = g->bytes / bytes;
    int64_t size[4];
    layout_shape(d, which, size);
    unsigned char *const ours = calloc(n + 1, 1);
    if (!ours || !guarded_intact(g)) return free(ours), false;
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++) {
            const int64_t rows =
                layout_of_keys(which) ? layout_rows(d, which, b) : layout_queries(d, b);
            for (int64_t i = 0; i < rows; i++)
                memset(ours + layout_place(d, which, stride, b, h, i), 1, (size_t)size[3]);
        }
    const unsigned char *const x = g->data;
    bool intact = true;
    for (size_t at = 0; at < n * bytes; at++) intact &= ours[at / bytes] || x[at] == CANARY_BYTE;
    free(ours);
    return intact;
}

/* ---- All of a call --------------------------------------------------------------------------- */

static guarded d_mask_new(const check_case *c) {
    int64_t size[4], last = 1;
    if (!c->wants_d_mask) return (guarded){ .data = NULL };
    layout_mask(&c->d, size);
    for (int n = 0; n < 4; n++)
        last = size[n] && last ? last + (size[n] - 1) * c->d_mask_stride[n] : 0;
    return guarded_new((size_t)last * sizeof(float), c->at_end);
}

static guarded d_distance_new(const check_case *c) {
    if (!c->wants_d_distance) return (guarded){ .data = NULL };
    return guarded_new((size_t)distance_gradient_elems(c) * sizeof(float), c->at_end);
}

outputs outputs_new(const check_case *c) {
    const qkv_attention_desc *const d = &c->d;
    return (outputs){ .o = output_new(d, 'o', d->o_stride, c->at_end),
                      .lse = output_new(d, 'l', d->lse_stride, c->at_end),
                      .d_q = output_new(d, 'q', c->d_q_stride, c->at_end),
                      .d_k = output_new(d, 'k', c->d_k_stride, c->at_end),
                      .d_v = output_new(d, 'v', c->d_v_stride, c->at_end),
                      .d_sinks = guarded_new((size_t)d->n_heads * sizeof(float), c->at_end),
                      .d_mask = d_mask_new(c),
                      .d_distance = d_distance_new(c) };
}

const guarded *outputs_at(const outputs *x, int n) {
    const guarded *const all[OUTPUTS] = { &x->o,   &x->lse,     &x->d_q,    &x->d_k,
                                          &x->d_v, &x->d_sinks, &x->d_mask, &x->d_distance };
    return all[n];
}

elem_type outputs_element(const qkv_attention_desc *d, int n) {
    return n == 0 ? element_of_o(d) : n >= 2 && n <= 4 ? (elem_type)d->dtype : ELEMENT_F32;
}

size_t outputs_mask_bytes(const qkv_attention_desc *d) {
    return d->mask_type == QKV_MASK_F32                                    ? 4
           : d->mask_type == QKV_MASK_BF16 || d->mask_type == QKV_MASK_F16 ? 2
                                                                           : 1;
}

void outputs_free(outputs *x) {
    guarded *const all[OUTPUTS] = { &x->o,   &x->lse,     &x->d_q,    &x->d_k,
                                    &x->d_v, &x->d_sinks, &x->d_mask, &x->d_distance };
    for (int n = 0; n < OUTPUTS; n++) guarded_free(all[n]);
}

const char *outputs_spoilt(const check_case *c, const outputs *x) {
    const struct {
        const char *name;
        char which;
        const guarded *g;
        const int64_t *stride;
    } list[] = { { "o", 'o', &x->o, c->d.o_stride },
                 { "lse", 'l', &x->lse, c->d.lse_stride },
                 { "d_q", 'q', &x->d_q, c->d_q_stride },
                 { "d_k", 'k', &x->d_k, c->d_k_stride },
                 { "d_v", 'v', &x->d_v, c->d_v_stride } };
    for (size_t n = 0; n < sizeof list / sizeof *list; n++)
        if (!output_intact(&c->d, list[n].which, list[n].g, list[n].stride)) return list[n].name;
    if (!guarded_intact(&x->d_sinks)) return "d_sinks";
    if (x->d_distance.map && !guarded_intact(&x->d_distance)) return "d_distance_bias";
    return x->d_mask.map && !guarded_intact(&x->d_mask) ? "d_mask" : NULL;
}
