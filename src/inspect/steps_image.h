/* The rows of an image in double, and how queries and keys of patches are turned. */
#ifndef QKVI_INSPECT_STEPS_IMAGE_H
#define QKVI_INSPECT_STEPS_IMAGE_H

#include "inspect/steps.h"

/* Checks that an encoding is of an image as the model cuts it. */
qkv_status qkvi_step_check_image(const qkv_model_info *info, const qkv_encoding *input,
                                 qkv_error *error);

/*
 * Positions of the patches of an image, [rows columns][hidden], in new memory; NULL of a text, and
 * without a table of them.
 */
qkv_status qkvi_step_places(const qkvi_stack *stack, const qkv_encoding *input, float **made,
                            qkv_error *error);

/*
 * row [hidden]: W p + b of a patch, or the learned row of a token before the patches; position
 * [hidden]: what is added to it, zeros if nothing is. places: of qkvi_step_places. pixels: room for
 * those of a patch.
 */
void qkvi_step_row(const qkvi_stack *stack, const qkv_encoding *input, const float *places,
                   int64_t i, double *pixels, double *row, double *position);

/* Turns x [n_heads head_dim], the query or key of token i, by its row and column (patches.h). */
void qkvi_step_turn(const qkvi_stack *stack, const qkv_encoding *input, int64_t i, int64_t n_heads,
                    double *x);

#endif
