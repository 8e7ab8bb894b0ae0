/*
 * Arrays to .npy files. Several at once are all on the disk, each beside its place, before the
 * first one is published: what goes wrong before that, most of all a full disk, leaves every old
 * file as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/store/file.h"
#include "model/store/npy.h"
#include "qkv/model.h"

static qkv_status check_array(const qkv_array *array, size_t *bytes, qkv_error *error) {
    int64_t n = 1;
    int overflow = 0;
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

/* Everything but its place. */
static qkv_status write_beside(const char *path, const qkv_array *array, qkvi_writer *writer,
                               qkv_error *error) {
    static const char *const descr[] = {
        [QKV_ARRAY_F32] = "<f4", [QKV_ARRAY_BOOL] = "|b1", [QKV_ARRAY_I64] = "<i8"
    };
    char header[QKVI_NPY_HEADER];
    size_t bytes = 0, header_bytes = 0;
    if (!path || !array)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "array" : "path");
    QKV_TRY(check_array(array, &bytes, error));
    qkvi_npy_make_header(descr[array->type], array->rank, array->shape, header, &header_bytes);
    QKV_TRY(qkvi_writer_begin(path, writer, error));
    QKV_TRY(qkvi_writer_put(writer, header, header_bytes, error));
    QKV_TRY(qkvi_writer_put(writer, array->data, bytes, error));
    return qkvi_writer_finish(writer, error);
}

/* Two results in one file: one of them would be lost. */
static qkv_status check_distinct(int n, const qkvi_writer *writers, qkv_error *error) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (qkvi_writer_same(&writers[i], &writers[j])) {
                char a[200], b[200];
                return qkvi_error_set(
                    error, QKV_ERR_ARGUMENT, "%s and %s are the same file",
                    qkvi_escape(a, sizeof a, writers[j].path, strlen(writers[j].path)),
                    qkvi_escape(b, sizeof b, writers[i].path, strlen(writers[i].path)));
            }
    return QKV_OK;
}

qkv_status qkv_arrays_write(int n, const char *const *paths, const qkv_array *const *arrays,
                            qkv_error *error) {
    if (n < 0 || (n > 0 && (!paths || !arrays)))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s",
                              n < 0    ? "n is negative"
                              : !paths ? "paths is NULL"
                                       : "arrays is NULL");
    qkvi_writer *const writers = qkvi_calloc_array((size_t)n + 1, sizeof *writers);
    if (!writers) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to write %d files", n);
    qkv_status status = QKV_OK;
    for (int i = 0; i < n && status == QKV_OK; i++)
        status = write_beside(paths[i], arrays[i], &writers[i], error);
    if (status == QKV_OK) status = check_distinct(n, writers, error);
    for (int i = 0; i < n && status == QKV_OK; i++)
        status = qkvi_writer_publish(&writers[i], error);
    for (int i = 0; i < n; i++) qkvi_writer_end(&writers[i]);
    free(writers);
    return status;
}

qkv_status qkv_array_write(const char *path, const qkv_array *array, qkv_error *error) {
    return qkv_arrays_write(1, &path, &array, error);
}
