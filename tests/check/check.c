/*
 * The run: children, seeds, and the report. See check.h.
 */
#include "check/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "check/system.h"

const char *const check_bound_names[BOUNDS] = { "o",   "lse",     "d_q",    "d_k",
                                                "d_v", "d_sinks", "d_mask", "d_distance_bias" };
const char *const check_kind_names[CHECK_KINDS] = { "parts", "whole", "decode", "pairs" };

typedef void check_function(const check_options *options, uint64_t seed, check_report *report);

void check_failed(check_report *report, const char *format, ...) {
    if (report->failures++ > 0) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->message, sizeof report->message, format, arguments);
    va_end(arguments);
}

int check_isas(const check_options *options, const char *isas[CHECK_MAX_ISAS]) {
    int n = 0;
    for (int i = 0; n < CHECK_MAX_ISAS && qkv_isa_name(i); i++) {
        const char *const name = qkv_isa_name(i);
        const bool wanted = !options->isa || strcmp(options->isa, name) == 0;
        if (strcmp(name, "scalar") == 0 || wanted) isas[n++] = name;
    }
    return n;
}

struct call {
    check_function *function;
    const check_options *options;
    uint64_t seed;
    check_report *report;
};

static void call(void *argument) {
    const struct call *const c = argument;
    c->function(c->options, c->seed, c->report);
}

/* Runs in a child. A crash, or no end, is a failure of that child. */
static void guarded_call(check_function *function, const check_options *options, uint64_t seed,
                         check_report *report) {
    struct call one = { function, options, seed, report };
    memset(report, 0, sizeof *report);
    if (options->one) { /* in this process, where a debugger can see it */
        call(&one);
        return;
    }
    const char *const reason = system_in_child(call, &one);
    if (reason) check_failed(report, "%s", reason);
}

int check_failures(const check_summary *summary) {
    int n = 0;
    for (int kind = 0; kind < CHECK_KINDS; kind++) n += summary->n_failed[kind];
    return n;
}

static void tell_failure(const check_options *options, int kind, uint64_t seed,
                         const check_report *report, check_summary *summary) {
    const int before = check_failures(summary);
    summary->n_failed[kind]++;
    if (before == 0) {
        summary->first_kind = kind;
        summary->first_seed = seed;
        memcpy(summary->first_message, report->message, sizeof report->message);
    }
    if (options->failures)
        fprintf(options->failures, "FAILED %s, seed %" PRIu64 ": %s\n", check_kind_names[kind],
                seed, report->message);
}

static void add_report(int kind, int n, const check_report *report, check_summary *summary) {
    double share = 0;
    summary->n_cases[kind]++;
    for (int b = 0; b < BOUNDS; b++) {
        share = fmax(share, report->fraction[b]);
        summary->fraction[b] = fmax(summary->fraction[b], report->fraction[b]);
    }
    summary->compared += report->compared;
    summary->mismatches += report->mismatches;
    summary->digest = digest_joined(summary->digest, report->digest);
    if (kind != CHECK_PAIRS) return;
    check_cell *const cell = &summary->pairs[n % PAIRS][n / PAIRS % COLUMNS];
    cell->n_cases++;
    cell->n_failed += report->failures != 0;
    cell->numbers += report->numbers;
    cell->share = fmax(cell->share, share);
}

/* Among the pairs, some are no case. */
static bool has_case(int kind, int n) {
    return kind != CHECK_PAIRS || pair_exists(pair_of(n % PAIRS), n / PAIRS % COLUMNS);
}

static int count_of(const check_options *options, int kind) {
    return kind == CHECK_PAIRS ? options->n_pairs * PAIRS * COLUMNS : options->n_cases;
}

static void run_cases(const check_options *options, int kind, int64_t before,
                      check_summary *summary) {
    static check_function *const functions[CHECK_KINDS] = { check_parts, check_whole, check_decode,
                                                            check_pair };
    check_report *const report = system_shared(sizeof *report);
    const int n_cases = options->one ? 1 : count_of(options, kind);
    int64_t total = 0;
    if (!report) {
        const check_report none = { .failures = 1, .message = "no memory for a report" };
        tell_failure(options, kind, options->seed, &none, summary);
        return;
    }
    for (int k = 0; k < CHECK_KINDS; k++) total += count_of(options, k);
    for (int n = 0; n < n_cases; n++) {
        const uint64_t seed = options->one          ? options->seed
                              : kind == CHECK_PAIRS ? pair_seed(options->seed, n)
                                                    : options->seed + (uint64_t)n;
        if (options->one || has_case(kind, n)) {
            guarded_call(functions[kind], options, seed, report);
            add_report(kind, n, report, summary);
            if (report->failures) tell_failure(options, kind, seed, report, summary);
        }
        if (options->progress) options->progress(options->user, before + n + 1, total);
    }
    system_shared_free(report, sizeof *report);
}

int check_run(const check_options *options, check_summary *summary) {
    int64_t before = 0;
    memset(summary, 0, sizeof *summary);
    summary->n_isas = check_isas(options, summary->isas);
    for (int kind = 0; kind < CHECK_KINDS; kind++) {
        if (!options->one || options->kind == kind) run_cases(options, kind, before, summary);
        before += count_of(options, kind);
    }
    return check_failures(summary);
}
