/*
 * `qkv map`: queries and keys of one head on one map. Here are its options and what they may not be;
 * map_model.c and map_arrays.c say which queries and keys, map_answer.c computes the map, and the
 * other map_*.c show what came of it.
 */
#include "map.h"

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
    { .name = "--pair",
      .argument = "TEXT",
      .help = "a second text, which the model sees as the next sentence",
      .kind = ARG_TEXT,
      .offset = OPTION(pair) },
    PAIR_TABLE(struct map_options, which),
    { .name = "--q",
      .argument = "F",
      .help =
          "queries, [n, head_dim] (F.npy, F.npz:NAME or F.safetensors:NAME), in place of a text",
      .kind = ARG_TEXT,
      .offset = OPTION(q),
      .suggest = ".npy .npz .safetensors" },
    { .name = "--k",
      .argument = "F",
      .help = "keys, [m, head_dim], with --q",
      .kind = ARG_TEXT,
      .offset = OPTION(k),
      .suggest = ".npy .npz .safetensors" },
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
    { .name = "--method",
      .argument = "exact|barnes-hut",
      .help =
          "gradient over all pairs (default up to 4096 points, and not possible above), or by the "
          "method of Barnes and Hut: near points attract, far ones repel in groups",
      .kind = ARG_CHOICE,
      .offset = OPTION(method) },
    { .name = "--theta",
      .argument = "X",
      .help =
          "of Barnes and Hut's method, above 0 to 1: points repel as one if they lie in a square "
          "with a side below X times its distance (default: 0.5)",
      .kind = ARG_REAL,
      .offset = OPTION(theta) },
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
      .argument = "X|auto",
      .help =
          "queries times X, keys divided by it, which changes no weight; auto: the X with which "
          "distances of near pairs follow q.k best, with --center-keys",
      .kind = ARG_TEXT,
      .offset = OPTION(balance),
      .suggest = "auto" },
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
        "by the method of Barnes and Hut above, from several starts. Lines lead from one query to "
        "the keys that it looks at most. The "
        "head "
        "is that of --head, else the one that `look` shows.\n\n"
        "    qkv map \"I was watching the [MASK] when it opened.\"\n"
        "    qkv map \"I was watching the [MASK] when it opened.\" --head 1.2 -o map.png\n"
        "    qkv map --q q.npy --k k.npy --metric inner -o map.svg\n\n"
        "Of an encoder-decoder (BART, Marian) it is the encoder; with --cross queries are the "
        "decoder's, "
        "named by the token that it read and the one that it predicts, and keys those of the "
        "text.\n\n"
        "    qkv map \"a red fox followed two cats\" --model models/translator --cross\n\n"
        "The caption has the KL divergence, the median over all runs, how many neighbours the map "
        "keeps, and in how many runs the query's nearest key is the same. Ctrl-C ends the descent, "
        "and the best map so far is shown or written.\n\n"
        "FILE.csv has a line for each point, kind,index,token,x,y,pca_x,pca_y. --json: {\"layer\", "
        "\"head\", \"method\", \"metric\", \"perplexity\", \"kl\", ..., \"queries\": [{\"token\", "
        "\"xy\", \"pca\", \"nearest_key\", \"nearest_key_runs\"}], \"keys\", \"lines\"}.",
    .min_words = 0,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_HEAD | TAKES_COMPUTE | TAKES_TERM |
             TAKES_TRUNCATE | TAKES_JSON | TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = map_table,
    .n_options = CLI_COUNT(map_table),
    .options_bytes = sizeof(struct map_options),
    .run = map,
};
