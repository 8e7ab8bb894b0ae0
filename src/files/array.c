#include "files/array.h"

size_t qkvi_array_width(qkv_array_type type) {
    static const size_t width[] = {
        [QKV_ARRAY_F32] = 4,  [QKV_ARRAY_BOOL] = 1, [QKV_ARRAY_I64] = 8,
        [QKV_ARRAY_BF16] = 2, [QKV_ARRAY_F16] = 2,  [QKV_ARRAY_BYTES] = 1
    };
    return width[type];
}

qkv_array_type qkvi_array_type_of(qkvi_elem_type type, qkv_array_type floats) {
    return qkvi_elem_is_float(type) ? floats : type == QKVI_BOOL ? QKV_ARRAY_BOOL : QKV_ARRAY_I64;
}

qkv_status qkvi_array_make(qkv_array_type type, int rank, const int64_t *shape, size_t n_elems,
                           qkv_array **array, qkv_error *error) {
    size_t bytes;
    *array = calloc(1, sizeof **array);
    if (!*array) return qkvi_no_memory(error, "an array");
    (*array)->type = type;
    (*array)->rank = rank;
    memcpy((*array)->shape, shape, (size_t)rank * sizeof *shape);
    (*array)->n_elems = (int64_t)n_elems;
    if (!__builtin_mul_overflow(n_elems, qkvi_array_width((*array)->type), &bytes))
        (*array)->data = qkvi_aligned_array(bytes / 64 + 1, 64);
    if ((*array)->data) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for an array of %zu elements", n_elems);
}

qkv_status qkvi_array_convert(const char *file, qkvi_elem_type type, const void *stored, size_t n,
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

qkv_status qkvi_array_fill(const qkvi_byte_source *bytes, const qkvi_stored_elems *stored,
                           qkv_array *array, qkv_error *error) {
    const size_t n_bytes = stored->n * qkvi_elem_bytes(stored->type);
    void *const elems = malloc(n_bytes + 1);
    if (!elems)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to read it", bytes->name);
    qkv_status status = bytes->take(bytes->user, elems, n_bytes, error);
    if (status == QKV_OK && stored->is_swapped) qkvi_elems_swap(stored->type, elems, stored->n);
    if (status == QKV_OK)
        status = qkvi_array_convert(bytes->name, stored->type, elems, stored->n, array, error);
    free(elems);
    return status;
}

void qkv_array_free(qkv_array *array) {
    if (!array) return;
    qkvi_aligned_free(array->data);
    free(array);
}
