/* See row.h. */
#include "model/generate/row.h"

#include <math.h>

#include "kernels/vec/vec_double.h"

double qkvi_log(double x) { return vd_log(vd_set1(x))[0]; }
double qkvi_exp(double x) { return vd_exp_one(x); }

qkv_status qkvi_row_read(int64_t n, const float *logits, double *x, qkv_error *error) {
    int wrong = 0, finite = 0;
    for (int64_t j = 0; j < n; j++) {
        wrong |= !(logits[j] < INFINITY);
        finite |= logits[j] > -INFINITY;
        x[j] = (double)logits[j];
    }
    if (!wrong && finite) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "the model's logits are no numbers (%s): its weights may be damaged",
                          wrong ? "NaN or infinity" : "all -infinity");
}

double qkvi_row_max(int64_t n, const double *x) {
    double most = -INFINITY;
    for (int64_t j = 0; j < n; j++) most = x[j] > most ? x[j] : most;
    return most;
}

/*
 * e^(x_j - most) of the eight from j on, 0 behind the end, into e if it is not NULL; added to sums.
 */
static void exp8(int64_t n, int64_t j, const double *x, double most, double *e,
                 double sums[VD_LANES]) {
    double lanes[VD_LANES];
    int any = 0;
    for (int l = 0; l < VD_LANES; l++) {
        lanes[l] = j + l < n ? x[j + l] - most : -INFINITY;
        any |= lanes[l] >= -708;
    }
    for (int l = 0; l < VD_LANES; l += VD_WIDTH)
        vd_store(lanes + l, any ? vd_exp(vd_load(lanes + l)) : vd_set1(0));
    for (int l = 0; l < VD_LANES; l++) {
        sums[l] += lanes[l];
        if (e && j + l < n) e[j + l] = lanes[l];
    }
}

static double sum_exp(int64_t n, const double *x, double most, double *e) {
    double sums[VD_LANES] = { 0 };
    for (int64_t j = 0; j < n; j += VD_LANES) exp8(n, j, x, most, e, sums);
    return vd_tree(sums);
}

double qkvi_row_lse(int64_t n, const double *x) {
    const double most = qkvi_row_max(n, x);
    return most + qkvi_log(sum_exp(n, x, most, NULL));
}

double qkvi_row_exp(int64_t n, double *x) { return sum_exp(n, x, qkvi_row_max(n, x), x); }

void qkvi_row_log_softmax(int64_t n, double *x) {
    const double most = qkvi_row_max(n, x), log_sum = qkvi_log(sum_exp(n, x, most, NULL));
    for (int64_t j = 0; j < n; j++) x[j] = (x[j] - most) - log_sum;
}

static void swap(qkvi_top_item *a, qkvi_top_item *b) {
    const qkvi_top_item kept = *a;
    *a = *b;
    *b = kept;
}

/* The children of i are 2 i + 1 and 2 i + 2; none comes behind its parent. */
static void sink(qkvi_top_item *items, int64_t n, int64_t i) {
    for (;;) {
        int64_t last = i;
        for (int64_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
            if (qkvi_top_before(&items[last], &items[child])) last = child;
        if (last == i) return;
        swap(&items[i], &items[last]);
        i = last;
    }
}

static void rise(qkvi_top_item *items, int64_t i) {
    while (i > 0 && qkvi_top_before(&items[(i - 1) / 2], &items[i])) {
        swap(&items[i], &items[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

void qkvi_top_offer(qkvi_top *top, double key, double value, int64_t at) {
    const qkvi_top_item item = { key, value, at };
    if (top->n < top->room) {
        top->items[top->n] = item;
        rise(top->items, top->n++);
    } else if (qkvi_top_before(&item, &top->items[0])) {
        top->items[0] = item;
        sink(top->items, top->n, 0);
    }
}

void qkvi_top_sort(qkvi_top *top) {
    for (int64_t n = top->n - 1; n > 0; n--) {
        swap(&top->items[0], &top->items[n]);
        sink(top->items, n, 0);
    }
}
