/** Charts of one head: numbers of its queries, of its keys, and of its diagonals. */
#include <math.h>

#include "core/options.h"
#include "view/chart.h"
#include "view/frame.h"

enum { MOST = 1 << 19 };

/* The caller's caption, then ours. NULL without memory. */
static char *add_definition(const char *caption, const char *definition) {
    const size_t bytes = (caption ? strlen(caption) : 0) + strlen(definition) + 2;
    char *const both = qkvi_malloc_array(bytes, 1);
    if (both)
        snprintf(both, bytes, "%s%s%s", caption ? caption : "", caption && *caption ? "\n" : "",
                 definition);
    return both;
}

static qkv_status read_profile(const qkv_head_profile *given, qkv_head_profile *profile,
                               qkv_error *error) {
    if (!given) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "profile is NULL");
    *profile = (qkv_head_profile){ 0 };
    QKV_TRY(qkvi_options_read(profile, sizeof *profile, given, "qkv_head_profile", error));
    if (profile->n_queries >= 1 && profile->n_queries <= MOST && profile->n_keys >= 1 &&
        profile->n_keys <= MOST)
        return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE,
                          "n_queries = %lld and n_keys = %lld are not in 1 ... %d",
                          (long long)profile->n_queries, (long long)profile->n_keys, MOST);
}

static qkv_status missing(const char *name, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", name);
}

/* chart with the profile's words. */
static qkv_status draw(const qkv_head_profile *profile, qkv_chart *chart, const char *definition,
                       const char *path, qkv_error *error) {
    char *const caption = add_definition(profile->caption, definition);
    if (!caption) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the caption");
    chart->struct_size = sizeof *chart;
    chart->panel_bytes = sizeof(qkv_panel);
    chart->series_bytes = sizeof(qkv_series);
    chart->title = profile->title;
    chart->caption = caption;
    chart->theme = profile->theme;
    const qkv_status status = qkv_picture_chart_write(chart, path, error);
    free(caption);
    return status;
}

qkv_status qkv_picture_queries_write(const qkv_head_profile *given, const char *path,
                                     qkv_error *error) {
    qkv_head_profile profile;
    QKV_TRY(read_profile(given, &profile, error));
    if (!profile.entropy || !profile.largest)
        return missing(profile.entropy ? "largest" : "entropy", error);
    const qkv_series entropy = { "entropy", profile.entropy, QKV_SERIES_LINE },
                     largest = { "largest weight", profile.largest, QKV_SERIES_AREA };
    const qkv_panel panels[] = { { "entropy, nats", 0, 1, 1, &entropy },
                                 { "largest weight", 0, 1, 1, &largest } };
    qkv_chart chart = { .n = profile.n_queries,
                        .labels = profile.queries,
                        .x_label = "query",
                        .n_panels = 2,
                        .panels = panels };
    char words[200], most[40];
    qkvi_number(most, sizeof most, log((double)profile.n_keys), 2);
    snprintf(
        words, sizeof words,
        "Of each query: the entropy of its weights, in nats, 0 for one key and ln %lld = %s for "
        "%lld keys alike; and the largest of them.",
        (long long)profile.n_keys, most, (long long)profile.n_keys);
    return draw(&profile, &chart, words, path, error);
}

qkv_status qkv_picture_received_write(const qkv_head_profile *given, const char *path,
                                      qkv_error *error) {
    qkv_head_profile profile;
    QKV_TRY(read_profile(given, &profile, error));
    if (!profile.received) return missing("received", error);
    const qkv_series received = { "attention received", profile.received, QKV_SERIES_BARS };
    const qkv_panel panel = { "attention received", 0, 1, 1, &received };
    qkv_chart chart = { .n = profile.n_keys,
                        .labels = profile.keys,
                        .x_label = "key",
                        .n_panels = 1,
                        .panels = &panel };
    char words[240];
    snprintf(words, sizeof words,
             "Of each key: its weights, summed over %lld queries, each of which gives 1 in all.%s",
             (long long)profile.n_queries,
             profile.causal
                 ? " Queries see only what is before them, so early keys are seen by more."
                 : "");
    return draw(&profile, &chart, words, path, error);
}

/*
 * Distances that no query sees have a mean of 0, such as half of them under a causal mask. A
 * picture, whose axis has no place for 0, leaves them out at both ends, as long as something is
 * left; a table has all.
 */
static void crop(const double *mean, const char *path, int64_t *first, int64_t *end) {
    const int64_t n = *end;
    while (*first < *end && mean[*first] == 0) ++*first;
    while (*end > *first && mean[*end - 1] == 0) --*end;
    if (*first < *end && !qkvi_chart_is_table(path)) return;
    *first = 0;
    *end = n;
}

qkv_status qkv_picture_offsets_write(const qkv_head_profile *given, const char *path,
                                     qkv_error *error) {
    qkv_head_profile profile;
    QKV_TRY(read_profile(given, &profile, error));
    if (!profile.by_offset) return missing("by_offset", error);
    const int64_t n = profile.n_queries + profile.n_keys - 1;
    int64_t first = 0, end = n;
    crop(profile.by_offset, path, &first, &end);
    double *const offsets = qkvi_malloc_array((size_t)n, sizeof *offsets);
    if (!offsets)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld offsets", (long long)n);
    for (int64_t i = 0; i < n; i++) offsets[i] = (double)(i - (profile.n_queries - 1));
    const qkv_series mean = { "mean weight", profile.by_offset + first, QKV_SERIES_LINE };
    const qkv_panel panel = { "mean weight", 1, 0, 1, &mean };
    qkv_chart chart = { .n = end - first,
                        .x = offsets + first,
                        .x_label = qkvi_chart_is_table(path)
                                       ? "offset"
                                       : "key \xE2\x88\x92 query, in positions",
                        .n_panels = 1,
                        .panels = &panel };
    char words[320];
    const int used = snprintf(
        words, sizeof words,
        "The diagonal profile: the mean weight of the key at that distance from its query, over "
        "the queries that may see one; keys before their queries on the left.");
    if (end - first < n)
        snprintf(words + used, sizeof words - (size_t)used,
                 " Shown from %.0f to %.0f; at all other distances it is 0.", offsets[first],
                 offsets[end - 1]);
    const qkv_status status = draw(&profile, &chart, words, path, error);
    free(offsets);
    return status;
}
