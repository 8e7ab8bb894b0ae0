/**
 * The parameters of an architecture as one table: name, shape, place in one float arena.
 *
 * The table is written once, by the architecture (arch/bert.h), and is what everybody else walks:
 * the loader to know which tensors it wants and which shapes config.json promised, the trainer to
 * lay out parameters, gradients and both moments alike, the writer to store them. Names are those
 * that transformers stores today; of tensors that hold several parameters (GPT-2's c_attn) each has
 * a name of ours.
 */
#ifndef QKVI_MODEL_PARAMS_H
#define QKVI_MODEL_PARAMS_H

#include <stdbool.h>

#include "qkv/qkv.h"

typedef struct qkvi_param {
    char name[96]; /* "bert.encoder.layer.0.attention.self.query.weight" */
    int rank;
    int64_t shape[2];
    size_t offset;  /* in floats from the start of the arena; a multiple of 16: 64 bytes */
    size_t n_elems; /* product of shape */
    /* How files have it, if not as it is: under another name, [cols][rows], and beside others in one
     * tensor, whose last axis has n_parts equal parts; this is one of them. */
    char stored[96]; /* "": name */
    bool transposed;
    int part, n_parts; /* 0, 1: all of it */
} qkvi_param;

typedef struct qkvi_param_table {
    qkvi_param *rows;
    int64_t n_rows, capacity;
    size_t n_elems; /* floats in an arena, gaps included */
} qkvi_param_table;

/** Appends a row; shape[1] is ignored if rank is 1. The name is made by printf. LIMIT, MEMORY. */
qkv_status qkvi_params_add(qkvi_param_table *table, int rank, int64_t rows, int64_t cols,
                           qkv_error *error, const char *name_format, ...)
    __attribute__((format(printf, 6, 7)));

/**
 * The last row is stored otherwise: see qkvi_param. Rows of one tensor follow each other, parts
 * ascending; parts of a matrix are parts of a transposed one.
 */
void qkvi_params_stored_as(qkvi_param_table *table, bool transposed, int part, int n_parts,
                           const char *name_format, ...) __attribute__((format(printf, 5, 6)));

/** The name and the shape [rank] of the tensor in a file. */
const char *qkvi_param_stored_name(const qkvi_param *row);
void qkvi_param_stored_shape(const qkvi_param *row, int64_t shape[2]);

/**
 * Between the values of a row in the arena and those of its whole stored tensor: to the arena, or
 * its part of the tensor from it.
 */
void qkvi_param_from_stored(const qkvi_param *row, const float *stored, float *values);
void qkvi_param_to_stored(const qkvi_param *row, const float *values, float *stored);

/** The row of that name, or NULL. */
const qkvi_param *qkvi_params_find(const qkvi_param_table *table, const char *name);

/** Its floats in arena, or NULL. The name is made by printf. */
float *qkvi_params_at(const qkvi_param_table *table, float *arena, const char *name_format, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * An arena of zeros for the table, aligned to 64 bytes, to be freed by free(); NULL without memory.
 */
float *qkvi_params_arena(const qkvi_param_table *table);

void qkvi_params_free(qkvi_param_table *table);

#endif
