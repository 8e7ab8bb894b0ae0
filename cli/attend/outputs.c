/* The files that `qkv attend` writes: all that were asked for, or none. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"

/* path NULL: not asked for. */
struct output {
    const char *path;
    void *data;
    qkv_array_type type;
    int64_t heads, length, last; /* last < 0: without a channel; length < 0: heads alone */
    const qkv_array *like;       /* an input that has the shape, or NULL: that of the three */
    bool no_row, no_column;      /* an input is a vector, so that these dimensions are not there */
    bool no_heads;
};

/* F.npy, or the F.npz of F.npz:NAME. */
static int check_writable(const char *path) {
    const char *const inside = strstr(path, ".npz:");
    char *const file = inside ? strndup(path, (size_t)(inside - path) + 4) : strdup(path);
    qkv_error error;
    if (!file) return cli_fail("out of memory");
    const qkv_status status = qkv_file_writable(file, &error);
    free(file);
    return cli_status(status, &error);
}

int attend_outputs_check(const struct attend_options *options) {
    const char *const paths[] = { options->o,  options->lse,   options->dq,    options->dk,
                                  options->dv, options->dsink, options->dmask, options->stats };
    for (int i = 0; i < CLI_COUNT(paths); i++) {
        const int code = paths[i] ? check_writable(paths[i]) : EXIT_OK;
        if (code) return code;
    }
    return EXIT_OK;
}

/* An array of the rank of the inputs. */
static qkv_array array_of(const struct attend_problem *problem, const struct output *output) {
    const int64_t shape[4] = { attend_size(problem->q, 0), output->heads, output->length,
                               output->last };
    qkv_array array = { .type = output->type, .data = output->data, .n_elems = 1 };
    if (output->like) {
        array.rank = output->like->rank;
        array.n_elems = output->like->n_elems;
        memcpy(array.shape, output->like->shape, sizeof array.shape);
        return array;
    }
    if (output->length < 0) {
        array.rank = 1;
        array.shape[0] = array.n_elems = output->heads;
        return array;
    }
    for (int d = 4 - problem->rank; d < (output->last < 0 ? 3 : 4); d++) {
        if ((d == 2 && output->no_row) || (d == 3 && output->no_column)) continue;
        if (d == 1 && output->no_heads) continue;
        array.shape[array.rank++] = shape[d];
        array.n_elems *= shape[d];
    }
    return array;
}

/* With --x its heads lie side by side. */
static struct output output_of(const struct attend_options *options,
                               const struct attend_problem *problem,
                               const struct attend_results *results) {
    const qkv_attention_desc *d = &problem->desc;
    struct output output = { .path = options->o,
                             .data = results->o,
                             .type = attend_array_type(d->dtype),
                             .heads = d->n_heads,
                             .length = attend_size(problem->q, 2),
                             .last = d->head_dim_v };
    output.no_row = problem->q_is_vector;
    output.no_column = problem->v_is_vector;
    if (!problem->made) return output;
    output.data = results->projected ? results->projected : results->joined;
    output.heads = 1;
    output.no_heads = true;
    output.last = problem->made->n_columns;
    return output;
}

int attend_outputs_write(const struct attend_options *options, const struct attend_problem *problem,
                         const struct attend_results *results) {
    const qkv_attention_desc *d = &problem->desc;
    const int64_t rows_q = attend_size(problem->q, 2), rows_k = attend_size(problem->k, 2);
    const qkv_array_type type = attend_array_type(d->dtype);
    const bool no_row = problem->q_is_vector, no_column = problem->v_is_vector;
    const struct output outputs[] = {
        output_of(options, problem, results),
        { options->lse, results->lse, QKV_ARRAY_F32, d->n_heads, rows_q, -1, .no_row = no_row,
          .no_heads = problem->no_heads },
        { options->dq, results->dq, type, d->n_heads, rows_q, d->head_dim, .no_row = no_row },
        { options->dk, results->dk, type, d->n_kv_heads, rows_k, d->head_dim, .like = NULL },
        { options->dv, results->dv, type, d->n_kv_heads, rows_k, d->head_dim_v,
          .no_column = no_column },
        { options->dsink, results->dsink, QKV_ARRAY_F32, d->n_heads, -1, -1, .like = NULL },
        { options->dmask, results->dmask, QKV_ARRAY_F32, -1, -1, -1, .like = problem->mask },
    };
    enum { MOST = CLI_COUNT(outputs) + 1 };
    qkv_array arrays[MOST];
    const qkv_array *written[MOST];
    const char *paths[MOST];
    int n = 0;
    for (int i = 0; i < CLI_COUNT(outputs); i++) {
        if (!outputs[i].path) continue;
        arrays[n] = array_of(problem, &outputs[i]);
        written[n] = &arrays[n];
        paths[n++] = outputs[i].path;
    }
    if (results->stats) {
        const int64_t bytes = (int64_t)results->stats->n_json;
        arrays[n] = (qkv_array){ QKV_ARRAY_BYTES, 1, { bytes }, bytes, results->stats->json, NULL };
        written[n] = &arrays[n];
        paths[n++] = options->stats;
    }
    qkv_error error;
    if (cli_cancelled) return EXIT_FAILED;
    return cli_status(qkv_arrays_write(n, paths, written, &error), &error);
}
