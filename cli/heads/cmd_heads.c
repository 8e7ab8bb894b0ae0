/* `qkv heads`: the signature and label of every head, on one text or over many. */
#include <stdlib.h>
#include <string.h>

#include "heads/heads.h"

#include "qkv/files.h"

/* Random texts have no target, and neither has a second sentence; lines of a file have their own. */
static const char *other_of_pairs(const struct heads_options *options) {
    return options->pair                            ? "--pair"
           : options->probes                        ? "--probes"
           : options->grammar                       ? "--grammar"
           : options->common.jsonl                  ? "--jsonl"
           : options->file && options->which.target ? "--file and --target: a line has its own"
                                                    : NULL;
}

static int check(const struct cli_command *command, const struct heads_options *options,
                 int n_words) {
    const struct cli_common *common = &options->common;
    int code;
    if (options->file && (n_words > 0 || options->pair || common->jsonl))
        return cli_usage(command, "--file together with %s",
                         n_words > 0     ? "a text"
                         : options->pair ? "--pair"
                                         : "--jsonl");
    if (!options->file && n_words == 0 && !common->jsonl)
        return cli_usage(command, "TEXT or --file is missing");
    if (options->out && heads_ending(options->out) < 0)
        return cli_usage(command, "-o: '%s' ends in none of .csv .tsv .json", options->out);
    if (options->out && (common->json || common->jsonl))
        return cli_usage(command, "-o together with %s", common->json ? "--json" : "--jsonl");
    for (int i = 0; options->file && i < options->what_if.n; i++)
        if (strncmp(options->what_if.list[i], "drop=", 5) == 0)
            return cli_usage(command,
                             "--what-if %s together with --file: its texts have other tokens",
                             options->what_if.list[i]);
    if (options->what_if.n > 0 && (options->probes || options->grammar))
        return cli_usage(command,
                         "--what-if together with --probes, which are of the model as it is");
    code = pair_check(command, &options->which, pair_option(&options->which),
                      "--cross or --decoder", other_of_pairs(options));
    if (code) return code;
    return heads_check_options(command, options);
}

static int heads(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct heads_options *options = data;
    int code = check(command, options, n_words);
    if (code) return code;
    if (options->out) cli_catch_interrupts();
    struct heads_job job = {
        .texts = { .options = options, .pair = options->pair, .answer = heads_answer }
    };
    struct session *session = &job.texts.session;
    code = what_if_parse(command, &options->what_if, &job.what_if);
    if (code) return code;
    code = session_open(session, command, data);
    if (code) return code;
    qkv_error error;
    code = session_pair(session, pair_option(&options->which));
    if (code == EXIT_OK) code = heads_like(session, options, &job.like);
    if (code == EXIT_OK && options->out && qkv_file_writable(options->out, &error) != QKV_OK)
        code = cli_fail("%s", error.message);
    if (code == EXIT_OK && heads_probe(&job, &error) != QKV_OK)
        code = cli_fail("%s", error.message);
    if (code == EXIT_OK && !options->file) {
        code = text_job_run(&job.texts, n_words, words);
    } else {
        if (code == EXIT_OK) code = heads_answer_file(&job);
        session_close(session);
    }
    free(job.probes);
    return code;
}

static const struct cli_option heads_table_of_options[] = {
    { .name = "--pair",
      .argument = "TEXT",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, pair) },
    PAIR_TABLE(struct heads_options, which),
    { .name = "--file",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, file),
      .suggest = "*" },
    { .name = "--sort",
      .argument = "KEY",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, sort),
      .suggest = "@numbers" },
    { .name = "--reverse", .kind = ARG_FLAG, .offset = offsetof(struct heads_options, reverse) },
    { .name = "--top",
      .argument = "N",
      .kind = ARG_INT,
      .offset = offsetof(struct heads_options, top),
      .min = 1,
      .max = INT32_MAX },
    { .name = "--label",
      .argument = "NAME",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, label),
      .suggest = "@labels" },
    { .name = "--like",
      .argument = "L.H",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, like),
      .suggest = "@heads" },
    { .name = "--columns",
      .argument = "LIST",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, columns) },
    { .name = "--probes", .kind = ARG_FLAG, .offset = offsetof(struct heads_options, probes) },
    { .name = "--grammar",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, grammar),
      .suggest = ".txt" },
    { .name = "--seed",
      .argument = "N",
      .kind = ARG_INT,
      .offset = offsetof(struct heads_options, seed),
      .max = INT64_MAX },
    { .name = "--what-if",
      .argument = "causal|no-scale|temperature=T|drop=TOKEN",
      .kind = ARG_TEXTS,
      .offset = offsetof(struct heads_options, what_if),
      .suggest = "causal|no-scale|temperature=|drop=" },
    { .name = "-o",
      .argument = "FILE",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, out),
      .suggest = ".csv .tsv .json" },
};

const struct cli_command cmd_heads = {
    .name = "heads",
    .summary = "a table of all heads: entropy, distance, masses, what keys receive, labels",
    .words = "[TEXT]",
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_COMPUTE | TAKES_TERM | TAKES_TRUNCATE |
             TAKES_JSON | TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = heads_table_of_options,
    .n_options = CLI_COUNT(heads_table_of_options),
    .options_bytes = sizeof(struct heads_options),
    .run = heads,
};
