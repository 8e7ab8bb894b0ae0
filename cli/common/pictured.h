/* How a picture of cells looks: the options that `look`, `heads` and `map` share. */
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
/* Of a map of points, which has no cells. */
#define PICTURE_POINTS_TABLE(member)                                                               \
    OPTION_INT("--size", "N", member.size, 320, 8192), OPTION_TEXT("--title", "TEXT", member.title)

#define PICTURE_CELLS "--min|--max|--palette|--values"

/*
 * An exit code, having said what is wrong: one of the options without a picture, or --min that is
 * not below --max. `two_sided`: cells are values around 0, and this is what the option that made
 * them so is called; NULL: they are weights.
 */
int picture_check(const struct cli_command *command, const void *options,
                  const struct picture_options *picture, const char *out, const char *two_sided);

/* The title that was asked for, else this one. */
const char *picture_title(const struct picture_options *picture, const char *title);

/* Draws a heat map, or a grid, with what was asked for; messages name the options. */
qkv_status picture_heatmap(const struct picture_options *picture, qkv_heatmap map, const char *path,
                           qkv_error *error);
qkv_status picture_grid(const struct picture_options *picture, qkv_head_grid grid, const char *path,
                        qkv_error *error);

#endif
