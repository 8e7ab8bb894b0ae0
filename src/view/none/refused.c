/*
 * libqkvview of a tool that is built without cairo (QKV_PICTURES=OFF): colours, which the terminal
 * needs, are there, and every picture is refused. It is not installed, so that no other program
 * links it by mistake.
 */
#include <qkv/picture.h>

#include "core/status.h"
#include "inspect/colors.h"

void qkv_picture_color(double t, qkv_theme theme, uint8_t rgb[3]) {
    const qkvi_rgb color = qkvi_weight_color(t, theme == QKV_THEME_DARK);
    rgb[0] = color.r;
    rgb[1] = color.g;
    rgb[2] = color.b;
}

static qkv_status refuse(const char *path, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s: this qkv was built without pictures (QKV_PICTURES=OFF): it writes "
                          "no .png, .svg or .pdf",
                          path ? QKVI_PRINTABLE(QKVI_NAME_BYTES, path) : "path is NULL");
}

#define REFUSED(kind, type)                                                                        \
    qkv_status qkv_picture_##kind##_write(const type *picture, const char *path,                   \
                                          qkv_error *error) {                                      \
        (void)picture;                                                                             \
        return refuse(path, error);                                                                \
    }
REFUSED(heatmap, qkv_heatmap)
REFUSED(grid, qkv_head_grid)
REFUSED(curve, qkv_curve)
REFUSED(chart, qkv_chart)
REFUSED(queries, qkv_head_profile)
REFUSED(received, qkv_head_profile)
REFUSED(offsets, qkv_head_profile)
REFUSED(points, qkv_point_map)
REFUSED(image, qkv_image_maps)
