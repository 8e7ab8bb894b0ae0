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
    float *all = calloc((size_t)(map->n_queries * n) + 1, sizeof(float));
    if (!all) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    const qkv_status status = qkv_run_weights_of(seen->run, map->view.which, 0, map->choice.layer,
                                                 map->choice.head, all, error);
    memcpy(weights, all + map->query * n, (size_t)n * sizeof(float));
    free(all);
    return status;
}

/* Tokens of the text; of a decoder's queries what it read and predicts, of its own keys what it read. */
static qkv_status make_labels(struct map *map, qkv_error *error) {
    const struct pair *pair = &map->pair;
    const int64_t n = map->n_queries + map->n_keys;
    char **tokens = NULL;
    const qkv_status status = session_labels(map->session, map->input, &tokens, error);
    char *const *queries = pair->next ? pair->names : tokens;
    char *const *keys = map->view.which == QKV_DECODER ? pair->input_names : tokens;
    map->labels = calloc((size_t)n + 1, sizeof(char *));
    bool made = status == QKV_OK && map->labels;
    for (int64_t i = 0; made && i < n; i++)
        made = (map->labels[i] =
                    strdup(i < map->n_queries ? queries[i] : keys[i - map->n_queries])) != NULL;
    session_labels_free(tokens, map->input->n);
    return made ? QKV_OK : text_error(error, QKV_ERR_MEMORY, "out of memory");
}

/* Queries and keys of the chosen head. */
static qkv_status take_head(struct seen *seen, qkv_error *error) {
    struct map *map = &seen->map;
    qkv_capture capture;
    const qkv_status status =
        qkv_run_capture_of(seen->run, map->view.which, 0, map->choice.layer, &capture, error);
    if (status != QKV_OK) return status;
    map->n_queries = capture.n;
    map->n_keys = capture.n_keys;
    map->head_dim = capture.head_dim;
    map->q = capture.q + map->choice.head * capture.n * capture.head_dim;
    map->k = capture.k + map->choice.head * capture.n_keys * capture.head_dim;
    return make_labels(map, error);
}

static qkv_status choose_query(struct map *map, qkv_error *error) {
    map->query = map->choice.query;
    if (!map->options->query) return QKV_OK;
    map->query = map_query(map, map->options->query);
    for (int64_t i = 0; map->query < 0 && map->pair.next && i < map->n_queries; i++)
        if (label_is(map->pair.input_names[i], map->options->query)) map->query = i;
    if (map->query >= 0) return QKV_OK;
    return text_error(error, QKV_ERR_ARGUMENT, "--query: '%s' is none of the %" PRId64 " tokens",
                      map->options->query, map->n_queries);
}

/* The model's own target, or that of --target. */
static qkv_status take_view(struct map *map, qkv_error *error) {
    const struct pair_options *options = &map->options->which;
    const char *target = options->target;
    const struct text given = { (char *)(uintptr_t)target, target ? strlen(target) : 0 };
    qkv_status status = QKV_OK;
    if (pair_option(options))
        status = pair_make(map->session, map->input, given, &map->pair, error);
    map->view = pair_view(map->session, map->input, &map->pair, pair_which(options));
    return status;
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
    qkv_status status = take_view(map, error);
    if (status == QKV_OK)
        status = pair_model_run(map->session, 1, &map->input, &map->pair, QKV_RUN_CAPTURE, NULL,
                                &seen.run, error);
    if (status == QKV_OK)
        status = choose_head_of_run(&job->session, seen.run, &map->view, job->given, &map->choice,
                                    error);
    if (status == QKV_OK) status = take_head(&seen, error);
    if (status == QKV_OK) status = choose_query(map, error);
    if (status == QKV_OK) status = map_answer(job->session.ctx, map, weights_of, json, error);
    map_free(map);
    pair_free(&map->pair);
    qkv_run_free(seen.run);
    return status;
}

int map_texts(const struct cli_command *command, const struct map_options *options, int n_words,
              char **words) {
    struct text_job job = { .options = options,
                            .pair = options->pair,
                            .which = pair_which(&options->which),
                            .answer = answer };
    const int code = text_job_open(&job, command, &options->common);
    return code ? code : text_job_run(&job, n_words, words);
}
