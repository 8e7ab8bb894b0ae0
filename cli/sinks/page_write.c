/*
 * Writes a page, with maps of queries and keys as `qkv map` makes them.
 *
 * t-SNE of the head that is shown first is run up to 32 times. The other heads together get about
 * as much work: a short text has a map of every head, a long one only of the shown head. Work is
 * counted, not timed, so that the same command writes the same page. Where one exact run would be
 * more, the run is by the method of Barnes and Hut. With more points than the exact method takes
 * there is a map only if --map was given.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "sinks/page.h"
#include "sinks/sinks.h"

/* ---- Maps ------------------------------------------------------------------------------------ */

enum { ITERS = 1000, NOTE_BYTES = 200 };

/* About a second on one core: pairs of points x iterations, of few points some more. */
static const double budget = 2e9;

/* Runs of each of n_heads heads: what the budget allows, 0 for none of it, at most `most`. */
static int64_t runs_of(int64_t points, int64_t n_heads, int most) {
    const double a_run = (double)points * ((double)points + 64) * ITERS;
    const double runs = budget / ((double)n_heads * a_run);
    return (int64_t)fmin(runs, most);
}

/* With too many points for the exact method, which it is then asked for, there is no map. */
static qkv_map_method method_of(const struct arg_int *map, int64_t points) {
    if (map->set) return QKV_MAP_AUTO;
    const bool is_dear = points <= QKV_MAP_MAX_EXACT_POINTS && runs_of(points, 1, 1) == 0;
    return is_dear ? QKV_MAP_BARNES_HUT : QKV_MAP_EXACT;
}

/* What is done of all heads, for one line. */
struct maps_progress {
    struct progress line;
    int64_t done, total; /* iterations; done of the heads before */
};

static void show_progress(void *user, int64_t done, int64_t total) {
    struct maps_progress *progress = user;
    (void)total;
    progress_bar(&progress->line, "maps", progress->done + done, progress->total);
}

/* The page says what the words mean. */
static void describe(const qkv_map_report *report, bool inner, bool stopped, char *note) {
    note[0] = '\0';
    text_append(note, NOTE_BYTES, "t-SNE, %s, perplexity %g", inner ? "inner product" : "cosine",
                report->perplexity);
    if (report->theta > 0) text_append(note, NOTE_BYTES, ", Barnes-Hut, theta %g", report->theta);
    text_append(note, NOTE_BYTES, "; KL %.3g", report->kl);
    if (report->n_runs > 1)
        text_append(note, NOTE_BYTES, ", least of %d runs", (int)report->n_runs);
    if (stopped) text_append(note, NOTE_BYTES, ", stopped before its end");
    if (!isnan(report->recall)) text_append(note, NOTE_BYTES, "; recall %.2f", report->recall);
    if (!isnan(report->rank_correlation))
        text_append(note, NOTE_BYTES, ", rank correlation %.2f", report->rank_correlation);
}

/* Ctrl-C ends the descent, and the best so far is the map. A head that has none says why. */
static qkv_status make_map(const struct page *page, int64_t points, int64_t n_runs,
                           struct maps_progress *progress, qkv_page_head *head, double *places,
                           char *note, qkv_error *error) {
    const struct arg_int *map = &page->sink->map;
    const bool inner = map->value == 1;
    qkv_map_options options = qkv_map_options_init();
    qkv_call_options call = qkv_call_options_init();
    qkv_map_report report = qkv_map_report_init();
    options.n_runs = n_runs;
    options.n_iters = ITERS;
    options.method = method_of(map, points);
    options.metric = inner ? QKV_MAP_INNER : QKV_MAP_COSINE;
    call.cancel = &cli_cancelled;
    call.progress = show_progress;
    call.progress_user = progress;
    const qkv_status status = qkv_inspect_map(
        page->desc.ctx, &options, points - page->desc.n, page->desc.n, page->desc.head_dim, head->q,
        head->k, places, places + 2 * points, NULL, &report, &call, error);
    progress->done += n_runs * ITERS;
    if (status == QKV_ERR_MEMORY || (map->set && status != QKV_OK && status != QKV_ERR_CANCELLED))
        return status;
    head->map_note = note;
    if (status == QKV_OK || status == QKV_ERR_CANCELLED) {
        head->map = places;
        head->pca = places + 2 * points;
        describe(&report, inner, status == QKV_ERR_CANCELLED, note);
    } else {
        snprintf(note, NOTE_BYTES,
                 "There is no map: %.110s. `--map cosine` makes one of up to %d points.",
                 error->message, QKV_MAP_MAX_POINTS);
    }
    return QKV_OK;
}

