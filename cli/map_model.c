/* `qkv map TEXT`: runs the model once with capture, and takes queries and keys of one head. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"

/* What the model saw, for the callback. */
struct seen {
    struct map map; /* first, so that a map leads to it */
    qkv_run *run;
};

static qkv_status weights_of(const struct map *map, float *weights, qkv_error *error) {
    const struct seen *seen = (const struct seen *)map;
    const int64_t n = map->n_keys;
    float *all = calloc((size_t)(n * n) + 1, sizeof(float));
    if (!all) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    const qkv_status status =
        qkv_run_weights(seen->run, 0, map->choice.layer, map->choice.head, all, error);
    memcpy(weights, all + map->query * n, (size_t)n * sizeof(float));
    free(all);
    return status;
}

/* Queries and keys of the chosen head: their labels are the tokens, twice. */
static qkv_status take_head(struct seen *seen, qkv_error *error) {
    struct map *map = &seen->map;
    qkv_capture capture;
    char **tokens = NULL;
    qkv_status status = qkv_run_capture(seen->run, 0, map->choice.layer, &capture, error);
    if (status != QKV_OK) return status;
    const int64_t n = capture.n, first = map->choice.head * n * capture.head_dim;
    map->n_queries = map->n_keys = n;
    map->head_dim = capture.head_dim;
    map->q = capture.q + first;
    map->k = capture.k + first;
    status = session_labels(map->session, map->input, &tokens, error);
    map->labels = calloc(2 * (size_t)n + 1, sizeof(char *));
    bool made = status == QKV_OK && map->labels;
    for (int64_t i = 0; made && i < 2 * n; i++)
        made = (map->labels[i] = strdup(tokens[i % n])) != NULL;
    session_labels_free(tokens, n);
    return made ? QKV_OK : text_error(error, QKV_ERR_MEMORY, "out of memory");
}

static qkv_status choose_query(struct map *map, qkv_error *error) {
    map->query = map->choice.query;
    if (!map->options->query) return QKV_OK;
    map->query = map_query(map, map->options->query);
    if (map->query >= 0) return QKV_OK;
    return text_error(error, QKV_ERR_ARGUMENT, "--query: '%s' is none of the %" PRId64 " tokens",
                      map->options->query, map->n_queries);
}

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    struct seen seen = { .map = { .session = &job->session,
                                  .options = job->options,
                                  .input = input,
                                  .given = job->given,
                                  .choice = { .layer = job->layer, .head = job->head },
                                  .query = -1 } };
    struct map *map = &seen.map;
    qkv_status status = qkv_model_run(job->session.ctx, job->session.model, 1, &map->input,
                                      QKV_RUN_CAPTURE, &seen.run, error);
    if (status == QKV_OK)
        status =
            choose_head_of_run(&job->session, seen.run, input, job->given, &map->choice, error);
    if (status == QKV_OK) status = take_head(&seen, error);
    if (status == QKV_OK) status = choose_query(map, error);
    if (status == QKV_OK) status = map_answer(job->session.ctx, map, weights_of, json, error);
    map_free(map);
    qkv_run_free(seen.run);
    return status;
}

int map_texts(const struct cli_command *command, const struct map_options *options, int n_words,
              char **words) {
    struct text_job job = { .options = options, .pair = options->pair, .answer = answer };
    const int code = text_job_open(&job, command, &options->common);
    return code ? code : text_job_run(&job, n_words, words);
}
