/*
 * Arrays of `qkv look --q F --k F`. With --mpi each rank reads its rows of the file and no others.
 */
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/ranks.h"
#include "common/rows.h"
#include "look/look.h"

/* ---- Rows of ranks ----------------------------------------------------------------------------- */

/* What ranks must have in common: the shape of the whole array. */
struct header {
    int64_t rank, shape[8];
};

static struct header header_of(const qkv_array *whole) {
    struct header h = { .rank = whole->rank };
    for (int d = 0; d < whole->rank; d++) h.shape[d] = whole->shape[d];
    return h;
}

/* headers: [n ranks]. */
static int compare(const char *option, const char *path, const struct header *headers) {
    const int64_t size = ranks_size();
    for (int64_t rank = 1; rank < size; rank++)
        if (headers[rank].rank != headers[0].rank ||
            memcmp(headers[rank].shape, headers[0].shape, sizeof headers->shape) != 0)
            return cli_fail("%s %s: rank %d reads another shape than rank 0", option, path,
                            (int)rank);
    return EXIT_OK;
}

/* The array says from now on how many rows all ranks have. */
static int join(const char *option, const char *path, int64_t n_rows, qkv_array *array) {
    array->shape[array->rank - 2] = n_rows;
    array->n_elems = 1;
    for (int d = 0; d < array->rank; d++) array->n_elems *= array->shape[d];
    const struct header mine = header_of(array);
    struct header *const headers = calloc((size_t)ranks_size(), sizeof *headers);
    if (!headers) abort(); /* which ends the job */
    ranks_gather(&mine, (int)sizeof mine, headers);
    const int code = compare(option, path, headers);
    free(headers);
    return code;
}

/* ---- One array --------------------------------------------------------------------------------- */

static int read_floats(const char *option, const char *path, int64_t rows[2], qkv_array **array) {
    qkv_error error;
    if (rows && strcmp(path, "-") == 0)
        return cli_fail("%s: --mpi reads parts of files, and '-' is none", option);
    const qkv_status status = rows ? qkv_array_read_part(path, QKV_ARRAY_F32, ranks_rank(),
                                                         ranks_size(), array, rows, &error)
                                   : array_read(path, QKV_ARRAY_F32, array, &error);
    if (status != QKV_OK) return cli_fail("%s %s", option, error.message);
    rows_to_floats(*array);
    if ((*array)->type != QKV_ARRAY_F32)
        return cli_fail("%s %s: holds booleans, not numbers", option, path);
    return EXIT_OK;
}

int arrays_read(const char *option, const char *path, qkv_array **array, int64_t *own) {
    char shape[200];
    int64_t rows[2];
    const bool shared = ranks_size() > 1;
    int code = read_floats(option, path, shared ? rows : NULL, array);
    if (shared) code = ranks_agree(code);
    if (code) return code;
    *own = attend_size(*array, 2);
    if (shared) code = join(option, path, rows[1], *array);
    if (code) return code;
    const qkv_array *const a = *array;
    if (a->rank < 2 || a->rank > 4 || (a->rank == 4 && a->shape[0] != 1))
        return cli_fail("%s %s: shape %s is none of [L,D], [H,L,D], [1,H,L,D]", option, path,
                        attend_shape_text(a, shape));
    if (a->n_elems == 0)
        return cli_fail("%s %s: shape %s has nothing to look at", option, path,
                        attend_shape_text(a, shape));
    return EXIT_OK;
}
