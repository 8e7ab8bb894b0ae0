/*
 * qkv_array_read: reads an array from any supported format, by its name. Stored floats of any width
 * become f32, or bf16 or f16 on request; integers become i64, booleans bytes of 0 and 1. Fortran
 * order is transposed while reading. Memory is at most eight times the size of the file.
 */
#include "files/csv_array.h"
#include "files/gguf_find.h"
#include "files/gguf_list.h"
#include "files/npy.h"
#include "files/safetensors.h"
#include "files/shards.h"

_Static_assert(QKVI_MAX_RANK == 8 && QKVI_NPY_MAX_RANK == 8, "the rank of qkv_array.shape");

/* A tensor's bytes, which are taken at once. */
typedef struct tensor_bytes {
    const qkvi_safetensors *file;
    const qkvi_stored *tensor;
} tensor_bytes;

static qkv_status take_tensor(void *user, void *destination, size_t n, qkv_error *error) {
    const tensor_bytes *const from = user;
    (void)n;
    return qkvi_safetensors_read_raw(from->file, from->tensor, destination, error);
}

static qkv_status read_tensor(const qkvi_safetensors *file, const char *name, qkv_array_type floats,
                              qkv_array **array, qkv_error *error) {
    const qkvi_stored *const tensor = qkvi_safetensors_find(file, name);
    if (!tensor)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s: there is no tensor '%s'",
                              file->source.name, QKVI_PRINTABLE(200, name));
    QKV_TRY(qkvi_array_make(qkvi_array_type_of(tensor->type, floats), tensor->rank, tensor->shape,
                            tensor->n_elems, array, error));
    (*array)->stored = qkvi_elem_name(tensor->type);
    tensor_bytes from = { file, tensor };
    const qkvi_byte_source bytes = { file->source.name, tensor->end - tensor->begin, take_tensor,
                                     &from };
    const qkvi_stored_elems stored = { tensor->type, 0, tensor->n_elems };
    return qkvi_array_fill(&bytes, &stored, *array, error);
}

static qkv_status read_safetensors(const char *path, const char *name, qkv_array_type floats,
                                   qkv_array **array, qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(qkvi_safetensors_open(path, &file, error));
    const qkv_status status = read_tensor(file, name, floats, array, error);
    qkvi_safetensors_close(file);
    return status;
}

/* Kinds of files that hold arrays by name. */
static const struct container {
    const char *ending; /* of FILE; a colon and NAME follow */
    qkv_status (*read)(const char *path, const char *name, qkv_array_type floats, qkv_array **array,
                       qkv_error *error);
} containers[] = { { ".safetensors:", read_safetensors }, { ".npz:", qkvi_npz_read } };

static qkv_status read_named(const char *path, const char *name, const struct container *container,
                             qkv_array_type floats, qkv_array **array, qkv_error *error) {
    char *const file = strndup(path, (size_t)(name - path) - 1);
    if (!file) return qkvi_no_memory(error, "a path");
    const qkv_status status = container->read(file, name, floats, array, error);
    free(file);
    return status;
}

/* FILE:NAME of a container, a text, or else the path of a .npy. */
static qkv_status read_path(const char *path, qkv_array_type floats, qkv_array **array,
                            qkv_error *error) {
    for (size_t c = 0; c < sizeof containers / sizeof *containers; c++) {
        const char *const ending = containers[c].ending, *const found = strstr(path, ending);
        const size_t n = strlen(path), m = strlen(ending) - 1; /* without the colon */
        if (found) return read_named(path, found + m + 1, &containers[c], floats, array, error);
        if (n >= m && memcmp(path + n - m, ending, m) == 0)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "a %.*s file holds many arrays: name one as FILE:NAME", (int)m,
                                  ending);
    }
    if (qkvi_has_stem(path, ".csv") || qkvi_has_stem(path, ".tsv"))
        return qkvi_csv_read_array(path, floats, array, error);
    return qkvi_npy_read_array(path, floats, array, error);
}

