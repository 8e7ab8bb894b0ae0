/*
 * See image_term.h. A pixel mixes the colours of the image and of the weight, as in a picture; on a
 * terminal without colours a character shows only the weight.
 */
#include "look/image_term.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_COLUMNS = 64, LEAST_THUMBNAIL = 6, MOST_THUMBNAIL = 16, NAME_BYTES = 48 };
static const double opacity = 0.5;

/* A map as `columns` by `rows` pixels; weights end at `largest`. */
struct view {
    const struct image_seen *t;
    const float *map;
    float largest;
    int rows, columns;
};

static double weight_at(const struct view *view, int row, int column) {
    const qkv_image_tokens *const tokens = view->t->tokens;
    const int64_t r = row * tokens->rows / view->rows, c = column * tokens->columns / view->columns;
    const float weight = view->map[r * tokens->columns + c];
    return view->largest > 0 ? (double)(weight / view->largest) : 0;
}

static void pixel_at(const struct term *term, const struct view *view, int row, int column,
                     uint8_t rgb[3]) {
    const qkv_image_tokens *const tokens = view->t->tokens;
    const int64_t height = tokens->rows * tokens->patch_height,
                  width = tokens->columns * tokens->patch_width,
                  y = (2 * row + 1) * height / (2 * view->rows),
                  x = (2 * column + 1) * width / (2 * view->columns);
    const uint8_t *const image = tokens->rgb + (y * tokens->width + x) * 3;
    uint8_t color[3];
    qkv_picture_color(weight_at(view, row, column), term->theme, color);
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)(image[c] * (1 - opacity) + color[c] * opacity + 0.5);
}

/* Rows 2 * line and 2 * line + 1. */
static void draw_line(struct term *term, const struct view *view, int line) {
    const int upper = 2 * line, lower = upper + 1 < view->rows ? upper + 1 : upper;
    for (int x = 0; x < view->columns; x++) {
        uint8_t above[3], below[3];
        if (term->depth == TERM_PLAIN) {
            const double a = weight_at(view, upper, x), b = weight_at(view, lower, x);
            fputs(term_mark(term, a > b ? a : b), term->out);
            continue;
        }
        pixel_at(term, view, upper, x, above);
        pixel_at(term, view, lower, x, below);
        term_rgb_bg(term, below);
        if (term->unicode) term_rgb_fg(term, above);
        fputs(term->unicode ? "\u2580" : " ", term->out);
    }
    term_reset(term);
}

/* Pixels are as wide as high: half a line is about as high as a column is wide. */
static struct view view_of(const struct image_seen *t, const float *map, float largest,
                           int64_t columns) {
    const int64_t rows = (columns * t->tokens->rows * t->tokens->patch_height +
                          t->tokens->columns * t->tokens->patch_width / 2) /
                         (t->tokens->columns * t->tokens->patch_width);
    return (struct view){ t, map, largest, rows < 1 ? 1 : (int)rows, (int)columns };
}

static float largest_of(const float *map, int64_t n) {
    float largest = 0;
    for (int64_t j = 0; j < n; j++)
        if (map[j] > largest) largest = map[j];
    return largest;
}

void image_draw_map(struct term *term, const struct image_seen *t, const float *map) {
    const int64_t room = term->width - 2 < MOST_COLUMNS ? term->width - 2 : MOST_COLUMNS,
                  times = room / t->tokens->columns;
    const float largest = largest_of(map, image_patches(t));
    const struct view view =
        view_of(t, map, largest, times > 0 ? times * t->tokens->columns : room);
    for (int line = 0; 2 * line < view.rows; line++) {
        draw_line(term, &view, line);
        term_newline(term);
    }
    fprintf(term->out, "%s is more, 0 to %.3g\n", term_more(term), (double)largest);
}

/* Heads `first` to end - 1 of a layer, side by side, with their names below. */
static void draw_band(struct term *term, const struct image_seen *t, float largest, int columns,
                      int64_t layer, int64_t first, int64_t end) {
    const int64_t n = image_patches(t), across = t->seen.info->n_heads;
    const struct view shape = view_of(t, t->maps, largest, columns);
    for (int line = 0; 2 * line < shape.rows; line++) {
        for (int64_t h = first; h < end; h++) {
            const struct view view =
                view_of(t, t->maps + (layer * across + h) * n, largest, columns);
            draw_line(term, &view, line);
            fputc(' ', term->out);
        }
        term_newline(term);
    }
    for (int64_t h = first; h < end; h++) {
        char name[NAME_BYTES];
        const bool chosen = layer == t->seen.choice.layer && h == t->seen.choice.head;
        snprintf(name, sizeof name, "%s%" PRId64 ".%" PRId64,
                 chosen && term->depth == TERM_PLAIN ? "*" : "", layer, h);
        term_style(term, chosen ? STYLE_BOLD : STYLE_DIM);
        term_put(term, name, columns, false);
        term_style(term, STYLE_NONE);
        fputc(' ', term->out);
    }
    term_newline(term);
}

void image_draw_grid(struct term *term, const struct image_seen *t) {
    const int64_t across = t->seen.info->n_heads;
    const float largest = largest_of(t->maps, t->seen.n_heads * image_patches(t));
    int64_t columns = term->width / across - 1;
    if (columns < LEAST_THUMBNAIL) columns = LEAST_THUMBNAIL;
    if (columns > MOST_THUMBNAIL) columns = MOST_THUMBNAIL;
    const int64_t band = term->width / (columns + 1) > 0 ? term->width / (columns + 1) : 1;
    term_newline(term);
    term_styled(term, STYLE_BOLD, "All heads");
    fprintf(term->out, "  down: layers, across: heads; %s is more, 0 to %.3g\n", term_more(term),
            (double)largest);
    for (int64_t layer = 0; layer < t->seen.info->n_layers; layer++)
        for (int64_t h = 0; h < across; h += band)
            draw_band(term, t, largest, (int)columns, layer, h,
                      h + band < across ? h + band : across);
}
