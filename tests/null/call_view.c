/* qkv/picture.h: see nulls.h. */
#include <stdbool.h>

#include "null/nulls.h"
#include "qkv/page.h"
#include "qkv/picture.h"

enum { N = 3, D = 4 };
static const float weights[] = { 1, 0, 0, 0.5f, 0.5f, 0, 0.2f, 0.3f, 0.5f, 0, 0, 0 }, lse[N];
static const double numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static const char *const tokens[] = { "a", "b", "c" };

static qkv_status color(void) {
    uint8_t rgb[3];
    qkv_picture_color(0.5, QKV_THEME_LIGHT, P(0, rgb));
    return QKV_OK;
}
static qkv_status heatmap(void) {
    const qkv_heatmap map = {
        .struct_size = sizeof map, .n_rows = N, .n_cols = N, .weights = weights
    };
    return qkv_picture_heatmap_write(P(0, &map), P(1, NULL_FOLDER "/a.svg"), P(2, &null_error));
}
static qkv_status image(void) {
    static const uint8_t rgb[3] = { 9, 8, 7 };
    const qkv_image_maps maps = { .struct_size = sizeof maps,
                                  .rgb = rgb,
                                  .height = 1,
                                  .width = 1,
                                  .rows = 1,
                                  .columns = 1,
                                  .cell_height = 1,
                                  .cell_width = 1,
                                  .n_layers = 1,
                                  .n_heads = 1,
                                  .weights = weights };
    return qkv_picture_image_write(P(0, &maps), P(1, NULL_FOLDER "/a.svg"), P(2, &null_error));
}
static qkv_status grid(void) {
    const qkv_head_grid heads = {
        .struct_size = sizeof heads, .n_layers = 1, .n_heads = 1, .n = N, .weights = weights
    };
    return qkv_picture_grid_write(P(0, &heads), P(1, NULL_FOLDER "/a.svg"), P(2, &null_error));
}
static qkv_status curve(void) {
    const qkv_curve loss = { .struct_size = sizeof loss, .n = N, .x = numbers, .y = numbers };
    return qkv_picture_curve_write(P(0, &loss), P(1, NULL_FOLDER "/a.svg"), P(2, &null_error));
}
static qkv_status chart(void) {
    const qkv_series series = { .y = numbers };
    const qkv_panel panel = { .n_series = 1, .series = &series };
    const qkv_chart one = { .struct_size = sizeof one,
                            .n = N,
                            .n_panels = 1,
                            .panels = &panel,
                            .panel_bytes = sizeof panel,
                            .series_bytes = sizeof series };
    return qkv_picture_chart_write(P(0, &one), P(1, NULL_FOLDER "/a.svg"), P(2, &null_error));
}
static const qkv_head_profile profile = { .struct_size = sizeof profile,
                                          .n_queries = N,
                                          .n_keys = N,
                                          .entropy = numbers,
                                          .largest = numbers,
                                          .received = numbers,
                                          .by_offset = numbers };
static qkv_status queries(void) {
    return qkv_picture_queries_write(P(0, &profile), P(1, NULL_FOLDER "/a.svg"), P(2, &null_error));
}
static qkv_status received(void) {
    return qkv_picture_received_write(P(0, &profile), P(1, NULL_FOLDER "/a.svg"),
                                      P(2, &null_error));
}
static qkv_status offsets(void) {
    return qkv_picture_offsets_write(P(0, &profile), P(1, NULL_FOLDER "/a.svg"), P(2, &null_error));
}
/* `made`: in memory, else to a file. */
static qkv_status page_by(bool made) {
    const qkv_page_head head = { .q = weights, .k = weights, .lse = lse };
    const qkv_page one = { .struct_size = sizeof one,
                           .n = N,
                           .head_dim = D,
                           .scale = 0.5f,
                           .query = -1,
                           .tokens = tokens,
                           .n_heads = 1,
                           .heads = &head,
                           .head_bytes = sizeof head };
    qkv_page_result result = qkv_page_result_init();
    qkv_text *html = NULL;
    if (!made)
        return qkv_page_write(P(0, &one), P(1, NULL_FOLDER "/a.html"), P(2, &result),
                              P(3, &null_error));
    const qkv_status status =
        qkv_page_make(P(0, &one), P(1, &html), P(2, &result), P(3, &null_error));
    qkv_text_free(html);
    return status;
}
static qkv_status page(void) { return page_by(false); }
static qkv_status page_made(void) { return page_by(true); }
static qkv_status points(void) {
    const qkv_point_map map = {
        .struct_size = sizeof map, .n_queries = N, .n_keys = N, .xy = numbers
    };
    return qkv_picture_points_write(P(0, &map), P(1, NULL_FOLDER "/a.svg"), P(2, &null_error));
}

const null_call null_view[] = {
    { "qkv_picture_color", color, "n" },
    { "qkv_picture_heatmap_write", heatmap, "rrn" },
    { "qkv_picture_grid_write", grid, "rrn" },
    { "qkv_picture_image_write", image, "rrn" },
    { "qkv_picture_curve_write", curve, "rrn" },
    { "qkv_picture_chart_write", chart, "rrn" },
    { "qkv_picture_queries_write", queries, "rrn" },
    { "qkv_picture_received_write", received, "rrn" },
    { "qkv_picture_offsets_write", offsets, "rrn" },
    { "qkv_page_write", page, "rrnn" },
    { "qkv_page_make", page_made, "rrnn" },
    { "qkv_picture_points_write", points, "rrn" },
    { 0 },
};
