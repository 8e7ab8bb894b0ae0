/*
 * qkv_array: dense arrays in files. Stored floats of any width become f32, or bf16 or f16 if these
 * are asked for, integers i64, booleans bytes of 0 and 1; Fortran order is transposed while reading. What is allocated is at most eight
 * times what the file holds.
 */
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/store/npy.h"
#include "model/store/safetensors.h"
#include "qkv/model.h"

_Static_assert(QKVI_MAX_RANK == 8 && QKVI_NPY_MAX_RANK == 8, "the rank of qkv_array.shape");

size_t qkvi_array_width(qkv_array_type type) {
    static const size_t width[] = {
        [QKV_ARRAY_F32] = 4,  [QKV_ARRAY_BOOL] = 1, [QKV_ARRAY_I64] = 8,
        [QKV_ARRAY_BF16] = 2, [QKV_ARRAY_F16] = 2,  [QKV_ARRAY_BYTES] = 1
    };
    return width[type];
}

/* floats: what floats become. */
static qkv_array_type type_of(qkvi_elem type, qkv_array_type floats) {
    return qkvi_elem_is_float(type) ? floats : type == QKVI_BOOL ? QKV_ARRAY_BOOL : QKV_ARRAY_I64;
}

static qkv_status make_array(qkv_array_type type, int rank, const int64_t *shape, size_t n_elems,
                             qkv_array **array, qkv_error *error) {
    size_t bytes;
    *array = calloc(1, sizeof **array);
    if (!*array) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for an array");
    (*array)->type = type;
    (*array)->rank = rank;
    memcpy((*array)->shape, shape, (size_t)rank * sizeof *shape);
    (*array)->n_elems = (int64_t)n_elems;
    if (!__builtin_mul_overflow(n_elems, qkvi_array_width((*array)->type), &bytes))
        (*array)->data = aligned_alloc(64, (bytes / 64 + 1) * 64);
    if ((*array)->data) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for an array of %zu elements", n_elems);
}

/* Stored elements to the array's own. */
static qkv_status convert(const char *file, qkvi_elem type, const void *stored, size_t n,
                          qkv_array *array, qkv_error *error) {
    if (array->type == QKV_ARRAY_F32) {
        qkvi_elems_to_f32(type, stored, n, array->data);
    } else if (array->type == QKV_ARRAY_BF16 || array->type == QKV_ARRAY_F16) {
        qkvi_elems_to_half(type, stored, n, array->type == QKV_ARRAY_F16 ? QKVI_F16 : QKVI_BF16,
                           array->data);
    } else if (array->type == QKV_ARRAY_BOOL) {
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)array->data)[i] = ((const uint8_t *)stored)[i] != 0;
    } else {
        const size_t bad = qkvi_elems_to_i64(type, stored, n, array->data);
        if (bad < n)
            return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: element %zu is above 2^63 - 1", file,
                                  bad);
    }
    return QKV_OK;
}

/* Reads stored bytes, swaps them if need be, and converts. */
static qkv_status fill_array(const qkvi_source *source, uint64_t begin, qkvi_elem type, int swap,
                             size_t n, qkv_array *array, qkv_error *error) {
    void *const stored = malloc(n * qkvi_elem_bytes(type) + 1);
    if (!stored)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to read it", source->name);
    qkv_status status = qkvi_source_read(source, begin, stored, n * qkvi_elem_bytes(type), error);
    if (status == QKV_OK && swap) qkvi_elems_swap(type, stored, n);
    if (status == QKV_OK) status = convert(source->name, type, stored, n, array, error);
    free(stored);
    return status;
}

/*
 * Column-major data of array->shape to row-major: walks the result in order, and the source by its
 * strides.
 */
