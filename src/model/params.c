/*
 * The parameter table: see params.h. Rows are appended in the order of the architecture; each
 * starts on a 64-byte line so that vector kernels may be given any of them, and the gaps are zeros
 * that no kernel reads.
 */
#include "model/params.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

enum { ALIGN_ELEMS = 16, MAX_ROWS = 1 << 20 };

static qkv_status grow(qkvi_param_table *table, qkv_error *error) {
    if (table->n_rows < table->capacity) return QKV_OK;
    const int64_t capacity = table->capacity ? 2 * table->capacity : 64;
    if (capacity > MAX_ROWS)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "the model has more than %d parameter tensors",
                              MAX_ROWS);
    qkvi_param *rows = realloc(table->rows, (size_t)capacity * sizeof *rows);
    if (!rows) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the parameter table");
    table->rows = rows;
    table->capacity = capacity;
    return QKV_OK;
}

qkv_status qkvi_params_add(qkvi_param_table *table, int rank, int64_t rows, int64_t cols,
                           qkv_error *error, const char *name_format, ...) {
    QKV_TRY(grow(table, error));
    qkvi_param *row = &table->rows[table->n_rows];
    memset(row, 0, sizeof *row);
    va_list arguments;
    va_start(arguments, name_format);
    vsnprintf(row->name, sizeof row->name, name_format, arguments);
    va_end(arguments);
    row->rank = rank;
    row->n_parts = 1;
    row->shape[0] = rows;
    row->shape[1] = rank == 2 ? cols : 1;
    row->offset = table->n_elems;
    size_t end;
    if (rows < 0 || cols < 0 ||
        __builtin_mul_overflow((size_t)rows, (size_t)row->shape[1], &row->n_elems) ||
        __builtin_add_overflow(row->offset, row->n_elems, &end) ||
        end > SIZE_MAX / sizeof(float) - ALIGN_ELEMS)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: shape [%lld,%lld] is too large", row->name,
                              (long long)rows, (long long)cols);
    table->n_elems = (end + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
    table->n_rows++;
    return QKV_OK;
}

/* ---- As files have them ----------------------------------------------------------------------- */

void qkvi_params_stored_as(qkvi_param_table *table, bool transposed, int part, int n_parts,
                           const char *name_format, ...) {
    qkvi_param *const row = &table->rows[table->n_rows - 1];
    va_list arguments;
    va_start(arguments, name_format);
    vsnprintf(row->stored, sizeof row->stored, name_format, arguments);
    va_end(arguments);
    row->transposed = transposed;
    row->part = part;
    row->n_parts = n_parts;
}

const char *qkvi_param_stored_name(const qkvi_param *row) {
    return *row->stored ? row->stored : row->name;
}

void qkvi_param_stored_shape(const qkvi_param *row, int64_t shape[2]) {
    shape[0] = row->transposed ? row->shape[1] : row->shape[0];
    shape[1] = row->transposed ? row->shape[0] : row->shape[1];
    shape[row->rank - 1] *= row->n_parts;
}

/* Visits a row of a matrix and its column of the stored one in squares that fit the cache. */
#define EACH_OF_SQUARES(row, i, c, ...)                                                            \
    do {                                                                                           \
        enum { SIDE = 16 };                                                                        \
        for (int64_t i0 = 0; i0 < (row)->shape[0]; i0 += SIDE)                                     \
            for (int64_t c0 = 0; c0 < (row)->shape[1]; c0 += SIDE)                                 \
                for (int64_t i = i0; i < i0 + SIDE && i < (row)->shape[0]; i++)                    \
                    for (int64_t c = c0; c < c0 + SIDE && c < (row)->shape[1]; c++) __VA_ARGS__;   \
    } while (0)

void qkvi_param_from_stored(const qkvi_param *row, const float *stored, float *values) {
    const int64_t n = row->shape[0], width = n * row->n_parts, cols = row->shape[1];
    const float *const part = stored + n * row->part;
    if (!row->transposed)
        memcpy(values, part, row->n_elems * sizeof *values);
    else
        EACH_OF_SQUARES(row, i, c, values[i * cols + c] = part[c * width + i]);
}

void qkvi_param_to_stored(const qkvi_param *row, const float *values, float *stored) {
    const int64_t n = row->shape[0], width = n * row->n_parts, cols = row->shape[1];
    float *const part = stored + n * row->part;
    if (!row->transposed)
        memcpy(part, values, row->n_elems * sizeof *values);
    else
        EACH_OF_SQUARES(row, i, c, part[c * width + i] = values[i * cols + c]);
}

/* ---- Looking up ------------------------------------------------------------------------------- */

const qkvi_param *qkvi_params_find(const qkvi_param_table *table, const char *name) {
    for (int64_t r = 0; r < table->n_rows; r++)
        if (strcmp(table->rows[r].name, name) == 0) return &table->rows[r];
    return NULL;
}

float *qkvi_params_at(const qkvi_param_table *table, float *arena, const char *name_format, ...) {
    char name[sizeof table->rows->name];
    va_list arguments;
    va_start(arguments, name_format);
    vsnprintf(name, sizeof name, name_format, arguments);
    va_end(arguments);
    const qkvi_param *row = qkvi_params_find(table, name);
    return row ? arena + row->offset : NULL;
}

float *qkvi_params_arena(const qkvi_param_table *table) {
    const size_t bytes = (table->n_elems ? table->n_elems : ALIGN_ELEMS) * sizeof(float);
    float *arena = aligned_alloc(64, bytes);
    if (arena) memset(arena, 0, bytes);
    return arena;
}

void qkvi_params_free(qkvi_param_table *table) {
    free(table->rows);
    memset(table, 0, sizeof *table);
}
