/* Several GGUF files as one model: see gguf_parts.h. */
#include "files/gguf_parts.h"

#include <inttypes.h>

#include "files/gguf_keys.h"

/* What a file says about those beside it. */
typedef struct split {
    int64_t number, count, n_tensors; /* count 0: nothing; n_tensors -1: nothing */
} split;

static qkv_status read_split(const qkvi_gguf_file *file, split *s, qkv_error *error) {
    const qkvi_gguf_keys keys = { .file = file, .error = error };
    *s = (split){ .n_tensors = -1 };
    QKV_TRY(qkvi_gguf_take_int(&keys, "split.no", &s->number));
    QKV_TRY(qkvi_gguf_take_int(&keys, "split.count", &s->count));
    return qkvi_gguf_take_int(&keys, "split.tensors.count", &s->n_tensors);
}

static qkv_status open_file(const char *path, qkvi_gguf_parts *parts, qkv_error *error) {
    qkvi_source source;
    QKV_TRY(qkvi_source_open(path, &source, error));
    QKV_TRY(qkvi_gguf_read(&source, &parts->files[parts->n_files], error));
    parts->n_files++;
    return QKV_OK;
}

/* How the name of a part ends, and where its number is in that. */
enum { PATTERN = sizeof "-00001-of-00003.gguf" - 1, NUMBER_AT = 1 };

/* Whether a path ends so, with the number of the first file and that count. */
static bool is_first(const char *path, int64_t count) {
    char ending[PATTERN + 1];
    snprintf(ending, sizeof ending, "-00001-of-%05d.gguf", (int)count);
    return qkvi_has_stem(path, ending);
}

static qkv_status check_first(const qkvi_gguf_file *first, const char *path, const split *s,
                              qkv_error *error) {
    const char *const name = first->source.name;
    if (s->count < 1 || s->count > QKVI_GGUF_MAX_PARTS || s->number < 0 || s->number >= s->count)
        return qkvi_file_fail(error, QKV_ERR_FORMAT, name,
                              "split.no = %" PRId64 " and split.count = %" PRId64
                              " are no number of a file and of at most %d files",
                              s->number, s->count, QKVI_GGUF_MAX_PARTS);
    if (s->number > 0)
        return qkvi_file_fail(error, QKV_ERR_ARGUMENT, name,
                              "is file %" PRId64 " of %" PRId64
                              " of a model; name the first, which ends in -00001-of-%05" PRId64
                              ".gguf",
                              s->number + 1, s->count, s->count);
    if (is_first(path, s->count)) return QKV_OK;
    return qkvi_file_fail(error, QKV_ERR_FORMAT, name,
                          "split.count = %" PRId64
                          ", but the name does not end in -00001-of-%05" PRId64
                          ".gguf, by which the others are found",
                          s->count, s->count);
}

/* The file of that number says that it is it. */
static qkv_status check_other(const qkvi_gguf_file *file, const split *first, int64_t number,
                              qkv_error *error) {
    split s;
    QKV_TRY(read_split(file, &s, error));
    if (s.number == number && s.count == first->count) return QKV_OK;
    return qkvi_file_fail(error, QKV_ERR_FORMAT, file->source.name,
                          "split.no = %" PRId64 " and split.count = %" PRId64 ", not %" PRId64
                          " and %" PRId64,
                          s.number, s.count, number, first->count);
}

static qkv_status open_others(const char *path, const split *s, qkvi_gguf_parts *parts,
                              qkv_error *error) {
    char *const other = strdup(path);
    qkv_status status = other ? QKV_OK : qkvi_no_memory(error, "a path");
    for (int64_t i = 1; status == QKV_OK && i < s->count; i++) {
        char *const at = other + strlen(other) - PATTERN + NUMBER_AT;
        char digits[8];
        snprintf(digits, sizeof digits, "%05d", (int)(i + 1));
        memcpy(at, digits, 5);
        status = open_file(other, parts, error);
        if (status == QKV_OK) status = check_other(parts->files[i], s, i, error);
    }
    free(other);
    return status;
}

/* ---- Tensors of all -------------------------------------------------------------------------- */

static int by_name(const void *left, const void *right) {
    return strcmp((*(qkvi_gguf_tensor *const *)left)->name,
                  (*(qkvi_gguf_tensor *const *)right)->name);
}

