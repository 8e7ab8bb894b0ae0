/* Everything that `qkv map` knows about one head, and the ways to show it. */
#ifndef QKV_CLI_MAP_H
#define QKV_CLI_MAP_H

#include "common/input.h"
#include "common/pair.h"
#include "common/term.h"
#include <qkv/inspect.h>

struct map_options {
    struct cli_common common;
    const char *pair, *out, *q, *k, *query, *balance;
    struct arg_int metric, method, iters, restarts, seed, init, top;
    struct arg_real perplexity, theta;
    bool center_keys, no_early_stop, pca;
    struct pair_options which;
};

enum { MAP_MAX_LINES = 64, MAP_TEXT_BYTES = 1600 };

/* A key that the query looks at, and with what weight. */
struct map_line {
    int64_t key;
    double weight;
};

struct map {
    const struct map_options *options;
    const struct session *session; /* NULL: arrays from files */
    const qkv_encoding *input;     /* NULL: arrays from files */
    struct attention_view view;    /* of a text, or of … */
    struct pair pair;              /* … it and its target */
    bool given;                    /* a head was named */
    qkv_heads_choice choice;
    qkv_heads *heads; /* of a text: of the model; of arrays: of the query only */
    int64_t n_queries, n_keys, head_dim;
    const float *q, *k;
    char **labels; /* [n_queries + n_keys], escaped */
    double *xy, *pca;
    int32_t *agree;
    qkv_map_options asked;
    qkv_map_report report;
    bool stopped;  /* by Ctrl-C */
    int64_t query; /* that lines come from, -1: none */
    int64_t n_lines;
    struct map_line lines[MAP_MAX_LINES];
    float *weights; /* [n_keys]: of the query */
};

/* "cosine" */
const char *map_metric_name(const struct map *map);
/* The key nearest to a query on the map, or -1. */
int64_t map_nearest_key(const struct map *map, int64_t query);
/* What its points are, for a legend: "query", "key", or more about them. */
const char *map_point_name(const struct map *map, bool is_key);
/* What the picture is called, and what is to be known about it (words.c). */
void map_title(const struct map *map, char text[MAP_TEXT_BYTES]);
void map_caption(const struct map *map, char text[MAP_TEXT_BYTES]);

qkv_status map_print(const struct map *map, qkv_error *error);                     /* text.c */
qkv_status map_json(const struct map *map, json_t **json, qkv_error *error);       /* json.c */
qkv_status map_csv(const struct map *map, const char *path, qkv_error *error);     /* json.c */
qkv_status map_picture(const struct map *map, const char *path, qkv_error *error); /* words.c */

/* Answers texts by a model. An exit code (model.c). */
int map_texts(const struct cli_command *command, const struct map_options *options, int n_words,
              char **words);
/* --q and --k: answers without a model. An exit code (arrays.c). */
int map_arrays(const struct cli_command *command, const struct map_options *options);

/* The rest, once q, k, labels and heads are there: computes the map, shows or writes it (answer.c). */
qkv_status map_answer(qkv_ctx *ctx, struct map *map, json_t **json, qkv_error *error);
void map_free(struct map *map);
/* Whether the ending of a path is one that -o knows. */
bool map_writes(const char *path);

/* --query as a position or a label among the first n labels; -1: there is none (answer.c). */
int64_t map_query(const struct map *map, const char *words);

#endif
