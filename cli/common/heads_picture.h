/* A picture of one number for each head. */
#ifndef QKV_CLI_COMMON_HEADS_PICTURE_H
#define QKV_CLI_COMMON_HEADS_PICTURE_H

#include "common/pictured.h"

/*
 * Writes a heat map of cells [n_layers][n_heads] with layers as rows and heads as columns. map has
 * its words and colours. MEMORY if cells is NULL.
 */
qkv_status heads_picture(const struct picture_options *picture, qkv_heatmap map, int64_t n_layers,
                         int64_t n_heads, const float *cells, const char *path, qkv_error *error);

#endif
