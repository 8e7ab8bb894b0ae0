/* Pictures: qkv/view.h. Each over a picture that is there already, and once where none is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "oom/calls.h"
#include "qkv/view.h"

enum { N = 5, LAYERS = 2, HEADS = 2, POINTS = 9 };

static const char *const labels[] = { "[CLS]", "the", "door", "opened\xC2\xAD", "[SEP]" };
static const char *const heads[] = { "next", NULL, "", "broad" };
static const char title[] = "A head", caption[] = "Rows are queries.\nColumns are keys.";
static float weights[LAYERS * HEADS * N * N];
static double x[POINTS], y[POINTS];
static char path[256];

static void put_old(void) {
    oom_path(path, "out.png");
    oom_put(path, "old", 3);
}

static void put_none(void) {
    oom_path(path, "out.png");
    oom_put(path, NULL, 0);
}

static uint64_t take_picture(void) { return oom_hash_file(path); }

static qkv_status heatmap(qkv_error *error) {
    const qkv_heatmap map = { sizeof map, N,     N,       weights,       labels,
                              labels,     title, caption, QKV_THEME_DARK };
    return qkv_view_heatmap_write(&map, path, error);
}

static qkv_status bare_heatmap(qkv_error *error) {
    const qkv_heatmap map = { sizeof map, N, N, weights, NULL, NULL, NULL, NULL, QKV_THEME_LIGHT };
    return qkv_view_heatmap_write(&map, path, error);
}

static qkv_status grid(qkv_error *error) {
    const qkv_head_grid given = { sizeof given, LAYERS,  HEADS,          N, weights, heads,
                                  title,        caption, QKV_THEME_LIGHT };
    return qkv_view_grid_write(&given, path, error);
}

static qkv_status curve(qkv_error *error) {
    const qkv_curve given = { sizeof given, POINTS,         x, y, "step", "loss", title,
                              caption,      QKV_THEME_LIGHT };
    return qkv_view_curve_write(&given, path, error);
}

static void set_up(void) {
    for (int i = 0; i < LAYERS * HEADS * N * N; i++) weights[i] = (float)(i % 6) / 15;
    for (int i = 0; i < POINTS; i++) {
        x[i] = 100 * i;
        y[i] = i == 4 ? NAN : 7 * exp(-i / 3.0);
    }
}

static const oom_call calls[] = {
    { "qkv_view_heatmap_write", "all of it", put_old, heatmap, take_picture, put_none,
      OOM_IO | OOM_CACHES | OOM_SLOW, 0 },
    { "qkv_view_heatmap_write", "weights only", put_none, bare_heatmap, take_picture, put_none,
      OOM_CACHES | OOM_SLOW, 0 },
    { "qkv_view_grid_write", "all of it", put_old, grid, take_picture, put_none,
      OOM_IO | OOM_CACHES | OOM_SLOW, 0 },
    { "qkv_view_curve_write", "all of it", put_old, curve, take_picture, put_none,
      OOM_IO | OOM_CACHES | OOM_SLOW, 0 },
};

const oom_group oom_view = { "view", calls, sizeof calls / sizeof *calls, set_up, NULL };
