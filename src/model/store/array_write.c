/*
 * Arrays to .npy files; several at once appear together.
 */
#include "core/status.h"
#include "model/store/file.h"
#include "model/store/npy.h"
#include "qkv/model.h"

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

/* bf16 as f32, which is exact: .npy has no type for it. */
static qkv_status put_bf16(qkvi_writer *writer, const uint16_t *data, int64_t n, qkv_error *error) {
    float floats[1024];
    for (int64_t i = 0, part; i < n; i += part) {
        part = n - i < 1024 ? n - i : 1024;
        qkvi_elems_to_f32(QKVI_BF16, data + i, (size_t)part, floats);
        QKV_TRY(qkvi_writer_put(writer, floats, (size_t)part * sizeof *floats, error));
    }
    return QKV_OK;
}

static qkv_status add_array(qkvi_files *files, const char *path, const qkv_array *array,
                            qkv_error *error) {
    static const char *const descr[] = {
        [QKV_ARRAY_F32] = "<f4",  [QKV_ARRAY_BOOL] = "|b1", [QKV_ARRAY_I64] = "<i8",
        [QKV_ARRAY_BF16] = "<f4", [QKV_ARRAY_F16] = "<f2",
    };
    qkvi_writer *writer;
    char header[QKVI_NPY_HEADER];
    size_t bytes = 0, header_bytes = 0;
    if (!path || !array)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "array" : "path");
    QKV_TRY(check_array(array, &bytes, error));
    QKV_TRY(qkvi_files_begin(files, path, &writer, error));
    if (array->type == QKV_ARRAY_BYTES) return qkvi_writer_put(writer, array->data, bytes, error);
    qkvi_npy_make_header(descr[array->type], array->rank, array->shape, header, &header_bytes);
    QKV_TRY(qkvi_writer_put(writer, header, header_bytes, error));
    if (array->type == QKV_ARRAY_BF16) return put_bf16(writer, array->data, array->n_elems, error);
    return qkvi_writer_put(writer, array->data, bytes, error);
}

qkv_status qkv_arrays_write(int n, const char *const *paths, const qkv_array *const *arrays,
                            qkv_error *error) {
    if (n < 0 || (n > 0 && (!paths || !arrays)))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s",
                              n < 0    ? "n is negative"
                              : !paths ? "paths is NULL"
                                       : "arrays is NULL");
    qkvi_files files = { .folder = NULL };
    qkv_status status = QKV_OK;
    for (int i = 0; i < n && status == QKV_OK; i++)
        status = add_array(&files, paths[i], arrays[i], error);
    if (status == QKV_OK) return qkvi_files_commit(&files, error);
    qkvi_files_end(&files);
    return status;
}

qkv_status qkv_array_write(const char *path, const qkv_array *array, qkv_error *error) {
    return qkv_arrays_write(1, &path, &array, error);
}