static qkv_status check_asked(qkv_array_type floats, qkv_array **array, qkv_error *error) {
    if (!array) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "array is NULL");
    *array = NULL;
    if (floats == QKV_ARRAY_F32 || floats == QKV_ARRAY_BF16 || floats == QKV_ARRAY_F16)
        return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "floats = %d is none of QKV_ARRAY_F32, QKV_ARRAY_BF16, QKV_ARRAY_F16",
                          (int)floats);
}

/* What was made before a failure is nobody's. */
static qkv_status settled(qkv_status status, qkv_array **array) {
    if (status != QKV_OK) {
        qkv_array_free(*array);
        *array = NULL;
    }
    return status;
}

qkv_status qkv_array_read(const char *path, qkv_array_type floats, qkv_array **array,
                          qkv_error *error) {
    QKV_TRY(check_asked(floats, array, error));
    if (!path) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path is NULL");
    return settled(read_path(path, floats, array, error), array);
}

/* Bytes in memory from their front; the header is checked against how many there are. */
static qkv_status take_from_memory(void *user, void *destination, size_t n, qkv_error *error) {
    const char **const at = user;
    (void)error;
    if (n > 0) memcpy(destination, *at, n);
    *at += n;
    return QKV_OK;
}

static qkv_status parse_npy(const char *name, const char *at, size_t n_bytes, qkv_array_type floats,
                            qkv_array **array, qkv_error *error) {
    char shown[QKVI_NAME_BYTES];
    const qkvi_byte_source bytes = { qkvi_escape(shown, sizeof shown, name, strlen(name)), n_bytes,
                                     take_from_memory, &at };
    return qkvi_npy_take_array(&bytes, floats, array, error);
}

static int begins_with(const void *bytes, size_t n_bytes, const char *with) {
    return n_bytes >= strlen(with) && memcmp(bytes, with, strlen(with)) == 0;
}

qkv_status qkv_array_parse(const char *name, const void *bytes, size_t n_bytes,
                           qkv_array_type floats, qkv_array **array, qkv_error *error) {
    QKV_TRY(check_asked(floats, array, error));
    if (!name || (!bytes && n_bytes > 0))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", name ? "bytes" : "name");
    if (begins_with(bytes, n_bytes, "\x93NUMPY"))
        return settled(parse_npy(name, bytes, n_bytes, floats, array, error), array);
    if (begins_with(bytes, n_bytes, "PK\x03\x04"))
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: is a zip: a .npz is read from a file, as FILE:NAME",
                              QKVI_PRINTABLE(200, name));
    char *const copy = qkvi_malloc_array(n_bytes + 1, 1); /* which is unquoted in place */
    if (!copy) return qkvi_no_memory(error, "an array");
    if (n_bytes > 0) memcpy(copy, bytes, n_bytes);
    copy[n_bytes] = '\0';
    const qkv_status status = qkvi_csv_parse(name, copy, n_bytes, floats, array, error);
    free(copy);
    return settled(status, array);
}

/* ---- What files hold ------------------------------------------------------------------------- */

/*
 * qkv_tensor_list: what .safetensors, .npz and .gguf files hold, from their checked headers alone.
 */

static qkv_status list_weights(const char *path, qkvi_visit_entry *visit, void *user,
                               qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(qkvi_weights_open(path, &file, error));
    for (int64_t i = 0; i < file->n_tensors; i++) {
        const qkvi_stored *const tensor = &file->tensors[i];
        char name[400];
        qkv_tensor_entry entry = { .name = name, .rank = tensor->rank };
        qkvi_escape(name, sizeof name, tensor->name, strlen(tensor->name));
        entry.type = qkvi_elem_name(tensor->type);
        memcpy(entry.shape, tensor->shape, (size_t)tensor->rank * sizeof *entry.shape);
        visit(user, &entry);
    }
    qkvi_safetensors_close(file);
    return QKV_OK;
}

qkv_status qkv_tensor_list(const char *path, void (*visit)(void *user, const qkv_tensor_entry *),
                           void *user, qkv_error *error) {
    if (!path || !visit)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "visit" : "path");
    if (qkvi_has_stem(path, ".npz")) return qkvi_npz_list(path, visit, user, error);
    if (!qkvi_is_gguf_name(path)) return list_weights(path, visit, user, error);
    return qkvi_gguf_list_tensors(path, visit, user, error);
}
