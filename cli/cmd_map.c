/*
 * `qkv map`: queries and keys of one head on one map. map_model.c and map_arrays.c say which, here the
 * map is computed, and the other map_*.c show what came of it.
 */
#include "map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

int64_t map_query(const struct map *map, const char *words) {
    int64_t position;
    if (args_int(words, 0, INT64_MAX, &position)) return position < map->n_queries ? position : -1;
    for (int64_t i = 0; i < map->n_queries; i++)
        if (strcmp(map->labels[i], words) == 0) return i;
    return -1;
}

void map_free(struct map *map) {
    for (int64_t i = 0; map->labels && i < map->n_queries + map->n_keys; i++) free(map->labels[i]);
    free(map->labels);
    free(map->xy);
    free(map->pca);
    free(map->agree);
    free(map->weights);
}

/* ---- Computing ------------------------------------------------------------------------------- */

static void ask(const struct map_options *o, qkv_map_options *asked) {
    *asked = (qkv_map_options)QKV_MAP_OPTIONS_INIT;
    asked->metric = (qkv_map_metric)o->metric.value;
    asked->perplexity = o->perplexity.value;
    asked->n_iters = o->iters.value;
    asked->n_runs = o->restarts.value;
    asked->init = (qkv_map_init)o->init.value;
    asked->seed = (uint64_t)o->seed.value;
    asked->no_early_stop = o->no_early_stop;
    asked->center_keys = o->center_keys;
    asked->balance = o->balance.value;
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
    qkv_call_options call = QKV_CALL_OPTIONS_INIT;
    call.cancel = &cli_cancelled;
    call.progress = show_progress;
    call.progress_user = &progress;
    ask(map->options, &map->asked);
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
        if (map->n_lines == top && !(top > 0 && weight > map->lines[top - 1].weight)) continue;
        int64_t at = map->n_lines < top ? map->n_lines++ : top - 1;
        for (; at > 0 && weight > map->lines[at - 1].weight; at--)
            map->lines[at] = map->lines[at - 1];
        map->lines[at] = (struct map_line){ j, weight > 1 ? 1 : weight };
    }
}

