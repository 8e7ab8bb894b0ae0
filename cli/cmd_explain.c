/*
 * `qkv explain`: attention step by step with the real numbers. Which lesson, and those without a text;
 * explain_*.c make the lessons.
 */
#include "explain.h"

#include <stdlib.h>
#include <string.h>

static qkv_status make(const struct explain_options *options, qkv_ctx *ctx, struct lesson *lesson,
                       const struct term *term, qkv_error *error) {
    if (options->no_scale) return explain_scale(ctx, lesson, (uint64_t)options->seed.value, error);
    if (options->positions) {
        struct sinusoids sinusoids;
        const qkv_status status = explain_sinusoids(options, &sinusoids, error);
        if (status == QKV_OK)
            explain_positions(lesson, &sinusoids, options->out ? 100 : term->width);
        free(sinusoids.table);
        return status;
    }
    if (options->q)
        return explain_arrays(ctx, lesson, options,
                              options->out ? EXPLAIN_KEYS_ON_PAGE : EXPLAIN_KEYS_ON_TERMINAL,
                              error);
    return explain_example(ctx, lesson, options, error);
}

static qkv_status draw_picture(const struct explain_options *options, qkv_ctx *ctx,
                               qkv_error *error) {
    const qkv_status status = options->no_scale ? explain_scale_picture(ctx, options, error)
                                                : explain_positions_picture(options, error);
    if (status == QKV_OK) cli_note(options->common.quiet, "qkv: wrote %s", options->out);
    return status;
}

/* A picture, which only --no-scale and --positions have; JSON, which only --no-scale has; a lesson. */
static qkv_status answer_without(const struct explain_options *options, qkv_ctx *ctx, json_t **json,
                                 qkv_error *error) {
    if (options->out && !explain_ends_in(options->out, ".html"))
        return draw_picture(options, ctx, error);
    if (options->common.json)
        return explain_scale_json(ctx, (uint64_t)options->seed.value, json, error);
    struct lesson lesson;
    struct term term;
    explain_begin(&lesson, &term, options);
    const qkv_status status = make(options, ctx, &lesson, &term, error);
    if (status == QKV_OK) return explain_deliver(&lesson, &term, options, error);
    lesson_free(&lesson);
    return status;
}

static int explain_without(const struct cli_command *command,
                           const struct explain_options *options) {
    qkv_ctx *ctx;
    qkv_error error;
    json_t *json = NULL;
    const int code = session_context(command, &options->common, &ctx);
    if (code) return code;
    const qkv_status status = answer_without(options, ctx, &json, &error);
    qkv_ctx_destroy(ctx);
    if (status != QKV_OK && strncmp(error.message, "--query: ", 9) == 0)
        return cli_usage(command, "%s", error.message);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    return !json || json_print(stdout, json) ? EXIT_OK : EXIT_FAILED;
}

static int explain(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct explain_options *options = data;
    int code = explain_check_kind(command, options, n_words > 0 || options->common.jsonl);
    if (code == EXIT_OK) code = explain_check_out(command, options);
    if (code) return code;
    if (options->out) cli_catch_interrupts();
    char *sentence = (char *)(uintptr_t) "The dog saw the cat.";
    if (options->shuffle && n_words == 0) return explain_texts(command, options, 1, &sentence);
    if (n_words > 0 || options->common.jsonl)
        return explain_texts(command, options, n_words, words);
    return explain_without(command, options);
}

#define OPTION(field) offsetof(struct explain_options, field)

