/*
 * Stored tensors on their way into the arena: see resolver.h. Threads take whole tensors, which lie
 * in places of their own, so the arena has the same bytes for any number of them.
 */
#include <stdatomic.h>

#include "files/base.h"
#include "files/gguf_types.h"
#include "kernels/table.h"
#include "model/weights/resolver.h"

enum { PIECE_ROWS = 64 }; /* params.h: qkvi_stored_rows */

/*
 * Rows of stored tensors on their way into the arena, some at a time, in memory that grows to the
 * largest.
 */
typedef struct row_buffer {
    float *values;
    size_t n_elems;
    const qkvi_kernels *kernels; /* that pack them */
} row_buffer;

static qkv_status reserve(const qkvi_resolver *resolver, size_t n_elems, row_buffer *buffer,
                          qkv_error *error) {
    if (n_elems <= buffer->n_elems) return QKV_OK;
    free(buffer->values);
    buffer->values = malloc(n_elems * sizeof(float));
    buffer->n_elems = buffer->values ? n_elems : 0;
    if (buffer->values) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for a tensor's rows",
                          resolver->file->source.name);
}

/* So many rows at a time that they stay in the second-level cache; a multiple of 64, or all. */
static int64_t rows_at_once(int64_t n_rows, int64_t n_cols) {
    const int64_t fit = QKVI_PIECE_ELEMS / PIECE_ROWS / (n_cols > 0 ? n_cols : 1) * PIECE_ROWS;
    const int64_t step = fit > PIECE_ROWS ? fit : PIECE_ROWS;
    return step < n_rows ? step : n_rows;
}

/* A tensor that n_parts rows are parts of, to the places of them all. */
static qkv_status load_pieces(const qkvi_resolver *resolver, const qkvi_stored *tensor,
                              const qkvi_param *rows, int64_t n_parts, float *arena,
                              row_buffer *buffer, qkv_error *error) {
    int64_t n_rows, n_cols;
    qkvi_param_stored_matrix(rows, &n_rows, &n_cols);
    const int64_t step = rows_at_once(n_rows, n_cols);
    QKV_TRY(reserve(resolver, (size_t)(step * n_cols), buffer, error));
    for (int64_t first = 0; first < n_rows; first += step) {
        const int64_t n = n_rows - first < step ? n_rows - first : step;
        const qkvi_stored_rows stored = { first, n, buffer->values, buffer->kernels };
        QKV_TRY(qkvi_safetensors_read_part(resolver->file, tensor, (size_t)(first * n_cols),
                                           (size_t)(n * n_cols), buffer->values, error));
        for (int64_t p = 0; p < n_parts; p++) qkvi_param_from_stored(&rows[p], &stored, arena);
    }
    return QKV_OK;
}

/* Rows first … first + n - 1 of a parameter that is rows of the tensor. */
static qkv_status read_rows(const qkvi_resolver *resolver, const qkvi_stored *tensor,
                            const qkvi_param *row, int64_t first, int64_t n, float *to,
                            qkv_error *error) {
    const int64_t n_cols = row->shape[1];
    for (int64_t r = 0, some; r < n; r += some) {
        const int64_t at = qkvi_param_stored_row(row, first + r, &some);
        if (some > n - r) some = n - r;
        QKV_TRY(qkvi_safetensors_read_part(resolver->file, tensor, (size_t)(at * n_cols),
                                           (size_t)(some * n_cols), to + r * n_cols, error));
    }
    return QKV_OK;
}

/* Rows of the tensor that are one parameter: as if they were a tensor of their own. */
static qkv_status load_rows(const qkvi_resolver *resolver, const qkvi_stored *tensor,
                            const qkvi_param *row, float *arena, row_buffer *buffer,
                            qkv_error *error) {
    const int64_t n_cols = row->shape[1], n_rows = row->shape[0];
    if (row->form == QKVI_PARAM_FLOATS)
        return read_rows(resolver, tensor, row, 0, n_rows, arena + row->offset, error);
    const int64_t step = rows_at_once(n_rows, n_cols);
    QKV_TRY(reserve(resolver, (size_t)(step * n_cols), buffer, error));
    for (int64_t first = 0; first < n_rows; first += step) {
        const int64_t n = n_rows - first < step ? n_rows - first : step;
        const qkvi_stored_rows stored = { first, n, buffer->values, buffer->kernels };
        QKV_TRY(read_rows(resolver, tensor, row, first, n, buffer->values, error));
        qkvi_param_from_stored(row, &stored, arena);
    }
    return QKV_OK;
}

/* Types that kernels multiply by, in the order of qkvi_block_kind. */
static bool find_format(const qkvi_gguf_type *type, qkvi_block_format *format) {
    static const char *const names[QKVI_N_BLOCK_KINDS] = { "Q4_0", "Q4_1", "Q5_0", "Q8_0",
                                                           "Q4_K", "Q5_K", "Q6_K" };
    for (int kind = 0; type->is_multiplied && kind < QKVI_N_BLOCK_KINDS; kind++) {
        if (strcmp(names[kind], type->name) != 0) continue;
        *format = (qkvi_block_format){ (qkvi_block_kind)kind, type->n_elems, type->n_bytes,
                                       type->to_f32 };
        return true;
    }
    return false;
}

static bool takes_blocks(const qkvi_param *row, const qkvi_stored *tensor) {
    const bool by_rows = !row->transposed && (row->n_parts == 1 || row->stored_rows);
    return tensor->blocks && by_rows && row->rank == 2 && (row->multiplies || row->is_words) &&
           row->shape[1] % tensor->blocks->n_elems == 0;
}