/* Notes in place of maps, which another page of the same text will have. */
static void postpone_maps(struct page *page) {
    for (int64_t i = 0; i < page->desc.n_heads; i++)
        page->heads[i].map_note = "The map of this text is not made yet.";
}

static qkv_status make_maps(struct page *page, qkv_error *error) {
    qkv_page_head *const heads = page->heads;
    const int64_t n_heads = page->desc.n_heads, n = page->desc.n,
                  points = n + (page->desc.n_queries ? page->desc.n_queries : n),
                  first_runs = (int64_t)fmax(1, (double)runs_of(points, 1, 32)),
                  other_runs = n_heads > 1 ? runs_of(points, n_heads - 1, 8) : 0,
                  n_maps = other_runs > 0 ? n_heads : 1;
    const bool quiet = page->common->quiet;
    struct maps_progress progress = { .total = (first_runs + (n_maps - 1) * other_runs) * ITERS };
    double *const places = page_room(page, n_maps * 4 * points, sizeof *places);
    char *const notes = page_room(page, n_maps, NOTE_BYTES);
    qkv_status status = places && notes ? QKV_OK : text_no_memory(error);
    progress_begin(&progress.line, quiet);
    for (int64_t i = 0; status == QKV_OK && i < n_maps && !(i > 0 && cli_cancelled); i++)
        status = make_map(page, points, i ? other_runs : first_runs, &progress, &heads[i],
                          places + i * 4 * points, notes + i * NOTE_BYTES, error);
    progress_end(&progress.line);
    for (int64_t i = n_maps; i < n_heads && !heads[0].map; i++)
        heads[i].map_note = heads[0].map_note; /* too many points for any */
    if (status == QKV_OK && cli_cancelled)
        cli_note(quiet, "qkv: stopped: maps are the best so far, or absent");
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* One line about what a page holds, of the n heads that it was given. */
static void tell(const qkv_page_result *result, int64_t n) {
    fprintf(stderr, "qkv: %" PRId64 " of %" PRId64 " heads, %.2f MB", result->n_heads, n,
            (double)result->n_bytes / 1e6);
    if (result->n_f16)
        fprintf(stderr, ", %" PRId64 " of them as f16: weights off by at most %.1e", result->n_f16,
                result->max_error);
    if (result->n_heads < n)
        fprintf(stderr, "; more than %d MB is not written: name one with --head",
                PAGE_BYTES / 1000000);
    fputc('\n', stderr);
}

/* Into a file, or where the options want it. */
static qkv_status put(struct page *page, const char *path, qkv_error *error) {
    qkv_page_result result = qkv_page_result_init();
    page->desc.heads = page->heads;
    const qkv_status status = page->sink->page
                                  ? qkv_page_make(&page->desc, page->sink->page, &result, error)
                                  : qkv_page_write(&page->desc, path, &result, error);
    if (status != QKV_OK || page->common->quiet) return status;
    tell(&result, page->desc.n_heads);
    if (*page->note) fprintf(stderr, "%s\n", page->note);
    return status;
}

qkv_status seen_page(const struct seen *seen, const char *path, qkv_error *error) {
    struct page page;
    page_begin(&page, seen);
    qkv_status status = seen->make_page(seen, &page, error);
    if (status == QKV_OK && is_first_rank()) {
        status = page_tables(&page, error);
        if (status == QKV_OK && seen->sink->no_maps)
            postpone_maps(&page);
        else if (status == QKV_OK && page.desc.n_texts == 0)
            status = make_maps(&page, error);
        if (status == QKV_OK) status = put(&page, path, error);
    }
    page_free(&page);
    return status;
}
