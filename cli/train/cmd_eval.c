/* `qkv eval`: how good is a model, or what it has written? */
#include "common/session.h"
#include "train/eval_report.h"
#include "train/grammar_check.h"

struct eval_options {
    struct cli_common common;
    const char *text, *grammar, *check;
    struct arg_int seed, stride;
};

/* Models that predict the next token have their own measure. */
static int eval_next(const struct session *session, const struct eval_options *options) {
    if (options->text) return eval_perplexity(session, options->text, options->stride.value);
    return cli_fail("%s is a %s, which fills no blanks: --text measures how well it predicts",
                    session->info->source, session->info->architecture);
}

static int eval(const struct cli_command *command, const void *data, int n_words, char **words) {
    (void)n_words, (void)words;
    const struct eval_options *options = data;
    if (!options->text == !options->grammar)
        return cli_usage(command, options->text ? "--text and --grammar together: give one of them"
                                                : "--text or --grammar is missing");
    if (options->check && !options->grammar)
        return cli_usage(command, "--check needs --grammar: which language is it?");
    if (options->check && options->common.model)
        return cli_usage(command, "--check reads a text: no --model takes part");
    if (options->check)
        return grammar_check_print(options->grammar, options->check, &options->common);
    struct session session;
    int code = session_open(&session, command, &options->common);
    if (code) return code;
    code = session.info->kind == QKV_MODEL_DECODER
               ? eval_next(&session, options)
               : eval_and_print(session.ctx, session.model, options->text, options->grammar,
                                options->seed.set ? (uint64_t)options->seed.value : 1,
                                &options->common);
    session_close(&session);
    return code;
}

static const struct cli_option eval_table[] = {
    { .name = "--text",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = offsetof(struct eval_options, text),
      .suggest = "*" },
    { .name = "--grammar",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = offsetof(struct eval_options, grammar),
      .suggest = ".txt" },
    { .name = "--check",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = offsetof(struct eval_options, check),
      .suggest = ".txt" },
    { .name = "--seed",
      .argument = "N",
      .kind = ARG_INT,
      .offset = offsetof(struct eval_options, seed),
      .max = INT64_MAX },
    { .name = "--stride",
      .argument = "N",
      .kind = ARG_INT,
      .offset = offsetof(struct eval_options, stride),
      .min = 1,
      .max = INT32_MAX },
};

const struct cli_command cmd_eval = {
    .name = "eval",
    .summary = "measure a model on text or on a grammar",
    .words = "",
    .max_words = 0,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_COMPUTE | TAKES_JSON | TAKES_QUIET | TAKES_VERBOSE,
    .options = eval_table,
    .n_options = CLI_COUNT(eval_table),
    .options_bytes = sizeof(struct eval_options),
    .run = eval,
};
