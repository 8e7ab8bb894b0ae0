/*
 * The layers of a block in double precision, one row at a time, from the parameters as they are
 * stored: for qkv_inspect_steps and for the projections of layer 0.
 */
#ifndef QKVI_INSPECT_STEPS_H
#define QKVI_INSPECT_STEPS_H

#include "model/arch/net.h"

/*
 * to [hidden]: the embedding of a word, scaled; where it is narrower than hidden (OPT), its
 * projection.
 */
void qkvi_step_word(const qkvi_stack *stack, int32_t id, double *to);

/* sum [hidden] = word + segment + position of token i; without the position if positions is 0. */
void qkvi_step_embedding(const qkvi_stack *stack, const qkv_encoding *input, int64_t i,
                         int positions, double *sum);

/* y [n_out] = W x + b, with the rows [first, first + n_out) of W and b. */
void qkvi_step_linear(const qkvi_linear *layer, int64_t first, int64_t n_out, const double *x,
                      double *y);

/* y [n] = (s - mean) / sqrt(variance + eps) gamma + beta, or the RMSNorm; y may be s. */
void qkvi_step_norm(const qkvi_layernorm *layer, double eps, const double *s, double *y);

/* The input of layer 0 from the sum above: its norm, where the stack has one. */
void qkvi_step_input(const qkvi_stack *stack, double *sum);

/* What the attention of a block reads: x, or in a pre-norm block the norm of x. */
void qkvi_step_read(const qkvi_block *block, int64_t n, const double *x, double *read);

/*
 * Applies the norm (if it has a gamma) and the rotation of rope (NULL: none) to x [n_heads *
 * head_dim], the query or key of token `place`. reach: tokens of the text, on which some scalings
 * of RoPE depend.
 */
void qkvi_step_place(const qkvi_mha *mha, const qkvi_layernorm *norm, const qkvi_rope *rope,
                     int64_t place, int64_t reach, int64_t n_heads, double *x);

double qkvi_step_act(qkvi_act act, double x);

/* to [n] = from [n], as doubles. */
void qkvi_step_widen(int64_t n, const float *from, double *to);

/* max |a[i] - b[i]|; NaN if one of the two is NaN and the other is not. */
double qkvi_step_error(int64_t n, const double *a, const float *b);

/* Checks that ids, types and length of an encoding suit a model. */
qkv_status qkvi_step_check_input(const qkv_model_info *info, const qkv_encoding *input,
                                 qkv_error *error);

#endif
