/*
 * --plot of arrays: charts of one head at any length, in memory of a few numbers a query and a key. What
 * queries do is known from the statistics of rows; what keys receive and the diagonals are one more pass.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "dump.h"

enum { MOST = 1 << 19 }; /* queries, and keys, of a chart (qkv/view.h) */

int dump_plot_check(const struct dump *dump) {
    if (!dump->options->plot.set || (dump->n_queries <= MOST && dump->n_keys <= MOST))
        return EXIT_OK;
    return cli_fail("--plot: %" PRId64 " queries and %" PRId64
                    " keys are more than the %d that a chart has room for; FILE.json has means "
                    "over all",
                    dump->n_queries, dump->n_keys, MOST);
}

/* Points of a chart. */
static int64_t count(const struct dump *dump, enum plot_kind plot) {
    switch (plot) {
    case PLOT_QUERIES: return dump->n_queries;
    case PLOT_RECEIVED: return dump->n_keys;
    case PLOT_OFFSETS: break;
    }
    return dump->n_queries + dump->n_keys - 1;
}

/* ---- Numbers ------------------------------------------------------------------------------------- */

/* A query that sees no key has no entropy: a gap, not the 0 of one that looks at a single key. */
static void take_rows(const struct dump *dump, double *entropy, double *largest) {
    const struct dump_head *head = &dump->heads[dump->chosen];
    for (int64_t i = 0; i < dump->n_queries; i++) {
        const bool empty = head->lse[i] == -INFINITY;
        entropy[i] = empty ? NAN : (double)head->entropy[i];
        largest[i] = empty ? NAN : (double)head->largest[i];
    }
}

/*
 * Diagonals come by delta = i + q_offset - j, from delta = q_offset - (n_keys - 1) on, and a chart wants
 * d = j - i ascending: the same ones from the other end.
 */
static qkv_status take_columns(const struct dump *dump, enum plot_kind plot, double *numbers,
                               qkv_error *error) {
    const int64_t n = count(dump, plot);
    const bool received = plot == PLOT_RECEIVED;
    float *sums = malloc((size_t)n * sizeof *sums);
    if (!sums) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    const qkv_status status =
        dump_columns(dump, dump->chosen, received ? sums : NULL, received ? NULL : sums, error);
    for (int64_t i = 0; status == QKV_OK && i < n; i++)
        numbers[i] = (double)sums[received ? i : n - 1 - i];
    free(sums);
    return status;
}

/* ---- Words --------------------------------------------------------------------------------------- */

/* Arrays, and queries that take no part. */
static void make_caption(const struct dump *dump, enum plot_kind plot, char *caption) {
    const struct dump_head *head = &dump->heads[dump->chosen];
    const char *fate = plot == PLOT_QUERIES ? "Gaps" : "Left out";
    dump_describe(dump, caption);
    if (head->n_empty > 0)
        text_append(caption, DUMP_CAPTION, " %s: queries that see no key (%" PRId64 ").", fate,
                    head->n_empty);
    if (head->n_nan > 0)
        text_append(caption, DUMP_CAPTION,
                    " %s: queries whose weights are no numbers (%" PRId64 ").", fate, head->n_nan);
}

qkv_status dump_plot(struct dump *dump, const char *path, qkv_error *error) {
    const enum plot_kind plot = (enum plot_kind)dump->options->plot.value;
    const char *const *tokens = dump->tokens ? (const char *const *)dump->labels : NULL;
    const int64_t n = count(dump, plot);
    char title[DUMP_TITLE], caption[DUMP_CAPTION], name[80];
    double *numbers = malloc((size_t)n * 2 * sizeof *numbers);
    if (!numbers) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    dump_head_name(dump, dump->chosen, true, name);
    snprintf(title, sizeof title, "%s: %s", name, plot_title(plot));
    make_caption(dump, plot, caption);
    const qkv_head_profile profile = { .struct_size = sizeof profile,
                                       .n_queries = dump->n_queries,
                                       .n_keys = dump->n_keys,
                                       .entropy = numbers,
                                       .largest = numbers + n,
                                       .received = numbers,
                                       .by_offset = numbers,
                                       .queries = dump->self ? tokens
                                                  : dump->q_tokens
                                                      ? (const char *const *)dump->q_labels
                                                      : NULL,
                                       .keys = tokens,
                                       .title = title,
                                       .caption = caption,
                                       .theme = look_theme(dump->options),
                                       .causal = dump->causal };
    qkv_status status = QKV_OK;
    if (plot == PLOT_QUERIES)
        take_rows(dump, numbers, numbers + n);
    else
        status = take_columns(dump, plot, numbers, error);
    if (status == QKV_OK) status = plot_write(plot, &profile, path, error);
    free(numbers);
    return status;
}
