/* --plot: charts of one head, position by position (qkv_heads_position). */
#include <inttypes.h>
#include <stdlib.h>

#include "sinks/sinks.h"

static const struct plot {
    const char *title;
    qkv_status (*write)(const qkv_head_profile *profile, const char *path, qkv_error *error);
} plots[] = {
    [PLOT_QUERIES] = { "entropy and largest weight of each query", qkv_view_queries_write },
    [PLOT_RECEIVED] = { "attention that each key receives", qkv_view_received_write },
    [PLOT_OFFSETS] = { "mean weight by distance", qkv_view_offsets_write },
};

/* Where the numbers are from, and queries that take no part. */
static void make_caption(const struct seen *seen, enum plot_kind plot, struct caption *caption) {
    const int64_t n_empty = qkv_heads_empty_rows(seen->heads, seen->head),
                  n_nan = qkv_heads_nan_rows(seen->heads, seen->head);
    const char *fate = plot == PLOT_QUERIES ? "Gaps" : "Left out";
    caption_add(caption, "%s", seen->about[1].text);
    if (seen->is_mean && plot == PLOT_QUERIES)
        caption_add(caption, " Entropies are those of the means.");
    if (n_empty > 0)
        caption_add(caption, " %s: queries that see no key (%" PRId64 ").", fate, n_empty);
    if (n_nan > 0)
        caption_add(caption, " %s: queries whose weights are no numbers (%" PRId64 ").", fate,
                    n_nan);
    if (!seen->is_mean) caption_add_texts(caption, seen->said);
}

static const char *const *names_of(const struct seen_side *side) {
    return side->numbered ? NULL : (const char *const *)side->names;
}

static qkv_status draw(const struct seen *seen, double *numbers, const char *path,
                       qkv_error *error) {
    const enum plot_kind plot = (enum plot_kind)seen->sink->plot.value;
    struct caption title = { "" }, caption = { "" };
    qkv_heads_profile made = qkv_heads_profile_init();
    if (plot == PLOT_QUERIES) made.entropy = numbers;
    if (plot == PLOT_QUERIES) made.largest = numbers + seen->queries.n;
    if (plot == PLOT_RECEIVED) made.received = numbers;
    if (plot == PLOT_OFFSETS) made.by_offset = numbers;
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cli_cancelled;
    qkv_status status = qkv_heads_position(seen->heads, seen->head, &made, &call, error);
    caption_add(&title, "%s: %s", seen->name, plots[plot].title);
    make_caption(seen, plot, &caption);
    const qkv_head_profile profile = { .struct_size = sizeof profile,
                                       .n_queries = seen->queries.n,
                                       .n_keys = seen->keys.n,
                                       .entropy = made.entropy,
                                       .largest = made.largest,
                                       .received = made.received,
                                       .by_offset = made.by_offset,
                                       .queries = names_of(&seen->queries),
                                       .keys = names_of(&seen->keys),
                                       .title = picture_title(&seen->sink->picture, title.text),
                                       .caption = caption.text,
                                       .theme = (qkv_theme)seen->common->theme.value,
                                       .causal = seen->info->causal };
    if (status == QKV_OK && is_first_rank()) status = plots[plot].write(&profile, path, error);
    return status;
}

qkv_status seen_chart(const struct seen *seen, const char *path, qkv_error *error) {
    double *numbers = malloc((size_t)(2 * (seen->queries.n + seen->keys.n)) * sizeof *numbers + 1);
    const qkv_status status = numbers ? draw(seen, numbers, path, error) : text_no_memory(error);
    free(numbers);
    return status;
}
