/*
 * Writing arrays to .npy and .npz files; several files appear together. A zip has the checksum of
 * an entry before its content, so the bytes of an array are made twice.
 */

#include "files/file.h"
#include "files/npy.h"
#include "qkv/files.h"

static qkv_status check_array(const qkv_array *array, size_t *bytes, qkv_error *error) {
    int64_t n = 1;
    int overflow = 0;
    if ((unsigned)array->type > QKV_ARRAY_BYTES)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "type = %d is no qkv_array_type",
                              (int)array->type);
    if (array->rank < 0 || array->rank > QKVI_NPY_MAX_RANK)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "rank = %d is not between 0 and %d",
                              array->rank, QKVI_NPY_MAX_RANK);
    for (int d = 0; d < array->rank; d++) {
        if (array->shape[d] < 0)
            return qkvi_error_set(error, QKV_ERR_SHAPE, "shape[%d] = %lld is negative", d,
                                  (long long)array->shape[d]);
        overflow |= __builtin_mul_overflow(n, array->shape[d], &n);
    }
    overflow |= __builtin_mul_overflow((size_t)n, qkvi_array_width(array->type), bytes);
    if (overflow || n != array->n_elems)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_elems = %lld is not the product of shape",
                              (long long)array->n_elems);
    if (n && !array->data) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "data is NULL");
    return QKV_OK;
}

/* ---- One array ------------------------------------------------------------------------------- */

/* Where the bytes of a .npy go: to a writer, or only into their checksum. */
typedef struct sink {
    qkvi_writer *writer;
    uint64_t n;
    uint32_t crc;
    qkv_error *error;
} sink;

static qkv_status put(sink *to, const void *bytes, size_t n) {
    to->n += n;
    if (to->writer) return qkvi_writer_put(to->writer, bytes, n, to->error);
    if (n) to->crc = (uint32_t)crc32_z(to->crc, bytes, n);
    return QKV_OK;
}

/* bf16 as f32, which is exact: .npy has no type for it. */
static qkv_status put_bf16(sink *to, const uint16_t *data, int64_t n) {
    float floats[1024];
    for (int64_t i = 0, part; i < n; i += part) {
        part = n - i < 1024 ? n - i : 1024;
        qkvi_elems_to_f32(QKVI_BF16, data + i, (size_t)part, floats);
        QKV_TRY(put(to, floats, (size_t)part * sizeof *floats));
    }
    return QKV_OK;
}

/* A .npy of an array that has been checked and has that many bytes. */
static qkv_status put_npy(sink *to, const qkv_array *array, size_t bytes) {
    static const char *const descr[] = {
        [QKV_ARRAY_F32] = "<f4",  [QKV_ARRAY_BOOL] = "|b1", [QKV_ARRAY_I64] = "<i8",
        [QKV_ARRAY_BF16] = "<f4", [QKV_ARRAY_F16] = "<f2",
    };
    char header[QKVI_NPY_HEADER];
    size_t header_bytes = 0;
    qkvi_npy_make_header(descr[array->type], array->rank, array->shape, header, &header_bytes);
    QKV_TRY(put(to, header, header_bytes));
    return array->type == QKV_ARRAY_BF16 ? put_bf16(to, array->data, array->n_elems)
                                         : put(to, array->data, bytes);
}

static qkv_status add_array(qkvi_files *files, const char *path, const qkv_array *array,
                            qkv_error *error) {
    qkvi_writer *writer;
    size_t bytes = 0;
    QKV_TRY(check_array(array, &bytes, error));
    QKV_TRY(qkvi_files_begin(files, path, &writer, error));
    if (array->type == QKV_ARRAY_BYTES) return qkvi_writer_put(writer, array->data, bytes, error);
    sink to = { .writer = writer, .error = error };
    return put_npy(&to, array, bytes);
}

/* ---- Arrays of one .npz ---------------------------------------------------------------------- */

/* What is being written. */
typedef struct batch {
    int n;
    const char *const *paths;
    const qkv_array *const *arrays;
    qkvi_files files;
    qkv_error *error;
} batch;

/* 1 if both paths name arrays of one .npz, by the same spelling of its path. */
static int share_file(const char *a, const char *b) {
    const char *const end = qkvi_npz_colon(a);
    return end && qkvi_npz_colon(b) && strncmp(a, b, (size_t)(end - a) + 1) == 0;
}

