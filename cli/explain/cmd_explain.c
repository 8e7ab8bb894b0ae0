/*
 * `qkv explain`: attention step by step with the real numbers. Which report, and those without a text;
 * explain_*.c make the reports.
 */
#include "explain/explain.h"

#include <stdlib.h>
#include <string.h>

static qkv_status make(const struct explain_options *options, qkv_ctx *ctx, struct report *report,
                       const struct term *term, qkv_error *error) {
    if (options->no_scale) return explain_scale(ctx, report, (uint64_t)options->seed.value, error);
    if (options->positions) {
        struct sinusoids sinusoids;
        const qkv_status status = explain_sinusoids(options, &sinusoids, error);
        if (status == QKV_OK)
            explain_positions(report, &sinusoids, options->out ? 100 : term->width);
        free(sinusoids.table);
        return status;
    }
    if (options->q)
        return explain_arrays(ctx, report, options,
                              options->out ? EXPLAIN_KEYS_ON_PAGE : EXPLAIN_KEYS_ON_TERMINAL,
                              error);
    return explain_example(ctx, report, options, error);
}

static qkv_status draw_picture(const struct explain_options *options, qkv_ctx *ctx,
                               qkv_error *error) {
    const qkv_status status = options->no_scale ? explain_scale_picture(ctx, options, error)
                                                : explain_positions_picture(options, error);
    if (status == QKV_OK) cli_note(options->common.quiet, "qkv: wrote %s", options->out);
    return status;
}

/* A picture, which only --no-scale and --positions have; JSON, which only --no-scale has; a report. */
static qkv_status answer_without(const struct explain_options *options, qkv_ctx *ctx, json_t **json,
                                 qkv_error *error) {
    if (options->out && !explain_ends_in(options->out, ".html"))
        return draw_picture(options, ctx, error);
    if (options->common.json)
        return explain_scale_json(ctx, (uint64_t)options->seed.value, json, error);
    struct report report;
    struct term term;
    explain_begin(&report, &term, options);
    const qkv_status status = make(options, ctx, &report, &term, error);
    if (status == QKV_OK) return explain_deliver(&report, &term, options, error);
    report_free(&report);
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
    { .name = "--query", .argument = "N|TOKEN", .kind = ARG_TEXT, .offset = OPTION(query) },
    { .name = "--pair", .argument = "TEXT", .kind = ARG_TEXT, .offset = OPTION(pair) },
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
    { .name = "--v",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = OPTION(v),
      .suggest = ".npy .npz .safetensors" },
    { .name = "--causal", .kind = ARG_FLAG, .offset = OPTION(causal) },
    { .name = "--shapes", .kind = ARG_FLAG, .offset = OPTION(shapes) },
    { .name = "--no-scale", .kind = ARG_FLAG, .offset = OPTION(no_scale) },
    { .name = "--positions", .kind = ARG_FLAG, .offset = OPTION(positions) },
    { .name = "--length",
      .argument = "N",
      .kind = ARG_INT,
      .offset = OPTION(length),
      .min = 1,
      .max = 4096 },
    { .name = "--dim",
      .argument = "N",
      .kind = ARG_INT,
      .offset = OPTION(dim),
      .min = 2,
      .max = 4096 },
    { .name = "--shuffle", .kind = ARG_FLAG, .offset = OPTION(shuffle) },
    { .name = "--seed",
      .argument = "N",
      .kind = ARG_INT,
      .offset = OPTION(seed),
      .min = 0,
      .max = INT64_MAX },
    { .name = "-o",
      .argument = "FILE",
      .kind = ARG_TEXT,
      .offset = OPTION(out),
      .suggest = ".html .png .svg .pdf" },
};

const struct cli_command cmd_explain = {
    .name = "explain",
    .summary = "the computation step by step, with the real numbers",
    .words = "[TEXT]",
    .min_words = 0,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_HEAD | TAKES_COMPUTE | TAKES_TERM |
             TAKES_TRUNCATE | TAKES_JSON | TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = explain_table,
    .n_options = CLI_COUNT(explain_table),
    .options_bytes = sizeof(struct explain_options),
    .run = explain,
};
