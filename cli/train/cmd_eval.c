/* `qkv eval`: how good is a model, or what it has written? */
#include "common/conflicts.h"
#include "common/ranks.h"
#include "common/shared.h"
#include "train/train.h"

struct eval_options {
    struct cli_common common;
    const char *text, *journal, *grammar, *check;
    struct arg_int seed, stride;
};

/* Models that predict the next token have their own measure. */
static int eval_next(const struct session *session, const struct eval_options *options) {
    if (options->stride.set && session->info->kind == QKV_MODEL_PAIR)
        return cli_usage(session->command, "--stride is of texts: pairs have no windows");
    if (options->text)
        return eval_perplexity(session, options->text, options->journal, options->stride.value);
    return cli_fail("%s is a %s, which fills no blanks: --text measures how well it predicts",
                    session->info->source, session->info->architecture);
}

/* Ranks share texts; a grammar is the first one's alone. */
static int eval_model(const struct cli_command *command, const struct eval_options *options) {
    struct session session;
    int code = session_open(&session, command, &options->common);
    code = ranks_agree(code);
    if (code) return code;
    if (session.info->kind != QKV_MODEL_ENCODER)
        code = eval_next(&session, options);
    else if (options->stride.set)
        code = cli_usage(command, "--stride is of models that predict the next token");
    else if (options->text)
        code = eval_pieces(&session, text_path(options->text), options->journal);
    else if (ranks_rank() == 0)
        code =
            eval_and_print(session.ctx, session.model, NULL, options->grammar,
                           options->seed.set ? (uint64_t)options->seed.value : 1, &options->common);
    session_close(&session);
    return code;
}

static int eval(const struct cli_command *command, const void *data, int n_words, char **words) {
    (void)n_words, (void)words;
    struct eval_options found = *(const struct eval_options *)data, *const options = &found;
    found.text = shared_copy(found.text);
    found.grammar = shared_copy(found.grammar);
    found.check = text_path(shared_copy(found.check));
    if (check_source(command, options->text, options->grammar)) return EXIT_USAGE;
    if (options->journal && !options->text) return cli_usage(command, "--journal without --text");
    if (options->check && !options->grammar)
        return cli_usage(command, "--check needs --grammar: which language is it?");
    const char *const ignored =
        option_first(command, options, 0, "--model|--weights|--check-finite|--seed|--stride");
    if (options->check && ignored)
        return cli_usage(command, "--check reads a text: no %s takes part", ignored);
    if (options->seed.set && !options->grammar)
        return cli_usage(command, "--seed goes with --grammar");
    if (options->check)
        return grammar_check_print(options->grammar, options->check, &options->common);
    int code = ranks_begin(false);
    if (!code) text_say_mark(options->grammar, options->common.quiet);
    if (!code) code = eval_model(command, options);
    code = ranks_agree(code);
    ranks_end();
    return code;
}

#define OPTIONS struct eval_options

static const struct cli_option eval_table[] = {
    OPTION_FILE("--text", "F", text, "*"),
    OPTION_FILE("--journal", "F", journal, "*"),
    OPTION_FILE("--grammar", "F", grammar, ".txt"),
    OPTION_FILE("--check", "F", check, ".txt"),
    OPTION_INT("--seed", "N", seed, 0, INT64_MAX),
    OPTION_INT("--stride", "N", stride, 1, INT32_MAX),
};

const struct cli_command cmd_eval = {
    .name = "eval",
    .summary = "measure a model on text or on a grammar",
    .words = "",
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_COMPUTE | TAKES_JSON | TAKES_QUIET | TAKES_VERBOSE,
    COMMAND_OPTIONS(eval_table),
    .over_ranks = true,
    .run = eval,
};
