/*
 * What `qkv attend` does with any array: reads it, checks its type, and broadcasts it to
 * [B,H,rows,columns]. Dimensions are aligned on the right, as in numpy.
 */
#include <inttypes.h>
#include <string.h>

#include "attend/attend.h"
#include "common/job.h"
#include "common/rows.h"

const char *attend_shape_text(const qkv_array *array, char text[200]) {
    *text = '\0';
    for (int i = 0; i < array->rank; i++)
        text_append(text, 200, "%s%" PRId64, i ? "," : "[", array->shape[i]);
    text_append(text, 200, array->rank ? "]" : "[]");
    return text;
}

qkv_array_type attend_array_type(qkv_dtype dtype) {
    return dtype == QKV_BF16 ? QKV_ARRAY_BF16 : dtype == QKV_F16 ? QKV_ARRAY_F16 : QKV_ARRAY_F32;
}

int64_t attend_size(const qkv_array *array, int dimension) {
    const int i = dimension - (4 - array->rank);
    return i < 0 ? 1 : array->shape[i];
}

int attend_read_array(const char *option, const char *path, bool quiet, qkv_array_type type,
                      qkv_array **array) {
    static const char *const what[] = {
        [QKV_ARRAY_F32] = "numbers", [QKV_ARRAY_I64] = "integers", [QKV_ARRAY_BOOL] = "booleans"
    };
    qkv_error error;
    if (array_read(path, quiet, QKV_ARRAY_F32, array, &error) != QKV_OK)
        return cli_fail("%s", error.message);
    if (type == QKV_ARRAY_F32) rows_to_floats(*array);
    if (type == QKV_ARRAY_BOOL) {
        const int code = attend_to_booleans(option, path, "", *array);
        if (code) return code;
    }
    if ((*array)->type != type)
        return cli_fail("%s %s: does not hold %s", option, path, what[type]);
    return EXIT_OK;
}

void attend_as_list(const char *path, qkv_array *array) {
    const bool is_text =
        text_ends(path, ".csv") || text_ends(path, ".tsv") || strcmp(path, "-") == 0;
    if (!is_text || array->rank != 2 || (array->shape[0] != 1 && array->shape[1] != 1)) return;
    array->shape[0] = array->n_elems;
    array->rank = 1;
}

/* "[0,3]": where the n-th element is. */
static void place_of(const qkv_array *array, int64_t n, char text[200]) {
    int64_t index[8], rest = n;
    for (int d = array->rank - 1; d >= 0; d--) {
        index[d] = rest % array->shape[d];
        rest /= array->shape[d];
    }
    *text = '\0';
    for (int d = 0; d < array->rank; d++)
        text_append(text, 200, "%s%" PRId64, d ? "," : "[", index[d]);
    text_append(text, 200, array->rank ? "]" : "[]");
}

int attend_to_booleans(const char *option, const char *path, const char *note, qkv_array *array) {
    char place[200];
    uint8_t *const is = array->data; /* a boolean is narrower, so it overwrites what was read */
    if (array->type != QKV_ARRAY_I64) return EXIT_OK;
    for (int64_t i = 0; i < array->n_elems; i++) {
        int64_t whole;
        memcpy(&whole, is + (size_t)i * sizeof whole, sizeof whole);
        is[i] = whole == 1;
        if (whole == 0 || whole == 1) continue;
        place_of(array, i, place);
        return cli_fail("%s %s: %s is %" PRId64 ": integers are 0 or 1, which sees%s", option, path,
                        place, whole, note);
    }
    array->type = QKV_ARRAY_BOOL;
    return EXIT_OK;
}

static bool fits(const qkv_array *array, const struct attend_fit *fit, int dimension) {
    const int64_t size = attend_size(array, dimension), full = fit->full[dimension];
    return size == full || (dimension < fit->n_repeat && size == 1) ||
           (dimension == 3 && fit->may_end_early && size > 1 && size < full);
}

int attend_broadcast(const char *option, const char *path, const qkv_array *array,
                     const struct attend_fit *fit, int64_t stride[4]) {
    bool all = array->rank >= 4 - fit->n_repeat && array->rank <= 4;
    char shape[200];
    for (int n = 0; all && n < 4; n++) all = fits(array, fit, n);
    if (!all)
        return cli_fail("%s %s: shape %s does not broadcast to [%" PRId64 ",%" PRId64 ",%" PRId64
                        ",%" PRId64 "]%s",
                        option, path, attend_shape_text(array, shape), fit->full[0], fit->full[1],
                        fit->full[2], fit->full[3], fit->note ? fit->note : "");
    int64_t step = 1;
    for (int n = 3; n >= 0; n--) {
        const int64_t size = attend_size(array, n);
        stride[n] = n < fit->n_repeat && size == 1 ? 0 : step;
        step *= size;
    }
    return EXIT_OK;
}
