/*
 * The weights of `qkv look` as tables: .npy and .csv. CSV quotes as RFC 4180 says, its lines end in
 * a line feed, and a weight has the 9 significant digits that give its float back.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        const qkv_status status =
            qkv_run_weights(look->run, 0, layer, head, *weights + i * n * n, error);
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

/*
 * The file while it grows in memory. A failure is kept here: glibc's memory streams drop what they
 * have no room for, and tell only the call that put it.
 */
struct csv {
    FILE *out;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void put(struct csv *csv, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    csv->failed |= vfprintf(csv->out, format, arguments) < 0;
    va_end(arguments);
}

/* In quotes if it holds a comma, a quote or a line break; a quote inside is doubled. */
static void put_field(struct csv *csv, const char *text, size_t n) {
    bool plain = true;
    for (size_t i = 0; i < n; i++) plain = plain && !strchr(",\"\r\n", text[i]);
    if (!plain) put(csv, "\"");
    for (size_t i = 0; i < n; i++) put(csv, "%s%c", text[i] == '"' ? "\"" : "", text[i]);
    if (!plain) put(csv, "\"");
}

/* A token as JSON has it: escaped only if it is not UTF-8. */
static void put_token(struct csv *csv, const struct look *look, int64_t i) {
    json_t *token = text_token_json(look->session, look->input->ids[i]);
    csv->failed |= !token;
    if (token) put_field(csv, json_string_value(token), json_string_length(token));
    json_decref(token);
}

static void put_one_head(struct csv *csv, const struct look *look, const float *weights) {
    const int64_t n = look->input->n;
    put(csv, "query");
    for (int64_t j = 0; j < n; j++) {
        put(csv, ",");
        put_token(csv, look, j);
    }
    put(csv, "\n");
    for (int64_t i = 0; i < n; i++) {
        put_token(csv, look, i);
        for (int64_t j = 0; j < n; j++) put(csv, ",%.9g", (double)weights[i * n + j]);
        put(csv, "\n");
    }
}

static void put_all_heads(struct csv *csv, const struct look *look, const float *weights) {
    const int64_t n = look->input->n, across = look->session->info->n_heads;
    put(csv, "layer,head,query,key,weight\n");
    for (int64_t h = 0; h < n_heads(look); h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                put(csv, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g\n", h / across,
                    h % across, i, j, (double)weights[(h * n + i) * n + j]);
}

qkv_status look_csv(const struct look *look, const char *path, qkv_error *error) {
    float *weights;
    qkv_status status = look_weights(look, CSV_LIMIT, "; .npy holds more", &weights, error);
    if (status != QKV_OK) return status;
    char *text = NULL;
    size_t n_bytes = 0;
    struct csv csv = { open_memstream(&text, &n_bytes), false };
    if (csv.out && look->given) put_one_head(&csv, look, weights);
    if (csv.out && !look->given) put_all_heads(&csv, look, weights);
    const bool made = csv.out && fclose(csv.out) == 0 && !csv.failed;
    status = made ? qkv_file_write(path, text, n_bytes, error)
                  : text_error(error, QKV_ERR_MEMORY, "out of memory");
    free(text);
    free(weights);
    return status;
}
