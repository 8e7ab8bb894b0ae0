/*
 * Columns of weights: the block's own e = exp(s - max s) of each row, their maximum and their sum,
 * of which the caller makes weights (attn/weights.c). Scores are floats; their product with the
 * scale is exact in double, and so is all that follows, until e is rounded to a float.
 */
#ifndef QKVI_TMPL_COLUMNS_WEIGHTS_H
#define QKVI_TMPL_COLUMNS_WEIGHTS_H

#include "kernels/columns.h"
#include "kernels/tmpl/columns.h"
#include "kernels/vec/vec_double.h"

/* A panel of tiles that were not computed: nobody sees these keys. */
static void weights_hide(const qkvi_columns *c, int t) {
    const qkvi_attend *a = c->a;
    for (int i = 0; i < a->n_queries; i += V_MR)
        if (!a->scratch->tile[i / V_MR].panels)
            columns_fill(c, i, attend_rows(a, i), t, vf_set1(-INFINITY));
}

static float weights_max(const float *s, int n) {
    float lanes[16];
    vf most = vf_set1(-INFINITY);
    for (int t = 0; t < n; t += 16) most = vf_max(most, vf_load(s + t));
    vf_storeu(lanes, most);
    for (int l = 1; l < 16; l++)
        if (lanes[l] > lanes[0]) lanes[0] = lanes[l];
    return lanes[0];
}

/* n scores become e; their sum, as they were rounded: key t in lane t mod 8. */
static double weights_row(float *s, int n, double scale, double most) {
    double lanes[VD_LANES];
    for (int l = 0; l < VD_LANES; l += VD_WIDTH) {
        vd sum = vd_set1(0);
        for (int t = l; t < n; t += VD_LANES) {
            const vd x = vd_load_floats(s + t) * vd_set1(scale) - vd_set1(most);
            vd_store_floats(s + t, vd_exp(x));
            sum += vd_load_floats(s + t);
        }
        vd_store(lanes + l, sum);
    }
    return vd_tree(lanes);
}

/* table.h */
static void columns_weights(const qkvi_columns *c, double *most, double *sum, int64_t step) {
    const int from = (int)(c->from - c->key0), to = (int)((c->to - c->key0 + 31) / 32 * 32);
    const qkvi_attend *a = c->a;
    const attend_class *const class = attend_class_of(a);
    const double scale = attend_edits(a) ? 1 : (double)a->scale;
    columns_rows(c);
    if (class->begin) class->begin();
    for (int t = from; t < to; t += 32) {
        columns_scores(c, c->key0 + t);
        weights_hide(c, t);
    }
    if (class->end) class->end();
    for (int i = 0; i < a->n_queries; i++) {
        float *s = a->scratch->s + i * QKVI_SCORE_ROW;
        const double top = (double)weights_max(s + from, to - from) * scale;
        memset(s, 0, (size_t)from * sizeof *s);
        memset(s + to, 0, (size_t)(QKVI_KEY_BLOCK - to) * sizeof *s);
        most[i * step] = top;
        sum[i * step] = weights_row(s + from, to - from, scale, top);
    }
}

#endif
