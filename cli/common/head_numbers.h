/* Numbers of heads: all of one head as a JSON object, one number of all heads as a picture. */
#ifndef QKV_CLI_COMMON_HEAD_NUMBERS_H
#define QKV_CLI_COMMON_HEAD_NUMBERS_H

#include "common/pictured.h"

/* {"layer", "head", "label", "entropy", ...}, for `look --json` and `heads --json`. */
json_t *head_json(int64_t layer, int64_t head, const char *label, const double *numbers);

/*
 * Writes a heat map of cells [n_layers][n_heads] with layers as rows and heads as columns; `map`
 * has title, caption and colours. QKV_ERR_MEMORY if cells is NULL, as after a failed allocation.
 */
qkv_status heads_picture(const struct picture_options *picture, qkv_heatmap map, int64_t n_layers,
                         int64_t n_heads, const float *cells, const char *path, qkv_error *error);

#endif