/* "NAME.npy"; a name that has the ending keeps it, so that what was read can be written. */
static qkv_status name_entry(const char *path, const char *name, char entry[QKVI_ZIP_MAX_NAME + 1],
                             qkv_error *error) {
    const size_t n = strlen(name);
    if (n == 0 || n > QKVI_ZIP_MAX_NAME - 4)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "%s: the name of an array has 1 to %d bytes, not %zu",
                              QKVI_PRINTABLE(QKVI_NAME_BYTES, path), QKVI_ZIP_MAX_NAME - 4, n);
    snprintf(entry, QKVI_ZIP_MAX_NAME + 1, "%s%s", name, qkvi_has_stem(name, ".npy") ? "" : ".npy");
    return QKV_OK;
}

static qkv_status put_entry(qkvi_zip_writer *zip, const char *path, const qkv_array *array,
                            qkv_error *error) {
    char name[QKVI_ZIP_MAX_NAME + 1];
    size_t bytes = 0;
    QKV_TRY(check_array(array, &bytes, error));
    if (array->type == QKV_ARRAY_BYTES)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "QKV_ARRAY_BYTES is no array of a .npz");
    QKV_TRY(name_entry(path, qkvi_npz_colon(path) + 1, name, error));
    sink sum = { .error = error }, to = { .writer = zip->out, .error = error };
    QKV_TRY(put_npy(&sum, array, bytes));
    QKV_TRY(qkvi_zip_put_header(zip, name, sum.n, sum.crc, error));
    return put_npy(&to, array, bytes);
}

/* Two of one name: one of them would be lost. */
static qkv_status check_names(const batch *job, int first) {
    for (int i = first; i < job->n; i++)
        for (int j = first; j < i; j++) {
            char a[QKVI_ZIP_MAX_NAME + 1], b[QKVI_ZIP_MAX_NAME + 1];
            const char *const path = job->paths[i];
            if (!share_file(job->paths[first], path) || !share_file(path, job->paths[j])) continue;
            QKV_TRY(name_entry(path, qkvi_npz_colon(path) + 1, a, job->error));
            QKV_TRY(name_entry(path, qkvi_npz_colon(job->paths[j]) + 1, b, job->error));
            if (strcmp(a, b) == 0)
                return qkvi_error_set(job->error, QKV_ERR_ARGUMENT, "%s is named twice",
                                      QKVI_PRINTABLE(QKVI_NAME_BYTES, path));
        }
    return QKV_OK;
}

/* The file of the first path, with all arrays that go there. */
static qkv_status add_npz(batch *job, int first) {
    const char *const path = job->paths[first], *const colon = qkvi_npz_colon(path);
    qkvi_zip_writer zip = { .out = NULL };
    QKV_TRY(check_names(job, first));
    char *const file = strndup(path, (size_t)(colon - path));
    if (!file) return qkvi_no_memory(job->error, "a path");
    qkv_status status = qkvi_files_begin(&job->files, file, &zip.out, job->error);
    for (int i = first; i < job->n && status == QKV_OK; i++)
        if (share_file(path, job->paths[i]))
            status = put_entry(&zip, job->paths[i], job->arrays[i], job->error);
    if (status == QKV_OK) status = qkvi_zip_put_directory(&zip, job->error);
    qkvi_zip_writer_end(&zip);
    free(file);
    return status;
}

static qkv_status add(batch *job, int i) {
    for (int j = 0; j < i; j++)
        if (share_file(job->paths[j], job->paths[i])) return QKV_OK; /* it was written with j */
    return qkvi_npz_colon(job->paths[i])
               ? add_npz(job, i)
               : add_array(&job->files, job->paths[i], job->arrays[i], job->error);
}

qkv_status qkv_arrays_write(int n, const char *const *paths, const qkv_array *const *arrays,
                            qkv_error *error) {
    if (n < 0 || (n > 0 && (!paths || !arrays)))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s",
                              n < 0    ? "n is negative"
                              : !paths ? "paths is NULL"
                                       : "arrays is NULL");
    for (int i = 0; i < n; i++)
        if (!paths[i] || !arrays[i])
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                                  paths[i] ? "array" : "path");
    batch job = { .n = n, .paths = paths, .arrays = arrays, .error = error };
    qkv_status status = QKV_OK;
    for (int i = 0; i < n && status == QKV_OK; i++) status = add(&job, i);
    if (status == QKV_OK) return qkvi_files_commit(&job.files, error);
    qkvi_files_end(&job.files);
    return status;
}

qkv_status qkv_array_write(const char *path, const qkv_array *array, qkv_error *error) {
    return qkv_arrays_write(1, &path, &array, error);
}
