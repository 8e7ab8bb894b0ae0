/* Options of pictures: see pictured.h. */
#include "common/pictured.h"

#include <string.h>

int picture_check(const struct cli_command *command, const void *options,
                  const struct picture_options *picture, const char *out, const char *two_sided) {
    const char *const any =
        option_first(command, options, 0, PICTURE_CELLS "|--size|--title|--opacity|--smooth");
    if (any && path_ending(out, ".png .svg .pdf") < 0)
        return cli_usage(command, "%s is of a picture: -o FILE.png, .svg or .pdf", any);
    if (two_sided && picture->palette.set && picture->palette.value != QKV_PALETTE_QKV)
        return cli_usage(command,
                         "--palette together with %s, whose values are on both sides of 0: only "
                         "qkv has colours for both",
                         two_sided);
    if (two_sided && picture->min.set)
        return cli_usage(command, "--min together with %s, whose colours run from -max: --max X",
                         two_sided);
    if (picture->max.set && !(picture->max.value > 0))
        return cli_usage(command, "--max %g: must be above 0", picture->max.value);
    if (picture->min.set && picture->min.value < 0)
        return cli_usage(command, "--min %g: must not be below 0", picture->min.value);
    if (picture->min.set && picture->max.set && !(picture->min.value < picture->max.value))
        return cli_usage(command, "--min %g: must be below --max %g", picture->min.value,
                         picture->max.value);
    return EXIT_OK;
}

const char *picture_title(const struct picture_options *picture, const char *title) {
    return picture->title ? picture->title : title;
}

static qkv_figures figures_of(const struct picture_options *picture) {
    return !picture->values.set    ? QKV_FIGURES_AUTO
           : picture->values.value ? QKV_FIGURES_OFF
                                   : QKV_FIGURES_ON;
}

/* The library calls figures what the tool calls values. */
static qkv_status named(qkv_status status, qkv_error *error) {
    static const char field[] = "figures: ";
    const size_t n = sizeof field - 1;
    if (status == QKV_OK || strncmp(error->message, field, n) != 0) return status;
    char rest[sizeof error->message];
    snprintf(rest, sizeof rest, "%s", error->message + n);
    return text_error(error, status, "--values on: %.480s (--size)", rest);
}

qkv_status picture_heatmap(const struct picture_options *picture, qkv_heatmap map, const char *path,
                           qkv_error *error) {
    map.title = picture_title(picture, map.title);
    map.palette = (qkv_palette)picture->palette.value;
    map.figures = figures_of(picture);
    map.size = picture->size.value;
    map.min = picture->min.value;
    map.max = picture->max.value;
    return named(qkv_picture_heatmap_write(&map, path, error), error);
}

qkv_status picture_grid(const struct picture_options *picture, qkv_head_grid grid, const char *path,
                        qkv_error *error) {
    grid.title = picture_title(picture, grid.title);
    grid.palette = (qkv_palette)picture->palette.value;
    grid.figures = figures_of(picture);
    grid.size = picture->size.value;
    grid.min = picture->min.value;
    grid.max = picture->max.value;
    return named(qkv_picture_grid_write(&grid, path, error), error);
}

qkv_status picture_image(const struct picture_options *picture, qkv_image_maps maps,
                         const char *path, qkv_error *error) {
    maps.title = picture_title(picture, maps.title);
    maps.palette = (qkv_palette)picture->palette.value;
    maps.size = picture->size.value;
    maps.min = picture->min.value;
    maps.max = picture->max.value;
    return qkv_picture_image_write(&maps, path, error);
}
