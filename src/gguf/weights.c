/*
 * Views of stored tensors: see weights.h. A part of a view is read in runs of what lies side by
 * side in the file: all of it where rows are in order, else row by row, or column by column. A run
 * is read in whole blocks, so every value has the same bits however the parts are cut.
 */
#include "gguf/weights.h"

#include <inttypes.h>

#include "core/fpstate.h"

enum { CHUNK_BYTES = 1 << 16 };

/* ---- Lists ----------------------------------------------------------------------------------- */

qkv_status qkvi_gguf_views_add(qkvi_gguf_views *views, const char *name, qkvi_gguf_view view,
                               qkv_error *error) {
    view.name = strdup(name);
    if (!view.name ||
        qkvi_reserve(&views->views, &views->capacity, views->n + 1, sizeof view) != QKV_OK) {
        free(view.name);
        return qkvi_no_memory(error, "names of tensors");
    }
    views->views[views->n++] = view;
    return QKV_OK;
}

void qkvi_gguf_views_free(qkvi_gguf_views *views) {
    for (size_t v = 0; v < views->n; v++) free(views->views[v].name);
    free(views->views);
    *views = (qkvi_gguf_views){ 0 };
}

static int by_name(const void *left, const void *right) {
    return strcmp(((const qkvi_gguf_view *)left)->name, ((const qkvi_gguf_view *)right)->name);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* What a read needs; each thread that reads has its own. */
typedef struct reading {
    const qkvi_gguf_view *view;
    const qkvi_source *source;
    uint8_t *bytes; /* [CHUNK_BYTES] */
    qkv_error *error;
} reading;

/* n elements of a block from element `from` on. */
static void take_of_block(const qkvi_gguf_type *type, const uint8_t *block, size_t from, size_t n,
                          float *to) {
    float values[QKVI_GGUF_MAX_BLOCK];
    type->to_f32(block, values);
    memcpy(to, values + from, n * sizeof *to);
}

/*
 * Elements [first, first + n) of the stored tensor, in their order there: whole blocks at once, and
 * parts of the first and of the last.
 */
static qkv_status read_run(const reading *r, uint64_t first, size_t n, float *to) {
    const qkvi_gguf_tensor *const tensor = r->view->tensor;
    const qkvi_gguf_type *const type = tensor->type;
    const size_t width = (size_t)type->n_elems, bytes = (size_t)type->n_bytes;
    const size_t most = CHUNK_BYTES / bytes;
    while (n > 0) {
        const uint64_t begin = first / width;
        const size_t skip = (size_t)(first % width), wanted = (skip + n + width - 1) / width;
        const size_t n_blocks = wanted < most ? wanted : most;
        QKV_TRY(qkvi_source_read(r->source, tensor->begin + begin * bytes, r->bytes,
                                 n_blocks * bytes, r->error));
        const size_t head = skip == 0 ? 0 : width - skip < n ? width - skip : n;
        if (head > 0) take_of_block(type, r->bytes, skip, head, to);
        const size_t used = head > 0, left = n - head, room = n_blocks - used;
        const size_t whole = left / width < room ? left / width : room;
        qkvi_gguf_to_f32(type, r->bytes + used * bytes, whole, to + head);
        size_t done = head + whole * width;
        if (used + whole < n_blocks) { /* the last block, of which less is wanted */
            take_of_block(type, r->bytes + (used + whole) * bytes, 0, n - done, to + done);
            done = n;
        }
        to += done;
        first += done;
        n -= done;
    }
    return QKV_OK;
}

/* Where the row is stored that is row number `row` of the parameter. */
static int64_t stored_row(const qkvi_gguf_view *view, int64_t row) {
    if (view->by_head) {
        const int64_t d = view->n_rows / (3 * view->n_heads), head = row / (3 * d);
        row = (row / d % 3) * d * view->n_heads + head * d + row % d;
    } else if (view->n_heads) {
        const int64_t d = view->n_rows / view->n_heads, head = row / d, i = row % d;
        row = head * d + (i < d / 2 ? 2 * i : 2 * (i - d / 2) + 1);
    }
    return view->first_row + row;
}

/* Elements of a row, of the stored tensor; a vector has rows of one. */
static int64_t row_elems(const qkvi_gguf_tensor *tensor) {
    return tensor->rank == 1 ? 1 : (int64_t)tensor->n_elems / tensor->shape[0];
}

static qkv_status read_by_rows(const reading *r, size_t first, size_t n, float *to) {
    const int64_t cols = row_elems(r->view->tensor);
    while (n > 0) {
        const int64_t row = (int64_t)first / cols, col = (int64_t)first % cols;
        const size_t left = (size_t)(cols - col), some = left < n ? left : n;
        QKV_TRY(read_run(r, (uint64_t)(stored_row(r->view, row) * cols + col), some, to));
        to += some;
        first += some;
        n -= some;
    }
    return QKV_OK;
}

/*
 * Of a transpose, whose rows are columns of the stored tensor: of each stored row the elements that
 * are wanted, put where they belong. scratch has room for as many as there are rows.
 */
static qkv_status read_turned(const reading *r, size_t first, size_t n, float *scratch, float *to) {
    const size_t cols = (size_t)r->view->n_rows, width = (size_t)row_elems(r->view->tensor);
    const size_t begin = first / cols, end = (first + n - 1) / cols + 1;
    for (size_t c = 0; c < cols; c++) {
        const uint64_t at = (uint64_t)stored_row(r->view, (int64_t)c) * width + begin;
        QKV_TRY(read_run(r, at, end - begin, scratch));
        for (size_t row = begin; row < end; row++) {
            const size_t place = row * cols + c;
            if (place >= first && place < first + n) to[place - first] = scratch[row - begin];
        }
    }
    return QKV_OK;
}

static qkv_status read_any(const reading *r, size_t first, size_t n, float *to) {
    const qkvi_gguf_view *const view = r->view;
    const int64_t cols = row_elems(view->tensor);
    if (view->turned) {
        const size_t rows = n / (size_t)view->n_rows + 2;
        float *const scratch = malloc(rows * sizeof *scratch);
        if (!scratch) return qkvi_no_memory(r->error, "rows of a tensor");
        const qkv_status status = read_turned(r, first, n, scratch, to);
        free(scratch);
        return status;
    }
    if (view->n_heads) return read_by_rows(r, first, n, to);
    return read_run(r, (uint64_t)(view->first_row * cols) + first, n, to);
}

/* The set's own: what its tensors are read by, in their order. */
typedef struct weights {
    const qkvi_gguf_parts *parts;
    const qkvi_gguf_views *views;
} weights;

static qkv_status read_part(const void *user, const qkvi_stored *tensor, int64_t index,
                            size_t first, size_t n, float *to, qkv_error *error) {
    const weights *const w = user;
    const qkvi_gguf_view *const view = &w->views->views[index];
    reading r = { .view = view, .source = &w->parts->files[tensor->shard]->source, .error = error };
    r.bytes = malloc(CHUNK_BYTES);
    if (!r.bytes) return qkvi_no_memory(error, "blocks of a tensor");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = n ? read_any(&r, first, n, to) : QKV_OK;
    if (view->add != 0)
        for (size_t i = 0; status == QKV_OK && i < n; i++) to[i] += view->add;
    qkvi_fpstate_leave(saved);
    free(r.bytes);
    return status;
}

static qkv_status read_rows(const void *user, const qkvi_stored *tensor, int64_t index,
                            int64_t first, int64_t n, uint8_t *to, qkv_error *error) {
    const weights *const w = user;
    const qkvi_gguf_view *const view = &w->views->views[index];
    const qkvi_gguf_type *const type = view->tensor->type;
    const qkvi_source *const source = &w->parts->files[tensor->shard]->source;
    const size_t width = (size_t)(row_elems(view->tensor) / type->n_elems * type->n_bytes);
    const int64_t at_once = view->n_heads ? 1 : n;
    for (int64_t r = 0; r < n; r += at_once) {
        const uint64_t at = (uint64_t)stored_row(view, first + r) * width;
        QKV_TRY(qkvi_source_read(source, view->tensor->begin + at, to + (size_t)r * width,
                                 (size_t)at_once * width, error));
    }
    return QKV_OK;
}

/* ---- The set --------------------------------------------------------------------------------- */

static qkv_status check_view(const qkvi_gguf_parts *parts, const qkvi_gguf_view *view,
                             qkv_error *error) {
    const qkvi_gguf_tensor *const tensor = view->tensor;
    const char *const file = parts->files[tensor->part]->source.name;
    if (!tensor->type->to_f32)
        return qkvi_file_fail(error, QKV_ERR_UNSUPPORTED, file,
                              "tensor '%s' is of type %s, which is not supported for weights",
                              QKVI_PRINTABLE(160, tensor->name), tensor->type->name);
    if (!view->n_heads || view->by_head || view->n_rows % (2 * view->n_heads) == 0) return QKV_OK;
    return qkvi_file_fail(error, QKV_ERR_SHAPE, file,
                          "tensor '%s' has %" PRId64 " rows, which %" PRId64
                          " heads of pairs do not divide",
                          QKVI_PRINTABLE(160, tensor->name), view->n_rows, view->n_heads);
}

static void describe(const qkvi_gguf_view *view, qkvi_stored *stored) {
    const qkvi_gguf_tensor *const tensor = view->tensor;
    stored->name = view->name;
    stored->type = QKVI_F32; /* whatever it is in the file */
    stored->rank = tensor->rank;
    memcpy(stored->shape, tensor->shape, sizeof tensor->shape);
    stored->shape[0] = view->n_rows;
    if (view->turned) {
        stored->shape[0] = tensor->shape[1];
        stored->shape[1] = view->n_rows;
    }
    stored->n_elems = (size_t)(view->n_rows * row_elems(tensor));
    stored->begin = tensor->begin;
    stored->end = tensor->begin + tensor->n_bytes;
    stored->shard = tensor->part;
    if (tensor->rank == 2 && !view->turned && view->add == 0 &&
        row_elems(tensor) % tensor->type->n_elems == 0)
        stored->blocks = tensor->type;
}

static qkv_status describe_all(const qkvi_gguf_parts *parts, qkvi_gguf_views *views,
                               qkvi_safetensors *file, qkv_error *error) {
    file->tensors = calloc(views->n + 1, sizeof *file->tensors);
    if (!file->tensors) return qkvi_no_memory(error, "names of tensors");
    if (views->n) qsort(views->views, views->n, sizeof *views->views, by_name);
    for (size_t v = 0; v < views->n; v++) {
        QKV_TRY(check_view(parts, &views->views[v], error));
        if (v > 0 && by_name(&views->views[v - 1], &views->views[v]) == 0)
            return qkvi_file_fail(error, QKV_ERR_FORMAT, parts->files[0]->source.name,
                                  "tensors '%s' and '%s' are the same parameter",
                                  QKVI_PRINTABLE(160, views->views[v - 1].tensor->name),
                                  QKVI_PRINTABLE(160, views->views[v].tensor->name));
        describe(&views->views[v], &file->tensors[v]);
    }
    file->n_tensors = (int64_t)views->n;
    return QKV_OK;
}

/* What messages call a file whose tensors are read through the parts. */
static qkv_status take_name(const qkvi_gguf_file *from, qkvi_source *source, qkv_error *error) {
    source->name = strdup(from->source.name); /* escaped already */
    return source->name ? QKV_OK : qkvi_no_memory(error, "names of files");
}

static qkv_status name_shards(const qkvi_gguf_parts *parts, qkvi_safetensors *file,
                              qkv_error *error) {
    QKV_TRY(take_name(parts->files[0], &file->source, error));
    if (parts->n_files == 1) return QKV_OK;
    file->shards = calloc((size_t)parts->n_files, sizeof *file->shards);
    if (!file->shards) return qkvi_no_memory(error, "names of files");
    for (int64_t f = 0; f < parts->n_files; f++) {
        qkvi_safetensors *const shard = file->shards[f] = calloc(1, sizeof *shard);
        if (!shard) return qkvi_no_memory(error, "names of files");
        file->n_shards++;
        QKV_TRY(take_name(parts->files[f], &shard->source, error));
    }
    return QKV_OK;
}

qkv_status qkvi_gguf_weights(const qkvi_gguf_parts *parts, qkvi_gguf_views *views,
                             qkvi_safetensors **file, qkv_error *error) {
    *file = calloc(1, sizeof **file);
    weights *const own = malloc(sizeof *own);
    if (*file) (*file)->reader = (qkvi_stored_reader){ read_part, read_rows, own };
    qkv_status status = *file && own ? QKV_OK : qkvi_no_memory(error, "tensors");
    if (own) *own = (weights){ parts, views };
    if (status == QKV_OK) status = name_shards(parts, *file, error);
    if (status == QKV_OK) status = describe_all(parts, views, *file, error);
    if (status == QKV_OK) return QKV_OK;
    if (!*file) free(own);
    qkvi_safetensors_close(*file);
    *file = NULL;
    return status;
}
