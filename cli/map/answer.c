/* The map of `qkv map`: computed, with lines from one query, then shown or written. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "map/map.h"

static qkv_status write_json(const struct map *map, const char *path, qkv_error *error) {
    json_t *object = NULL;
    const qkv_status status = map_json(map, &object, error);
    if (status != QKV_OK) return status;
    return json_write_file(path, object, error);
}

/* What -o can write, by the file's ending. */
static const struct output {
    const char *ending;
    qkv_status (*write)(const struct map *map, const char *path, qkv_error *error);
} outputs[] = {
    { ".png", map_picture }, { ".svg", map_picture }, { ".pdf", map_picture },
    { ".json", write_json }, { ".csv", map_csv },
};

static const struct output *output_of(const char *path) {
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < CLI_COUNT(outputs); i++)
        if (strcmp(dot, outputs[i].ending) == 0) return &outputs[i];
    return NULL;
}

bool map_writes(const char *path) { return output_of(path) != NULL; }

int64_t map_query(const struct map *map, const char *words) {
    int64_t position;
    if (args_int(words, 0, INT64_MAX, &position)) return position < map->n_queries ? position : -1;
    for (int64_t i = 0; i < map->n_queries; i++)
        if (label_is(map->labels[i], words)) return i;
    return -1;
}

void map_free(struct map *map) {
    for (int64_t i = 0; map->labels && i < map->n_queries + map->n_keys; i++) free(map->labels[i]);
    free(map->labels);
    qkv_heads_free(map->heads);
    free(map->xy);
    free(map->pca);
    free(map->agree);
    free(map->weights);
}

/* ---- Computing ------------------------------------------------------------------------------- */

static void ask(const struct map_options *o, qkv_map_options *asked) {
    *asked = qkv_map_options_init();
    asked->metric = (qkv_map_metric)o->metric.value;
    asked->perplexity = o->perplexity.value;
    asked->method = o->method.set ? (qkv_map_method)(o->method.value + 1) : QKV_MAP_AUTO;
    asked->theta = o->theta.value;
    asked->n_iters = o->iters.value;
    asked->n_runs = o->restarts.value;
    asked->init = (qkv_map_init)o->init.value;
    asked->seed = (uint64_t)o->seed.value;
    asked->no_early_stop = o->no_early_stop;
    asked->center_keys = o->center_keys;
    asked->auto_balance = o->balance && strcmp(o->balance, "auto") == 0;
    if (o->balance && !asked->auto_balance) (void)args_real(o->balance, &asked->balance);
    asked->pca_only = o->pca;
}

static void show_progress(void *user, int64_t done, int64_t total) {
    progress_bar(user, "map", done, total);
}

/* Ctrl-C ends the descent, and the best so far is the map. */
static qkv_status compute(qkv_ctx *ctx, struct map *map, qkv_error *error) {
    const size_t n = (size_t)(map->n_queries + map->n_keys);
    map->xy = calloc(2 * n + 1, sizeof(double));
    map->pca = calloc(2 * n + 1, sizeof(double));
    map->agree = calloc((size_t)map->n_queries + 1, sizeof(int32_t));
    map->weights = calloc((size_t)map->n_keys + 1, sizeof(float));
    if (!map->xy || !map->pca || !map->agree || !map->weights)
        return text_error(error, QKV_ERR_MEMORY, "out of memory");
    struct progress progress;
    progress_begin(&progress, map->options->common.quiet);
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cli_cancelled;
    call.progress = show_progress;
    call.progress_user = &progress;
    ask(map->options, &map->asked);
    map->report = qkv_map_report_init();
    const qkv_status status =
        qkv_inspect_map(ctx, &map->asked, map->n_queries, map->n_keys, map->head_dim, map->q,
                        map->k, map->xy, map->pca, map->agree, &map->report, &call, error);
    progress_end(&progress);
    map->stopped = status == QKV_ERR_CANCELLED;
    return map->stopped ? QKV_OK : status;
}

/* The keys with the largest weights, best first; of equal ones the first. */
static void find_lines(struct map *map) {
    const int64_t top = map->options->top.set ? map->options->top.value : 3;
    for (int64_t j = 0; j < map->n_keys; j++) {
        const double weight = map->weights[j];
        if (map->session && !qkv_heads_sees(map->heads, map->query, j)) continue;
        if (map->n_lines == top && !(top > 0 && weight > map->lines[top - 1].weight)) continue;
        int64_t at = map->n_lines < top ? map->n_lines++ : top - 1;
        for (; at > 0 && weight > map->lines[at - 1].weight; at--)
            map->lines[at] = map->lines[at - 1];
        map->lines[at] = (struct map_line){ j, weight > 1 ? 1 : weight };
    }
}

/* Of arrays, heads are those of the query alone. */
static qkv_status weigh(struct map *map, qkv_error *error) {
    const int64_t row = map->session ? map->query : 0,
                  index = map->choice.layer * qkv_heads_get_info(map->heads)->n_heads +
                          map->choice.head;
    return qkv_heads_weights(map->heads, index, row, row + 1, 0, map->n_keys, map->weights,
                             map->n_keys, error);
}

qkv_status map_answer(qkv_ctx *ctx, struct map *map, json_t **json, qkv_error *error) {
    const struct map_options *options = map->options;
    qkv_status status = compute(ctx, map, error);
    if (status == QKV_OK && map->query >= 0) status = weigh(map, error);
    if (status != QKV_OK) return status;
    if (map->query >= 0) find_lines(map);
    if (map->report.n_zero > 0 && map->asked.metric <= QKV_MAP_COSINE_PLAIN)
        cli_note(options->common.quiet,
                 "qkv: warning: %" PRId64 " points are 0, so at cosine distance 1 from all others",
                 map->report.n_zero);
    if (map->stopped && map->report.n_runs == 0)
        cli_note(options->common.quiet,
                 "qkv: stopped before the first run: these are the principal components");
    else if (map->stopped)
        cli_note(options->common.quiet, "qkv: stopped: this is the best of %" PRId64 " begun runs",
                 map->report.n_runs);
    if (json) return map_json(map, json, error);
    if (!options->out) return map_print(map, error);
    status = output_of(options->out)->write(map, options->out, error);
    if (status == QKV_OK) cli_note(options->common.quiet, "qkv: wrote %s", options->out);
    return status;
}