qkv_status map_answer(qkv_ctx *ctx, struct map *map, map_weights *weights_of, json_t **json,
                      qkv_error *error) {
    const struct map_options *options = map->options;
    qkv_status status = compute(ctx, map, error);
    if (status == QKV_OK && map->query >= 0) status = weights_of(map, map->weights, error);
    if (status != QKV_OK) return status;
    if (map->query >= 0) find_lines(map);
    if (map->report.n_zero > 0 && map->asked.metric <= QKV_MAP_COSINE_PLAIN)
        cli_note(options->common.quiet,
                 "qkv: warning: %" PRId64 " points are 0, so at cosine distance 1 from all others",
                 map->report.n_zero);
    if (map->stopped)
        cli_note(options->common.quiet, "qkv: stopped: this is the best of %" PRId64 " begun runs",
                 map->report.n_runs);
    if (json) return map_json(map, json, error);
    if (!options->out) return map_print(map, error);
    status = output_of(options->out)->write(map, options->out, error);
    if (status == QKV_OK) cli_note(options->common.quiet, "qkv: wrote %s", options->out);
    return status;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* --q and --k in place of a text and its model. */
static int check_arrays(const struct cli_command *command, const struct map_options *o,
                        int n_words) {
    if (!o->q != !o->k)
        return cli_usage(command, "%s without %s", o->q ? "--q" : "--k", o->q ? "--k" : "--q");
    if (!o->q && n_words == 0 && !o->common.jsonl) return cli_usage(command, "TEXT is missing");
    if (!o->q) return EXIT_OK;
    const char *other = n_words > 0       ? "a text"
                        : o->pair         ? "--pair"
                        : o->common.jsonl ? "--jsonl"
                        : o->common.head  ? "--head"
                        : o->common.model ? "--model"
                                          : NULL;
    return other ? cli_usage(command, "--q and --k together with %s", other) : EXIT_OK;
}

static int check_out(const struct cli_command *command, const struct map_options *o) {
    if (!o->out) return EXIT_OK;
    if (!output_of(o->out))
        return cli_usage(command, "-o: '%s' ends in none of .png .svg .pdf .json .csv", o->out);
    if (o->common.json || o->common.jsonl)
        return cli_usage(command, "-o together with %s", o->common.json ? "--json" : "--jsonl");
    qkv_error error;
    return qkv_file_writable(o->out, &error) == QKV_OK ? EXIT_OK : cli_fail("%s", error.message);
}

static int map(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct map_options *options = data;
    int code = check_arrays(command, options, n_words);
    if (code == EXIT_OK) code = check_out(command, options);
    if (code) return code;
    cli_catch_interrupts();
    if (options->q) return map_arrays(command, options);
    return map_texts(command, options, n_words, words);
}

#define OPTION(field) offsetof(struct map_options, field)

static const struct cli_option map_table[] = {
    { .name = "--pair",
      .argument = "TEXT",
      .help = "a second text, which the model sees as the next sentence",
      .kind = ARG_TEXT,
      .offset = OPTION(pair) },
    { .name = "--q",
      .argument = "F",
      .help = "queries, [n, head_dim] (F.npy or F.safetensors:NAME), in place of a text",
      .kind = ARG_TEXT,
      .offset = OPTION(q),
      .suggest = ".npy .safetensors" },
    { .name = "--k",
      .argument = "F",
      .help = "keys, [m, head_dim], with --q",
      .kind = ARG_TEXT,
      .offset = OPTION(k),
      .suggest = ".npy .safetensors" },
    { .name = "--query",
      .argument = "N|TOKEN",
      .help = "the query that lines come from: its position from 0, or its token (default: the one "
              "that `look` names)",
      .kind = ARG_TEXT,
      .offset = OPTION(query) },
    { .name = "--top",
      .argument = "N",
      .help = "how many lines, to the keys with the largest weights (default: 3)",
      .kind = ARG_INT,
      .offset = OPTION(top),
      .min = 0,
      .max = MAP_MAX_LINES },
    { .name = "--metric",
      .argument = "cosine|cosine-plain|euclidean|inner",
      .help = "distance: (1 - cos)^2 as in scikit-learn (default), 1 - cos, |x - y|^2, or one in "
              "which a nearer key has a larger q.k",
      .kind = ARG_CHOICE,
      .offset = OPTION(metric) },
    { .name = "--perplexity",
      .argument = "X",
      .help = "how many neighbours a point has, about (default: 5 up to 60 points, else 30)",
      .kind = ARG_REAL,
      .offset = OPTION(perplexity) },
    { .name = "--iters",
      .argument = "N",
      .help = "iterations of a run (default: 1000)",
      .kind = ARG_INT,
      .offset = OPTION(iters),
      .min = 1,
      .max = 100000000 },
    { .name = "--restarts",
      .argument = "N",
      .help =
          "runs from different starts, of which the one with the least KL is shown (default: 32 "
          "up to 512 points and 100000 iterations, else 1)",
      .kind = ARG_INT,
      .offset = OPTION(restarts),
      .min = 1,
      .max = QKV_MAP_MAX_RUNS },
    { .name = "--init",
      .argument = "pca|random",
      .help = "where the first run begins (default: pca); all others begin at random",
      .kind = ARG_CHOICE,
      .offset = OPTION(init) },
    { .name = "--seed",
      .argument = "N",
      .help = "of random starts (default: 0)",
      .kind = ARG_INT,
      .offset = OPTION(seed),
      .min = 0,
      .max = INT64_MAX },
    { .name = "--no-early-stop",
      .help = "make all iterations, though the KL has stopped falling",
      .kind = ARG_FLAG,
      .offset = OPTION(no_early_stop) },
    { .name = "--center-keys",
      .help = "move the keys to the mean of the queries, which changes no weight",
      .kind = ARG_FLAG,
      .offset = OPTION(center_keys) },
    { .name = "--balance",
      .argument = "X",
      .help = "queries times X, keys divided by it, which changes no weight",
      .kind = ARG_REAL,
      .offset = OPTION(balance) },
    { .name = "--pca",
      .help = "no t-SNE: the first two principal components",
      .kind = ARG_FLAG,
      .offset = OPTION(pca) },
    { .name = "-o",
      .argument = "FILE",
      .help =
          "write a file instead: a picture (.png, .svg, .pdf), the points (.csv) or what --json "
          "prints (.json)",
      .kind = ARG_TEXT,
      .offset = OPTION(out),
      .suggest = ".png .svg .pdf .csv .json" },
};

const struct cli_command cmd_map = {
    .name = "map",
    .summary = "queries and keys of one head on one map (t-SNE)",
    .words = "TEXT",
    .details =
        "Runs the model on a text and draws the queries and keys of one head as points of one "
        "plane, "
        "so that those that are alike lie near each other: t-SNE, the exact one up to 4096 points, "
        "from several starts. Lines lead from one query to the keys that it looks at most. The "
        "head "
        "is that of --head, else the one that `look` shows.\n\n"
        "    qkv map \"I was watching the [MASK] when it opened.\"\n"
        "    qkv map \"I was watching the [MASK] when it opened.\" --head 1.2 -o map.png\n"
        "    qkv map --q q.npy --k k.npy --metric inner -o map.svg\n\n"
        "The caption has the KL divergence, the median over all runs, how many neighbours the map "
        "keeps, and in how many runs the query's nearest key is the same. Ctrl-C ends the descent, "
        "and the best map so far is shown or written.\n\n"
        "FILE.csv has a line for each point, kind,index,token,x,y,pca_x,pca_y. --json: {\"layer\", "
        "\"head\", \"method\", \"metric\", \"perplexity\", \"kl\", ..., \"queries\": [{\"token\", "
        "\"xy\", \"pca\", \"nearest_key\", \"nearest_key_runs\"}], \"keys\", \"lines\"}.",
    .min_words = 0,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_HEAD | TAKES_COMPUTE | TAKES_TERM | TAKES_TRUNCATE | TAKES_JSON |
             TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = map_table,
    .n_options = CLI_COUNT(map_table),
    .options_bytes = sizeof(struct map_options),
    .run = map,
};
