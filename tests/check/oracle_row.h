/* Shared by the files of the oracle: operands as doubles, and one row of scores and weights. */
#ifndef QKV_TESTS_ORACLE_ROW_H
#define QKV_TESTS_ORACLE_ROW_H

#include "check/oracle.h"

/* Dense arrays in the logical shapes. Those that are not given are NULL. */
typedef struct operands {
    double *q, *k, *v, *d_o, *d_lse, *o, *lse;
} operands;

operands operands_new(const qkv_attention_desc *d, const oracle_inputs *in);
void operands_free(operands *x);

/* Allocates zeros; exits the process if there is no memory. */
void *oracle_zeros(int64_t n, size_t size);

/* Indices of rows of dense arrays. */
int64_t oracle_row_q(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i);
int64_t oracle_row_k(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t j); /* query head */

typedef struct row {
    bool *sees;
    double *s, *p, *t; /* score, weight, derivative of the soft cap */
    double *keep;      /* what dropout multiplies the weight by */
    double lse;
    int64_t n_visible;
    double magnitude, bias, v_max; /* largest |scale| sum|q||k|, |bias|, |v| over visible keys */
    bool in_range; /* sum|q||k|, these, and 2^8 sum|v| are far below the largest float */
} row;

row row_new(const qkv_attention_desc *d);
void row_free(row *r);
void row_run(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h, int64_t i,
             row *r);
/* Computes o of the row. */
void row_values(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h, const row *r,
                double *o);

/* Called for each query of each head. */
typedef void row_function(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h,
                          int64_t i, void *argument);
void for_each_row(const qkv_attention_desc *d, const operands *x, row_function *function,
                  void *argument);

#endif
