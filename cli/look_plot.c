/*
 * --plot: charts of one head of a text, from its weights p, [n][n], which are recomputed from queries, keys
 * and log-sum-exp. With --slide p are the means over windows, and the numbers are those of the means.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "look.h"
#include <qkv/view.h>

const char *plot_title(enum plot_kind plot) {
    static const char *const titles[] = { "entropy and largest weight of each query",
                                          "attention that each key receives",
                                          "mean weight by distance" };
    return titles[plot];
}

qkv_status plot_write(enum plot_kind plot, const qkv_head_profile *profile, const char *path,
                      qkv_error *error) {
    switch (plot) {
    case PLOT_QUERIES: return qkv_view_queries_write(profile, path, error);
    case PLOT_RECEIVED: return qkv_view_received_write(profile, path, error);
    case PLOT_OFFSETS: break;
    }
    return qkv_view_offsets_write(profile, path, error);
}

static void make_caption(const struct look *look, enum plot_kind plot, char caption[LOOK_CAPTION]) {
    const qkv_model_info *info = look->session->info;
    look_begin_caption(look, caption);
    if (look->slide && plot == PLOT_QUERIES)
        text_append(caption, LOOK_CAPTION, "Entropies are those of the means. ");
    text_append(caption, LOOK_CAPTION,
                "Model %s (%s), %slayer %" PRId64 " of %" PRId64 ", head %" PRId64 " of %" PRId64
                ", counted from 0.",
                info->source, info->architecture, look_attention(look), look->choice.layer,
                look->view.n_layers, look->choice.head, look->view.n_heads);
}

static qkv_status draw(const struct look *look, const float *weights, double *numbers,
                       const char *path, qkv_error *error) {
    const enum plot_kind plot = (enum plot_kind)look->options->plot.value;
    const int64_t n = look->n_rows, m = look->n_cols;
    char title[160], caption[LOOK_CAPTION], name[HEAD_NAME];
    double *entropy = plot == PLOT_QUERIES ? numbers : NULL,
           *received = plot == PLOT_RECEIVED ? numbers : NULL,
           *by_offset = plot == PLOT_OFFSETS ? numbers : NULL;
    double *largest = entropy ? entropy + n : NULL;
    qkv_status status =
        qkv_inspect_profile(weights, n, m, entropy, largest, received, by_offset, error);
    look_head_name(look, name);
    snprintf(title, sizeof title, "%s: %s", name, plot_title(plot));
    make_caption(look, plot, caption);
    const qkv_head_profile profile = { .struct_size = sizeof profile,
                                       .n_queries = n,
                                       .n_keys = m,
                                       .entropy = entropy,
                                       .largest = largest,
                                       .received = received,
                                       .by_offset = by_offset,
                                       .queries = (const char *const *)look->rows,
                                       .keys = (const char *const *)look->cols,
                                       .title = title,
                                       .caption = caption,
                                       .theme = look_theme(look->options),
                                       .causal = look->causal };
    if (status == QKV_OK) status = plot_write(plot, &profile, path, error);
    return status;
}

qkv_status look_plot(const struct look *look, const char *path, qkv_error *error) {
    struct look one = *look;
    float *weights;
    one.given = true; /* the chosen head is as good as a named one */
    qkv_status status = look_weights(&one, WEIGHTS_LIMIT, "", &weights, error);
    if (status != QKV_OK) return status;
    double *numbers = malloc((size_t)(2 * (look->n_rows + look->n_cols)) * sizeof *numbers + 1);
    status = numbers ? draw(look, weights, numbers, path, error)
                     : text_error(error, QKV_ERR_MEMORY, "out of memory");
    free(numbers);
    free(weights);
    return status;
}
