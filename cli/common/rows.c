/* Reads rows of an array, as floats. */
#include "common/rows.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/input.h"

qkv_status rows_read(const char *path, const char *channels, qkv_array **array, int64_t shape[2],
                     qkv_error *error) {
    const qkv_status status = qkv_array_read(path, QKV_ARRAY_F32, array, error);
    if (status != QKV_OK) return status;
    const qkv_array *a = *array;
    bool rows = a->type == QKV_ARRAY_F32 && a->rank >= 2;
    for (int i = 0; i < a->rank - 2; i++) rows = rows && a->shape[i] == 1;
    if (!rows)
        return text_error(error, QKV_ERR_SHAPE, "%s: not an array of floats of [n, %s]", path,
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
