/* Computes the map of `qkv map`, finds the lines from one query, and shows or writes it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/conflicts.h"
#include "common/named.h"
#include "common/number.h"
#include "map/map.h"

static qkv_status write_json(const struct map *map, const char *path, qkv_error *error) {
    json_t *object = NULL;
    const qkv_status status = map_json(map, &object, error);
    return status == QKV_OK ? json_write_file(path, object, error) : status;
}

/* What -o can write, in the order of MAP_ENDINGS. */
static qkv_status (*const writers[])(const struct map *map, const char *path,
                                     qkv_error *error) = { map_picture, map_picture, map_picture,
                                                           write_json, map_csv };

void map_free(struct map *map) {
    attended_free(&map->text);
    rules_free(&map->rules);
    free(map->labels);
    free(map->xy);
    free(map->pca);
    free(map->agree);
}

/* ---- Computing ------------------------------------------------------------------------------- */

static void set_request(const struct map_options *o, qkv_map_options *request) {
    *request = qkv_map_options_init();
    request->metric = (qkv_map_metric)o->metric.value;
    request->perplexity = o->perplexity.value;
    request->method = o->method.set ? (qkv_map_method)(o->method.value + 1) : QKV_MAP_AUTO;
    request->theta = o->theta.value;
    request->n_iters = o->iters.value;
    request->n_runs = o->restarts.value;
    request->init = (qkv_map_init)o->init.value;
    request->seed = (uint64_t)o->seed.value;
    request->no_early_stop = o->no_early_stop;
    request->center_keys = o->center_keys;
    request->auto_balance = o->balance && strcmp(o->balance, "auto") == 0;
    if (o->balance && !request->auto_balance) (void)number_real(o->balance, &request->balance);
    request->pca_only = o->pca;
}

/* Ctrl-C ends the descent, and the best so far is the map. */
static qkv_status compute(qkv_ctx *ctx, struct map *map, qkv_error *error) {
    const size_t n = (size_t)(map->n_queries + map->n_keys);
    map->xy = calloc(2 * n + 1, sizeof(double));
    map->pca = calloc(2 * n + 1, sizeof(double));
    map->agree = calloc((size_t)map->n_queries + 1, sizeof(int32_t));
    if (!map->xy || !map->pca || !map->agree) return text_no_memory(error);
    struct progress progress;
    const qkv_call_options call = progress_call(&progress, "map", map->options->common.quiet);
    set_request(map->options, &map->request);
    map->report = qkv_map_report_init();
    const qkv_status status =
        qkv_inspect_map(ctx, &map->request, map->n_queries, map->n_keys, map->head_dim, map->q,
                        map->k, map->xy, map->pca, map->agree, &map->report, &call, error);
    progress_end(&progress);
    map->stopped = status == QKV_ERR_CANCELLED;
    return map->stopped ? QKV_OK : status;
}

/* The keys with the largest weights, best first; of equal ones the first. */
static void find_lines(struct map *map, int64_t index, int64_t row, const float *weights) {
    const int64_t top = map->options->top.set ? map->options->top.value : 3;
    for (int64_t j = 0; j < map->n_keys; j++) {
        const double weight = weights[j];
        if (!qkv_head_sees(map->text.heads, index, row, j)) continue;
        if (map->n_lines == top && !(top > 0 && weight > map->weights[top - 1])) continue;
        int64_t at = map->n_lines < top ? map->n_lines++ : top - 1;
        for (; at > 0 && weight > map->weights[at - 1]; at--) {
            map->keys[at] = map->keys[at - 1];
            map->weights[at] = map->weights[at - 1];
        }
        map->keys[at] = j;
        map->weights[at] = weight > 1 ? 1 : weight;
    }
}

/* Lines from the query. Of arrays, heads are those of the query alone. */
static qkv_status draw_lines(struct map *map, qkv_error *error) {
    qkv_heads *heads = map->text.heads;
    const int64_t row = map->text.session ? map->query : 0,
                  index = map->choice.layer * qkv_heads_get_info(heads)->n_heads + map->choice.head;
    float *weights = calloc((size_t)map->n_keys + 1, sizeof *weights);
    if (!weights) return text_no_memory(error);
    const qkv_status status =
        qkv_heads_weights(heads, index, row, row + 1, 0, map->n_keys, weights, map->n_keys, error);
    if (status == QKV_OK) find_lines(map, index, row, weights);
    free(weights);
    return status;
}

qkv_status map_answer(qkv_ctx *ctx, struct map *map, json_t **json, qkv_error *error) {
    const struct map_options *options = map->options;
    qkv_status status = compute(ctx, map, error);
    if (status == QKV_OK && map->query >= 0) status = draw_lines(map, error);
    if (status != QKV_OK) return status;
    if (map->report.n_zero > 0 && map->request.metric <= QKV_MAP_COSINE_PLAIN)
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
    char what[64], room[NAMED_ROOM];
    snprintf(what, sizeof what, "map-%" PRId64 ".%" PRId64, map->choice.layer, map->choice.head);
    const char *const out =
        named_file(options->out, map->text.session ? what : "map", map->said, room);
    status = writers[path_ending(out, MAP_ENDINGS)](map, out, error);
    if (status == QKV_OK) cli_note(options->common.quiet, "qkv: wrote %s", out);
    return status;
}
