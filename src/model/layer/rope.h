/*
 * Rotary positions (Su et al. 2021) by halves: channels i and i + d/2 of a head are a vector, which
 * position p turns by the angle p w_i. Neighbours are channels 2i and 2i + 1 instead (GPT-J). d are
 * the channels of a head, or the first of them, and the others stay as they are (GPT-NeoX).
 *
 *     w_i = theta^(-2i / d), i < d/2, or what a qkv_rope makes of it for texts that are longer than
 *     those that a model learned from (qkv/model.h has the formulas)
 *
 * Those of a dynamic rope depend on `reach`, how many tokens the text has so far, where that is
 * more than the model learned from.
 *
 * Frequencies and angles are doubles, by series without libm: so the same bits everywhere, and the
 * cosines and sines are off by half an ulp of a float at any position.
 */
#ifndef QKVI_MODEL_ROPE_H
#define QKVI_MODEL_ROPE_H

#include "files/base.h"
#include "kernels/table.h"
#include "qkv/model.h"

typedef struct qkvi_rope {
    int64_t dim;   /* d */
    double factor; /* on cosines and sines */
    double *w;     /* [dim / 2], owned; NULL: no rotation */
    /*
     * Of a dynamic rope: the longest text that w is for, ln theta and the factor. 0: w is for all.
     */
    double longest, ln_theta, stretch;
} qkvi_rope;

/* MEMORY. dim is even; settings have been checked (config/config_rope.c). */
qkv_status qkvi_rope_make(const qkv_rope *settings, int64_t dim, qkvi_rope *rope, qkv_error *error);
void qkvi_rope_free(qkvi_rope *rope);

/* The frequency w_i of a text of `reach` tokens. */
double qkvi_rope_frequency(const qkvi_rope *rope, int64_t reach, int64_t i);

/*
 * turns [n_rows][dim]: a row's cosines, then its sines, at its place, 0 … 2^20 - 1, of a text
 * that reaches so far.
 */
void qkvi_rope_turns(qkv_ctx *ctx, const qkvi_rope *rope, int64_t n_rows, const int32_t *places,
                     const int32_t *reaches, float *turns);

/* Which channels of the heads of a row turn. */
typedef struct qkvi_rope_heads {
    int64_t n_heads, head_dim, dim; /* the first dim of head_dim … */
    bool neighbours;                /* … 2i with 2i + 1, not i with i + dim / 2 */
} qkvi_rope_heads;

/* The heads of x [n_rows][n_heads][head_dim] in place; back: by the negative angle. */
void qkvi_rotate(qkv_ctx *ctx, const qkvi_rope_heads *heads, int64_t n_rows, const float *turns,
                 bool back, float *x);
/* The same on the caller's thread. */
void qkvi_rotate_rows(const qkvi_kernels *kernels, const qkvi_rope_heads *heads, int64_t n_rows,
                      const float *turns, bool back, float *x);

#endif
