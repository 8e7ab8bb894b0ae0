/*
 * The weights of `qkv look` as tables: .npy and .csv, in which a weight has the 9 significant digits
 * that give its float back.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "look.h"

static int64_t n_heads(const struct look *look) {
    return look->given ? 1 : look->session->info->n_layers * look->session->info->n_heads;
}

qkv_status look_weights(const struct look *look, int64_t limit, const char *advice, float **weights,
                        qkv_error *error) {
    const int64_t n = look->input->n, heads = n_heads(look), across = look->session->info->n_heads;
    const int64_t first = look->given ? look->choice.layer * across + look->choice.head : 0;
    if (n > 0 && heads > limit / n / n)
        return text_error(error, QKV_ERR_LIMIT,
                          "%" PRId64 " head%s of %" PRId64 " x %" PRId64
                          " weights are more than the limit of %" PRId64 " weights%s%s",
                          heads, heads == 1 ? "" : "s", n, n, limit,
                          heads == 1 ? "" : ": name one head with --head", advice);
    *weights = malloc((size_t)(heads * n * n) * sizeof(float) + 1);
    if (!*weights) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t i = 0; i < heads; i++) {
        const int64_t layer = (first + i) / across, head = (first + i) % across;
        const qkv_status status = look_head_weights(look, layer, head, *weights + i * n * n, error);
        if (status == QKV_OK) continue;
        free(*weights);
        return status;
    }
    return QKV_OK;
}

qkv_status look_npy(const struct look *look, const char *path, qkv_error *error) {
    float *weights;
    qkv_status status = look_weights(look, WEIGHTS_LIMIT, "", &weights, error);
    if (status != QKV_OK) return status;
    const qkv_model_info *info = look->session->info;
    const int64_t n = look->input->n;
    const qkv_array array = { .type = QKV_ARRAY_F32,
                              .rank = look->given ? 2 : 4,
                              .shape = { look->given ? n : info->n_layers,
                                         look->given ? n : info->n_heads, n, n },
                              .n_elems = n_heads(look) * n * n,
                              .data = weights };
    status = qkv_array_write(path, &array, error);
    free(weights);
    return status;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void put_token(struct csv *csv, const struct look *look, int64_t i) {
    if (look->slide)
        csv_field(csv, look->labels[i], strlen(look->labels[i]));
    else
        csv_token(csv, look->session, look->input->ids[i]);
}

static void put_one_head(struct csv *csv, const struct look *look, const float *weights) {
    const int64_t n = look->input->n;
    csv_put(csv, "query");
    for (int64_t j = 0; j < n; j++) {
        csv_put(csv, ",");
        put_token(csv, look, j);
    }
    csv_put(csv, "\n");
    for (int64_t i = 0; i < n; i++) {
        put_token(csv, look, i);
        for (int64_t j = 0; j < n; j++) csv_put(csv, ",%.9g", (double)weights[i * n + j]);
        csv_put(csv, "\n");
    }
}

static void put_all_heads(struct csv *csv, const struct look *look, const float *weights) {
    const int64_t n = look->input->n, across = look->session->info->n_heads;
    csv_put(csv, "layer,head,query,key,weight\n");
    for (int64_t h = 0; h < n_heads(look); h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                csv_put(csv, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g\n", h / across,
                        h % across, i, j, (double)weights[(h * n + i) * n + j]);
}

qkv_status look_csv(const struct look *look, const char *path, qkv_error *error) {
    float *weights;
    qkv_status status = look_weights(look, CSV_LIMIT, "; .npy holds more", &weights, error);
    if (status != QKV_OK) return status;
    struct csv csv;
    csv_open(&csv);
    if (look->given)
        put_one_head(&csv, look, weights);
    else
        put_all_heads(&csv, look, weights);
    status = csv_write(&csv, path, error);
    free(weights);
    return status;
}
