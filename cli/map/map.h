/* `qkv map`: the map of one head, and the ways to show it. */
#ifndef QKV_CLI_MAP_H
#define QKV_CLI_MAP_H

#include "common/attended.h"
#include "common/pictured.h"
#include "common/rules.h"
#include "common/term.h"
#include <qkv/inspect.h>

struct map_options {
    struct cli_common common;
    const char *pair, *image, *out, *q, *k, *tokens, *q_tokens, *query, *balance, *causal;
    struct arg_int metric, method, iters, restarts, seed, init, top;
    struct arg_real perplexity, theta, scale;
    bool center_keys, no_early_stop, pca;
    struct pair_options which;
    struct picture_options picture;
};

enum { MAP_MAX_LINES = 64 };

struct map {
    const struct map_options *options;
    const struct text *said[2]; /* as in text_job */
    struct rules rules;         /* of arrays: --causal */
    struct attended text;       /* session NULL: arrays from files; then only its heads are set */
    qkv_heads_choice choice;
    int64_t n_queries, n_keys, head_dim;
    const float *q, *k;
    char **labels; /* [n_queries + n_keys], escaped; others own the strings */
    double *xy, *pca;
    int32_t *agree;
    qkv_map_options request;
    qkv_map_report report;
    bool stopped;  /* by Ctrl-C */
    int64_t query; /* from which lines go to keys; -1: there are no lines */
    int64_t n_lines;
    int64_t keys[MAP_MAX_LINES]; /* [n_lines], with the weights of the query */
    double weights[MAP_MAX_LINES];
};

/* The label of the key of a line. */
static inline const char *map_line_label(const struct map *map, int64_t line) {
    return map->labels[map->n_queries + map->keys[line]];
}
/* The name of its metric: "cosine". */
const char *map_metric_name(const struct map *map);
/* The key nearest to a query on the map, or -1. */
int64_t map_nearest_key(const struct map *map, int64_t query);
/* What queries or keys are called in a legend. */
const char *map_point_name(const struct map *map, bool is_key);
/* Append title and caption of the picture (words.c). */
void map_title(const struct map *map, struct caption *title);
void map_caption(const struct map *map, struct caption *caption);

qkv_status map_print(const struct map *map, qkv_error *error);                     /* text.c */
qkv_status map_json(const struct map *map, json_t **json, qkv_error *error);       /* json.c */
qkv_status map_csv(const struct map *map, const char *path, qkv_error *error);     /* json.c */
qkv_status map_picture(const struct map *map, const char *path, qkv_error *error); /* words.c */

/* Map texts by a model, or the arrays of --q and --k. Return exit codes (source.c). */
int map_texts(const struct cli_command *command, const struct map_options *options, int n_words,
              char **words);
int map_arrays(const struct cli_command *command, const struct map_options *options);

/* Computes and shows the map; q, k, labels and heads are set (answer.c). */
qkv_status map_answer(qkv_ctx *ctx, struct map *map, json_t **json, qkv_error *error);
void map_free(struct map *map);

#define MAP_ENDINGS ".png .svg .pdf .json .csv"

#endif
