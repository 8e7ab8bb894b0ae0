/* `qkv bench`: speed of attention, beside the machine's own peak (bench.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/ranks_case.h"
#include "common/job.h"
#include "common/session.h"
#include "common/term.h"
#include "qkv/files.h"

struct bench_options {
    struct cli_common common;
    struct arg_int rounds, len;
    struct arg_real fail_above;
    const char *json, *compare, *from;
    bool list, mpi;
};

/* A call of the command, and what it measured. */
struct run {
    const struct cli_command *command;
    const struct bench_options *options;
    struct cli_common common; /* with one thread, if none are asked for */
    int n_words;
    char **words;
    int rounds, n;
    struct bench_result *results; /* one for each wanted case */
};

static bool wanted(const struct run *run, const struct bench_case *c) {
    for (int i = 0; i < run->n_words; i++)
        if (bench_case_is(c, run->words[i])) return true;
    return run->n_words == 0;
}

static int check_words(const struct run *run) {
    const struct bench_case *c;
    for (int w = 0; w < run->n_words; w++) {
        int i = 0;
        while ((c = bench_case_at(i)) && !bench_case_is(c, run->words[w])) i++;
        if (!c)
            return cli_usage(run->command, "no suite or case has the word '%s': --list shows them",
                             run->words[w]);
    }
    return EXIT_OK;
}

static int list_cases(const struct run *run) {
    const struct bench_case *c;
    for (int i = 0; (c = bench_case_at(i)); i++)
        if (wanted(run, c)) puts(c->name);
    return EXIT_OK;
}

/* Is the table printed, suite after suite? */
static bool shows_table(const struct bench_options *options) {
    return !options->compare && (!options->json || strcmp(options->json, "-") != 0);
}

/* A context of its own for each case, so that its memory can be told from that of others. */
static int measure_case(const struct run *run, const struct bench_case *c,
                        struct progress *progress, struct bench_result *result) {
    struct bench bench;
    qkv_ctx *ctx = NULL;
    int code = session_context(run->command, &run->common, &ctx);
    if (code) return code;
    progress_text(progress, c->name);
    const bool made = bench_make(&bench, ctx, c);
    bench.cancel = &cli_cancelled;
    const qkv_status status = made ? bench_measure(&bench, c, run->rounds, result) : QKV_OK;
    progress_end(progress);
    if (!made)
        code = cli_fail("%s: out of memory", c->name);
    else if (status != QKV_OK)
        code = cli_cancelled ? EXIT_FAILED : cli_fail("%s: %s", c->name, qkv_ctx_message(ctx));
    if (made) bench_free(&bench);
    qkv_ctx_free(ctx);
    return code;
}

/*
 * A row has its share when the suite is done, whose peak it is a part of. Rows of a suite that the
 * user ends are printed, too.
 */
static void end_suite(const struct run *run, int first) {
    bench_share_peaks(run->n - first, run->results + first);
    for (int i = first; i < run->n && shows_table(run->options); i++) bench_print(&run->results[i]);
}

static bool same_suite(const char *a, const char *b) {
    const int n = bench_suite_length(a);
    return n == bench_suite_length(b) && strncmp(a, b, (size_t)n) == 0;
}

static void print_busy(const struct run *run) {
    bool busy = false;
    for (int i = 0; i < run->n; i++) busy |= run->results[i].busy;
    bench_print_busy(busy);
}

static int measure_cases(struct run *run) {
    const struct bench_case *c;
    struct progress progress;
    int code = EXIT_OK, first = 0; /* first: of the suite */
    progress_begin(&progress, false);
    for (int i = 0; !code && (c = bench_case_at(i)); i++) {
        if (!wanted(run, c)) continue;
        if (run->n > first && !same_suite(run->results[first].name, c->name)) {
            end_suite(run, first);
            first = run->n;
            if (!cli_flush()) return EXIT_FAILED;
        }
        code = measure_case(run, c, &progress, &run->results[run->n]);
        if (!code) run->n++;
    }
    end_suite(run, first);
    if (shows_table(run->options)) print_busy(run);
    return cli_flush() ? code : EXIT_FAILED;
}

static int write_json(const char *path, json_t *object) {
    qkv_error error;
    if (strcmp(path, "-") == 0) return json_emit(object);
    return cli_status(json_write_file(path, object, &error), &error);
}

static int compare(const struct bench_options *options, const struct bench_file *before,
                   const char *isa, int64_t threads, int n, const struct bench_result *now) {
    double slowest = 1;
    const int code = bench_compare(before, isa, threads, n, now, &slowest);
    if (code || !options->fail_above.set) return code;
    if (slowest >= 1 - options->fail_above.value / 100) return EXIT_OK;
    return cli_fail("slower by %.1f %%, more than %g %%", 100 * (1 - slowest),
                    options->fail_above.value);
}

