#include "model/layer/dropout.h"
void qkvi_dropout_rows(qkv_ctx *ctx, const qkvi_row_dropout *dropout, int64_t n_rows, int64_t n,
                       float *x) {
    (void)ctx;
    (void)dropout;
    (void)n_rows;
    (void)n;
    (void)x;
}
uint64_t qkvi_dropout_key(const qkvi_row_dropout *dropout, uint64_t number) {
    return dropout->seed + number;
}
