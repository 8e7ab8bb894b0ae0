/* `qkv explain --q F --k F --v F`: one query of arrays of any model. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/rows.h"
#include "explain/explain.h"

static qkv_status read_all(const struct explain_options *o, qkv_array *arrays[3], struct vectors *x,
                           qkv_error *error) {
    const char *const paths[3] = { o->q, o->k, o->v };
    int64_t shape[3][2];
    for (int i = 0; i < 3; i++) {
        const qkv_status status = rows_read(paths[i], "channels", &arrays[i], shape[i], error);
        if (status != QKV_OK) return status;
        if (arrays[i]->n_elems == 0)
            return text_error(error, QKV_ERR_SHAPE, "%s: an array without numbers", paths[i]);
    }
    if (shape[0][1] != shape[1][1])
        return text_error(error, QKV_ERR_SHAPE,
                          "%s has rows of %" PRId64 " numbers, %s of %" PRId64, o->q, shape[0][1],
                          o->k, shape[1][1]);
    if (shape[1][0] != shape[2][0])
        return text_error(error, QKV_ERR_SHAPE, "%s has %" PRId64 " rows, %s has %" PRId64, o->k,
                          shape[1][0], o->v, shape[2][0]);
    *x = (struct vectors){ .n_queries = shape[0][0],
                           .n_keys = shape[1][0],
                           .head_dim = shape[0][1],
                           .head_dim_v = shape[2][1],
                           .q = arrays[0]->data,
                           .k = arrays[1]->data,
                           .v = arrays[2]->data,
                           .causal = o->causal };
    if (o->query && !args_int(o->query, 0, x->n_queries - 1, &x->query))
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--query: '%.60s' is no row of %s, which has rows 0 to %" PRId64,
                          o->query, o->q, x->n_queries - 1);
    return QKV_OK;
}

/* "q3" and "k0", "k1" … */
static char **make_labels(char letter, int64_t n) {
    char **labels = calloc((size_t)n + 1, sizeof(*labels));
    for (int64_t i = 0; labels && i < n; i++)
        if (asprintf(&labels[i], "%c%" PRId64, letter, i) < 0) labels[i] = NULL;
    return labels;
}

static bool complete(char **labels, int64_t n) {
    for (int64_t i = 0; labels && i < n; i++)
        if (!labels[i]) return false;
    return labels != NULL;
}

static void tell(struct report *report, const struct explain_options *o, const struct vectors *x,
                 const qkv_steps *made, int64_t n_rows) {
    char *path = term_escape(o->q, strlen(o->q));
    report->failed |= !path;
    report_title(report, "Query %" PRId64 " of %" PRId64 " and %" PRId64 " keys", x->query,
                 x->n_queries, x->n_keys);
    report_subtitle(report,
                    "Rows of " WORD ", counted from 0: %" PRId64 " channels, values of %" PRId64
                    ". |x| is the length of a vector.",
                    path ? path : "", x->head_dim, x->head_dim_v);
    free(path);
    explain_vectors(report, x, made, n_rows);
    report_step(report, "Check", "these steps, in double precision, against the library, in floats",
                NULL);
    report_text(report, "Largest difference: o %.1e, log Σ exp s %.1e.", made->y_error,
                made->lse_error);
}

qkv_status explain_arrays(qkv_ctx *ctx, struct report *report,
                          const struct explain_options *options, int64_t n_rows, qkv_error *error) {
    qkv_array *arrays[3] = { NULL, NULL, NULL };
    struct vectors x = { .n_keys = 0 };
    qkv_steps *made = NULL;
    qkv_status status = read_all(options, arrays, &x, error);
    char **queries = status == QKV_OK ? make_labels('q', x.n_queries) : NULL;
    char **keys = status == QKV_OK ? make_labels('k', x.n_keys) : NULL;
    if (status == QKV_OK && (!complete(queries, x.n_queries) || !complete(keys, x.n_keys)))
        status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    x.query_labels = queries;
    x.key_labels = keys;
    if (status == QKV_OK) status = explain_compute(ctx, &x, &made, error);
    if (status == QKV_OK) tell(report, options, &x, made, n_rows);
    session_labels_free(queries, x.n_queries);
    session_labels_free(keys, x.n_keys);
    qkv_steps_free(made);
    for (int i = 0; i < 3; i++) qkv_array_free(arrays[i]);
    return status;
}
