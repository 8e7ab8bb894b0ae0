/*
 * qkv_array_read_part: reads some rows of an array in a .npy file, and no other bytes of its data.
 * Rows are indices of the dimension before the last; each block b of [n_rows, n_columns] has its
 * part of them:
 *
 *     [..., n_rows, n_columns]: row i of block b = data_begin + (b n_rows + i) n_columns width
 */
#include "files/npy.h"

static const char *refusal(const char *path, qkv_array_type floats, int64_t part, int64_t n_parts,
                           qkv_array *const *array, const int64_t *rows) {
    if (!path) return "path is NULL";
    if (!array) return "array is NULL";
    if (!rows) return "rows is NULL";
    if (floats != QKV_ARRAY_F32 && floats != QKV_ARRAY_BF16 && floats != QKV_ARRAY_F16)
        return "floats is none of QKV_ARRAY_F32, QKV_ARRAY_BF16, QKV_ARRAY_F16";
    if (part < 0 || part >= n_parts) return "part is not from 0 to n_parts - 1";
    return n_parts > 1 << 30 ? "n_parts is above 2^30" : NULL;
}

static qkv_status check(const qkvi_source *source, const qkvi_npy *npy, qkv_array_type floats,
                        qkv_error *error) {
    if (npy->rank < 2)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "%s: %d dimensions, which have no rows",
                              source->name, npy->rank);
    if (npy->fortran_order)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: is in Fortran order: only a whole array is read from it",
                              source->name);
    if (npy->untyped && floats != QKV_ARRAY_BF16)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: npy type <V2 is not supported, unless it is said to be bf16",
                              source->name);
    return QKV_OK;
}

/* n rows of a block, from an offset of the file, to element `at` of the array. */
static qkv_status take(const qkvi_source *source, const qkvi_npy *npy, uint64_t offset, size_t n,
                       void *stored, size_t at, const qkv_array *array, qkv_error *error) {
    qkv_array piece = *array;
    QKV_TRY(qkvi_source_read(source, offset, stored, n * qkvi_elem_bytes(npy->type), error));
    if (npy->big_endian) qkvi_elems_swap(npy->type, stored, n);
    piece.data = (char *)array->data + at * qkvi_array_width(array->type);
    return qkvi_array_convert(source->name, npy->type, stored, n, &piece, error);
}

static qkv_status read_part(const qkvi_source *source, qkv_array_type floats, int64_t part,
                            int64_t n_parts, qkv_array **array, int64_t rows[2], qkv_error *error) {
    qkvi_npy npy;
    QKV_TRY(qkvi_npy_read_header(source, &npy, error));
    QKV_TRY(check(source, &npy, floats, error));
    const int64_t n_rows = npy.shape[npy.rank - 2], n_columns = npy.shape[npy.rank - 1];
    const int64_t each = n_rows / n_parts, rest = n_rows % n_parts;
    const int64_t begin = each * part + rest * part / n_parts; /* n_rows part / n_parts, bounded */
    const int64_t end = each * (part + 1) + rest * (part + 1) / n_parts;
    const bool is_empty = npy.n_elems == 0; /* whose other dimensions may have any product */
    const size_t row = is_empty ? 0 : (size_t)(n_rows * n_columns);
    const size_t n = is_empty ? 0 : (size_t)((end - begin) * n_columns);
    const size_t n_blocks = is_empty ? 0 : npy.n_elems / row;
    npy.shape[npy.rank - 2] = end - begin;
    QKV_TRY(qkvi_array_make(qkvi_array_type_of(npy.type, floats), npy.rank, npy.shape, n_blocks * n,
                            array, error));
    (*array)->stored = qkvi_elem_name(npy.type);
    rows[0] = begin;
    rows[1] = n_rows;
    void *const stored = malloc(n * qkvi_elem_bytes(npy.type) + 1);
    if (!stored)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to read it", source->name);
    qkv_status status = QKV_OK;
    for (size_t b = 0; b < n_blocks && n > 0 && status == QKV_OK; b++) {
        const size_t first = b * row + (size_t)(begin * n_columns);
        status = take(source, &npy, npy.data_begin + first * qkvi_elem_bytes(npy.type), n, stored,
                      b * n, *array, error);
    }
    free(stored);
    return status;
}

qkv_status qkv_array_read_part(const char *path, qkv_array_type floats, int64_t part,
                               int64_t n_parts, qkv_array **array, int64_t rows[2],
                               qkv_error *error) {
    const char *const refused = refusal(path, floats, part, n_parts, array, rows);
    qkvi_source source;
    if (array) *array = NULL;
    if (refused) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s", refused);
    QKV_TRY(qkvi_source_open(path, &source, error));
    const qkv_status status = read_part(&source, floats, part, n_parts, array, rows, error);
    qkvi_source_close(&source);
    if (status != QKV_OK) {
        qkv_array_free(*array);
        *array = NULL;
    }
    return status;
}