static qkv_status transpose(qkv_array *array, qkv_error *error) {
    const size_t width = qkvi_array_width(array->type), n = (size_t)array->n_elems;
    size_t stride[8], index[8] = { 0 }, at = 0, step = 1;
    char *const result = aligned_alloc(64, (n * width / 64 + 1) * 64);
    if (!result) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to transpose an array");
    for (int d = 0; d < array->rank; d++) {
        stride[d] = step;
        step *= (size_t)array->shape[d];
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(result + i * width, (const char *)array->data + at * width, width);
        for (int d = array->rank - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < (size_t)array->shape[d]) break;
            at -= stride[d] * index[d];
            index[d] = 0;
        }
    }
    free(array->data);
    array->data = result;
    return QKV_OK;
}

static qkv_status read_npy(const char *path, qkv_array_type floats, qkv_array **array,
                           qkv_error *error) {
    qkvi_source source;
    qkvi_npy npy;
    QKV_TRY(qkvi_source_open(path, &source, error));
    qkv_status status = qkvi_npy_read_header(&source, &npy, error);
    if (status == QKV_OK && npy.untyped && floats != QKV_ARRAY_BF16)
        status = qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                                "%s: npy type <V2 is not supported, unless it is said to be bf16",
                                source.name);
    if (status == QKV_OK)
        status =
            make_array(type_of(npy.type, floats), npy.rank, npy.shape, npy.n_elems, array, error);
    if (status == QKV_OK)
        status = fill_array(&source, npy.data_begin, npy.type, npy.big_endian, npy.n_elems, *array,
                            error);
    if (status == QKV_OK && npy.fortran_order) status = transpose(*array, error);
    qkvi_source_close(&source);
    return status;
}

static qkv_status read_tensor(const qkvi_safetensors *file, const char *name, qkv_array_type floats,
                              qkv_array **array, qkv_error *error) {
    char printable[200];
    const qkvi_stored *const tensor = qkvi_safetensors_find(file, name);
    if (!tensor)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s: there is no tensor '%s'",
                              file->source.name,
                              qkvi_escape(printable, sizeof printable, name, strlen(name)));
    QKV_TRY(make_array(type_of(tensor->type, floats), tensor->rank, tensor->shape, tensor->n_elems,
                       array, error));
    return fill_array(&file->source, tensor->begin, tensor->type, 0, tensor->n_elems, *array,
                      error);
}

/* path is FILE:NAME, the colon at file_bytes. */
static qkv_status read_safetensors(const char *path, size_t file_bytes, qkv_array_type floats,
                                   qkv_array **array, qkv_error *error) {
    qkvi_safetensors *file;
    char *const file_path = strndup(path, file_bytes);
    if (!file_path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    qkv_status status = qkvi_safetensors_open(file_path, &file, error);
    free(file_path);
    if (status != QKV_OK) return status;
    status = read_tensor(file, path + file_bytes + 1, floats, array, error);
    qkvi_safetensors_close(file);
    return status;
}

qkv_status qkv_array_read(const char *path, qkv_array **array, qkv_error *error) {
    return qkv_array_read_as(path, QKV_ARRAY_F32, array, error);
}

qkv_status qkv_array_read_as(const char *path, qkv_array_type floats, qkv_array **array,
                             qkv_error *error) {
    static const char marker[] = ".safetensors:";
    if (!array) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "array is NULL");
    *array = NULL;
    if (floats != QKV_ARRAY_F32 && floats != QKV_ARRAY_BF16 && floats != QKV_ARRAY_F16)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "floats = %d is none of QKV_ARRAY_F32, QKV_ARRAY_BF16, QKV_ARRAY_F16",
                              (int)floats);
    if (!path) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path is NULL");
    const char *const colon = strstr(path, marker);
    const size_t n = strlen(path), without_colon = sizeof marker - 2;
    if (n >= without_colon && memcmp(path + n - without_colon, marker, without_colon) == 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "a .safetensors file holds many arrays: name one as FILE:NAME");
    const qkv_status status =
        colon ? read_safetensors(path, (size_t)(colon - path) + without_colon, floats, array, error)
              : read_npy(path, floats, array, error);
    if (status != QKV_OK) {
        qkv_array_free(*array);
        *array = NULL;
    }
    return status;
}

void qkv_array_free(qkv_array *array) {
    if (!array) return;
    free(array->data);
    free(array);
}
