/* `qkv heads`: the signature and label of every head, on one text or over many. */
#include <stdlib.h>

#include "common/conflicts.h"
#include "common/ranks.h"
#include "heads/effect.h"
#include "heads/fires.h"
#include "qkv/files.h"

static const struct option_conflict inputs[] = {
    { .these = "--file", .with = "a text|--pair|--jsonl" },
    { .these = "--image",
      .with = "a text|--pair|--file|--jsonl|--truncate|--target|--cross|--decoder|--label|--probes|"
              "--grammar|--loss|--reference" },
    { .these = "--ids", .with = "--file|--pair|--cross|--decoder|--patch|--image" },
    { .without = "--file|a text|--jsonl|--image", .message = "TEXT or --file is missing" },
};

static const struct option_conflict outs[] = { { .these = "-o", .with = "--json|--jsonl" } };

/* Random texts have no target, nor has a second sentence; lines of a file have their own. */
static const struct option_conflict rules[] = {
    { .these = "--what-if",
      .with = "--probes|--grammar",
      .message = "%s together with --probes, which are of the model as it is" },
    PAIR_RULES("--cross|--decoder|--effect", "--cross, --decoder or --effect"),
    { .these = "--cross|--decoder", .with = "--pair|--probes|--grammar|--jsonl" },
    { .these = "--seed", .without = "--probes|--grammar", .message = "%s goes with --probes" },
};

/* Effects are of a text, and what a head fires on is of a file. */
static const struct option_conflict effects[] = {
    { .these = "--ablate|--reference|--patch|--group|--edge|--word|--loss",
      .without = "--effect",
      .message = "%s goes with --effect" },
    { .these = "--effect|--fires",
      .with = "--sort|--reverse|--label|--like|--columns|--probes|--grammar|--seed|--what-if" },
    { .these = "--effect", .with = "--file|--fires" },
    { .these = "--patch", .with = "--ablate|--reference" },
    { .these = "--word", .with = "--loss" },
    { .these = "--fires|--journal", .without = "--file", .message = "%s goes with --file" },
};

static int check_effects(const struct cli_command *command, const struct heads_options *options,
                         int n_words) {
    if (options->reference && !options->ablate.value)
        return cli_usage(command, "--reference goes with --ablate mean");
    return conflicts_check(command, options, n_words, effects, CLI_COUNT(effects));
}

static const char *endings_of(const struct heads_options *options) {
    return options->effect ? EFFECT_ENDINGS : options->fires ? ".json" : HEADS_ENDINGS;
}

static int check_options(const struct cli_command *command, const struct heads_options *options,
                         int n_words) {
    int code = conflicts_check(command, options, n_words, inputs, CLI_COUNT(inputs));
    if (code == EXIT_OK) code = check_effects(command, options, n_words);
    if (code == EXIT_OK) code = path_check_ending(command, options->out, endings_of(options));
    if (code == EXIT_OK) code = conflicts_check(command, options, n_words, outs, CLI_COUNT(outs));
    if (code == EXIT_OK && options->file)
        code = what_if_check_drop(command, &options->what_if, "--file: its texts");
    if (code == EXIT_OK) code = conflicts_check(command, options, n_words, rules, CLI_COUNT(rules));
    if (code == EXIT_OK && options->file && options->which.target)
        code = cli_usage(command, "%s together with --file and --target: a line has its own",
                         options->which.cross ? "--cross" : "--decoder");
    if (code == EXIT_OK)
        code = picture_check(command, options, &options->picture, options->out, "--effect");
    return code ? code : heads_check_options(command, options);
}

/* What is made before a text is read. */
static int prepare(struct heads_job *job) {
    const struct heads_options *const options = job->texts.options;
    const struct session *const session = &job->texts.session;
    qkv_error error;
    int code = heads_like(session, options, &job->like);
    if (code == EXIT_OK && options->effect) code = effect_check(session, options);
    if (code == EXIT_OK && options->fires) code = fires_check(session, options);
    if (code == EXIT_OK && options->out && ranks_rank() == 0)
        code = cli_status(qkv_file_writable(options->out, &error), &error);
    return code ? code : cli_status(heads_probe(job, &error), &error);
}

static int answer_file(const struct heads_job *job) {
    const struct heads_options *const options = job->texts.options;
    return options->fires ? fires_answer(job) : heads_answer_file(job);
}

static int heads(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct heads_options *options = data;
    int code = check_options(command, options, n_words);
    if (code) return code;
    if (options->out) cli_catch_interrupts();
    struct heads_job job = { .texts = { .options = options,
                                        .pair = options->pair,
                                        .image = options->image,
                                        .which = pair_which(&options->which),
                                        .answer =
                                            options->effect ? effect_answer : heads_answer } };
    code = what_if_parse(command, &options->what_if, &job.what_if);
    if (code == EXIT_OK && options->file) code = ranks_begin(false);
    if (code) return code;
    code = text_job_open(&job.texts, command, data);
    const bool is_open = code == EXIT_OK;
    if (is_open) code = prepare(&job);
    if (code == EXIT_OK && !options->file) {
        code = text_job_run(&job.texts, n_words, words);
    } else {
        code = ranks_agree(code);
        if (code == EXIT_OK) code = answer_file(&job);
        if (is_open) session_close(&job.texts.session);
    }
    free(job.probes);
    code = ranks_agree(code);
    ranks_end();
    return code;
}

#define OPTIONS struct heads_options

static const struct cli_option heads_table_of_options[] = {
    OPTION_TEXT("--pair", "TEXT", pair),
    PAIR_TABLE(which),
    OPTION_FILE("--image", "F", image, ".png .jpg .jpeg"),
    OPTION_FILE("--file", "F", file, "*"),
    OPTION_FILE("--journal", "F", journal, "*"),
    OPTION_FILE("--sort", "KEY", sort, "@numbers"),
    OPTION_FLAG("--reverse", reverse),
    OPTION_INT("--top", "N", top, 1, INT32_MAX),
    OPTION_FILE("--label", "NAME", label, "@labels"),
    OPTION_FILE("--like", "L.H", like, "@heads"),
    OPTION_TEXT("--columns", "LIST", columns),
    OPTION_FLAG("--probes", probes),
    OPTION_FILE("--grammar", "F", grammar, ".txt"),
    OPTION_INT("--seed", "N", seed, 0, INT64_MAX),
    WHAT_IF_ROW(what_if),
    OPTION_FLAG("--effect", effect),
    OPTION_CHOICE("--ablate", "zero|mean", ablate),
    OPTION_FILE("--reference", "F", reference, "*"),
    OPTION_TEXT("--patch", "SOURCE", patch),
    OPTION_TEXTS("--group", "L.H,L.*...", groups),
    OPTION_TEXTS("--edge", "QUERY>KEY[@L.H]", edges),
    OPTION_TEXT("--word", "WORD", word),
    OPTION_FLAG("--loss", loss),
    OPTION_FILE("--fires", "L.H", fires, "@heads"),
    PICTURE_TABLE(picture),
    OPTION_FILE("-o", "FILE", out, ".csv .tsv .json .png .svg .pdf"),
};

const struct cli_command cmd_heads = {
    .name = "heads",
    .summary = "a table of all heads: entropy, distance, masses, labels",
    .words = "[TEXT]",
    .max_words = 1,
    .takes = TAKES_TEXTS | TAKES_IMAGES,
    COMMAND_OPTIONS(heads_table_of_options),
    .over_ranks = true,
    .run = heads,
};
