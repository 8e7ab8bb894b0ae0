/* The pictures of `qkv look`: one head, or all of them. */
#include <inttypes.h>
#include <stdlib.h>

#include "look.h"
#include <qkv/view.h>

static const char cell_meaning[] =
    "a cell is the weight with which the row's token (query) looks at the column's token (key); "
    "rows sum to 1";

qkv_theme look_theme(const struct look_options *options) {
    return options->common.theme.set ? (qkv_theme)options->common.theme.value : QKV_THEME_LIGHT;
}

void look_begin_caption(const struct look *look, char caption[LOOK_CAPTION]) {
    caption[0] = '\0';
    if (look->what_if.any)
        text_append(caption, LOOK_CAPTION, "MODIFIED: not what the model computed (%s). ",
                    look->what_if.words);
    if (look->slide) slide_words(look->slide, caption, LOOK_CAPTION);
}

static qkv_status one_head(const struct look *look, const float *weights, const char *path,
                           qkv_error *error) {
    const struct choice *choice = &look->choice;
    const qkv_model_info *info = look->session->info;
    char title[256], caption[LOOK_CAPTION];
    const int used = snprintf(title, sizeof title, "Layer %" PRId64 ", head %" PRId64,
                              choice->layer, choice->head);
    if (choice->key >= 0)
        snprintf(title + used, sizeof title - (size_t)used, ": %.60s looks at %.60s, %.2f",
                 look->labels[choice->query], look->labels[choice->key], (double)choice->weight);
    look_begin_caption(look, caption);
    text_append(caption, sizeof caption,
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
        .theme = look_theme(look->options),
    };
    return qkv_view_heatmap_write(&map, path, error);
}

static qkv_status all_heads(const struct look *look, const float *weights, const char *path,
                            qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    const int64_t n_heads = info->n_layers * info->n_heads;
    const char **labels = calloc((size_t)n_heads + 1, sizeof(*labels));
    if (!labels) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t i = 0; i < n_heads; i++) labels[i] = look->stats[i].label;
    char title[128], caption[LOOK_CAPTION];
    snprintf(title, sizeof title, "%" PRId64 " layers of %" PRId64 " heads", info->n_layers,
             info->n_heads);
    look_begin_caption(look, caption);
    text_append(caption, sizeof caption, "Model %s (%s), layers and heads counted from 0: %s.",
                info->source, info->architecture, cell_meaning);
    const qkv_head_grid grid = {
        .struct_size = sizeof grid,
        .n_layers = info->n_layers,
        .n_heads = info->n_heads,
        .n = look->input->n,
        .weights = weights,
        .labels = labels,
        .title = title,
        .caption = caption,
        .theme = look_theme(look->options),
    };
    const qkv_status status = qkv_view_grid_write(&grid, path, error);
    free(labels);
    return status;
}

qkv_status look_picture(const struct look *look, const char *path, qkv_error *error) {
    float *weights;
    const qkv_status status = look_weights(look, WEIGHTS_LIMIT, "", &weights, error);
    if (status != QKV_OK) return status;
    const qkv_status written =
        look->given ? one_head(look, weights, path, error) : all_heads(look, weights, path, error);
    free(weights);
    return written;
}
