/*
 * `qkv map`: queries and keys of one head on one map. Here are its options and their checks;
 * source.c finds queries and keys, answer.c computes the map, and the other files show it.
 */
#include "common/conflicts.h"
#include "common/number.h"
#include "map/map.h"

#include <string.h>

/* --q and --k are in place of a text and its model, and a target goes with a decoder. */
static const struct option_conflict rules[] = {
    { .these = "--q", .without = "--k", .message = "%s without --k" },
    { .these = "--k", .without = "--q", .message = "%s without --q" },
    { .these = "--ids", .with = "--q|--pair|--cross|--decoder|--image" },
    { .without = "--q|a text|--jsonl|--image", .message = "TEXT is missing" },
    { .these = "--image",
      .with = "a text|--pair|--jsonl|--truncate|--target|--cross|--decoder|--q" },
    { .these = "a text|--pair|--jsonl|--head|--layer|--model|--target|--cross|--decoder|--truncate|"
               "--weights|--check-finite",
      .with = "--q",
      .message = "--q and --k together with %s" },
    { .these = "--scale|--causal",
      .without = "--q",
      .message = "%s goes with --q and --k, not with a text" },
    { .these = "--scale|--causal",
      .without = "--query",
      .message = "%s is of the lines that --query asks for" },
    { .these = "--tokens|--q-tokens", .without = "--q", .message = "%s without --q and --k" },
    PAIR_RULES("--cross|--decoder", "--cross or --decoder"),
    { .these = "--cross|--decoder", .with = "--pair|--jsonl" },
    { .these = "--pca",
      .with = "--perplexity|--method|--theta|--iters|--restarts|--init|--seed|--no-early-stop",
      .message = "%s together with %s, which is of t-SNE" },
};

/* A number, or "auto". */
static int check_balance(const struct cli_command *command, const struct map_options *o) {
    double value;
    if (!o->balance || strcmp(o->balance, "auto") == 0) return EXIT_OK;
    if (!number_real(o->balance, &value))
        return cli_usage(command, "--balance: '%s' is neither a finite number nor 'auto'",
                         o->balance);
    return value == 0 ? cli_usage(command, "--balance: 0 is not in 1e-6 ... 1e6") : EXIT_OK;
}

/* To the library a 0 means the default. */
static int check_numbers(const struct cli_command *command, const struct map_options *o) {
    if (o->perplexity.set && o->perplexity.value == 0)
        return cli_usage(command, "--perplexity: 0 is not at least 1");
    if (o->theta.set && o->theta.value == 0) return cli_usage(command, "--theta: 0 is not above 0");
    if (o->theta.set && o->method.set && o->method.value == 0)
        return cli_usage(command, "--theta together with --method exact");
    const int code = scale_check(command, &o->scale);
    return code ? code : check_balance(command, o);
}

static int map(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct map_options *options = data;
    int code = conflicts_check(command, options, n_words, rules, CLI_COUNT(rules));
    if (code == EXIT_OK) code = check_numbers(command, options);
    if (code == EXIT_OK)
        code = path_check_out(command, &options->common, options->out, MAP_ENDINGS);
    if (code == EXIT_OK)
        code = picture_check(command, options, &options->picture, options->out, NULL);
    if (code) return code;
    cli_catch_interrupts();
    if (options->q) return map_arrays(command, options);
    return map_texts(command, options, n_words, words);
}

#define OPTIONS struct map_options

static const struct cli_option map_table[] = {
    OPTION_TEXT("--pair", "TEXT", pair),
    PAIR_TABLE(which),
    OPTION_FILE("--image", "F", image, ".png .jpg .jpeg"),
    OPTION_FILE("--q", "F", q, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--k", "F", k, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--tokens", "F", tokens, "*"),
    OPTION_FILE("--q-tokens", "F", q_tokens, "*"),
    OPTION_FILE("--causal", "top-left|bottom-right|OFFSET", causal, "top-left|bottom-right"),
    OPTION_REAL("--scale", "X", scale),
    OPTION_TEXT("--query", "N|TOKEN", query),
    OPTION_INT("--top", "N", top, 0, MAP_MAX_LINES),
    OPTION_CHOICE("--metric", "cosine|cosine-plain|euclidean|inner", metric),
    OPTION_REAL("--perplexity", "X", perplexity),
    OPTION_CHOICE("--method", "exact|barnes-hut", method),
    OPTION_REAL("--theta", "X", theta),
    OPTION_INT("--iters", "N", iters, 1, 100000000),
    OPTION_INT("--restarts", "N", restarts, 1, QKV_MAP_MAX_RUNS),
    OPTION_CHOICE("--init", "pca|random", init),
    OPTION_INT("--seed", "N", seed, 0, INT64_MAX),
    OPTION_FLAG("--no-early-stop", no_early_stop),
    OPTION_FLAG("--center-keys", center_keys),
    OPTION_FILE("--balance", "X|auto", balance, "auto"),
    OPTION_FLAG("--pca", pca),
    PICTURE_POINTS_TABLE(picture),
    OPTION_FILE("-o", "FILE", out, ".png .svg .pdf .csv .json"),
};

const struct cli_command cmd_map = {
    .name = "map",
    .summary = "queries and keys of one head on one map (t-SNE)",
    .words = "TEXT",
    .max_words = 1,
    .takes = TAKES_TEXTS | TAKES_HEAD | TAKES_IMAGES,
    COMMAND_OPTIONS(map_table),
    .run = map,
};
