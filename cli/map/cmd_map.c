/*
 * `qkv map`: queries and keys of one head on one map. Here are its options and what they may not be;
 * model.c and arrays.c say which queries and keys, answer.c computes the map, and the
 * other map_*.c show what came of it.
 */
#include "map/map.h"

#include "qkv/files.h"

#include <string.h>

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
                        : o->which.target ? "--target"
                                          : pair_option(&o->which);
    return other ? cli_usage(command, "--q and --k together with %s", other) : EXIT_OK;
}

/* A number, or "auto". */
static int check_balance(const struct cli_command *command, const struct map_options *o) {
    double value;
    if (!o->balance || strcmp(o->balance, "auto") == 0 || args_real(o->balance, &value))
        return EXIT_OK;
    return cli_usage(command, "--balance: '%s' is neither a finite number nor 'auto'", o->balance);
}

static int check_out(const struct cli_command *command, const struct map_options *o) {
    if (!o->out) return EXIT_OK;
    if (!map_writes(o->out))
        return cli_usage(command, "-o: '%s' ends in none of .png .svg .pdf .json .csv", o->out);
    if (o->common.json || o->common.jsonl)
        return cli_usage(command, "-o together with %s", o->common.json ? "--json" : "--jsonl");
    qkv_error error;
    return qkv_file_writable(o->out, &error) == QKV_OK ? EXIT_OK : cli_fail("%s", error.message);
}

static int map(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct map_options *options = data;
    int code = check_arrays(command, options, n_words);
    if (code == EXIT_OK)
        code = pair_check(command, &options->which, pair_option(&options->which),
                          "--cross or --decoder",
                          options->pair           ? "--pair"
                          : options->common.jsonl ? "--jsonl"
                                                  : NULL);
    if (code == EXIT_OK) code = check_balance(command, options);
    if (code == EXIT_OK) code = check_out(command, options);
    if (code) return code;
    cli_catch_interrupts();
    if (options->q) return map_arrays(command, options);
    return map_texts(command, options, n_words, words);
}

#define OPTION(field) offsetof(struct map_options, field)

static const struct cli_option map_table[] = {
    { .name = "--pair", .argument = "TEXT", .kind = ARG_TEXT, .offset = OPTION(pair) },
    PAIR_TABLE(struct map_options, which),
    { .name = "--q",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = OPTION(q),
      .suggest = ".npy .npz .safetensors" },
    { .name = "--k",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = OPTION(k),
      .suggest = ".npy .npz .safetensors" },
    { .name = "--query", .argument = "N|TOKEN", .kind = ARG_TEXT, .offset = OPTION(query) },
    { .name = "--top",
      .argument = "N",
      .kind = ARG_INT,
      .offset = OPTION(top),
      .min = 0,
      .max = MAP_MAX_LINES },
    { .name = "--metric",
      .argument = "cosine|cosine-plain|euclidean|inner",
      .kind = ARG_CHOICE,
      .offset = OPTION(metric) },
    { .name = "--perplexity", .argument = "X", .kind = ARG_REAL, .offset = OPTION(perplexity) },
    { .name = "--method",
      .argument = "exact|barnes-hut",
      .kind = ARG_CHOICE,
      .offset = OPTION(method) },
    { .name = "--theta", .argument = "X", .kind = ARG_REAL, .offset = OPTION(theta) },
    { .name = "--iters",
      .argument = "N",
      .kind = ARG_INT,
      .offset = OPTION(iters),
      .min = 1,
      .max = 100000000 },
    { .name = "--restarts",
      .argument = "N",
      .kind = ARG_INT,
      .offset = OPTION(restarts),
      .min = 1,
      .max = QKV_MAP_MAX_RUNS },
    { .name = "--init", .argument = "pca|random", .kind = ARG_CHOICE, .offset = OPTION(init) },
    { .name = "--seed",
      .argument = "N",
      .kind = ARG_INT,
      .offset = OPTION(seed),
      .min = 0,
      .max = INT64_MAX },
    { .name = "--no-early-stop", .kind = ARG_FLAG, .offset = OPTION(no_early_stop) },
    { .name = "--center-keys", .kind = ARG_FLAG, .offset = OPTION(center_keys) },
    { .name = "--balance",
      .argument = "X|auto",
      .kind = ARG_TEXT,
      .offset = OPTION(balance),
      .suggest = "auto" },
    { .name = "--pca", .kind = ARG_FLAG, .offset = OPTION(pca) },
    { .name = "-o",
      .argument = "FILE",
      .kind = ARG_TEXT,
      .offset = OPTION(out),
      .suggest = ".png .svg .pdf .csv .json" },
};

const struct cli_command cmd_map = {
    .name = "map",
    .summary = "queries and keys of one head on one map (t-SNE)",
    .words = "TEXT",
    .min_words = 0,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_HEAD | TAKES_COMPUTE | TAKES_TERM |
             TAKES_TRUNCATE | TAKES_JSON | TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = map_table,
    .n_options = CLI_COUNT(map_table),
    .options_bytes = sizeof(struct map_options),
    .run = map,
};
