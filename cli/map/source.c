/* Queries and keys of `qkv map`: of one head of a model on a text, or arrays of any model. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/array_names.h"
#include "common/number.h"
#include "common/rows.h"
#include "map/map.h"

/* The names of queries and keys, which must live as long as the map. */
static qkv_status take_labels(struct map *map, char *const *queries, char *const *keys,
                              qkv_error *error) {
    const int64_t n = map->n_queries + map->n_keys;
    map->labels = calloc((size_t)n + 1, sizeof(char *));
    if (!map->labels || !queries || !keys) return text_no_memory(error);
    for (int64_t i = 0; i < n; i++)
        map->labels[i] = i < map->n_queries ? queries[i] : keys[i - map->n_queries];
    return QKV_OK;
}

/* --query as a position or the label of one token; -1: there is none. */
static qkv_status find_query(const struct map *map, const char *words, int64_t *query,
                             qkv_error *error) {
    if (!number_int(words, 0, INT64_MAX, query))
        return label_find(map->labels, map->n_queries, "--query", words, query, error);
    if (*query >= map->n_queries) *query = -1;
    return QKV_OK;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Queries and keys of the chosen head. */
static qkv_status take_head(struct map *map, const struct text_job *job, qkv_error *error) {
    const struct attended *text = &map->text;
    const qkv_heads_info *info = qkv_heads_get_info(text->heads);
    qkv_head_view head = qkv_head_view_init();
    qkv_status status =
        attended_choose(text, job->given, job->layer, job->head, &map->choice, error);
    if (status == QKV_OK)
        status = qkv_heads_view(text->heads, map->choice.layer * info->n_heads + map->choice.head,
                                &head, error);
    if (status != QKV_OK) return status;
    map->n_queries = info->n_queries;
    map->n_keys = info->n_keys;
    map->head_dim = info->head_dim;
    map->q = head.q;
    map->k = head.k;
    return take_labels(map, attended_queries(text), attended_keys(text), error);
}

static qkv_status choose_query(struct map *map, qkv_error *error) {
    const char *query = map->options->query;
    const struct pair *pair = &map->text.pair;
    map->query = map->choice.query;
    if (!query) return QKV_OK;
    qkv_status status = find_query(map, query, &map->query, error);
    if (status == QKV_OK && map->query < 0 && pair->next)
        status =
            label_find(pair->input_names, map->n_queries, "--query", query, &map->query, error);
    if (status != QKV_OK || map->query >= 0) return status;
    return text_error(error, QKV_ERR_ARGUMENT, "--query: '%s' is none of the %" PRId64 " tokens",
                      query, map->n_queries);
}

static qkv_status answer_text(struct text_job *job, const qkv_encoding *input, json_t **json,
                              qkv_error *error) {
    const struct map_options *options = job->options;
    struct map map = { .options = options,
                       .said = { job->said[0], job->said[1] },
                       .text = { .session = &job->session, .input = input } };
    qkv_status status = attended_open(&map.text, job->which, options->which.target, NULL, error);
    if (status == QKV_OK) status = attended_run(&map.text, 0, error);
    if (status == QKV_OK) status = take_head(&map, job, error);
    if (status == QKV_OK) status = choose_query(&map, error);
    if (status == QKV_OK) status = map_answer(job->session.ctx, &map, json, error);
    map_free(&map);
    return status;
}

int map_texts(const struct cli_command *command, const struct map_options *options, int n_words,
              char **words) {
    struct text_job job = { .options = options,
                            .pair = options->pair,
                            .image = options->image,
                            .which = pair_which(&options->which),
                            .answer = answer_text };
    const int code = text_job_open(&job, command, &options->common);
    return code ? code : text_job_run(&job, n_words, words);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* As many queries as keys are of the same tokens, unless the queries' have a file of their own. */
static qkv_status name_arrays(struct map *map, struct array_names names[2], qkv_error *error) {
    const struct map_options *options = map->options;
    const struct array_tokens tokens = {
        options->tokens, options->q_tokens, map->n_keys, map->n_queries, "k", options->common.quiet
    };
    const bool self = options->tokens && !options->q_tokens && map->n_queries == map->n_keys;
    const qkv_status status = array_names_read(&tokens, self, &names[1], &names[0], error);
    if (status != QKV_OK) return status;
    return take_labels(map, self ? names[1].labels : names[0].labels, names[1].labels, error);
}

/* The heads of the query that lines come from: the weights of no other are asked for. */
static qkv_status open_query(qkv_ctx *ctx, struct map *map, qkv_error *error) {
    const char *query = map->options->query;
    map->query = -1;
    if (!query) return QKV_OK;
    const qkv_status status = find_query(map, query, &map->query, error);
    if (status != QKV_OK) return status;
    if (map->query < 0)
        return text_error(error, QKV_ERR_ARGUMENT, "--query: '%s' is none of %" PRId64 " queries",
                          query, map->n_queries);
    qkv_attention_desc mask;
    qkv_attention_desc_contiguous(&mask, 1, 1, 1, map->n_queries, map->n_keys, 1, 1);
    if (rules_apply(&map->rules, &mask) != EXIT_OK)
        return text_error(error, QKV_ERR_MEMORY, "no memory for rules");
    qkv_heads_arrays arrays = qkv_heads_arrays_init();
    arrays.scale = map->options->scale.set ? (float)map->options->scale.value : 0;
    arrays.causal = (mask.flags & QKV_SET_CAUSAL) != 0;
    arrays.q_offset =
        arrays.causal ? map->query + (mask.q_offsets ? mask.q_offsets[0] : mask.q_offset) : 0;
    arrays.q = map->q + map->query * map->head_dim;
    arrays.k = map->k;
    arrays.n_heads = arrays.n_kv_heads = arrays.n_queries = 1;
    arrays.n_keys = map->n_keys;
    arrays.head_dim = map->head_dim;
    arrays.two_texts = !arrays.causal;
    return qkv_heads_open_arrays(ctx, &arrays, &map->text.heads, error);
}

static qkv_status read_arrays(struct map *map, qkv_array **q, qkv_array **k, qkv_error *error) {
    const struct map_options *options = map->options;
    int64_t q_shape[2], k_shape[2];
    const bool quiet = options->common.quiet;
    qkv_status status = rows_read(options->q, quiet, "head_dim", VECTOR_IS_ROW, q, q_shape, error);
    if (status == QKV_OK)
        status = rows_read(options->k, quiet, "head_dim", VECTOR_IS_WRONG, k, k_shape, error);
    if (status != QKV_OK) return status;
    if (q_shape[1] != k_shape[1])
        return text_error(error, QKV_ERR_SHAPE,
                          "%s has rows of %" PRId64 " numbers, %s of %" PRId64, options->q,
                          q_shape[1], options->k, k_shape[1]);
    map->n_queries = q_shape[0];
    map->n_keys = k_shape[0];
    map->head_dim = q_shape[1];
    map->q = (*q)->data;
    map->k = (*k)->data;
    return QKV_OK;
}

static qkv_status answer_arrays(qkv_ctx *ctx, struct map *map, qkv_error *error) {
    qkv_array *q = NULL, *k = NULL;
    json_t *json = NULL;
    qkv_status status = read_arrays(map, &q, &k, error);
    struct array_names names[2] = { { NULL, NULL }, { NULL, NULL } }; /* of queries, of keys */
    if (status == QKV_OK) status = name_arrays(map, names, error);
    if (status == QKV_OK) status = open_query(ctx, map, error);
    if (status == QKV_OK)
        status = map_answer(ctx, map, map->options->common.json ? &json : NULL, error);
    if (status == QKV_OK && json && !json_print(stdout, json))
        status = text_error(error, QKV_ERR_IO, "standard output");
    array_names_free(&names[0], map->n_queries);
    array_names_free(&names[1], map->n_keys);
    qkv_array_free(q);
    qkv_array_free(k);
    return status;
}

int map_arrays(const struct cli_command *command, const struct map_options *options) {
    qkv_ctx *ctx = NULL;
    qkv_error error;
    struct map map = { .options = options };
    int code = rules_parse_causal(command, options->causal, &map.rules);
    if (!code) code = session_context(command, &options->common, &ctx);
    if (code) {
        map_free(&map);
        return code;
    }
    if (answer_arrays(ctx, &map, &error) != QKV_OK) code = cli_fail("%s", error.message);
    map_free(&map);
    qkv_ctx_free(ctx);
    return code;
}
