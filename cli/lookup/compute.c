/*
 * A lookup is attention: queries are compared with keys, and values are averaged by weights. One
 * call of the library answers all queries. head_dim_v is the size of the values, and the keys with
 * the largest weights are statistics of the call, so no array has queries x keys.
 */
#include <stdlib.h>
#include <string.h>

#include "lookup/lookup.h"
#include <qkv/stats.h>

double lookup_similarity(const struct lookup *l, int64_t query, int64_t key) {
    return rows_product(l->q + query * l->dim, l->k + key * l->dim, l->dim);
}

int64_t lookup_equal(const struct lookup *l, int64_t query) {
    for (int64_t j = 0; j < l->table->n_rows; j++)
        if (strcmp(l->table->keys[j], l->queries[query]) == 0) return j;
    return -1;
}

/*
 * 0.1 for cosines; for products 0.1 times the mean square of the keys' lengths: the two are the
 * same if all vectors have one length, and otherwise length is all they differ by.
 */
static double default_temperature(const struct lookup *l) {
    const int64_t n = l->table->n_rows;
    const double mean = rows_product(l->k, l->k, n * l->dim) / (double)n;
    return l->options->metric.value == LOOKUP_COSINE || !(mean > 0) ? 0.1 : 0.1 * mean;
}

static qkv_status make_room(struct lookup *l, qkv_error *error) {
    const size_t n = (size_t)l->n_queries;
    l->values = calloc(n * (size_t)l->table->n_values + 1, sizeof(*l->values));
    l->entropy = calloc(n + 1, sizeof(*l->entropy));
    l->top_keys = calloc(n * (size_t)l->n_top + 1, sizeof(*l->top_keys));
    l->top_weights = calloc(n * (size_t)l->n_top + 1, sizeof(*l->top_weights));
    return l->values && l->entropy && l->top_keys && l->top_weights ? QKV_OK
                                                                    : text_no_memory(error);
}

qkv_status lookup_compute(struct lookup *l, qkv_error *error) {
    const int64_t top = l->options->top.set ? l->options->top.value : 5;
    l->n_top = top < l->table->n_rows ? top : l->table->n_rows;
    l->temperature =
        l->options->temperature.set ? l->options->temperature.value : default_temperature(l);
    const qkv_status made = make_room(l, error);
    if (made != QKV_OK) return made;
    qkv_attention_desc desc;
    qkv_attention_stats stats;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, l->n_queries, l->table->n_rows, l->dim,
                                  l->table->n_values);
    qkv_attention_stats_contiguous(&stats, &desc);
    stats.entropy = l->entropy;
    stats.top_k = l->n_top;
    stats.top_keys = l->top_keys;
    stats.top_weights = l->top_weights;
    desc.scale = (float)(1 / l->temperature);
    desc.stats = &stats;
    desc.flags |= QKV_SET_SCALE | QKV_SET_STATS;
    const qkv_status status = qkv_attention_forward(l->session->ctx, &desc, l->q, l->k,
                                                    l->table->values, l->values, NULL, NULL);
    return status == QKV_OK ? QKV_OK
                            : text_error(error, status, "%s", qkv_ctx_message(l->session->ctx));
}
