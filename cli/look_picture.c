/* The pictures of `qkv look`: one head, or all of them. */
#include <inttypes.h>
#include <stdlib.h>

#include "look.h"
#include <qkv/view.h>

enum { PICTURE_LIMIT = 1 << 30 };

static const char cell_meaning[] =
    "a cell is the weight with which the row's token (query) looks at the column's token (key); "
    "rows sum to 1";

static qkv_theme theme_of(const struct look *look) {
    return look->options->common.theme.set ? (qkv_theme)look->options->common.theme.value
                                           : QKV_THEME_LIGHT;
}

static qkv_status one_head(const struct look *look, float *weights, const char *path,
                           qkv_error *error) {
    const struct choice *choice = &look->choice;
    const qkv_status status =
        qkv_run_weights(look->run, 0, choice->layer, choice->head, weights, error);
    if (status != QKV_OK) return status;
    const qkv_model_info *info = look->session->info;
    char title[256], caption[512];
    const int used = snprintf(title, sizeof title, "Layer %" PRId64 ", head %" PRId64,
                              choice->layer, choice->head);
    if (choice->key >= 0)
        snprintf(title + used, sizeof title - (size_t)used, ": %.60s looks at %.60s, %.2f",
                 look->labels[choice->query], look->labels[choice->key], (double)choice->weight);
    snprintf(caption, sizeof caption,
             "Model %s (%s), layer %" PRId64 " of %" PRId64 ", head %" PRId64 " of %" PRId64
             ", counted from 0: %s.",
             info->source, info->architecture, choice->layer, info->n_layers, choice->head,
             info->n_heads, cell_meaning);
    const qkv_heatmap map = {
        .struct_size = sizeof map,
        .n_rows = look->input->n,
        .n_cols = look->input->n,
        .weights = weights,
        .row_labels = (const char *const *)look->labels,
        .col_labels = (const char *const *)look->labels,
        .title = title,
        .caption = caption,
        .theme = theme_of(look),
    };
    return qkv_view_heatmap_png(&map, path, error);
}

static qkv_status all_heads(const struct look *look, float *weights, const char **labels,
                            const char *path, qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    const int64_t n = look->input->n;
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < info->n_layers * info->n_heads && status == QKV_OK; i++) {
        status = qkv_run_weights(look->run, 0, i / info->n_heads, i % info->n_heads,
                                 weights + i * n * n, error);
        labels[i] = look->stats[i].label;
    }
    if (status != QKV_OK) return status;
    char title[128], caption[512];
    snprintf(title, sizeof title, "%" PRId64 " layers of %" PRId64 " heads", info->n_layers,
             info->n_heads);
    snprintf(caption, sizeof caption, "Model %s (%s), layers and heads counted from 0: %s.",
             info->source, info->architecture, cell_meaning);
    const qkv_head_grid grid = {
        .struct_size = sizeof grid,
        .n_layers = info->n_layers,
        .n_heads = info->n_heads,
        .n = n,
        .weights = weights,
        .labels = labels,
        .title = title,
        .caption = caption,
        .theme = theme_of(look),
    };
    return qkv_view_grid_png(&grid, path, error);
}

qkv_status look_png(const struct look *look, const char *path, qkv_error *error) {
    const int64_t n = look->input->n;
    const int64_t n_heads =
        look->given ? 1 : look->session->info->n_layers * look->session->info->n_heads;
    const int64_t bytes = n_heads * n * n * (int64_t)sizeof(float);
    if (bytes > PICTURE_LIMIT)
        return text_error(error, QKV_ERR_LIMIT,
                          "the weights of %" PRId64 " heads take %" PRId64
                          " bytes, above the limit of %d: name one with --head",
                          n_heads, bytes, PICTURE_LIMIT);
    float *weights = malloc((size_t)bytes + 1);
    const char **labels = calloc((size_t)n_heads + 1, sizeof(*labels));
    qkv_status status;
    if (!weights || !labels)
        status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    else if (look->given)
        status = one_head(look, weights, path, error);
    else
        status = all_heads(look, weights, labels, path, error);
    free(weights);
    free(labels);
    return status;
}
