/*
 * The run: children, seeds, and the report. See check.h.
 */
#include "check/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASE_SECONDS = 120 };

const char *const check_bound_names[BOUNDS] = {
    "o", "lse", "d_q", "d_k", "d_v", "d_sinks", "d_mask"
};
const char *const check_kind_names[CHECK_KINDS] = { "parts", "whole" };

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

/* Runs in a child. A crash, or no end, is a failure of that child. */
static void guarded_call(check_function *function, const check_options *options, uint64_t seed,
                         check_report *report) {
    memset(report, 0, sizeof *report);
    if (options->one) { /* in this process, where a debugger can see it */
        function(options, seed, report);
        return;
    }
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) {
        check_failed(report, "fork failed");
        return;
    }
    if (child == 0) {
        alarm(CASE_SECONDS);
        function(options, seed, report);
        _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        check_failed(report, "%s", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it exited");
}

static void tell_failure(const check_options *options, int kind, uint64_t seed,
                         const check_report *report, check_summary *summary) {
    const int before = summary->n_failed[CHECK_PARTS] + summary->n_failed[CHECK_WHOLE];
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

static void run_cases(const check_options *options, int kind, check_summary *summary) {
    check_report *const report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const int n_cases = options->one ? 1 : options->n_cases;
    if (report == MAP_FAILED) {
        const check_report none = { .failures = 1, .message = "no memory for a report" };
        tell_failure(options, kind, options->seed, &none, summary);
        return;
    }
    for (int n = 0; n < n_cases; n++) {
        const uint64_t seed = options->seed + (uint64_t)n;
        guarded_call(kind == CHECK_PARTS ? check_parts : check_whole, options, seed, report);
        summary->n_cases[kind]++;
        for (int b = 0; b < BOUNDS; b++)
            summary->fraction[b] = fmax(summary->fraction[b], report->fraction[b]);
        summary->compared += report->compared;
        summary->mismatches += report->mismatches;
        if (report->failures) tell_failure(options, kind, seed, report, summary);
        if (options->progress)
            options->progress(options->user, (int64_t)kind * n_cases + n + 1,
                              (int64_t)CHECK_KINDS * n_cases);
    }
    munmap(report, sizeof *report);
}

int check_run(const check_options *options, check_summary *summary) {
    memset(summary, 0, sizeof *summary);
    summary->n_isas = check_isas(options, summary->isas);
    for (int kind = 0; kind < CHECK_KINDS; kind++)
        if (!options->one || options->parts == (kind == CHECK_PARTS))
            run_cases(options, kind, summary);
    return summary->n_failed[CHECK_PARTS] + summary->n_failed[CHECK_WHOLE];
}

void check_print(const check_summary *summary, FILE *out) {
    fprintf(out, "instruction sets:");
    for (int n = 0; n < summary->n_isas; n++) fprintf(out, " %s", summary->isas[n]);
    fputc('\n', out);
    for (int kind = 0; kind < CHECK_KINDS; kind++)
        fprintf(out, "%-5s %d cases, %d failed\n", check_kind_names[kind], summary->n_cases[kind],
                summary->n_failed[kind]);
    fprintf(out, "largest share of a bound:");
    for (int b = 0; b < BOUNDS; b++)
        fprintf(out, "%s %s %.3f", b ? "," : "", check_bound_names[b], summary->fraction[b]);
    fprintf(out, "\nsame bits: %" PRId64 " comparisons, %" PRId64 " mismatches\n",
            summary->compared, summary->mismatches);
}
