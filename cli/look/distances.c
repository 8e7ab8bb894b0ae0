/* Distances of heads: see distances.h. */
#include "look/distances.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/head_numbers.h"
#include <qkv/patterns.h>

const char distances_what[] =
    "JS = Jensen-Shannon divergence of the rows of weights of the two heads, mean over queries, in "
    "nats: 0 if both look alike, at most ln 2 = 0.69.";

/* ---- Comparing ------------------------------------------------------------------------------- */

static qkv_status compare_head(qkv_ctx *ctx, qkv_heads *const heads[2], int64_t index, double *rows,
                               struct distance *d, qkv_error *error) {
    const int64_t n_queries = qkv_heads_get_info(heads[0])->n_queries;
    qkv_head_view views[2] = { qkv_head_view_init(), qkv_head_view_init() };
    qkv_divergence divergence = qkv_divergence_init();
    qkv_status status = QKV_OK;
    for (int m = 0; m < 2 && status == QKV_OK; m++)
        status = qkv_heads_view(heads[m], index, &views[m], error);
    if (status == QKV_OK)
        status =
            qkv_inspect_divergence(ctx, &views[0], &views[1], 0, rows, &divergence, NULL, error);
    if (status != QKV_OK) return status;
    *d = (struct distance){ .mean = divergence.n_rows ? divergence.mean : NAN,
                            .n_rows = divergence.n_rows,
                            .query = -1 };
    for (int64_t i = 0; i < n_queries; i++)
        if (rows[i] >= 0 && (d->query < 0 || rows[i] > d->largest)) {
            d->query = i;
            d->largest = rows[i];
        }
    for (int m = 0; m < 2 && status == QKV_OK && d->query >= 0; m++)
        status = qkv_heads_look(heads[m], index, d->query, &d->keys[m], &d->weights[m], error);
    return status;
}

qkv_status distances_check(const struct session *const of[2], const int64_t n_layers[2],
                           const int64_t n_heads[2], qkv_error *error) {
    if (n_layers[0] == n_layers[1] && n_heads[0] == n_heads[1]) return QKV_OK;
    return text_error(error, QKV_ERR_SHAPE,
                      "--against: %s has %" PRId64 " layers of %" PRId64 " heads, and %s %" PRId64
                      " of %" PRId64 ": heads are compared in their places",
                      of[1]->info->source, n_layers[1], n_heads[1], of[0]->info->source,
                      n_layers[0], n_heads[0]);
}

qkv_status distances_make(qkv_ctx *ctx, qkv_heads *const heads[2], const struct arg_int *top,
                          struct distances *d, qkv_error *error) {
    const qkv_heads_info *const info = qkv_heads_get_info(heads[0]);
    *d = (struct distances){ .n_layers = info->n_layers,
                             .n_heads = info->n_heads,
                             .n_all = info->n_layers * info->n_heads };
    double *const rows = calloc((size_t)info->n_queries + 1, sizeof *rows);
    d->list = calloc((size_t)d->n_all + 1, sizeof *d->list);
    d->order = calloc((size_t)d->n_all + 1, sizeof *d->order);
    qkv_status status = rows && d->list && d->order ? QKV_OK : text_no_memory(error);
    for (int64_t i = 0; i < d->n_all && status == QKV_OK; i++) {
        status = compare_head(ctx, heads, i, rows, &d->list[i], error);
        d->order[i] = (struct sort_key){ -d->list[i].mean, i };
    }
    free(rows);
    if (status != QKV_OK) return status;
    sort_keys(d->order, d->n_all);
    d->n_shown = top->set && top->value < d->n_all ? top->value : d->n_all;
    return QKV_OK;
}

void distances_free(struct distances *d) {
    free(d->list);
    free(d->order);
}

/* ---- The terminal ---------------------------------------------------------------------------- */

static void print_head(const struct distances *d, struct term *term, int64_t index,
                       distances_label *label, const void *of) {
    const struct distance *const one = &d->list[index];
    struct caption line = { "" };
    caption_add(&line, "%" PRId64 ".%" PRId64, index / d->n_heads, index % d->n_heads);
    term_put(term, line.text, 7, false);
    line.text[0] = 0;
    caption_add(&line, isnan(one->mean) ? "-" : "%.4f", one->mean);
    term_weight_bg(term, one->mean / 0.69314718);
    term_readable_on(term, one->mean / 0.69314718);
    term_put(term, line.text, 7, true);
    term_reset(term);
    if (one->query >= 0) {
        char *const query = label(of, false, one->query);
        fprintf(term->out, "  %.4f  ", one->largest);
        term_put(term, query ? query : "", 14, false);
        for (int m = 0; m < 2; m++) {
            char *const key = label(of, true, one->keys[m]);
            fprintf(term->out, "  %.2f ", (double)one->weights[m]);
            term_put(term, key ? key : "", 14, false);
            free(key);
        }
        free(query);
    }
    term_newline(term);
}

void distances_print(const struct distances *d, struct term *term, distances_label *label,
                     const void *of) {
    struct caption line = { "" };
    fprintf(term->out, "%-7s%7s  %-6s  %-14s  %-19s  %s\n", "head", "JS", "most", "at query",
            "A looks at", "B looks at");
    for (int64_t i = 0; i < d->n_shown; i++) print_head(d, term, d->order[i].index, label, of);
    term_newline(term);
    caption_add(&line,
                "%s most, at query = the query with the largest divergence, and the key with "
                "its largest weight in each of both.",
                distances_what);
    term_wrap(term, line.text);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *looks_json(const struct distance *one, int m, distances_token *token,
                          const void *of) {
    return json_set(NULL, "key:i token:o weight:n", one->keys[m], token(of, one->keys[m]),
                    (double)one->weights[m]);
}

json_t *distances_json(const struct distances *d, distances_token *token, const void *of) {
    json_t *const heads = json_array();
    for (int64_t i = 0; i < d->n_shown; i++) {
        const int64_t index = d->order[i].index;
        const struct distance *const one = &d->list[index];
        json_t *const row = json_set(NULL, "layer:i head:i js:n n_rows:i", index / d->n_heads,
                                     index % d->n_heads, one->mean, one->n_rows);
        if (one->query >= 0)
            json_set(row, "query:i largest:n a:o b:o", one->query, one->largest,
                     looks_json(one, 0, token, of), looks_json(one, 1, token, of));
        json_array_append_new(heads, row);
    }
    return heads;
}

/* ---- The picture ----------------------------------------------------------------------------- */

qkv_status distances_picture(const struct distances *d, const struct look_options *options,
                             const char *title, const char *caption, const char *path,
                             qkv_error *error) {
    float *const cells = calloc((size_t)d->n_all + 1, sizeof *cells);
    for (int64_t i = 0; cells && i < d->n_all; i++) cells[i] = (float)d->list[i].mean;
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .title = title,
                              .caption = caption,
                              .theme = (qkv_theme)options->common.theme.value,
                              .quantity = "divergence" };
    const qkv_status status =
        heads_picture(&options->sink.picture, map, d->n_layers, d->n_heads, cells, path, error);
    free(cells);
    return status;
}
