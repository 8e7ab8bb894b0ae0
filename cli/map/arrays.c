/* `qkv map --q F --k F`: queries and keys of any model, without the model. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/rows.h"
#include "map/map.h"

/* q0, q1, …, k0, k1, … */
static qkv_status make_labels(struct map *map, qkv_error *error) {
    const int64_t n = map->n_queries + map->n_keys;
    map->labels = calloc((size_t)n + 1, sizeof(char *));
    for (int64_t i = 0; map->labels && i < n; i++) {
        const bool is_key = i >= map->n_queries;
        char text[24];
        snprintf(text, sizeof text, "%c%" PRId64, is_key ? 'k' : 'q',
                 is_key ? i - map->n_queries : i);
        if (!(map->labels[i] = strdup(text))) break;
        if (i == n - 1) return QKV_OK;
    }
    return n == 0 && map->labels ? QKV_OK : text_error(error, QKV_ERR_MEMORY, "out of memory");
}

/* The heads of the query that lines come from: the weights of no other are asked for. */
static qkv_status open_query(qkv_ctx *ctx, struct map *map, qkv_error *error) {
    qkv_heads_arrays arrays = qkv_heads_arrays_init();
    arrays.q = map->q + map->query * map->head_dim;
    arrays.k = map->k;
    arrays.n_heads = arrays.n_kv_heads = arrays.n_queries = 1;
    arrays.n_keys = map->n_keys;
    arrays.head_dim = map->head_dim;
    arrays.two_texts = 1;
    return qkv_heads_open_arrays(ctx, &arrays, &map->heads, error);
}

static qkv_status answer(qkv_ctx *ctx, struct map *map, qkv_error *error) {
    const struct map_options *options = map->options;
    qkv_array *q = NULL, *k = NULL;
    int64_t q_shape[2], k_shape[2];
    qkv_status status = rows_read(options->q, "head_dim", &q, q_shape, error);
    if (status == QKV_OK) status = rows_read(options->k, "head_dim", &k, k_shape, error);
    if (status == QKV_OK && q_shape[1] != k_shape[1])
        status =
            text_error(error, QKV_ERR_SHAPE, "%s has rows of %" PRId64 " numbers, %s of %" PRId64,
                       options->q, q_shape[1], options->k, k_shape[1]);
    if (status == QKV_OK) {
        map->n_queries = q_shape[0];
        map->n_keys = k_shape[0];
        map->head_dim = q_shape[1];
        map->q = q->data;
        map->k = k->data;
        status = make_labels(map, error);
    }
    if (status == QKV_OK && options->query) {
        map->query = map_query(map, options->query);
        if (map->query < 0)
            status =
                text_error(error, QKV_ERR_ARGUMENT, "--query: '%s' is none of %" PRId64 " queries",
                           options->query, map->n_queries);
        else
            status = open_query(ctx, map, error);
    }
    json_t *json = NULL;
    if (status == QKV_OK) status = map_answer(ctx, map, options->common.json ? &json : NULL, error);
    if (status == QKV_OK && json && !json_print(stdout, json)) status = QKV_ERR_IO;
    qkv_array_free(q);
    qkv_array_free(k);
    return status;
}

int map_arrays(const struct cli_command *command, const struct map_options *options) {
    qkv_ctx *ctx = NULL;
    qkv_error error = { .message = "standard output" };
    int code = session_context(command, &options->common, &ctx);
    if (code) return code;
    struct map map = { .options = options, .query = -1 };
    if (answer(ctx, &map, &error) != QKV_OK) code = cli_fail("%s", error.message);
    map_free(&map);
    qkv_ctx_destroy(ctx);
    return code;
}
