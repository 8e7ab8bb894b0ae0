/* Title and caption of a map, and its picture. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "map/map.h"
#include <qkv/picture.h>

const char *map_metric_name(const struct map *map) {
    static const char *const names[] = { "cosine", "cosine-plain", "euclidean", "inner" };
    return names[map->request.metric];
}

int64_t map_nearest_key(const struct map *map, int64_t query) {
    int64_t nearest = -1;
    double least = INFINITY;
    for (int64_t j = 0; j < map->n_keys; j++) {
        const double *const from = map->xy + 2 * query, *const to =
                                                            map->xy + 2 * (map->n_queries + j);
        const double apart =
            (from[0] - to[0]) * (from[0] - to[0]) + (from[1] - to[1]) * (from[1] - to[1]);
        if (!(apart < least)) continue;
        nearest = j;
        least = apart;
    }
    return nearest;
}

const char *map_point_name(const struct map *map, bool is_key) {
    if (map->text.view.which == QKV_CROSS)
        return is_key ? "key: source" : "query: read \u2192 predicts";
    if (map->text.view.which == QKV_DECODER)
        return is_key ? "key: read" : "query: read \u2192 predicts";
    return is_key ? "key" : "query";
}

void map_title(const struct map *map, struct caption *title) {
    if (map->text.session) {
        char name[HEAD_NAME];
        attention_head(map->text.session, map->text.view.which, map->choice.layer, map->choice.head,
                       name);
        caption_add(title, "%s", name);
    } else {
        caption_add(title, "%" PRId64 " queries, %" PRId64 " keys", map->n_queries, map->n_keys);
    }
    if (map->n_lines > 0)
        caption_add(title, ": %.60s looks at %.60s, %.2f", map->labels[map->query],
                    map_line_label(map, 0), map->weights[0]);
}

static void add_source(const struct map *map, struct caption *text) {
    if (!map->text.session) {
        caption_add(text, "Queries %.80s, keys %.80s", map->options->q, map->options->k);
        return;
    }
    const qkv_model_info *info = map->text.session->info;
    const struct attention_view *view = &map->text.view;
    caption_add(text,
                "Model %.80s (%s), %slayer %" PRId64 " of %" PRId64 ", head %" PRId64 " of %" PRId64
                ", counted from 0: ",
                info->source, info->architecture, attention_words(map->text.session, view->which),
                map->choice.layer, view->n_layers, map->choice.head, view->n_heads);
    if (view->which == QKV_CROSS)
        caption_add(text,
                    "queries of %" PRId64 " tokens that the decoder read (and those that it "
                    "predicts), keys of %" PRId64 " tokens of the source",
                    map->n_queries, map->n_keys);
    else
        caption_add(text, "queries and keys of %" PRId64 " tokens", map->n_queries);
    if (!map->options->image) return;
    caption_add(text, " of the image ");
    caption_add_path(text, map->options->image);
}

static void add_method(const struct map *map, struct caption *text) {
    static const char *const distances[] = {
        "D = (1 - cos)\u00b2", "D = 1 - cos", "D = |x - y|\u00b2",
        "D = |q|\u00b2 + max|k|\u00b2 - 2 q\u00b7k between query and key"
    };
    const qkv_map_report *report = &map->report;
    if (report->n_runs == 0) {
        caption_add(text, ", first two principal components%s",
                    map->stopped ? ", stopped before t-SNE" : "");
    } else {
        caption_add(text, " by t-SNE");
        if (report->method == QKV_MAP_BARNES_HUT)
            caption_add(text, " (Barnes-Hut, theta %g)", report->theta);
        caption_add(text, ", metric %s, %s, perplexity %g. KL %.4g", map_metric_name(map),
                    distances[map->request.metric], report->perplexity, report->kl);
        if (report->n_runs > 1)
            caption_add(text, ", the least of %" PRId64 " runs (median %.4g)", report->n_runs,
                        report->median_kl);
        caption_add(text, ", %" PRId64 " iterations, seed %" PRIu64 "%s", report->n_iters,
                    map->request.seed, map->stopped ? ", stopped before its end" : "");
    }
    if (map->request.center_keys || map->request.auto_balance)
        caption_add(text, "; keys centred on queries");
    if (map->request.balance > 0 || map->request.auto_balance)
        caption_add(text, "; queries \u00d7 %g, keys / %g%s", report->balance, report->balance,
                    map->request.auto_balance ? " (auto)" : "");
    caption_add(text, ". Principal components explain %.1f %% + %.1f %% of the variance.",
                100 * report->explained[0], 100 * report->explained[1]);
}

static void add_quality(const struct map *map, struct caption *text) {
    const qkv_map_report *report = &map->report;
    char of_points[40] = "", of_queries[40] = ""; /* where some stand for all */
    if (report->n_measured < map->n_queries + map->n_keys)
        snprintf(of_points, sizeof of_points, " of %" PRId64 " points", report->n_measured);
    if (report->n_measured_queries < map->n_queries)
        snprintf(of_queries, sizeof of_queries, "%" PRId64 " ", report->n_measured_queries);
    if (report->n_neighbours > 0)
        caption_add(text,
                    " Of %" PRId64 " neighbours%s: trustworthiness %.3f, %.0f %% kept (metric %s).",
                    report->n_neighbours, of_points, report->trust, 100 * report->preserved,
                    map_metric_name(map));
    if (!isnan(report->recall))
        caption_add(text, " The nearest key has the largest q\u00b7k for %.0f %% of %squeries",
                    100 * report->recall, of_queries);
    if (!isnan(report->rank_correlation))
        caption_add(text, "; rank correlation of distance and q\u00b7k %.2f",
                    report->rank_correlation);
    if (!isnan(report->recall)) caption_add(text, ".");
    if (map->text.view.causal)
        caption_add(text, " Keys that a query does not see count here, too.");
}

