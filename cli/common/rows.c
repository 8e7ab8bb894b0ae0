/* Reads rows of an array, as floats. */
#include "common/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/lines.h"
#include "common/session.h"
#include "common/shared.h"

qkv_status array_read(const char *path, bool quiet, qkv_array_type floats, qkv_array **array,
                      qkv_error *error) {
    static const size_t limit = (size_t)1 << 32;
    static bool was_read;
    struct text text;
    char room[SHARED_ROOM];
    if (strcmp(path, "-") != 0) {
        path = shared_path(path, room);
        if (text_ends(path, ".csv") || text_ends(path, ".tsv")) text_say_mark(path, quiet);
        return qkv_array_read(path, floats, array, error);
    }
    *array = NULL;
    if (was_read) return text_error(error, QKV_ERR_ARGUMENT, "'-' can be read only once");
    was_read = true;
    if (!text_read(stdin, limit, &text)) return text_no_memory(error);
    qkv_status status = QKV_OK;
    if (ferror(stdin))
        status = text_error(error, QKV_ERR_IO, "standard input: %s", strerror(errno));
    else if (text.n > limit)
        status = text_error(error, QKV_ERR_LIMIT, "standard input: above %zu bytes", limit);
    if (status == QKV_OK) text_say_stdin_mark(&text, quiet);
    if (status == QKV_OK)
        status = qkv_array_parse("standard input", text.bytes, text.n, floats, array, error);
    free(text.bytes);
    return status;
}

void rows_to_floats(qkv_array *array) {
    if (array->type != QKV_ARRAY_I64) return;
    char *const data = array->data;
    for (int64_t i = 0; i < array->n_elems; i++) {
        int64_t whole; /* a float is half as wide, so it overwrites what was read */
        memcpy(&whole, data + (size_t)i * sizeof whole, sizeof whole);
        const float rounded = (float)whole;
        memcpy(data + (size_t)i * sizeof rounded, &rounded, sizeof rounded);
    }
    array->type = QKV_ARRAY_F32;
}

/* A vector as a row or a column. */
static void make_rows(qkv_array *array, enum rows_vector vector) {
    if (array->rank != 1 || vector == VECTOR_IS_WRONG) return;
    array->shape[1] = vector == VECTOR_IS_ROW ? array->shape[0] : 1;
    array->shape[0] = vector == VECTOR_IS_ROW ? 1 : array->shape[0];
    array->rank = 2;
}

qkv_status rows_read(const char *path, bool quiet, const char *channels, enum rows_vector vector,
                     qkv_array **array, int64_t shape[2], qkv_error *error) {
    const qkv_status status = array_read(path, quiet, QKV_ARRAY_F32, array, error);
    if (status != QKV_OK) return status;
    rows_to_floats(*array);
    make_rows(*array, vector);
    const qkv_array *a = *array;
    bool rows = a->type == QKV_ARRAY_F32 && a->rank >= 2;
    for (int i = 0; i < a->rank - 2; i++) rows = rows && a->shape[i] == 1;
    if (!rows)
        return text_error(error, QKV_ERR_SHAPE, "%s: not an array of numbers of [n, %s]", path,
                          channels);
    shape[0] = a->shape[a->rank - 2];
    shape[1] = a->shape[a->rank - 1];
    return QKV_OK;
}

double rows_product(const float *a, const float *b, int64_t n) {
    double product = 0;
    for (int64_t c = 0; c < n; c++) product += (double)a[c] * (double)b[c];
    return product;
}

char **rows_labels(const char *before, int64_t n, int64_t step) {
    char **labels = calloc((size_t)n + 1, sizeof *labels);
    for (int64_t i = 0; labels && i < n; i++) {
        if (asprintf(&labels[i], "%s%" PRId64, before, i * step) >= 0) continue;
        session_labels_free(labels, i);
        labels = NULL;
    }
    return labels;
}
