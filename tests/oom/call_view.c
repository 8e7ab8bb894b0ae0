/* Pictures: qkv/picture.h. Each over a picture that is there already, and once where none is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "oom/calls.h"
#include "qkv/page.h"
#include "qkv/picture.h"

enum { N = 5, LAYERS = 2, HEADS = 2, POINTS = 9 };

static const char *const labels[] = { "[CLS]", "the", "door", "opened\xC2\xAD", "[SEP]" };
static const char *const heads[] = { "next", NULL, "", "broad" };
static const char title[] = "A head", caption[] = "Rows are queries.\nColumns are keys.";
static float weights[LAYERS * HEADS * N * N];
static double x[POINTS], y[POINTS];
static char path[256];

/* A file is there already: it must be whole, the old or the new one. */
static void put(const char *name) {
    oom_path(path, name);
    oom_put(path, "old", 3);
}

static void put_png(void) { put("out.png"); }
static void put_svg(void) { put("out.svg"); }
static void put_pdf(void) { put("out.pdf"); }

static void put_csv(void) { put("out.csv"); }
static void put_html(void) { put("out.html"); }

static void put_none(void) {
    oom_path(path, "out.png");
    oom_put(path, NULL, 0);
}

static void drop(void) { oom_put(path, NULL, 0); }

static uint64_t take_picture(void) { return oom_hash_file(path); }

static qkv_status heatmap(qkv_error *error) {
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .n_rows = N,
                              .n_cols = N,
                              .weights = weights,
                              .row_labels = labels,
                              .col_labels = labels,
                              .title = title,
                              .caption = caption,
                              .theme = QKV_THEME_DARK,
                              .quantity = "mass" };
    return qkv_picture_heatmap_write(&map, path, error);
}

static qkv_status bare_heatmap(qkv_error *error) {
    const qkv_heatmap map = {
        .struct_size = sizeof map, .n_rows = N, .n_cols = N, .weights = weights
    };
    return qkv_picture_heatmap_write(&map, path, error);
}

static qkv_status image(qkv_error *error) {
    static const uint8_t rgb[2 * 3 * 3] = { 9, 8, 7, 255 };
    static const float cells[2] = { 0.5f, 0.1f };
    static const char *const names[] = { "a", "b" };
    const qkv_image_maps maps = { .struct_size = sizeof maps,
                                  .rgb = rgb,
                                  .height = 2,
                                  .width = 3,
                                  .rows = 1,
                                  .columns = 1,
                                  .cell_height = 1,
                                  .cell_width = 2,
                                  .n_layers = 1,
                                  .n_heads = 2,
                                  .weights = cells,
                                  .labels = names,
                                  .title = "maps",
                                  .smooth = 1 };
    return qkv_picture_image_write(&maps, path, error);
}

static qkv_status grid(qkv_error *error) {
    const qkv_head_grid given = { .struct_size = sizeof given,
                                  .n_layers = LAYERS,
                                  .n_heads = HEADS,
                                  .n = N,
                                  .weights = weights,
                                  .labels = heads,
                                  .title = title,
                                  .caption = caption,
                                  .theme = QKV_THEME_LIGHT };
    return qkv_picture_grid_write(&given, path, error);
}

static qkv_status curve(qkv_error *error) {
    const qkv_curve given = { sizeof given, POINTS,         x, y, "step", "loss", title,
                              caption,      QKV_THEME_LIGHT };
    return qkv_picture_curve_write(&given, path, error);
}

static qkv_status chart(qkv_error *error) {
    const qkv_series lines[] = { { "one", y, QKV_SERIES_LINE }, { "two", x, QKV_SERIES_AREA } };
    const qkv_series bars = { NULL, y, QKV_SERIES_BARS };
    const qkv_panel panels[] = { { "y", 1, 0, 2, lines }, { NULL, 0, 0, 1, &bars } };
    const qkv_chart given = { .struct_size = sizeof given,
                              .n = N,
                              .labels = labels,
                              .x_label = "token",
                              .n_panels = 2,
                              .panels = panels,
                              .panel_bytes = sizeof(qkv_panel),
                              .series_bytes = sizeof(qkv_series),
                              .title = title,
                              .caption = caption };
    return qkv_picture_chart_write(&given, path, error);
}

static const qkv_head_profile *profile(void) {
    static qkv_head_profile given;
    given = (qkv_head_profile){ .struct_size = sizeof given,
                                .n_queries = N,
                                .n_keys = N,
                                .entropy = x,
                                .largest = x,
                                .received = x,
                                .by_offset = x,
                                .queries = labels,
                                .keys = labels,
                                .caption = caption };
    return &given;
}

static qkv_status queries(qkv_error *error) {
    return qkv_picture_queries_write(profile(), path, error);
}
static qkv_status received(qkv_error *error) {
    return qkv_picture_received_write(profile(), path, error);
}
static qkv_status offsets(qkv_error *error) {
    return qkv_picture_offsets_write(profile(), path, error);
}

/* made: in memory, else to the path. */
static qkv_text *html;

