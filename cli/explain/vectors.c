/* One query of vectors without a model, as a report: the steps that every attention has. */
#include <inttypes.h>

#include "explain/explain.h"

qkv_status explain_compute(qkv_ctx *ctx, const struct vectors *x, qkv_steps **made,
                           qkv_error *error) {
    return qkv_inspect_vectors(ctx, x->n_keys, x->head_dim, x->head_dim_v,
                               x->q + x->query * x->head_dim, x->k, x->v, x->query, x->causal, made,
                               error);
}

void explain_vectors(struct report *report, const struct vectors *x, const qkv_steps *made,
                     int64_t n_rows) {
    const bool hides = x->causal && x->query + 1 < x->n_keys;
    const struct explained e = { made,          x->head_dim_v, x->query_labels[x->query],
                                 x->key_labels, hides,         n_rows };
    char why[200];
    if (hides)
        snprintf(why, sizeof why,
                 "Causal: a query sees itself and what came before it, so %" PRId64
                 " key%s after place %" PRId64 " become%s −∞, whose exp is 0.",
                 x->n_keys - x->query - 1, x->n_keys - x->query == 2 ? "" : "s", x->query,
                 x->n_keys - x->query == 2 ? "s" : "");
    else
        snprintf(why, sizeof why, "%s",
                 x->causal
                     ? "Causal: keys after the query become −∞. There are none."
                     : "Nothing is hidden. With --causal the keys after the query become −∞.");
    explain_scores(report, &e);
    explain_mask(report, &e, why);
    explain_softmax(report, &e);
    explain_values(report, &e);
}
