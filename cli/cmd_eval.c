/* `qkv eval`: how good is a model, or what it has written? */
#include "eval_report.h"
#include "judge.h"
#include "session.h"

struct eval_options {
    struct cli_common common;
    const char *text, *grammar, *judge;
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
    if (options->judge && !options->grammar)
        return cli_usage(command, "--judge needs --grammar: which language is it?");
    if (options->judge && options->common.model)
        return cli_usage(command, "--judge judges a text: no --model takes part");
    if (options->judge) return judge_and_print(options->grammar, options->judge, &options->common);
    struct session session;
    int code = session_open(&session, command, &options->common);
    if (code) return code;
    code = session.info->is_decoder
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
      .help = "a text: a sentence, or two separated by a tab, a line",
      .kind = ARG_TEXT,
      .offset = offsetof(struct eval_options, text),
      .suggest = "*" },
    { .name = "--grammar",
      .argument = "F",
      .help = "or a grammar: the sentences that it holds out, with the words that fit each blank",
      .kind = ARG_TEXT,
      .offset = offsetof(struct eval_options, grammar),
      .suggest = ".txt" },
    { .name = "--judge",
      .argument = "F",
      .help = "a text, such as a model has written: which of its sentences does the grammar say? "
              "(no model takes part)",
      .kind = ARG_TEXT,
      .offset = offsetof(struct eval_options, judge),
      .suggest = ".txt" },
    { .name = "--seed",
      .argument = "N",
      .help = "seed of what is random (1)",
      .kind = ARG_INT,
      .offset = offsetof(struct eval_options, seed),
      .max = INT64_MAX },
    { .name = "--stride",
      .argument = "N",
      .help = "GPT-2: tokens between windows of a line that is longer than the model (default: "
              "half of its length)",
      .kind = ARG_INT,
      .offset = offsetof(struct eval_options, stride),
      .min = 1,
      .max = INT32_MAX },
};

const struct cli_command cmd_eval = {
    .name = "eval",
    .summary = "measure a model on text or on a grammar",
    .words = "",
    .details = "Masks every token of held-out sentences once and says how often the model fills it "
               "rightly, by slot type; with a grammar also next-sentence and pronoun scores, and "
               "how often the best head looks at what a pronoun stands for.\n\n"
               "    qkv eval --grammar models/default/grammar.txt\n"
               "    qkv eval --grammar models/default/grammar.txt --judge written.txt\n\n"
               "Of a model that predicts the next token (GPT-2): its perplexity on a text.\n\n"
               "    qkv eval --text lines.txt --model gpt2",
    .max_words = 0,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_COMPUTE | TAKES_JSON | TAKES_QUIET | TAKES_VERBOSE,
    .options = eval_table,
    .n_options = CLI_COUNT(eval_table),
    .options_bytes = sizeof(struct eval_options),
    .run = eval,
};