static qkv_status page_by(bool made, qkv_error *error) {
    static const double x_map[4 * N];
    static const qkv_page_head given[] = {
        { .q = weights,
          .k = weights + 10,
          .lse = weights + 20,
          .map = x_map,
          .pca = x_map,
          .map_note = title,
          .received = weights,
          .peaks = weights,
          .side = 2 },
        { .head = 1, .q = weights + 30, .k = weights + 40, .lse = weights + 50, .text = 1 },
    };
    static const uint8_t dropped[N] = { 1 };
    const qkv_page_text runs[] = { { .name = title, .tokens = labels },
                                   { .name = caption, .tokens = labels } };
    static const double values[N] = { 0, 0.5, 1 };
    const qkv_page_table table = { .name = title,
                                   .n_rows = 1,
                                   .n_cols = N,
                                   .row_names = labels,
                                   .col_names = labels,
                                   .values = values,
                                   .high = 1 };
    const qkv_page given_page = { .struct_size = sizeof given_page,
                                  .n = N,
                                  .head_dim = 2,
                                  .scale = 0.5f,
                                  .query = -1,
                                  .n_texts = 2,
                                  .texts = runs,
                                  .text_bytes = sizeof *runs,
                                  .dropped = dropped,
                                  .modified = caption,
                                  .n_heads = 2,
                                  .heads = given,
                                  .head_bytes = sizeof *given,
                                  .title = title,
                                  .caption = caption,
                                  .n_tables = 1,
                                  .tables = &table,
                                  .table_bytes = sizeof table,
                                  .made_by = caption };
    static qkv_text none;
    if (!made) return qkv_page_write(&given_page, path, NULL, error);
    html = &none; /* must become NULL or a page */
    const qkv_status status = qkv_page_make(&given_page, &html, NULL, error);
    oom_claim(status == QKV_OK || !html, "the page is NULL after a failure");
    return status;
}

static qkv_status page(qkv_error *error) { return page_by(false, error); }
static qkv_status page_made(qkv_error *error) { return page_by(true, error); }
static uint64_t take_html(void) { return oom_hash(0, html->bytes, (size_t)html->n); }
static void drop_html(void) {
    qkv_text_free(html);
    html = NULL;
}

static qkv_status points(qkv_error *error) {
    static const double at[2 * N] = { 0, 1, 2, 1.5, -3, 0.5, 4, 4, 1, -2 }, widths[] = { 0.9, 0.1 };
    static const int64_t to[] = { 1, 0 };
    const qkv_point_map map = { .struct_size = sizeof map,
                                .n_queries = 3,
                                .n_keys = 2,
                                .xy = at,
                                .labels = labels,
                                .n_lines = 2,
                                .from = 0,
                                .to = to,
                                .weights = widths,
                                .title = title,
                                .caption = caption,
                                .theme = QKV_THEME_LIGHT,
                                .query_name = "asks",
                                .key_name = "answers" };
    return qkv_picture_points_write(&map, path, error);
}

static void set_up(void) {
    for (int i = 0; i < LAYERS * HEADS * N * N; i++) weights[i] = (float)(i % 6) / 15;
    for (int i = 0; i < POINTS; i++) {
        x[i] = 100 * i;
        y[i] = i == 4 ? NAN : 7 * exp(-i / 3.0);
    }
}

enum { PNG = OOM_IO | OOM_SLOW | OOM_CACHES, OTHER = OOM_IO | OOM_SLOW | OOM_LEAKY, MANY = 40 };

static const oom_call calls[] = {
    /* before any picture: pango ends a thread after it, and blocks with it, when it likes */
    { "qkv_picture_chart_write", "csv", put_csv, chart, take_picture, drop, OOM_IO, 0 },
    { "qkv_picture_queries_write", "csv", put_csv, queries, take_picture, drop, OOM_IO, 0 },
    { "qkv_picture_offsets_write", "csv", put_csv, offsets, take_picture, drop, OOM_IO, 0 },
    { "qkv_picture_heatmap_write", "png", put_png, heatmap, take_picture, drop, PNG, 0 },
    { "qkv_picture_heatmap_write", "svg", put_svg, heatmap, take_picture, drop, OTHER, MANY },
    { "qkv_picture_heatmap_write", "pdf", put_pdf, heatmap, take_picture, drop, OTHER, MANY },
    { "qkv_picture_heatmap_write", "weights only", put_none, bare_heatmap, take_picture, drop, PNG,
      0 },
    { "qkv_picture_image_write", "png", put_png, image, take_picture, drop, PNG, 0 },
    { "qkv_picture_grid_write", "png", put_png, grid, take_picture, drop, PNG, 0 },
    { "qkv_picture_grid_write", "svg", put_svg, grid, take_picture, drop, OTHER, MANY },
    { "qkv_picture_grid_write", "pdf", put_pdf, grid, take_picture, drop, OTHER, MANY },
    { "qkv_page_write", "html", put_html, page, take_picture, drop, OOM_IO, 0 },
    { "qkv_page_make", "html", NULL, page_made, take_html, drop_html, 0, 0 },
    { "qkv_picture_points_write", "png", put_png, points, take_picture, drop, PNG, MANY },
    { "qkv_picture_points_write", "svg", put_svg, points, take_picture, drop, OTHER, MANY },
    { "qkv_picture_points_write", "pdf", put_pdf, points, take_picture, drop, OTHER, MANY },
    { "qkv_picture_chart_write", "png", put_png, chart, take_picture, drop, PNG, MANY },
    { "qkv_picture_chart_write", "svg", put_svg, chart, take_picture, drop, OTHER, MANY },
    { "qkv_picture_received_write", "pdf", put_pdf, received, take_picture, drop, OTHER, MANY },
    { "qkv_picture_curve_write", "png", put_png, curve, take_picture, drop, PNG, 0 },
    { "qkv_picture_curve_write", "svg", put_svg, curve, take_picture, drop, OTHER, MANY },
    { "qkv_picture_curve_write", "pdf", put_pdf, curve, take_picture, drop, OTHER, MANY },
};

const oom_group oom_view = { "view", calls, sizeof calls / sizeof *calls, set_up, NULL };
