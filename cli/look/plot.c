/*
 * --plot: charts of one head, position by position (qkv_heads_position). With --slide they are
 * those of the mean weights.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "look/look.h"

static const struct plot {
    const char *title;
    qkv_status (*write)(const qkv_head_profile *profile, const char *path, qkv_error *error);
} plots[] = {
    [PLOT_QUERIES] = { "entropy and largest weight of each query", qkv_view_queries_write },
    [PLOT_RECEIVED] = { "attention that each key receives", qkv_view_received_write },
    [PLOT_OFFSETS] = { "mean weight by distance", qkv_view_offsets_write },
};

/* Where the numbers are from, and queries that take no part. */
static void make_caption(const struct look *look, enum plot_kind plot, struct caption *caption) {
    const int64_t chosen = look_chosen(look),
                  n_empty = qkv_heads_empty_rows(look->text.heads, chosen),
                  n_nan = qkv_heads_nan_rows(look->text.heads, chosen);
    const char *fate = plot == PLOT_QUERIES ? "Gaps" : "Left out";
    look_source(look, true, caption);
    if (look->windows && plot == PLOT_QUERIES)
        caption_add(caption, " Entropies are those of the means.");
    if (n_empty > 0)
        caption_add(caption, " %s: queries that see no key (%" PRId64 ").", fate, n_empty);
    if (n_nan > 0)
        caption_add(caption, " %s: queries whose weights are no numbers (%" PRId64 ").", fate,
                    n_nan);
}

static qkv_status draw(const struct look *look, double *numbers, const char *path,
                       qkv_error *error) {
    const enum plot_kind plot = (enum plot_kind)look->options->plot.value;
    const bool numbered = look->arrays && !look->arrays->keys.tokens;
    struct caption title = { "" }, caption = { "" };
    char name[HEAD_NAME];
    qkv_heads_profile made = qkv_heads_profile_init();
    if (plot == PLOT_QUERIES) made.entropy = numbers;
    if (plot == PLOT_QUERIES) made.largest = numbers + look->n_rows;
    if (plot == PLOT_RECEIVED) made.received = numbers;
    if (plot == PLOT_OFFSETS) made.by_offset = numbers;
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cli_cancelled;
    qkv_status status =
        qkv_heads_position(look->text.heads, look_chosen(look), &made, &call, error);
    look_head_name(look, name);
    caption_add(&title, "%s: %s", name, plots[plot].title);
    make_caption(look, plot, &caption);
    if (!look->windows) caption_add_texts(&caption, look->said);
    const qkv_head_profile profile = { .struct_size = sizeof profile,
                                       .n_queries = look->n_rows,
                                       .n_keys = look->n_cols,
                                       .entropy = made.entropy,
                                       .largest = made.largest,
                                       .received = made.received,
                                       .by_offset = made.by_offset,
                                       .queries = look->arrays && !look->options->q_tokens &&
                                                          (numbered || !look->arrays->self)
                                                      ? NULL
                                                      : (const char *const *)look->rows,
                                       .keys = numbered ? NULL : (const char *const *)look->cols,
                                       .title = picture_title(&look->options->picture, title.text),
                                       .caption = caption.text,
                                       .theme = (qkv_theme)look->options->common.theme.value,
                                       .causal = look_info(look)->causal };
    if (status == QKV_OK && look_writes()) status = plots[plot].write(&profile, path, error);
    return status;
}

qkv_status look_plot(const struct look *look, const char *path, qkv_error *error) {
    double *numbers = malloc((size_t)(2 * (look->n_rows + look->n_cols)) * sizeof *numbers + 1);
    const qkv_status status = numbers ? draw(look, numbers, path, error) : text_no_memory(error);
    free(numbers);
    return status;
}
