/*
 * The run of qkv-check: children, seeds, and the report. See check.h.
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

static int run_cases(const char *name, check_function *function, const check_options *options,
                     int n_cases, FILE *out, double fraction[BOUNDS]) {
    check_report *const report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failures = 0;
    if (report == MAP_FAILED) return 1;
    for (int n = 0; n < n_cases; n++) {
        const uint64_t seed = options->seed + (uint64_t)n;
        guarded_call(function, options, seed, report);
        for (int b = 0; b < BOUNDS; b++) fraction[b] = fmax(fraction[b], report->fraction[b]);
        if (!report->failures) continue;
        failures++;
        fprintf(out, "FAILED %s, again with --one-%s %" PRIu64 ": %s\n", name,
                strcmp(name, "parts") == 0 ? "part" : "case", seed, report->message);
    }
    munmap(report, sizeof *report);
    fprintf(out, "%-5s %d cases, %d failed\n", name, n_cases, failures);
    return failures;
}

int check_run(const check_options *options, FILE *out) {
    const char *isas[CHECK_MAX_ISAS];
    const int n_isas = check_isas(options, isas);
    double fraction[BOUNDS] = { 0 };
    int failures = 0;
    fprintf(out, "instruction sets:");
    for (int n = 0; n < n_isas; n++) fprintf(out, " %s", isas[n]);
    fprintf(out, "; first seed %" PRIu64 "\n", options->seed);
    if (!options->one || options->parts)
        failures += run_cases("parts", check_parts, options, options->one ? 1 : options->n_cases,
                              out, fraction);
    if (options->one && options->parts) return failures;
    failures += run_cases("whole", check_whole, options, options->one ? 1 : options->n_cases, out,
                          fraction);
    fprintf(out, "largest share of a bound: o %.3f, lse %.3f, d_q %.3f, d_k %.3f, d_v %.3f\n",
            fraction[BOUND_O], fraction[BOUND_LSE], fraction[BOUND_D_Q], fraction[BOUND_D_K],
            fraction[BOUND_D_V]);
    return failures;
}