static int measure_and_report(struct run *run, const struct bench_file *before) {
    const struct bench_options *const options = run->options;
    qkv_ctx *ctx = NULL;
    int n_cases = 0;
    while (bench_case_at(n_cases)) n_cases++;
    run->rounds = options->rounds.set ? (int)options->rounds.value : 9;
    run->results = calloc((size_t)n_cases, sizeof *run->results);
    int code = run->results ? session_context(run->command, &run->common, &ctx)
                            : cli_fail("out of memory");
    if (!code && shows_table(options)) bench_print_head(ctx, run->rounds);
    if (!code) code = measure_cases(run);
    if (!code && options->json)
        code = write_json(options->json, bench_json(ctx, run->rounds, run->n, run->results));
    if (!code && options->compare)
        code =
            compare(options, before, qkv_ctx_isa(ctx), qkv_ctx_threads(ctx), run->n, run->results);
    qkv_ctx_free(ctx);
    free(run->results);
    return code;
}

static int check_options(const struct cli_command *command, const struct bench_options *options,
                         int n_words) {
    const bool to_stdout = options->json && strcmp(options->json, "-") == 0;
    qkv_error error;
    if (options->mpi && (options->compare || options->list))
        return cli_usage(command, "--mpi together with %s",
                         options->compare ? "--compare" : "--list");
    if (options->len.set && !options->mpi) return cli_usage(command, "--len goes with --mpi");
    if (options->list && (options->json || options->compare))
        return cli_usage(command, "--list measures nothing: no %s",
                         options->json ? "--json" : "--compare");
    if (options->fail_above.set && !options->compare)
        return cli_usage(command, "--fail-above needs --compare");
    if (options->fail_above.set && !(options->fail_above.value >= 0))
        return cli_usage(command, "--fail-above: %g is below 0", options->fail_above.value);
    if (options->from && !options->compare)
        return cli_usage(command, "--from needs --compare: it takes the place of measuring");
    if (options->from && (options->json || n_words > 0))
        return cli_usage(command, "--from measures nothing: no cases, no --json");
    if (to_stdout && options->compare)
        return cli_usage(command, "--compare and --json - both print: name a file for --json");
    if (!options->json || to_stdout) return EXIT_OK;
    return cli_status(qkv_file_writable(options->json, &error), &error);
}

static int bench_ranks(const struct run *run) {
    const struct bench_options *const options = run->options;
    const struct ranks_options of = { .command = run->command,
                                      .common = &run->common,
                                      .n_words = run->n_words,
                                      .words = run->words,
                                      .rounds =
                                          options->rounds.set ? (int)options->rounds.value : 9,
                                      .len = options->len.set ? options->len.value : 16384,
                                      .json = options->json };
    return ranks_bench_all(&of);
}

static int run_bench(const struct cli_command *command, const void *data, int n_words,
                     char **words) {
    const struct bench_options *options = data;
    struct run run = { command, options, options->common, n_words, words, 0, 0, NULL };
    struct bench_file before = { 0 }, after = { 0 };
    const char *variable = getenv("QKV_NUM_THREADS");
    if (!run.common.threads.set && !(variable && *variable))
        run.common.threads = (struct arg_int){ true, 1 };
    int code = options->mpi ? check_options(command, options, n_words) : check_words(&run);
    if (options->mpi) return code ? code : bench_ranks(&run);
    if (!code) code = check_options(command, options, n_words);
    if (!code && options->list) return list_cases(&run);
    if (!code) cli_catch_interrupts();
    if (!code && options->compare) code = bench_file_read(options->compare, &before);
    if (!code && options->from) {
        code = bench_file_read(options->from, &after);
        if (!code)
            code = compare(options, &before, after.isa, after.threads, after.n, after.results);
    } else if (!code) {
        code = measure_and_report(&run, &before);
    }
    bench_file_free(&before);
    bench_file_free(&after);
    return code;
}

#define OPTIONS struct bench_options

static const struct cli_option bench_table[] = {
    OPTION_INT("--rounds", "N", rounds, 1, BENCH_MOST_ROUNDS),
    OPTION_FLAG("--list", list),
    OPTION_FILE("--json", "F", json, ".json"),
    OPTION_FILE("--compare", "F", compare, ".json"),
    OPTION_FILE("--from", "F", from, ".json"),
    OPTION_REAL("--fail-above", "PCT", fail_above),
    OPTION_FLAG("--mpi", mpi),
    OPTION_INT("--len", "N", len, 1, 1 << 24),
};

const struct cli_command cmd_bench = {
    .name = "bench",
    .summary = "speed of attention here, beside this machine's peak",
    .words = "[SUITE...]",
    .max_words = 16,
    .suggest = "forward|causal|masks|gqa|decode|varlen|stats|backward|small",
    .takes = TAKES_COMPUTE,
    COMMAND_OPTIONS(bench_table),
    .run = run_bench,
};
