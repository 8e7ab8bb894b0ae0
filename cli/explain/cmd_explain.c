/*
 * `qkv explain`: attention step by step with the real numbers. Here are its options, which report
 * they ask for, and where it goes; the other files make the reports.
 */
#include "common/conflicts.h"
#include "explain/explain.h"

#include <string.h>

/* ---- Without a text -------------------------------------------------------------------------- */

/* A picture (--no-scale and --positions only), JSON (--no-scale and --scores only), or a report. */
static qkv_status answer(struct explain *e, json_t **json, qkv_error *error) {
    const struct explain_options *o = e->options;
    if (o->out && path_ending(o->out, ".html") < 0) {
        const qkv_status status =
            (o->no_scale ? explain_scale_picture : explain_positions_picture)(e, error);
        if (status == QKV_OK) cli_note(o->common.quiet, "qkv: wrote %s", o->out);
        return status;
    }
    if (o->common.json)
        return (o->scores ? explain_scores_json : explain_scale_json)(e, json, error);
    return explain_report(e,
                          o->no_scale    ? explain_scale
                          : o->positions ? explain_positions
                          : o->scores    ? explain_scores
                          : o->q         ? explain_arrays
                                         : explain_example,
                          error);
}

static int explain_without(const struct cli_command *command,
                           const struct explain_options *options) {
    struct explain e = { .options = options };
    qkv_error error;
    json_t *json = NULL;
    const int code = session_context(command, &options->common, &e.ctx);
    if (code) return code;
    const qkv_status status = answer(&e, &json, &error);
    qkv_ctx_free(e.ctx);
    if (status != QKV_OK && (strncmp(error.message, "--query: ", 9) == 0 || options->scores))
        return cli_usage(command, "%s", error.message);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    return !json || json_print(stdout, json) ? EXIT_OK : EXIT_FAILED;
}

/* ---- Options --------------------------------------------------------------------------------- */

#define KINDS   "--no-scale|--positions|--shuffle|--scores"
#define MISSING " is missing: arrays are --q, --k and --v"
#define A_TEXT  "a text|--jsonl|--image"
#define OF_TEXT "--pair|--model|--head|--ids|--truncate|--weights|--check-finite"
#define WITHOUT "%s without a TEXT"

/* What is about another kind of report than the one that is asked for. */
static const struct option_conflict rules[] = {
    { .these = "--image", .with = "a text|--jsonl|--pair|--truncate|--shuffle" },
    { .these = "--scores", .with = "--no-scale|--positions|--shuffle" },
    { .these = "--no-scale", .with = "--positions|--shuffle" },
    { .these = "--ids", .with = "--q|--k|--v|--pair|--image" },
    { .these = "--positions", .with = "--shuffle" },
    { .these = "--k|--v", .without = "--q", .message = "--q" MISSING },
    { .these = "--q|--v", .without = "--k", .message = "--k" MISSING },
    { .these = "--q|--k", .without = "--v", .message = "--v" MISSING },
    { .these = "--tokens|--q-tokens", .without = "--q", .message = "%s without --q, --k and --v" },
    { .these = "--no-scale|--positions|--scores",
      .with = A_TEXT,
      .message = "a text together with %s" },
    { .these = "--q", .with = A_TEXT, .message = "a text together with %s" },
    { .these = "--query|--q|--causal", .with = KINDS },
    { .these = "--causal", .with = A_TEXT, .message = "%s together with a text" },
    { .these = "--shapes", .with = KINDS },
    { .these = OF_TEXT, .with = "--no-scale|--positions|--scores" },
    { .these = "--no-scale|--positions|--scores",
      .with = "--layer",
      .message = "--head together with %s" },
    { .these = OF_TEXT, .without = A_TEXT "|--shuffle", .message = WITHOUT },
    { .these = "--layer", .without = A_TEXT "|--shuffle", .message = "--head without a TEXT" },
    { .these = "--shuffle", .with = "--json|--jsonl", .message = "--json together with %s" },
    { .these = "--json", .with = "--positions" },
    { .these = "--json", .without = A_TEXT "|--no-scale|--scores", .message = WITHOUT },
    { .these = "--length|--dim", .with = "--no-scale|--shuffle|--scores" },
    { .these = "--length|--dim", .without = "--positions", .message = "%s without --positions" },
    { .these = "--seed", .with = "--positions|--scores" },
    { .these = "--seed",
      .without = "--no-scale|--shuffle",
      .message = "%s without --no-scale or --shuffle" },
};

/* -o: an ending that this report can be written as, in a folder where files can be written. */
static int check_out(const struct cli_command *command, const struct explain_options *o) {
    if (!o->out) return EXIT_OK;
    const bool picture = path_ending(o->out, ".png .svg .pdf") >= 0;
    if (path_ending(o->out, ".html") < 0 && !(picture && (o->no_scale || o->positions)))
        return cli_usage(command, "-o: '%s' ends in %s", o->out,
                         o->no_scale || o->positions ? "none of .html .png .svg .pdf"
                         : picture ? "a picture's ending: only --no-scale and --positions draw one"
                                   : "something else than .html");
    return path_check_out(command, &o->common, o->out, ".html .png .svg .pdf");
}

static int explain(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct explain_options *options = data;
    int code = conflicts_check(command, options, n_words, rules, CLI_COUNT(rules));
    if (code == EXIT_OK) code = check_out(command, options);
    if (code) return code;
    if (options->out) cli_catch_interrupts();
    char *sentence = (char *)(uintptr_t) "The dog saw the cat.";
    if (options->shuffle && n_words == 0) return explain_texts(command, options, 1, &sentence);
    if (n_words > 0 || options->common.jsonl || options->image)
        return explain_texts(command, options, n_words, words);
    return explain_without(command, options);
}

#define OPTIONS struct explain_options

static const struct cli_option explain_table[] = {
    OPTION_TEXT("--query", "N|TOKEN", query),
    OPTION_TEXT("--pair", "TEXT", pair),
    OPTION_FILE("--image", "F", image, ".png .jpg .jpeg"),
    OPTION_FILE("--q", "F", q, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--k", "F", k, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--v", "F", v, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--tokens", "F", tokens, "*"),
    OPTION_FILE("--q-tokens", "F", q_tokens, "*"),
    OPTION_TEXT("--scores", "S,S,...", scores),
    OPTION_FLAG("--causal", causal),
    OPTION_FLAG("--shapes", shapes),
    OPTION_FLAG("--no-scale", no_scale),
    OPTION_FLAG("--positions", positions),
    OPTION_INT("--length", "N", length, 1, 4096),
    OPTION_INT("--dim", "N", dim, 2, 4096),
    OPTION_FLAG("--shuffle", shuffle),
    OPTION_INT("--seed", "N", seed, 0, INT64_MAX),
    OPTION_FILE("-o", "FILE", out, ".html .png .svg .pdf"),
};

const struct cli_command cmd_explain = {
    .name = "explain",
    .summary = "the computation step by step, with the real numbers",
    .words = "[TEXT]",
    .max_words = 1,
    .takes = TAKES_TEXTS | TAKES_HEAD | TAKES_IMAGES,
    COMMAND_OPTIONS(explain_table),
    .run = explain,
};
