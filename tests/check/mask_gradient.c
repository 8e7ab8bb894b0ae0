/* See mask_gradient.h. */
#include "check/mask_gradient.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/oracle_row.h"
#include "check/rules.h"

/* A NaN that no sum gives. */
static double gap(void) {
    const uint64_t bits = 0x7FF8000000000BADu;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

bool mask_gradient_gap(double x) {
    const double y = gap();
    return memcmp(&x, &y, sizeof x) == 0;
}

int64_t mask_gradient_elems(const check_case *c) {
    int64_t size[4], last = 1;
    layout_mask(&c->d, size);
    for (int n = 0; n < 4; n++)
        last = size[n] && last ? last + (size[n] - 1) * c->d_mask_stride[n] : 0;
    return last;
}

static double *element_of(const check_case *c, double *sum, int64_t b, int64_t h, int64_t i,
                          int64_t j) {
    const int64_t *const s = c->d_mask_stride;
    const int64_t key = c->d.mask_len_k == 1 ? 0 : j;
    return sum + b * s[0] + h * s[1] + i * s[2] + key * s[3];
}

static void add_row(const check_case *c, const oracle_backward *g, int64_t b, int64_t h, int64_t i,
                    bool in_floats, double *sum) {
    const qkv_attention_desc *const d = &c->d;
    int64_t size[4];
    layout_mask(d, size);
    for (int64_t e = 0; e < size[3]; e++) { /* also where there is no key */
        double *const to = element_of(c, sum, b, h, i, e);
        if (mask_gradient_gap(*to)) *to = 0;
    }
    const double *const from = g->d_mask + oracle_row_q(d, b, h, i) * d->len_k;
    const bool exists = i < layout_queries(d, b);
    for (int64_t j = 0; j < d->len_k; j++) {
        if (d->mask_len_k > 1 && j >= d->mask_len_k) return;
        double *const to = element_of(c, sum, b, h, i, j);
        if (!exists || !rule_sees(d, b, h, i, j)) continue;
        *to = in_floats ? (double)((float)*to + (float)from[j]) : *to + from[j];
    }
}

void mask_gradient_sum(const check_case *c, oracle_backward *g, bool in_floats) {
    const qkv_attention_desc *const d = &c->d;
    free(g->d_mask_sum);
    g->d_mask_sum = NULL;
    if (!c->wants_d_mask) return;
    const int64_t n = mask_gradient_elems(c);
    g->d_mask_sum = oracle_zeros(n, sizeof(double));
    for (int64_t e = 0; e < n; e++) g->d_mask_sum[e] = gap();
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t h = 0; h < d->n_heads; h++)
            for (int64_t i = 0; i < d->len_q; i++) add_row(c, g, b, h, i, in_floats, g->d_mask_sum);
}

/* ---- Of a distance bias ---------------------------------------------------------------------- */

static int64_t distances(const check_case *c) {
    return c->d.distance_before + 1 + c->d.distance_after;
}

int64_t distance_gradient_rows(const check_case *c) {
    return c->d_distance_stride ? c->d.n_heads : c->d.n_heads > 0;
}

int64_t distance_gradient_elems(const check_case *c) {
    const int64_t rows = c->wants_d_distance ? distance_gradient_rows(c) : 0;
    return rows ? (rows - 1) * c->d_distance_stride + distances(c) : 0;
}

static void add_distances(const check_case *c, const oracle_backward *g, int64_t b, int64_t h,
                          bool in_floats, double *sum) {
    const qkv_attention_desc *const d = &c->d;
    for (int64_t i = 0; i < layout_queries(d, b); i++)
        for (int64_t j = 0; j < d->len_k; j++) {
            if (!rule_sees(d, b, h, i, j)) continue;
            const double x = g->d_mask[oracle_row_q(d, b, h, i) * d->len_k + j];
            double *const to = sum + rule_distance_element(d, b, i, j);
            *to = in_floats ? (double)((float)*to + (float)x) : *to + x;
        }
}

void distance_gradient_sum(const check_case *c, oracle_backward *g, bool in_floats) {
    const int64_t n = distance_gradient_elems(c), rows = distance_gradient_rows(c);
    free(g->d_distance);
    g->d_distance = NULL;
    if (!c->wants_d_distance) return;
    g->d_distance = oracle_zeros(n, sizeof(double));
    for (int64_t e = 0; e < n; e++) g->d_distance[e] = gap();
    for (int64_t h = 0; h < rows; h++)
        for (int64_t e = 0; e < distances(c); e++) g->d_distance[h * c->d_distance_stride + e] = 0;
    for (int64_t b = 0; b < c->d.n_batch; b++)
        for (int64_t h = 0; h < c->d.n_heads; h++)
            add_distances(c, g, b, h, in_floats, g->d_distance + h * c->d_distance_stride);
}
