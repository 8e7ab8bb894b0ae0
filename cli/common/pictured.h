/* Options of pictures that `look`, `heads` and `map` share. */
#ifndef QKV_CLI_COMMON_PICTURED_H
#define QKV_CLI_COMMON_PICTURED_H

#include "common/conflicts.h"
#include "common/job.h"
#include <qkv/picture.h>

struct picture_options {
    struct arg_real min, max;
    struct arg_int palette, size, values; /* values: 0 on, 1 off */
    const char *title;
};

/* Rows of a table of options (args.h) whose struct has picture_options `member`. */
#define PICTURE_TABLE(member)                                                                      \
    OPTION_REAL("--min", "X", member.min), OPTION_REAL("--max", "X", member.max),                  \
        OPTION_CHOICE("--palette", "qkv|viridis|cividis|greys", member.palette),                   \
        OPTION_CHOICE("--values", "on|off", member.values),                                        \
        OPTION_INT("--size", "N", member.size, 64, 8192),                                          \
        OPTION_TEXT("--title", "TEXT", member.title)
/* The same for a map of points, which has no cells. */
#define PICTURE_POINTS_TABLE(member)                                                               \
    OPTION_INT("--size", "N", member.size, 320, 8192), OPTION_TEXT("--title", "TEXT", member.title)

#define PICTURE_CELLS "--min|--max|--palette|--values"

/*
 * Refuses these options without a file that is a picture, and --min that is not below --max.
 * Returns an exit code, having said what is wrong. two_sided: the option by which cells are values
 * around 0 instead of weights; NULL: they are weights.
 */
int picture_check(const struct cli_command *command, const void *options,
                  const struct picture_options *picture, const char *out, const char *two_sided);

/* The title of --title, else `title`. */
const char *picture_title(const struct picture_options *picture, const char *title);

/* Draw a heat map, a grid, or maps over an image by the options; messages name the options. */
qkv_status picture_heatmap(const struct picture_options *picture, qkv_heatmap map, const char *path,
                           qkv_error *error);
qkv_status picture_grid(const struct picture_options *picture, qkv_head_grid grid, const char *path,
                        qkv_error *error);
qkv_status picture_image(const struct picture_options *picture, qkv_image_maps maps,
                         const char *path, qkv_error *error);

#endif