static void add_lines(const struct map *map, struct caption *text) {
    if (map->query < 0) return;
    const int64_t nearest = map_nearest_key(map, map->query);
    int64_t n_drawn = 0; /* they fall; of smaller ones pictures have no line */
    while (n_drawn < map->n_lines && map->weights[n_drawn] >= QKV_LEAST_LINE) n_drawn++;
    if (n_drawn > 0) {
        char many[40] = " A line: the key";
        if (n_drawn > 1) snprintf(many, sizeof many, " Lines: the %" PRId64 " keys", n_drawn);
        caption_add(text, "%s that %.60s looks at most,", many, map->labels[map->query]);
        for (int64_t i = 0; i < n_drawn && i < 5; i++)
            caption_add(text, "%s %.40s %.2f", i ? "," : "", map_line_label(map, i),
                        map->weights[i]);
        caption_add(text, "%s.", n_drawn > 5 ? ", ..." : "");
    }
    if (nearest < 0) return;
    caption_add(text, " The key nearest to %.60s is %.60s (%" PRId64 ")", map->labels[map->query],
                map->labels[map->n_queries + nearest], nearest);
    if (map->report.n_runs > 1)
        caption_add(text, ", in %d of %" PRId64 " runs", map->agree[map->query],
                    map->report.n_runs);
    caption_add(text, ".");
}

void map_caption(const struct map *map, struct caption *caption) {
    add_source(map, caption);
    add_method(map, caption);
    add_quality(map, caption);
    add_lines(map, caption);
    caption_add(caption,
                " Nearness means something, directions do not. Weights show mixing, not reasons.");
}

qkv_status map_picture(const struct map *map, const char *path, qkv_error *error) {
    struct caption title = { "" }, caption = { "" };
    map_title(map, &title);
    map_caption(map, &caption);
    caption_add_texts(&caption, map->said);
    const qkv_point_map picture = {
        .struct_size = sizeof picture,
        .n_queries = map->n_queries,
        .n_keys = map->n_keys,
        .xy = map->xy,
        .labels = (const char *const *)map->labels,
        .n_lines = map->n_lines,
        .from = map->query,
        .to = map->keys,
        .weights = map->weights,
        .title = picture_title(&map->options->picture, title.text),
        .caption = caption.text,
        .theme = (qkv_theme)map->options->common.theme.value,
        .query_name = map_point_name(map, false),
        .key_name = map_point_name(map, true),
        .size = map->options->picture.size.value,
    };
    return qkv_picture_points_write(&picture, path, error);
}
