/* `qkv explain --q F --k F --v F`: one query of arrays of any model. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array_names.h"
#include "common/number.h"
#include "common/rows.h"
#include "explain/explain.h"

/* The arrays, and how many queries there are. */
static qkv_status read_all(const struct explain_options *o, qkv_array *arrays[3], struct vectors *x,
                           int64_t *n_queries, qkv_error *error) {
    const char *const paths[3] = { o->q, o->k, o->v };
    static const enum rows_vector vectors[3] = { VECTOR_IS_ROW, VECTOR_IS_WRONG, VECTOR_IS_COLUMN };
    int64_t shape[3][2];
    for (int i = 0; i < 3; i++) {
        const qkv_status status = rows_read(paths[i], o->common.quiet, "channels", vectors[i],
                                            &arrays[i], shape[i], error);
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
    *n_queries = shape[0][0];
    *x = (struct vectors){ .n_keys = shape[1][0],
                           .head_dim = shape[0][1],
                           .head_dim_v = shape[2][1],
                           .k = arrays[1]->data,
                           .v = arrays[2]->data,
                           .causal = o->causal };
    return QKV_OK;
}

/* Names of keys and of queries: as many queries as keys are of the same tokens. */
static qkv_status read_names(const struct explain_options *o, int64_t n_queries,
                             const struct vectors *x, struct array_names names[2], bool *self,
                             qkv_error *error) {
    const struct array_tokens tokens = { o->tokens, o->q_tokens, x->n_keys,
                                         n_queries, "k",         o->common.quiet };
    *self = o->tokens && !o->q_tokens && n_queries == x->n_keys;
    return array_names_read(&tokens, *self, &names[0], &names[1], error);
}

/* --query: a row of q, or a token; without it the first one. */
static qkv_status choose_query(const struct explain_options *o, char *const *labels,
                               bool has_tokens, const float *q, int64_t n_queries,
                               struct vectors *x, qkv_error *error) {
    bool found = !o->query || number_int(o->query, 0, n_queries - 1, &x->query);
    if (!found && has_tokens) {
        const qkv_status status =
            label_find(labels, n_queries, "--query", o->query, &x->query, error);
        if (status != QKV_OK) return status;
        found = x->query >= 0;
    }
    if (!found)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--query: '%.60s' is no row of %s, which has rows 0 to %" PRId64,
                          o->query, o->q, n_queries - 1);
    x->q = q + x->query * x->head_dim;
    x->query_label = labels[x->query];
    return QKV_OK;
}

static void tell(struct report *report, const struct explain_options *o, const struct vectors *x,
                 int64_t n_queries, const qkv_steps *made, int64_t n_rows) {
    char *path = term_escape(o->q, strlen(o->q));
    report->failed |= !path;
    report_title(report, "Query %" PRId64 " of %" PRId64 " and %" PRId64 " keys", x->query,
                 n_queries, x->n_keys);
    report_subtitle(report,
                    "Rows of " WORD ", counted from 0: %" PRId64 " channels, values of %" PRId64
                    ". |x| is the length of a vector.",
                    path ? path : "", x->head_dim, x->head_dim_v);
    free(path);
    explain_vectors(report, x, made, n_rows);
    explain_check(report, made);
}

qkv_status explain_arrays(struct report *report, const struct explain *e, qkv_error *error) {
    qkv_array *arrays[3] = { NULL, NULL, NULL };
    struct vectors x = { .n_keys = 0 };
    qkv_steps *made = NULL;
    int64_t n_queries = 0;
    struct array_names names[2] = { { NULL, NULL }, { NULL, NULL } }; /* of keys, of queries */
    bool self = false;
    qkv_status status = read_all(e->options, arrays, &x, &n_queries, error);
    if (status == QKV_OK) status = read_names(e->options, n_queries, &x, names, &self, error);
    const struct array_names *const queries = &names[self ? 0 : 1];
    x.key_labels = names[0].labels;
    if (status == QKV_OK)
        status = choose_query(e->options, queries->labels, queries->tokens != NULL, arrays[0]->data,
                              n_queries, &x, error);
    if (status == QKV_OK) status = explain_compute(e->ctx, &x, &made, error);
    if (status == QKV_OK) tell(report, e->options, &x, n_queries, made, e->n_rows);
    array_names_free(&names[0], x.n_keys);
    array_names_free(&names[1], n_queries);
    qkv_steps_free(made);
    for (int i = 0; i < 3; i++) qkv_array_free(arrays[i]);
    return status;
}