static const struct cli_option explain_table[] = {
    { .name = "--query",
      .argument = "N|TOKEN",
      .help = "the query: its position from 0, or its token (default: the one that `look` names)",
      .kind = ARG_TEXT,
      .offset = OPTION(query) },
    { .name = "--pair",
      .argument = "TEXT",
      .help = "a second text, which the model sees as the next sentence",
      .kind = ARG_TEXT,
      .offset = OPTION(pair) },
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
    { .name = "--v",
      .argument = "F",
      .help = "values, [m, head_dim_v], with --q",
      .kind = ARG_TEXT,
      .offset = OPTION(v),
      .suggest = ".npy .npz .safetensors" },
    { .name = "--causal",
      .help = "without a text: keys after the query are hidden",
      .kind = ARG_FLAG,
      .offset = OPTION(causal) },
    { .name = "--shapes",
      .help = "also the shape of what each step makes",
      .kind = ARG_FLAG,
      .offset = OPTION(shapes) },
    { .name = "--no-scale",
      .help = "why scores are divided by sqrt(d): softmax without it and with it, as d grows",
      .kind = ARG_FLAG,
      .offset = OPTION(no_scale) },
    { .name = "--positions",
      .help = "draw sinusoidal positions",
      .kind = ARG_FLAG,
      .offset = OPTION(positions) },
    { .name = "--length",
      .argument = "N",
      .help = "with --positions: how many (default: 48)",
      .kind = ARG_INT,
      .offset = OPTION(length),
      .min = 1,
      .max = 4096 },
    { .name = "--dim",
      .argument = "N",
      .help = "with --positions: how many channels (default: 64)",
      .kind = ARG_INT,
      .offset = OPTION(dim),
      .min = 2,
      .max = 4096 },
    { .name = "--shuffle",
      .help = "shuffle the words: without positions attention does not notice",
      .kind = ARG_FLAG,
      .offset = OPTION(shuffle) },
    { .name = "--seed",
      .argument = "N",
      .help = "of --no-scale and --shuffle (default: 0)",
      .kind = ARG_INT,
      .offset = OPTION(seed),
      .min = 0,
      .max = INT64_MAX },
    { .name = "-o",
      .argument = "FILE",
      .help = "write a page for a browser (.html) instead; with --no-scale and --positions also a "
              "picture (.png, .svg, .pdf)",
      .kind = ARG_TEXT,
      .offset = OPTION(out),
      .suggest = ".html .png .svg .pdf" },
};

const struct cli_command cmd_explain = {
    .name = "explain",
    .summary = "the computation step by step, with the real numbers",
    .words = "[TEXT]",
    .details =
        "Follows one query through one head of a model, from token ids to the output of the layer: "
        "embedding, projections, q.k with every key, / sqrt(d), mask, softmax, the mix of values, "
        "all heads, output projection, add & norm, feed-forward, each with its numbers. The steps "
        "are "
        "computed again in double precision; the last one says how far the library is from them. "
        "Head and query are those that `look` shows, unless they are named.\n\n"
        "    qkv explain\n"
        "    qkv explain \"I was watching the [MASK] when it opened.\" --shapes\n"
        "    qkv explain \"I was watching the [MASK] when it opened.\" -o steps.html\n"
        "    qkv explain --no-scale\n"
        "    qkv explain --positions\n"
        "    qkv explain --shuffle \"The dog saw the cat.\"\n\n"
        "Without a TEXT it is an example of five words, whose numbers can be checked by hand, or, "
        "with "
        "--q, --k and --v, arrays of yours. "
        "--no-scale shows what softmax does to dot products of longer and longer random vectors, "
        "--positions draws sinusoids, --shuffle shows that attention alone does not know the order "
        "of "
        "words.\n\n"
        "--json: {\"layer\", \"head\", \"query\", \"tokens\", \"scale\", \"q\", \"products\", "
        "\"scores\", \"weights\", \"o\", ..., \"y\", \"differences\"}, with --no-scale {\"seed\", "
        "\"n_keys\", \"rows\": [{\"d\", \"scale\", \"variance\", \"entropy\", \"largest\", "
        "\"gradient\"}]}.",
    .min_words = 0,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_HEAD | TAKES_COMPUTE | TAKES_TERM |
             TAKES_TRUNCATE | TAKES_JSON | TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = explain_table,
    .n_options = CLI_COUNT(explain_table),
    .options_bytes = sizeof(struct explain_options),
    .run = explain,
};
