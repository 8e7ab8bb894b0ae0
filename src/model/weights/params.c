/*
 * The parameter table: see params.h. Rows are appended in the order of the architecture; each
 * starts on a 64-byte line so that vector kernels may be given any of them, and the gaps are zeros
 * that no kernel reads.
 *
 * A linear layer's W [n_out][n_in] multiplies as B = Wᵀ, so a row of panels of W is one of B's
 * columns; a stored tensor that is transposed already has B's rows.
 */
#include "model/weights/params.h"

#include <stdarg.h>

enum { ALIGN_ELEMS = 16, MAX_ROWS = 1 << 20 };

static qkv_status grow(qkvi_param_table *table, qkv_error *error) {
    if (table->n_rows < table->capacity) return QKV_OK;
    const int64_t capacity = table->capacity ? 2 * table->capacity : 64;
    if (capacity > MAX_ROWS)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "the model has more than %d parameter tensors",
                              MAX_ROWS);
    qkvi_param *rows = realloc(table->rows, (size_t)capacity * sizeof *rows);
    if (!rows) return qkvi_no_memory(error, "the parameter table");
    table->rows = rows;
    table->capacity = capacity;
    return QKV_OK;
}

static qkv_status too_large(const qkvi_param *row, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: shape [%lld,%lld] is too large", row->name,
                          (long long)row->shape[0], (long long)row->shape[1]);
}

/* Of rows of blocks, in words. */
static size_t block_words(const qkvi_param *row) {
    const size_t n = row->n_elems / (size_t)row->format.n_elems;
    size_t bytes;
    if (!qkvi_mul_size(n, (size_t)row->format.n_bytes, &bytes)) return SIZE_MAX;
    return bytes / sizeof(float) + (bytes % sizeof(float) != 0);
}

static size_t int8_words(size_t n_panels) {
    return n_panels == SIZE_MAX ? SIZE_MAX : n_panels * (sizeof(qkvi_int8_panel) / sizeof(float));
}

size_t qkvi_param_words(const qkvi_param *row) {
    switch (row->form) {
    case QKVI_PARAM_PANELS: return qkvi_gemm_packed_elems(row->shape[1], row->shape[0]);
    case QKVI_PARAM_HALF: return qkvi_bf16_packed_words(row->shape[1], row->shape[0]);
    case QKVI_PARAM_INT8: return int8_words(qkvi_int8_packed_panels(row->shape[1], row->shape[0]));
    case QKVI_PARAM_BLOCKS: return block_words(row);
    default: return row->n_elems;
    }
}

