/*
 * A run in words and tables. See check.h.
 */
#include <inttypes.h>
#include <math.h>

#include "check/check.h"

check_cell check_pairs_of(const check_summary *summary, int column) {
    check_cell all = { 0, 0, 0, 0 };
    for (int n = 0; n < PAIRS; n++) {
        const check_cell *const cell = &summary->pairs[n][column];
        all.n_cases += cell->n_cases > 0;
        all.n_failed += cell->n_failed;
        all.numbers += cell->numbers;
        all.share = fmax(all.share, cell->share);
    }
    return all;
}

void check_print(const check_summary *summary, FILE *out) {
    fprintf(out, "instruction sets:");
    for (int n = 0; n < summary->n_isas; n++) fprintf(out, " %s", summary->isas[n]);
    fputc('\n', out);
    for (int kind = 0; kind < CHECK_KINDS; kind++)
        fprintf(out, "%-6s %d cases, %d failed\n", check_kind_names[kind], summary->n_cases[kind],
                summary->n_failed[kind]);
    for (int at = 0; at < COLUMNS; at++) {
        const check_cell all = check_pairs_of(summary, at);
        if (all.n_cases)
            fprintf(out, "  %-6s %-9s %d pairs, %" PRId64 " numbers, largest share %.3f\n",
                    check_columns[at].decode ? "decode" : "in", check_columns[at].name, all.n_cases,
                    all.numbers, all.share);
    }
    fprintf(out, "largest share of a bound:");
    for (int b = 0; b < BOUNDS; b++)
        fprintf(out, "%s %s %.3f", b ? "," : "", check_bound_names[b], summary->fraction[b]);
    fprintf(out, "\nsame bits: %" PRId64 " comparisons, %" PRId64 " mismatches\n",
            summary->compared, summary->mismatches);
    fprintf(out, "digest of the results: %016" PRIx64 "\n", summary->digest);
}

static void print_pair(const check_summary *summary, int n, FILE *out) {
    const pair p = pair_of(n);
    const char *const refusal = pair_refusal(p);
    fprintf(out, "%-10s %-10s", feature_name(p.a), p.a == p.b ? "" : feature_name(p.b));
    if (refusal) {
        fprintf(out, "  none: %s\n", refusal);
        return;
    }
    for (int at = 0; at < COLUMNS; at++) {
        const check_cell *const cell = &summary->pairs[n][at];
        if (!check_columns[at].exists) continue;
        if (cell->n_failed)
            fprintf(out, " %14s", "FAILED");
        else if (cell->n_cases)
            fprintf(out, " %8" PRId64 " %.3f", cell->numbers, cell->share);
        else
            fprintf(out, " %14s", "-");
    }
    fputc('\n', out);
}

void check_print_pairs(const check_summary *summary, FILE *out) {
    fprintf(out, "%-21s", "pair");
    for (int at = 0; at < COLUMNS; at++)
        if (check_columns[at].exists) fprintf(out, " %8s share", check_columns[at].name);
    fputc('\n', out);
    for (int n = 0; n < PAIRS; n++) print_pair(summary, n, out);
}
