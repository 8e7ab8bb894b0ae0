/*
 * Arrays of `qkv look --q F --k F`. With --mpi each rank reads its rows of the file and no others, and gives
 * them to the others, so that all have all rows.
 */
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/ranks.h"
#include "common/rows.h"
#include "look/look.h"

/* ---- Rows of ranks ----------------------------------------------------------------------------- */

/* What ranks must have in common, and the first row of each. */
struct header {
    int64_t rank, shape[8], all, first;
};

static struct header header_of(const qkv_array *part, const int64_t rows[2]) {
    struct header h = { .rank = part->rank, .all = rows[1], .first = rows[0] };
    for (int d = 0; d < part->rank; d++) h.shape[d] = part->shape[d];
    h.shape[part->rank - 2] = rows[1];
    return h;
}

/* headers: [n ranks]. */
static int compare(const char *option, const char *path, const struct header *headers) {
    const int64_t size = ranks_size();
    for (int64_t rank = 1; rank < size; rank++)
        if (headers[rank].rank != headers[0].rank || headers[rank].all != headers[0].all ||
            memcmp(headers[rank].shape, headers[0].shape, sizeof headers->shape) != 0)
            return cli_fail("%s %s: rank %d reads another shape than rank 0", option, path,
                            (int)rank);
    return EXIT_OK;
}

/* Of a block of `bytes` a row: this rank's rows at `mine` to `whole`, and those of the others. */
static int give_block(const struct header *headers, size_t bytes, const char *mine, char *whole,
                      size_t *sizes) {
    const qkv_train_ranks *const ranks = ranks_of_heads();
    const int size = ranks_size(), me = ranks_rank();
    size_t *const from = sizes + size, *const to = sizes + 2 * size,
                  *const theirs = sizes + 3 * size;
    memset(sizes, 0, (size_t)size * 4 * sizeof *sizes);
    for (int rank = 0; rank < size; rank++) {
        const int64_t end = rank + 1 < size ? headers[rank + 1].first : headers->all;
        to[rank] = (size_t)headers[rank].first * bytes;
        theirs[rank] = (size_t)(end - headers[rank].first) * bytes;
    }
    const size_t own = theirs[me];
    memcpy(whole + to[me], mine, own);
    for (int rank = 0; rank < size; rank++) sizes[rank] = rank == me ? 0 : own;
    theirs[me] = 0;
    memset(from, 0, (size_t)size * sizeof *from);
    return ranks->exchange(ranks->user, mine, from, sizes, whole, to, theirs);
}

/* Rows of all ranks, where those of this one were. */
static int give_rows(const struct header *headers, qkv_array *array) {
    const int64_t own = array->shape[array->rank - 2];
    const size_t bytes = (size_t)array->shape[array->rank - 1] * sizeof(float);
    int64_t n_blocks = 1;
    for (int d = 0; d < array->rank - 2; d++) n_blocks *= array->shape[d];
    const size_t block = (size_t)headers->all * bytes;
    char *const whole = malloc((size_t)n_blocks * block + 1);
    size_t *const sizes = malloc((size_t)ranks_size() * 4 * sizeof *sizes);
    int failed = !whole || !sizes;
    for (int64_t b = 0; b < n_blocks && !failed; b++)
        failed = give_block(headers, bytes, (const char *)array->data + (size_t)(b * own) * bytes,
                            whole + (size_t)b * block, sizes);
    free(sizes);
    if (failed) {
        free(whole);
        return cli_fail("no memory for rows of all ranks");
    }
    free(array->data);
    array->data = whole;
    array->shape[array->rank - 2] = headers->all;
    array->n_elems = n_blocks * headers->all * array->shape[array->rank - 1];
    return EXIT_OK;
}

static int join(const char *option, const char *path, const int64_t rows[2], qkv_array *array) {
    const struct header mine = header_of(array, rows);
    struct header *const headers = calloc((size_t)ranks_size(), sizeof *headers);
    if (!headers) abort(); /* which ends the job */
    ranks_gather(&mine, (int)sizeof mine, headers);
    int code = compare(option, path, headers);
    if (!code) code = give_rows(headers, array);
    free(headers);
    return code;
}

/* ---- One array --------------------------------------------------------------------------------- */

static int read_floats(const char *option, const char *path, int64_t rows[2], qkv_array **array) {
    qkv_error error;
    const qkv_status status = rows ? qkv_array_read_part(path, QKV_ARRAY_F32, ranks_rank(),
                                                         ranks_size(), array, rows, &error)
                                   : qkv_array_read(path, QKV_ARRAY_F32, array, &error);
    if (status != QKV_OK) return cli_fail("%s %s", option, error.message);
    rows_to_floats(*array);
    if ((*array)->type != QKV_ARRAY_F32)
        return cli_fail("%s %s: holds booleans, not numbers", option, path);
    return EXIT_OK;
}

int arrays_read(const char *option, const char *path, qkv_array **array) {
    char shape[200];
    int64_t rows[2];
    const bool shared = ranks_size() > 1;
    int code = read_floats(option, path, shared ? rows : NULL, array);
    if (shared) code = ranks_agree(code);
    if (!code && shared) code = join(option, path, rows, *array);
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
