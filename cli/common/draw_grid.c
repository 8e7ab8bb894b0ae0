/* The grid of all heads: thumbnails in half blocks, two rows of tokens to a line of text. */
#include <math.h>
#include <string.h>

#include "common/draw.h"

enum { GUTTER = 4, LARGEST_SIDE = 14, SMALLEST_SIDE = 5, NAMED = 10 };

/* Columns from one thumbnail to the next, with room for "1.2 punctuation" if all heads fit then. */
static int pitch_of(const struct term *term, int64_t n_heads, int side) {
    static const int roomy[] = { 16, 12, NAMED };
    for (int i = 0; i < 3; i++)
        if (roomy[i] > side + 1 && n_heads * roomy[i] <= term->width - GUTTER) return roomy[i];
    return side + 1;
}

/* Heads per band: all of them, unless their thumbnails would be too small. */
static int heads_per_band(const struct term *term, int64_t n_heads, int side) {
    int most = (term->width - GUTTER) / pitch_of(term, n_heads, side);
    if (most < 1) most = 1;
    return n_heads < most ? (int)n_heads : most;
}

int grid_side(const struct term *term, int64_t n_heads, int64_t n) {
    int64_t side = n < LARGEST_SIDE ? n : LARGEST_SIDE;
    while (side > SMALLEST_SIDE && heads_per_band(term, n_heads, (int)side) < n_heads) side--;
    return (int)side;
}

/*
 * The largest of n weights and of `most`: bits of numbers, whose order is theirs from 0 on. What is
 * hidden is below 0, and a NaN is made the largest, of whatever sign it is.
 */
static int32_t largest_bits(const float *weights, int64_t n, int32_t most) {
    enum { INFINITE = 0x7F800000, NOT_A_NUMBER = 0x7FC00000 };
    for (int64_t j = 0; j < n; j++) {
        int32_t bits;
        memcpy(&bits, &weights[j], sizeof bits);
        bits = (bits & 0x7FFFFFFF) > INFINITE ? NOT_A_NUMBER : bits;
        most = bits > most ? bits : most;
    }
    return most;
}

void pool_map(const float *weights, int64_t n_rows, int64_t n_cols, int rows, int cols,
              float *cells) {
    for (int i = 0; i < rows * cols; i++) cells[i] = MAP_HIDDEN;
    for (int64_t i = 0; i < n_rows; i++) {
        float *const row = cells + (i * rows / n_rows) * cols;
        for (int64_t x = 0; x < cols; x++) {
            const int64_t first = (x * n_cols + cols - 1) / cols,
                          end = ((x + 1) * n_cols + cols - 1) / cols;
            int32_t most;
            memcpy(&most, &row[x], sizeof most);
            most = largest_bits(weights + i * n_cols + first, end - first, most);
            memcpy(&row[x], &most, sizeof most);
        }
    }
}

/* Two cells in one place, at least one of which is there. */
static void half_blocks(struct term *term, double a, bool has_a, double b, bool has_b) {
    if (has_a != has_b && term->bg >= 0) term_reset(term);
    if (has_a && has_b) term_weight_bg(term, b);
    term_weight_fg(term, has_a ? a : b);
    fputs(has_a ? "▀" : "▄", term->out);
}

void draw_halves(struct term *term, const float *cells, int rows, int columns, int line,
                 double largest) {
    const float *upper = cells + (int64_t)2 * line * columns;
    const float *lower = 2 * line + 1 < rows ? upper + columns : NULL;
    for (int x = 0; x < columns; x++) {
        const double a = upper[x] / largest, b = lower ? lower[x] / largest : 0;
        const bool has_a = upper[x] != MAP_HIDDEN, has_b = lower && lower[x] != MAP_HIDDEN;
        const double both = b > a || isnan(b) ? b : a;
        if (!has_a && !has_b) {
            term_reset(term);
            fputc(' ', term->out);
        } else if (term->depth == TERM_PLAIN) {
            fputs(term_mark(term, both), term->out);
        } else if (!term->unicode) {
            term_weight_bg(term, both);
            fputc(' ', term->out);
        } else {
            half_blocks(term, a, has_a, b, has_b);
        }
    }
    term_reset(term);
}

/* "1.2 prev" under a thumbnail, or only "prev" where there is no room. */
static void print_name(struct term *term, const struct grid_view *view, int pitch, int64_t layer,
                       int64_t head) {
    const char *label = view->labels[layer * view->n_heads + head];
    const bool chosen = layer == view->chosen_layer && head == view->chosen_head;
    const char *mark = chosen && term->depth == TERM_PLAIN ? "*" : "";
    char name[64];
    if (pitch >= NAMED)
        snprintf(name, sizeof name, "%s%lld.%lld %s", mark, (long long)layer, (long long)head,
                 label);
    else
        snprintf(name, sizeof name, "%s", label);
    term_style(term, chosen ? STYLE_BOLD : STYLE_DIM);
    term_put(term, name, pitch - 1, false);
    term_style(term, STYLE_NONE);
    fputc(' ', term->out);
}

static bool has_names(const struct grid_view *view, int pitch, int64_t layer, int64_t first,
                      int64_t end) {
    if (pitch >= NAMED) return true;
    for (int64_t h = first; h < end; h++)
        if (*view->labels[layer * view->n_heads + h]) return true;
    return false;
}

static void draw_layer(struct term *term, const struct grid_view *view, int pitch, int64_t layer,
                       int64_t first, int64_t end) {
    const int64_t thumb = (int64_t)view->rows * view->cols;
    for (int line = 0; line < (view->rows + 1) / 2; line++) {
        if (line == 0)
            fprintf(term->out, "%*lld ", GUTTER - 1, (long long)layer);
        else
            fprintf(term->out, "%*s", GUTTER, "");
        for (int64_t h = first; h < end; h++) {
            draw_halves(term, view->cells + (layer * view->n_heads + h) * thumb, view->rows,
                        view->cols, line, 1);
            fprintf(term->out, "%*s", pitch - view->cols, "");
        }
        term_newline(term);
    }
    if (has_names(view, pitch, layer, first, end)) {
        fprintf(term->out, "%*s", GUTTER, "");
        for (int64_t h = first; h < end; h++) print_name(term, view, pitch, layer, h);
        term_newline(term);
    } else if (view->rows % 2 == 0) {
        term_newline(term);
    }
}

void draw_grid(struct term *term, const struct grid_view *view) {
    const int band = heads_per_band(term, view->n_heads, view->cols);
    const int pitch = pitch_of(term, view->n_heads, view->cols);
    for (int64_t first = 0; first < view->n_heads; first += band) {
        const int64_t end = first + band < view->n_heads ? first + band : view->n_heads;
        fprintf(term->out, "%*s", GUTTER, "");
        for (int64_t h = first; h < end; h++) {
            char number[24];
            snprintf(number, sizeof number, "%lld", (long long)h);
            term_put(term, number, pitch, false);
        }
        term_newline(term);
        for (int64_t layer = 0; layer < view->n_layers; layer++)
            draw_layer(term, view, pitch, layer, first, end);
    }
}
