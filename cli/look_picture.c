/* The pictures of `qkv look`: one head, or all of them. */
#include <inttypes.h>
#include <stdlib.h>

#include "look.h"
#include <qkv/view.h>

/* What a cell is, and where there is none. */
static const char *cell_meaning(const struct look *look) {
    if (look->pair.next && look->causal)
        return "a row is a token that the decoder read and the one that it predicts, and a cell "
               "the "
               "weight with which it (query) looks at the column's token (key); tokens after a "
               "query "
               "are hidden from it, without a cell; rows sum to 1";
    if (look->pair.next)
        return "a row is a token that the decoder read and the one that it predicts, and a cell "
               "the "
               "weight with which it (query) looks at the column's token of the source (key); rows "
               "sum to 1";
    if (look->causal)
        return "a cell is the weight with which the row's token (query) looks at the column's "
               "token "
               "(key); tokens after a query are hidden from it, without a cell; rows sum to 1";
    return "a cell is the weight with which the row's token (query) looks at the column's token "
           "(key); rows sum to 1";
}

/* [n_rows][n_cols] 1 for keys that are not seen; NULL: all are. */
static qkv_status make_hidden(const struct look *look, uint8_t **hidden, qkv_error *error) {
    const int64_t n = look->n_rows, m = look->n_cols;
    *hidden = NULL;
    if (!look->causal && !look->what_if.dropped) return QKV_OK;
    *hidden = malloc((size_t)(n * m) + 1);
    if (!*hidden) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t i = 0; i < n * m; i++) (*hidden)[i] = !look_sees(look, i / m, i % m);
    return QKV_OK;
}

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

static qkv_status one_head(const struct look *look, const float *weights, const uint8_t *hidden,
                           const char *path, qkv_error *error) {
    const struct choice *choice = &look->choice;
    const qkv_model_info *info = look->session->info;
    char title[256], caption[LOOK_CAPTION], name[HEAD_NAME];
    const struct attention_view *view = &look->view;
    look_head_name(look, name);
    const int used = snprintf(title, sizeof title, "%s", name);
    if (choice->key >= 0)
        snprintf(title + used, sizeof title - (size_t)used, ": %.60s looks at %.60s, %.2f",
                 look->rows[choice->query], look->cols[choice->key], (double)choice->weight);
    look_begin_caption(look, caption);
    text_append(caption, sizeof caption,
                "Model %s (%s), %slayer %" PRId64 " of %" PRId64 ", head %" PRId64 " of %" PRId64
                ", counted from 0: %s.",
                info->source, info->architecture, look_attention(look), choice->layer,
                view->n_layers, choice->head, view->n_heads, cell_meaning(look));
    const qkv_heatmap map = {
        .struct_size = sizeof map,
        .n_rows = look->n_rows,
        .n_cols = look->n_cols,
        .weights = weights,
        .hidden = hidden,
        .row_labels = (const char *const *)look->rows,
        .col_labels = (const char *const *)look->cols,
        .row_axis = look->pair.next ? "read \u2192 predicts" : NULL,
        .col_axis = view->which == QKV_CROSS ? "source" : NULL,
        .title = title,
        .caption = caption,
        .theme = look_theme(look->options),
    };
    return qkv_view_heatmap_write(&map, path, error);
}

static qkv_status all_heads(const struct look *look, const float *weights, const uint8_t *hidden,
                            const char *path, qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    const struct attention_view *view = &look->view;
    const int64_t n_heads = look_n_heads(look);
    const char **labels = calloc((size_t)n_heads + 1, sizeof(*labels));
    if (!labels) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t i = 0; i < n_heads; i++) labels[i] = look->stats[i].label;
    char title[128], caption[LOOK_CAPTION];
    snprintf(title, sizeof title, "%" PRId64 " layer%s of %" PRId64 " heads%s", view->n_layers,
             view->n_layers == 1 ? "" : "s", view->n_heads,
             attention_heads(look->session, view->which));
    look_begin_caption(look, caption);
    text_append(caption, sizeof caption, "Model %s (%s), %slayers and heads counted from 0: %s.",
                info->source, info->architecture, look_attention(look), cell_meaning(look));
    const qkv_head_grid grid = {
        .struct_size = sizeof grid,
        .n_layers = view->n_layers,
        .n_heads = view->n_heads,
        .n = look->n_cols,
        .n_queries = look->n_rows,
        .weights = weights,
        .hidden = hidden,
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
    uint8_t *hidden;
    qkv_status status = look_weights(look, WEIGHTS_LIMIT, "", &weights, error);
    if (status != QKV_OK) return status;
    status = make_hidden(look, &hidden, error);
    if (status == QKV_OK)
        status = look->given ? one_head(look, weights, hidden, path, error)
                             : all_heads(look, weights, hidden, path, error);
    free(hidden);
    free(weights);
    return status;
}
