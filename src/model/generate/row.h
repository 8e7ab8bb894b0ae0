/*
 * Rows of logits in double: what all searches do to them. exp and log are those of
 * kernels/vec/vec_double.h; sums over a row have eight partial sums: the same bits everywhere.
 */
#ifndef QKVI_GENERATE_ROW_H
#define QKVI_GENERATE_ROW_H

#include "files/base.h"

/* x = logits. UNSUPPORTED if one is NaN or +infinity, or none above -infinity. */
qkv_status qkvi_row_read(int64_t n, const float *logits, double *x, qkv_error *error);

/* The largest of n; -infinity without any. */
double qkvi_row_max(int64_t n, const double *x);

/* log sum_j exp(x_j); x has a finite element and no NaN. */
double qkvi_row_lse(int64_t n, const double *x);

/* x becomes exp(x_j - max x); returns their sum. The same conditions. */
double qkvi_row_exp(int64_t n, double *x);

/* x becomes its log-softmax. The same conditions. */
void qkvi_row_log_softmax(int64_t n, double *x);

double qkvi_log(double x); /* normal x > 0 */
double qkvi_exp(double x); /* x <= 0 */

/*
 * The best of many: keeps the `room` candidates with the greatest keys, of equal keys the smaller
 * place. A heap whose root is the worst that is kept.
 */

typedef struct qkvi_top_item {
    double key, value; /* value: the caller's */
    int64_t at;        /* no two have the same */
} qkvi_top_item;

typedef struct qkvi_top {
    int64_t n, room;      /* room > 0 */
    qkvi_top_item *items; /* [room], the caller's */
} qkvi_top;

/* a comes before b. */
static inline bool qkvi_top_before(const qkvi_top_item *a, const qkvi_top_item *b) {
    return a->key != b->key ? a->key > b->key : a->at < b->at;
}

void qkvi_top_offer(qkvi_top *top, double key, double value, int64_t at);

/* Best first; nothing may be offered any more. */
void qkvi_top_sort(qkvi_top *top);

#endif
