/*
 * The weights of `qkv look` as tables: .npy and .csv, in which a weight has the 9 significant digits
 * that give its float back. A key that a query does not see has none: NaN, an empty field, or no line.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "look.h"

static int64_t n_heads(const struct look *look) { return look->given ? 1 : look_n_heads(look); }

qkv_status look_weights(const struct look *look, int64_t limit, const char *advice, float **weights,
                        qkv_error *error) {
    const int64_t n = look->n_rows, m = look->n_cols, heads = n_heads(look),
                  across = look->view.n_heads;
    const int64_t first = look->given ? look->choice.layer * across + look->choice.head : 0;
    if (n > 0 && m > 0 && heads > limit / n / m)
        return text_error(error, QKV_ERR_LIMIT,
                          "%" PRId64 " head%s of %" PRId64 " x %" PRId64
                          " weights are more than the limit of %" PRId64 " weights%s%s",
                          heads, heads == 1 ? "" : "s", n, m, limit,
                          heads == 1 ? "" : ": name one head with --head", advice);
    *weights = malloc((size_t)(heads * n * m) * sizeof(float) + 1);
    if (!*weights) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t i = 0; i < heads; i++) {
        const int64_t layer = (first + i) / across, head = (first + i) % across;
        const qkv_status status = look_head_weights(look, layer, head, *weights + i * n * m, error);
        if (status == QKV_OK) continue;
        free(*weights);
        return status;
    }
    return QKV_OK;
}

/* A key that is not seen has no weight: NaN, which is not 0. */
static void hide(const struct look *look, float *weights) {
    const int64_t n = look->n_rows, m = look->n_cols;
    for (int64_t h = 0; h < n_heads(look); h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++)
                if (!look_sees(look, i, j)) weights[(h * n + i) * m + j] = NAN;
}

qkv_status look_npy(const struct look *look, const char *path, qkv_error *error) {
    float *weights;
    qkv_status status = look_weights(look, WEIGHTS_LIMIT, "", &weights, error);
    if (status != QKV_OK) return status;
    const int64_t n = look->n_rows, m = look->n_cols;
    hide(look, weights);
    const qkv_array array = { .type = QKV_ARRAY_F32,
                              .rank = look->given ? 2 : 4,
                              .shape = { look->given ? n : look->view.n_layers,
                                         look->given ? m : look->view.n_heads, n, m },
                              .n_elems = n_heads(look) * n * m,
                              .data = weights };
    status = qkv_array_write(path, &array, error);
    free(weights);
    return status;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* A token as JSON has it; places of windows, and rows of pairs, by name. */
static void put_token(struct csv *csv, const struct look *look, const qkv_token_list *list,
                      char *const *names, int64_t i) {
    if (look->slide || names == look->pair.names)
        csv_field(csv, names[i], strlen(names[i]));
    else
        csv_token(csv, list->tokenizer, list->tokens->ids[i]);
}

static void put_one_head(struct csv *csv, const struct look *look, const float *weights) {
    const int64_t n = look->n_rows, m = look->n_cols;
    csv_put(csv, "query");
    for (int64_t j = 0; j < m; j++) {
        csv_put(csv, ",");
        put_token(csv, look, &look->view.keys, look->cols, j);
    }
    csv_put(csv, "\n");
    for (int64_t i = 0; i < n; i++) {
        put_token(csv, look, &look->view.queries, look->rows, i);
        for (int64_t j = 0; j < m; j++) {
            csv_put(csv, ",");
            if (look_sees(look, i, j)) csv_put(csv, "%.9g", (double)weights[i * m + j]);
        }
        csv_put(csv, "\n");
    }
}

static void put_all_heads(struct csv *csv, const struct look *look, const float *weights) {
    const int64_t n = look->n_rows, m = look->n_cols, across = look->view.n_heads;
    csv_put(csv, "layer,head,query,key,weight\n");
    for (int64_t h = 0; h < n_heads(look); h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++)
                if (look_sees(look, i, j))
                    csv_put(csv, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g\n",
                            h / across, h % across, i, j, (double)weights[(h * n + i) * m + j]);
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
