/*
 * One query of vectors without a model: every number in double precision, and the library's own beside
 * them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "explain.h"

/* Room for the arrays of the steps, in one block. */
static qkv_status make_room(const struct vectors *x, struct vector_steps *made, double **products,
                            double **scores, double **o, qkv_error *error) {
    const int64_t n = x->n_keys, d = x->head_dim, d_v = x->head_dim_v;
    double *at = calloc((size_t)(d + n * d + n * d_v + 5 * n + d_v) + 1, sizeof(*at));
    made->block = at;
    if (!at) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_steps *s = &made->steps;
    s->q = at;
    for (int64_t c = 0; c < d; c++) *at++ = (double)x->q[x->query * d + c];
    s->k = at;
    for (int64_t i = 0; i < n * d; i++) *at++ = (double)x->k[i];
    s->v = at;
    for (int64_t i = 0; i < n * d_v; i++) *at++ = (double)x->v[i];
    s->products = *products = at;
    s->scores = *scores = at + n;
    s->shifted = at + 2 * n;
    s->exponentials = at + 3 * n;
    s->weights = at + 4 * n;
    s->o = *o = at + 5 * n;
    return QKV_OK;
}

static void compute(const struct vectors *x, qkv_steps *s, double *products, double *scores,
                    double *o) {
    const int64_t n = x->n_keys, d = x->head_dim, d_v = x->head_dim_v;
    double *shifted = scores + n, *exponentials = scores + 2 * n, *weights = scores + 3 * n;
    s->scale = d > 0 ? 1 / sqrt((double)d) : 1;
    s->largest = -INFINITY;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t c = 0; c < d; c++) products[j] += s->q[c] * s->k[j * d + c];
        scores[j] = x->causal && j > x->query ? -INFINITY : s->scale * products[j];
        if (!(scores[j] <= s->largest)) s->largest = scores[j];
    }
    for (int64_t j = 0; j < n; j++) {
        shifted[j] = scores[j] - s->largest;
        exponentials[j] = exp(shifted[j]);
        s->sum += exponentials[j];
    }
    for (int64_t j = 0; j < n; j++) {
        weights[j] = exponentials[j] / s->sum;
        for (int64_t c = 0; c < d_v; c++) o[c] += weights[j] * s->v[j * d_v + c];
    }
}

/* o and lse of this query as the library has them. */
static qkv_status compare(qkv_ctx *ctx, const struct vectors *x, struct vector_steps *made,
                          qkv_error *error) {
    const qkv_steps *s = &made->steps;
    qkv_attention_desc desc;
    float lse, *o = calloc((size_t)x->head_dim_v + 1, sizeof(*o));
    if (!o) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, 1, x->n_keys, x->head_dim, x->head_dim_v);
    if (x->causal) {
        desc.flags |= QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
        desc.q_offset = x->query;
    }
    const qkv_status status =
        qkv_attention_forward(ctx, &desc, x->q + x->query * x->head_dim, x->k, x->v, o, &lse, NULL);
    if (status == QKV_OK) {
        for (int64_t c = 0; c < x->head_dim_v; c++)
            made->o_error = fmax(made->o_error, fabs((double)o[c] - s->o[c]));
        made->lse_error = fabs((double)lse - (s->largest + log(s->sum)));
    } else {
        text_error(error, status, "%s", qkv_ctx_message(ctx));
    }
    free(o);
    return status;
}

qkv_status explain_compute(qkv_ctx *ctx, const struct vectors *x, struct vector_steps *made,
                           qkv_error *error) {
    double *products = NULL, *scores = NULL, *o = NULL;
    *made = (struct vector_steps){
        .steps = { .n = x->n_keys, .head_dim = x->head_dim, .query = x->query }
    };
    const qkv_status status = make_room(x, made, &products, &scores, &o, error);
    if (status != QKV_OK) return status;
    compute(x, &made->steps, products, scores, o);
    return compare(ctx, x, made, error);
}

void explain_vectors(struct lesson *lesson, const struct vectors *x,
                     const struct vector_steps *made, int64_t n_rows) {
    const bool hides = x->causal && x->query + 1 < x->n_keys;
    const struct explained e = { &made->steps,  x->head_dim_v, x->query_labels[x->query],
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
    explain_scores(lesson, &e);
    explain_mask(lesson, &e, why);
    explain_softmax(lesson, &e);
    explain_values(lesson, &e);
}