/* A row's place behind those that have one. */
static qkv_status place(qkvi_param_table *table, qkvi_param *row, qkv_error *error) {
    size_t end;
    row->offset = table->n_elems;
    if (__builtin_add_overflow(row->offset, qkvi_param_words(row), &end) ||
        end > SIZE_MAX / sizeof(float) - ALIGN_ELEMS)
        return too_large(row, error);
    table->n_elems = (end + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
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
    if (rows < 0 || cols < 0 ||
        __builtin_mul_overflow((size_t)rows, (size_t)row->shape[1], &row->n_elems))
        return too_large(row, error);
    QKV_TRY(place(table, row, error));
    table->n_rows++;
    return QKV_OK;
}

/* ---- As layers multiply with them ------------------------------------------------------------ */

void qkvi_params_multiplies(qkvi_param_table *table) {
    table->rows[table->n_rows - 1].multiplies = true;
}

qkv_status qkvi_params_pack(qkvi_param_table *table, qkvi_param_form form, qkv_error *error) {
    table->n_elems = 0;
    for (int64_t r = 0; r < table->n_rows; r++) {
        qkvi_param *const row = &table->rows[r];
        if (row->multiplies) row->form = form;
        if (row->format.n_elems) row->form = QKVI_PARAM_BLOCKS;
        QKV_TRY(place(table, row, error));
    }
    return QKV_OK;
}

qkvi_weights qkvi_param_weights(const qkvi_param *row, const float *arena) {
    const float *const at = arena + row->offset;
    return (qkvi_weights){ .n_in = row->shape[1],
                           .floats = row->form == QKVI_PARAM_FLOATS ? at : NULL,
                           .panels = row->form == QKVI_PARAM_PANELS ? at : NULL,
                           .half = row->form == QKVI_PARAM_HALF ? (const uint32_t *)at : NULL,
                           .int8 =
                               row->form == QKVI_PARAM_INT8 ? (const qkvi_int8_panel *)at : NULL,
                           .blocks = row->form == QKVI_PARAM_BLOCKS ? (const uint8_t *)at : NULL,
                           .format = &row->format };
}

/* ---- As files have them ---------------------------------------------------------------------- */

/* The last row is a part of a stored tensor of this name. */
static qkvi_param *store_part(qkvi_param_table *table, int part, int n_parts, const char *format,
                              va_list arguments) {
    qkvi_param *const row = &table->rows[table->n_rows - 1];
    vsnprintf(row->stored, sizeof row->stored, format, arguments);
    row->part = part;
    row->n_parts = n_parts;
    return row;
}

void qkvi_params_stored_as(qkvi_param_table *table, bool transposed, int part, int n_parts,
                           const char *name_format, ...) {
    va_list arguments;
    va_start(arguments, name_format);
    store_part(table, part, n_parts, name_format, arguments)->transposed = transposed;
    va_end(arguments);
}

void qkvi_params_stored_rows(qkvi_param_table *table, int part, int n_parts, int64_t first_row,
                             int64_t stored_rows, const char *name_format, ...) {
    va_list arguments;
    va_start(arguments, name_format);
    qkvi_param *const row = store_part(table, part, n_parts, name_format, arguments);
    va_end(arguments);
    row->first_row = first_row;
    row->stored_rows = stored_rows;
}

void qkvi_params_take_turns(qkvi_param_table *table, int64_t n) {
    table->rows[table->n_rows - 1].turn = n;
}

int64_t qkvi_param_stored_row(const qkvi_param *row, int64_t r, int64_t *n) {
    if (row->turn == 0) {
        *n = row->shape[0] - r;
        return row->first_row + r;
    }
    *n = row->turn - r % row->turn;
    return row->first_row + r / row->turn * row->turn * row->n_parts + r % row->turn;
}

const char *qkvi_param_stored_name(const qkvi_param *row) {
    return *row->stored ? row->stored : row->name;
}

void qkvi_params_stored_axes(qkvi_param_table *table, int rank, const int64_t *axes) {
    qkvi_param *const row = &table->rows[table->n_rows - 1];
    row->stored_rank = rank;
    memcpy(row->stored_axes, axes, (size_t)rank * sizeof *axes);
}

/* As a matrix, whatever axes the tensor has. */
static void stored_shape(const qkvi_param *row, int64_t shape[2]) {
    shape[0] = row->transposed ? row->shape[1] : row->shape[0];
    shape[1] = row->transposed ? row->shape[0] : row->shape[1];
    if (row->stored_rows)
        shape[0] = row->stored_rows;
    else
        shape[row->rank - 1] *= row->n_parts;
}

int qkvi_param_stored_shape(const qkvi_param *row, int64_t shape[QKVI_STORED_AXES]) {
    if (row->stored_rank == 0) {
        stored_shape(row, shape);
        return row->rank;
    }
    memcpy(shape, row->stored_axes, sizeof row->stored_axes);
    return row->stored_rank;
}

void qkvi_param_stored_matrix(const qkvi_param *row, int64_t *n_rows, int64_t *n_cols) {
    int64_t shape[2];
    stored_shape(row, shape);
    *n_rows = row->rank == 2 ? shape[0] : 1;
    *n_cols = shape[row->rank - 1];
}

/*
 * Rows of the row's own matrix, or, where that is stored transposed, columns in squares that fit
 * the cache.
 */
static void floats_from_stored(const qkvi_param *row, const qkvi_stored_rows *stored,
                               const float *part, int64_t width, float *values) {
    enum { SIDE = 16 };
    const int64_t n_out = row->shape[0], n_in = row->shape[1];
    if (row->rank == 1)
        memcpy(values, part, row->n_elems * sizeof *values);
    else if (!row->transposed)
        memcpy(values + stored->first * n_in, part, (size_t)(stored->n * n_in) * sizeof *values);
    else
        for (int64_t c0 = 0; c0 < stored->n; c0 += SIDE)
            for (int64_t i = 0; i < n_out; i++)
                for (int64_t c = c0; c < c0 + SIDE && c < stored->n; c++)
                    values[i * n_in + stored->first + c] = part[c * width + i];
}

void qkvi_param_from_stored(const qkvi_param *row, const qkvi_stored_rows *stored, float *arena) {
    const int64_t n_out = row->shape[0], n_in = row->shape[1];
    const int n_parts = row->stored_rows ? 1 : row->n_parts;
    const int64_t width = n_out * n_parts;
    const float *const part = stored->values + (row->stored_rows ? 0 : n_out * row->part);
    float *const values = arena + row->offset;
    const qkvi_gemm_piece in_order = { 0, n_in, stored->first, stored->n, part, 1, n_in };
    const qkvi_gemm_piece turned = { stored->first, stored->n, 0, n_out, part, width, 1 };
    const qkvi_gemm_piece *const piece = row->transposed ? &turned : &in_order;
    switch (row->form) {
    case QKVI_PARAM_FLOATS: floats_from_stored(row, stored, part, width, values); break;
    case QKVI_PARAM_PANELS: qkvi_gemm_pack_piece(n_in, n_out, piece, values); break;
    case QKVI_PARAM_HALF:
        qkvi_bf16_pack_piece(stored->kernels, n_in, piece, (uint32_t *)values);
        break;
    case QKVI_PARAM_INT8:
        qkvi_int8_pack_piece(stored->kernels, n_in, piece, (qkvi_int8_panel *)values);
        break;
    case QKVI_PARAM_BLOCKS: break; /* are read as they are */
    }
}

/* To the rows of a tensor that they are. */
static void to_stored_rows(const qkvi_param *row, const float *values, float *stored) {
    const int64_t cols = row->shape[1];
    for (int64_t r = 0, n; r < row->shape[0]; r += n) {
        float *const to = stored + qkvi_param_stored_row(row, r, &n) * cols;
        memcpy(to, values + r * cols, (size_t)(n * cols) * sizeof *to);
    }
}

void qkvi_param_to_stored(const qkvi_param *row, const float *values, float *stored) {
    enum { SIDE = 16 };
    const int64_t n = row->shape[0], width = n * row->n_parts, cols = row->shape[1];
    float *const part = stored + n * row->part;
    if (row->stored_rows) {
        to_stored_rows(row, values, stored);
        return;
    }
    if (!row->transposed) {
        memcpy(part, values, row->n_elems * sizeof *values);
        return;
    }
    for (int64_t i0 = 0; i0 < n; i0 += SIDE)
        for (int64_t c = 0; c < cols; c++)
            for (int64_t i = i0; i < i0 + SIDE && i < n; i++)
                part[c * width + i] = values[i * cols + c];
}

/* ---- Looking up ------------------------------------------------------------------------------ */

const qkvi_param *qkvi_params_find(const qkvi_param_table *table, const char *name) {
    for (int64_t r = 0; r < table->n_rows; r++)
        if (strcmp(table->rows[r].name, name) == 0) return &table->rows[r];
    return NULL;
}

float *qkvi_params_room(const qkvi_param_table *table) {
    float *const arena = qkvi_aligned_array(table->n_elems, sizeof *arena);
    for (int64_t r = 0; arena && r < table->n_rows; r++) {
        const qkvi_param *const row = &table->rows[r];
        const size_t end = row->offset + qkvi_param_words(row);
        const size_t next = r + 1 < table->n_rows ? row[1].offset : table->n_elems;
        memset(arena + end, 0, (next - end) * sizeof *arena);
    }
    return arena;
}

float *qkvi_params_zeros(size_t n) {
    float *const made = qkvi_aligned_array(n, sizeof *made);
    if (made) memset(made, 0, n * sizeof *made);
    return made;
}

float *qkvi_params_arena(const qkvi_param_table *table) {
    return qkvi_params_zeros(table->n_elems);
}

void qkvi_params_free(qkvi_param_table *table) {
    free(table->rows);
    memset(table, 0, sizeof *table);
}
