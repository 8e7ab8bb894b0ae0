/* The values of a model's parameter as floats, in whatever form the model has them. */
#ifndef TESTS_PARAM_VALUES_H
#define TESTS_PARAM_VALUES_H

#include <stdlib.h>

#include "model/model_impl.h"

/* [shape[0]][shape[1]], to be freed. */
static inline float *param_values(const qkv_model *model, const qkvi_param *row) {
    const qkvi_weights weights = qkvi_param_weights(row, model->arena);
    float *const values = malloc(row->n_elems * sizeof *values + 1);
    for (int64_t i = 0; values && i < row->shape[0]; i++)
        qkvi_weight_row(&weights, i, values + i * row->shape[1]);
    return values;
}

#endif
