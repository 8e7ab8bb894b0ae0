/* `qkv heads`: the signature and label of every head, on one text or over many. */
#include <stdlib.h>
#include <string.h>

#include "heads.h"

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
      .help = "a second text, which the model sees as the next sentence",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, pair) },
    PAIR_TABLE(struct heads_options, which),
    { .name = "--file",
      .argument = "F",
      .help = "many texts, one a line, or two separated by a tab (with --cross and --decoder a "
              "text and "
              "its target): means and standard deviations over them; - is standard input",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, file),
      .suggest = "*" },
    { .name = "--sort",
      .argument = "KEY",
      .help = "by a column, large numbers first; by label or head, in their order",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, sort),
      .suggest = "head|label|entropy|entropy_normalized|confidence|mean_distance|mass_cl"
                 "s|mass_sep|mass_punctuation|mass_self|mass_previous|mass_next|effectiv"
                 "e_keys|mass_window|mass_same_token|mass_duplicate|mass_induction|recei"
                 "ved_largest|received_early|received_gini|received_key|duplicate|induct"
                 "ion|antecedent" },
    { .name = "--reverse",
      .help = "the other way round",
      .kind = ARG_FLAG,
      .offset = offsetof(struct heads_options, reverse) },
    { .name = "--top",
      .argument = "N",
      .help = "only the first N heads",
      .kind = ARG_INT,
      .offset = offsetof(struct heads_options, top),
      .min = 1,
      .max = INT32_MAX },
    { .name = "--label",
      .argument = "NAME",
      .help = "only heads with this label; none: only those without one",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, label),
      .suggest = "next|prev|[CLS]|[SEP]|punctuation|broad|sink|duplicate|induction|same-token|"
                 "coreference-like|none" },
    { .name = "--like",
      .argument = "L.H",
      .help = "by distance of the signature from that of this head, the nearest first",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, like),
      .suggest = "@heads" },
    { .name = "--columns",
      .argument = "LIST",
      .help =
          "which columns to print, by name, separated by commas (default: as many as have room)",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, columns) },
    { .name = "--probes",
      .help = "run random tokens said twice, and pronoun probes of the model's grammar, for the "
              "labels duplicate, induction and coreference-like",
      .kind = ARG_FLAG,
      .offset = offsetof(struct heads_options, probes) },
    { .name = "--grammar",
      .argument = "F",
      .help = "the grammar whose pronoun probes are run (default: that of the embedded model); "
              "implies --probes",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, grammar),
      .suggest = ".txt" },
    { .name = "--seed",
      .argument = "N",
      .help = "seed of the probes (1)",
      .kind = ARG_INT,
      .offset = offsetof(struct heads_options, seed),
      .max = INT64_MAX },
    { .name = "--what-if",
      .argument = "causal|no-scale|temperature=T|drop=TOKEN",
      .help = "run the model so, in all layers and heads, as `qkv look` does. May be given several "
              "times",
      .kind = ARG_TEXTS,
      .offset = offsetof(struct heads_options, what_if),
      .suggest = "causal|no-scale|temperature=|drop=" },
    { .name = "-o",
      .argument = "FILE",
      .help = "write a file instead, with all columns: .csv, .tsv, or what --json prints (.json)",
      .kind = ARG_TEXT,
      .offset = offsetof(struct heads_options, out),
      .suggest = ".csv .tsv .json" },
};

const struct cli_command cmd_heads = {
    .name = "heads",
    .summary = "a table of all heads: entropy, distance, masses, what keys receive, labels",
    .words = "[TEXT]",
    .details =
        "A line for each head: its signature, numbers about where its tokens look, and a label "
        "where a "
        "rule gives one, the same as `qkv look` prints. Means are over the tokens of the text, "
        "[CLS], "
        "[SEP] and [PAD] aside. On a terminal as many columns as have room; elsewhere all.\n\n"
        "    qkv heads \"I was watching the door when [MASK] opened.\" --sort mass_previous\n"
        "    qkv heads --file sentences.txt --probes\n"
        "    qkv heads \"I saw the dog.\" --like 1.1 --top 4\n\n"
        "--like L.H sorts by the distance of signatures, sqrt(mean over columns of ((a - b) / "
        "sd)^2), with sd the standard deviation of a column over all heads.\n\n"
        "Of an encoder-decoder (BART, Marian) it is the encoder; --cross is the decoder's "
        "attention to the "
        "text while it writes (its own translation, or --target TEXT), --decoder that to itself. "
        "In "
        "cross-attention queries and keys are tokens of two texts, so what compares their places "
        "is "
        "missing.\n\n"
        "    qkv heads \"a red fox followed two cats\" --model models/translator --cross\n\n"
        "--probes runs what no text can show: random tokens said twice (duplicate, induction), and "
        "sentences with a masked pronoun, of the grammar of the embedded model or of --grammar "
        "(coreference-like). Without it these labels are not given.\n\n"
        "--json: {\"tokens\", \"n_queries\", \"heads\": [{\"layer\", \"head\", \"label\", "
        "\"entropy\", ...}], \"rules\"}; with --file \"n_texts\" for \"tokens\", and \"spread\" "
        "and "
        "\"label_share\" of each head.",
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_COMPUTE | TAKES_TERM | TAKES_TRUNCATE |
             TAKES_JSON | TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = heads_table_of_options,
    .n_options = CLI_COUNT(heads_table_of_options),
    .options_bytes = sizeof(struct heads_options),
    .run = heads,
};
