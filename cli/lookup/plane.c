/*
 * The vectors of a lookup in a plane: queries as discs, keys as triangles, lines from the first
 * query to the keys with the largest weights. Vectors of two numbers are drawn as they are, longer
 * ones by their first two principal components.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lookup/lookup.h"
#include <qkv/inspect.h>

/* With cosine, vectors have length 1 by now: this is what they were. */
static void restore(const struct lookup *l, float *q, float *k) {
    for (int64_t i = 0; i < l->table->n_rows + l->n_queries; i++) {
        const bool is_key = i < l->table->n_rows;
        const float *from = is_key ? l->k + i * l->dim : l->q + (i - l->table->n_rows) * l->dim;
        float *to = is_key ? k + i * l->dim : q + (i - l->table->n_rows) * l->dim;
        for (int64_t c = 0; c < l->dim; c++) to[c] = (float)((double)from[c] * l->lengths[i]);
    }
}

static qkv_status place(const struct lookup *l, const float *q, const float *k, double *xy,
                        double explained[2], qkv_error *error) {
    const int64_t n = l->n_queries + l->table->n_rows;
    if (l->dim == 2) {
        for (int64_t i = 0; i < 2 * n; i++)
            xy[i] = (double)(i < 2 * l->n_queries ? q[i] : k[i - 2 * l->n_queries]);
        return QKV_OK;
    }
    qkv_map_options options = qkv_map_options_init();
    qkv_map_report report = qkv_map_report_init();
    options.pca_only = 1;
    options.metric = QKV_MAP_EUCLIDEAN;
    const qkv_status status =
        qkv_inspect_map(l->session->ctx, &options, l->n_queries, l->table->n_rows, l->dim, q, k, xy,
                        NULL, NULL, &report, NULL, error);
    memcpy(explained, report.explained, 2 * sizeof *explained);
    return status;
}

static void describe(const struct lookup *l, const double explained[2], struct caption *caption) {
    lookup_source(l, caption);
    if (l->dim == 2)
        caption_add(caption, " They are drawn as they are.");
    else
        caption_add(caption,
                    " %" PRId64 " numbers each, drawn by their first two principal components, "
                    "which explain %.1f %% + %.1f %% of the variance.",
                    l->dim, 100 * explained[0], 100 * explained[1]);
    char *const shown = term_escape(l->queries[0], strlen(l->queries[0]));
    caption_add(caption, " Lines go from %.60s to its largest weights, %g and more.",
                shown ? shown : "the first query", QKV_LEAST_LINE);
    free(shown);
}

static qkv_status draw(const struct lookup *l, const double *xy, const char **labels,
                       const double explained[2], qkv_error *error) {
    int64_t to[64];
    double weights[64];
    struct caption title = { "Words in a plane" }, caption = { "" };
    for (int64_t i = 0; i < l->n_queries; i++) labels[i] = l->queries[i];
    for (int64_t j = 0; j < l->table->n_rows; j++) labels[l->n_queries + j] = l->table->keys[j];
    for (int64_t t = 0; t < l->n_top; t++) {
        to[t] = l->top_keys[t];
        weights[t] = (double)l->top_weights[t] > 1 ? 1 : (double)l->top_weights[t];
    }
    describe(l, explained, &caption);
    const qkv_point_map map = { .struct_size = sizeof map,
                                .n_queries = l->n_queries,
                                .n_keys = l->table->n_rows,
                                .xy = xy,
                                .labels = labels,
                                .n_lines = l->n_top,
                                .to = to,
                                .weights = weights,
                                .title = picture_title(&l->options->picture, title.text),
                                .caption = caption.text,
                                .theme = (qkv_theme)l->options->common.theme.value,
                                .size = l->options->picture.size.value };
    return qkv_picture_points_write(&map, l->options->out, error);
}

qkv_status lookup_plane(const struct lookup *l, qkv_error *error) {
    const size_t n = (size_t)(l->n_queries + l->table->n_rows), dim = (size_t)l->dim;
    float *const q = calloc((size_t)l->n_queries * dim + 1, sizeof *q),
                 *const k = calloc((size_t)l->table->n_rows * dim + 1, sizeof *k);
    double *const xy = calloc(2 * n + 1, sizeof *xy), explained[2] = { 0, 0 };
    const char **const labels = calloc(n + 1, sizeof *labels);
    qkv_status status = q && k && xy && labels ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK) {
        restore(l, q, k);
        status = place(l, q, k, xy, explained, error);
    }
    if (status == QKV_OK) status = draw(l, xy, labels, explained, error);
    free(q);
    free(k);
    free(xy);
    free(labels);
    return status;
}