bool qkvi_resolver_blocks(const qkvi_resolver *resolver, qkvi_param_table *table) {
    bool any = false;
    for (int64_t r = 0; r < table->n_rows; r++) {
        qkvi_param *const row = &table->rows[r];
        const qkvi_stored *const tensor = qkvi_resolve(resolver, qkvi_param_stored_name(row));
        if (tensor && takes_blocks(row, tensor)) any |= find_format(tensor->blocks, &row->format);
    }
    return any;
}

/* Rows of blocks, as they are. */
static qkv_status load_blocks(const qkvi_resolver *resolver, const qkvi_stored *tensor,
                              const qkvi_param *row, float *arena, qkv_error *error) {
    const int64_t width = row->shape[1] / row->format.n_elems * row->format.n_bytes;
    uint8_t *const to = (uint8_t *)(arena + row->offset);
    for (int64_t r = 0, some; r < row->shape[0]; r += some) {
        const int64_t from = qkvi_param_stored_row(row, r, &some);
        if (some > row->shape[0] - r) some = row->shape[0] - r;
        QKV_TRY(
            qkvi_safetensors_read_rows(resolver->file, tensor, from, some, to + r * width, error));
    }
    return QKV_OK;
}

/* The tensor of these rows; only one that lies in the arena as it is stored is read there. */
static qkv_status load_tensor(const qkvi_resolver *resolver, const qkvi_param *rows,
                              int64_t n_parts, float *arena, row_buffer *buffer, qkv_error *error) {
    const qkvi_stored *const tensor = qkvi_resolve(resolver, qkvi_param_stored_name(rows));
    const bool as_it_is =
        !rows->transposed && rows->n_parts == 1 && rows->form == QKVI_PARAM_FLOATS;
    for (int64_t p = 0; rows->stored_rows && p < n_parts; p++)
        QKV_TRY(rows[p].form == QKVI_PARAM_BLOCKS
                    ? load_blocks(resolver, tensor, &rows[p], arena, error)
                    : load_rows(resolver, tensor, &rows[p], arena, buffer, error));
    if (rows->stored_rows) return QKV_OK;
    if (rows->form == QKVI_PARAM_BLOCKS) return load_blocks(resolver, tensor, rows, arena, error);
    if (as_it_is)
        return qkvi_safetensors_read_f32(resolver->file, tensor, arena + rows->offset, error);
    return load_pieces(resolver, tensor, rows, n_parts, arena, buffer, error);
}

/* ---- All tensors, by several threads --------------------------------------------------------- */

/* What one thread met: the first row that failed, and why. */
typedef struct outcome {
    qkv_status status;
    int64_t row;
    qkv_error error;
} outcome;

/* Tensors are drawn in order; firsts[t] is the first of the rows that the t-th is stored for. */
typedef struct work {
    const qkvi_resolver *resolver;
    const qkvi_param_table *table;
    float *arena;
    int64_t *firsts, n_tensors;
    atomic_int_fast64_t next;
    atomic_bool failed;
    outcome *outcomes;
} work;

static void load_some(void *argument, int index) {
    work *const w = argument;
    outcome *const met = &w->outcomes[index];
    row_buffer buffer = { .kernels = qkvi_kernels_best() };
    int64_t t;
    while (!w->failed && (t = atomic_fetch_add(&w->next, 1)) < w->n_tensors) {
        const qkvi_param *const rows = &w->table->rows[w->firsts[t]];
        met->row = t;
        met->status = load_tensor(w->resolver, rows, rows->n_parts, w->arena, &buffer, &met->error);
        if (met->status == QKV_OK) continue;
        w->failed = true;
        break;
    }
    free(buffer.values);
}

/* Whatever the threads did, all tensors before the one that is told were read. */
static qkv_status first_failure(const work *w, int n_threads, qkv_error *error) {
    const outcome *first = NULL;
    for (int i = 0; i < n_threads; i++)
        if (w->outcomes[i].status != QKV_OK && (!first || w->outcomes[i].row < first->row))
            first = &w->outcomes[i];
    return first ? qkvi_error_set(error, first->status, "%s", first->error.message) : QKV_OK;
}

/* Marks are made by one thread: two parameters may be one tensor. */
static void list_tensors(qkvi_resolver *resolver, work *w) {
    for (int64_t r = 0; r < w->table->n_rows; r += w->table->rows[r].n_parts) {
        const qkvi_stored *const tensor =
            qkvi_resolve(resolver, qkvi_param_stored_name(&w->table->rows[r]));
        resolver->used[tensor - resolver->file->tensors] = 1;
        w->firsts[w->n_tensors++] = r;
    }
}

qkv_status qkvi_resolver_load(qkvi_resolver *resolver, const qkvi_param_table *table,
                              qkvi_pool *pool, float *arena, qkv_error *error) {
    const int n_threads = qkvi_pool_threads(pool);
    work w = { .resolver = resolver, .table = table, .arena = arena };
    w.firsts = malloc(((size_t)table->n_rows + 1) * sizeof *w.firsts);
    w.outcomes = calloc((size_t)n_threads, sizeof *w.outcomes);
    qkv_status status = w.firsts && w.outcomes ? QKV_OK : qkvi_no_memory(error, "a model");
    if (status == QKV_OK) {
        list_tensors(resolver, &w);
        qkvi_pool_run(pool, n_threads, load_some, &w);
        status = first_failure(&w, n_threads, error);
    }
    free(w.firsts);
    free(w.outcomes);
    return status;
}
