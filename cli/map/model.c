/* `qkv map TEXT`: runs the model once with capture, and takes queries and keys of one head. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "map/map.h"

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
static qkv_status take_head(struct map *map, const struct text_job *job, qkv_error *error) {
    const qkv_heads_info *info = qkv_heads_get_info(map->heads);
    qkv_head_view head = qkv_head_view_init();
    map->choice = qkv_heads_choice_init();
    qkv_status status = qkv_heads_choose(
        map->heads, map->given ? job->layer * info->n_heads + job->head : -1, &map->choice, error);
    if (status == QKV_OK)
        status = qkv_heads_view(map->heads, map->choice.layer * info->n_heads + map->choice.head,
                                &head, error);
    if (status != QKV_OK) return status;
    map->n_queries = info->n_queries;
    map->n_keys = info->n_keys;
    map->head_dim = info->head_dim;
    map->q = head.q;
    map->k = head.k;
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
    struct map map = { .session = &job->session,
                       .options = job->options,
                       .input = input,
                       .given = job->given,
                       .query = -1 };
    qkv_run *run = NULL;
    qkv_status status = take_view(&map, error);
    if (status == QKV_OK)
        status = pair_model_run(map.session, 1, &map.input, &map.pair, QKV_RUN_CAPTURE, NULL, &run,
                                error);
    if (status == QKV_OK) status = pair_heads(map.session, &map.view, run, 0, &map.heads, error);
    if (status == QKV_OK) status = take_head(&map, job, error);
    if (status == QKV_OK) status = choose_query(&map, error);
    if (status == QKV_OK) status = map_answer(job->session.ctx, &map, json, error);
    map_free(&map);
    pair_free(&map.pair);
    qkv_run_free(run);
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
