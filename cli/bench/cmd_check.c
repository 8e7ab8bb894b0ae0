/*
 * `qkv check`: does the library, on this machine, compute what it promises? The test of kernels
 * (tests/check) as a command: the one file of the tool that sees more than the public headers.
 */
#include <inttypes.h>
#include <stdio.h>

#include "check/check.h"
#include "common/job.h"
#include "common/term.h"

enum { DEFAULT_CASES = 500, DEFAULT_PAIRS = 1 };

struct check_command_options {
    struct cli_common common;
    const char *isa;
    struct arg_int seed, cases, pairs;
    bool table;
};

static void show_progress(void *user, int64_t done, int64_t total) {
    progress_bar(user, "check", done, total);
}

static int pairs_of(const struct check_command_options *options) {
    return options->pairs.set ? (int)options->pairs.value : DEFAULT_PAIRS;
}

/* What to say to see a failure again. */
static void print_failure(const struct check_command_options *options,
                          const check_summary *summary) {
    const bool of_pair = summary->first_kind == CHECK_PAIRS;
    const uint64_t seed = summary->first_seed;
    printf("\nfirst failure: %s, seed %" PRIu64 ": %s\nagain with: qkv check --seed %" PRIu64
           " --cases 1 --pairs %d",
           check_kind_names[summary->first_kind], seed, summary->first_message,
           of_pair ? pair_run(seed) : seed, of_pair ? pairs_of(options) : 0);
    if (options->isa) printf(" --isa %s", options->isa);
    putchar('\n');
}

static json_t *failure_json(const check_summary *summary) {
    if (check_failures(summary) == 0) return json_null();
    return json_pack("{s:s,s:I,s:s}", "kind", check_kind_names[summary->first_kind], "seed",
                     (json_int_t)summary->first_seed, "message", summary->first_message);
}

static void print_json(const check_summary *summary, uint64_t seed) {
    json_t *isas = json_array(), *shares = json_object(), *columns = json_object();
    json_t *object = json_object();
    for (int n = 0; n < summary->n_isas; n++)
        json_array_append_new(isas, json_string(summary->isas[n]));
    json_object_set_new(object, "isas", isas);
    json_object_set_new(object, "seed", json_integer((json_int_t)seed));
    for (int kind = 0; kind < CHECK_KINDS; kind++)
        json_object_set_new(object, check_kind_names[kind],
                            json_pack("{s:i,s:i}", "n_cases", summary->n_cases[kind], "n_failed",
                                      summary->n_failed[kind]));
    for (int at = 0; at < COLUMNS; at++) {
        const pair_column *const of = &check_columns[at];
        const check_cell all = check_pairs_of(summary, at);
        char name[32];
        snprintf(name, sizeof name, "%s%s", of->decode ? "decode " : "", of->name);
        if (all.n_cases)
            json_object_set_new(columns, name,
                                json_pack("{s:i,s:I,s:f}", "n_pairs", all.n_cases, "n_numbers",
                                          (json_int_t)all.numbers, "largest_share", all.share));
    }
    json_object_set_new(object, "pairs_of", columns);
    for (int b = 0; b < BOUNDS; b++)
        json_object_set_new(shares, check_bound_names[b], json_real(summary->fraction[b]));
    json_object_set_new(object, "largest_share_of_bound", shares);
    json_object_set_new(object, "compared", json_integer(summary->compared));
    json_object_set_new(object, "mismatches", json_integer(summary->mismatches));
    json_object_set_new(object, "first_failure", failure_json(summary));
    json_print(stdout, object);
}

static int check(const struct cli_command *command, const void *data, int n_words, char **words) {
    (void)n_words, (void)words;
    const struct check_command_options *options = data;
    const int code = options->isa ? session_isa(command, "--isa", options->isa) : EXIT_OK;
    if (code) return code;
    if (options->table && options->common.json)
        return cli_usage(command, "--table together with --json");
    struct progress progress;
    static check_summary summary; /* a table: large */
    const check_options run = {
        .n_cases = options->cases.set ? (int)options->cases.value : DEFAULT_CASES,
        .n_pairs = pairs_of(options),
        .seed = options->seed.set ? (uint64_t)options->seed.value : 1,
        .isa = options->isa,
        .progress = show_progress,
        .user = &progress,
    };
    progress_begin(&progress, options->common.quiet);
    const int failures = check_run(&run, &summary);
    progress_end(&progress);
    if (options->common.json) {
        print_json(&summary, run.seed);
    } else {
        if (options->table) check_print_pairs(&summary, stdout);
        check_print(&summary, stdout);
        if (failures) print_failure(options, &summary);
    }
    return failures ? EXIT_FAILED : EXIT_OK;
}

#define OPTIONS struct check_command_options

static const struct cli_option check_table[] = {
    OPTION_INT("--cases", "N", cases, 1, 1000000),
    OPTION_INT("--pairs", "N", pairs, 0, PAIR_SIZES),
    OPTION_FLAG("--table", table),
    OPTION_INT("--seed", "N", seed, 0, INT64_MAX / 2),
    OPTION_FILE("--isa", "NAME", isa, "scalar|avx2|avx512|avx512bf16|neon"),
};

const struct cli_command cmd_check = {
    .name = "check",
    .summary = "does attention compute on this machine what it promises?",
    .words = "",
    .takes = TAKES_JSON | TAKES_QUIET,
    COMMAND_OPTIONS(check_table),
    .run = check,
};