const qkvi_gguf_tensor *qkvi_gguf_tensor_of(const qkvi_gguf_parts *parts, const char *name) {
    const qkvi_gguf_tensor key = { .name = (char *)(uintptr_t)name };
    const qkvi_gguf_tensor *const place = &key;
    if (!parts->n_tensors) return NULL;
    qkvi_gguf_tensor **const found =
        bsearch(&place, parts->tensors, (size_t)parts->n_tensors, sizeof *parts->tensors, by_name);
    return found ? *found : NULL;
}

static qkv_status merge(qkvi_gguf_parts *parts, qkv_error *error) {
    const char *const name = parts->files[0]->source.name;
    int64_t n = 0;
    for (int64_t f = 0; f < parts->n_files; f++) n += parts->files[f]->n_tensors;
    parts->tensors = calloc((size_t)n + 1, sizeof *parts->tensors);
    if (!parts->tensors)
        return qkvi_file_fail(error, QKV_ERR_MEMORY, name, "no memory for its names");
    for (int64_t f = 0; f < parts->n_files; f++)
        for (int64_t t = 0; t < parts->files[f]->n_tensors; t++) {
            parts->files[f]->tensors[t].part = f;
            parts->tensors[parts->n_tensors++] = &parts->files[f]->tensors[t];
        }
    if (n) qsort(parts->tensors, (size_t)n, sizeof *parts->tensors, by_name);
    for (int64_t t = 1; t < n; t++)
        if (by_name(&parts->tensors[t - 1], &parts->tensors[t]) == 0)
            return qkvi_file_fail(error, QKV_ERR_FORMAT, name, "tensor '%s' is in two files",
                                  QKVI_PRINTABLE(160, parts->tensors[t]->name));
    return QKV_OK;
}

static qkv_status open_all(const char *path, qkvi_gguf_parts *parts, qkv_error *error) {
    split s;
    QKV_TRY(open_file(path, parts, error));
    QKV_TRY(read_split(parts->files[0], &s, error));
    if (s.count > 1 || s.number != 0) {
        QKV_TRY(check_first(parts->files[0], path, &s, error));
        QKV_TRY(open_others(path, &s, parts, error));
    }
    QKV_TRY(merge(parts, error));
    if (s.count <= 1 || s.n_tensors < 0 || s.n_tensors == parts->n_tensors) return QKV_OK;
    return qkvi_file_fail(error, QKV_ERR_FORMAT, parts->files[0]->source.name,
                          "split.tensors.count = %" PRId64 ", but the files have %" PRId64,
                          s.n_tensors, parts->n_tensors);
}

/* ---- Whole ----------------------------------------------------------------------------------- */

static qkv_status make_room(qkvi_gguf_parts *parts, qkv_error *error) {
    *parts = (qkvi_gguf_parts){ 0 };
    parts->files = calloc(QKVI_GGUF_MAX_PARTS, sizeof *parts->files);
    return parts->files ? QKV_OK : qkvi_no_memory(error, "a GGUF file");
}

qkv_status qkvi_gguf_parts_open(const char *path, qkvi_gguf_parts *parts, qkv_error *error) {
    QKV_TRY(make_room(parts, error));
    const qkv_status status = open_all(path, parts, error);
    if (status != QKV_OK) qkvi_gguf_parts_close(parts);
    return status;
}

qkv_status qkvi_gguf_parts_memory(const char *name, const void *bytes, size_t n_bytes,
                                  qkvi_gguf_parts *parts, qkv_error *error) {
    qkvi_source source;
    QKV_TRY(make_room(parts, error));
    qkv_status status = qkvi_source_memory(name, bytes, n_bytes, &source, error);
    if (status == QKV_OK) status = qkvi_gguf_read(&source, &parts->files[0], error);
    if (status == QKV_OK) parts->n_files = 1;
    if (status == QKV_OK) status = merge(parts, error);
    if (status != QKV_OK) qkvi_gguf_parts_close(parts);
    return status;
}

void qkvi_gguf_parts_close(qkvi_gguf_parts *parts) {
    for (int64_t f = 0; f < parts->n_files; f++) qkvi_gguf_file_close(parts->files[f]);
    free(parts->files);
    free(parts->tensors);
    *parts = (qkvi_gguf_parts){ 0 };
}
