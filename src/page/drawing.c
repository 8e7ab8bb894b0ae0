/**
 * The matrix of a page's first head for readers without scripts: an SVG of at most 32 x 32 cells, each
 * the largest weight of its tile, on 16 steps of the colours of pictures from 0 to a round number.
 *
 *     column labels, turned           one <path> for each step: M x y h n for n cells
 *     row labels    cells
 */
#include <math.h>

#include "inspect/colors.h"
#include "model/store/encode.h"
#include "page/mask.h"
#include "page/parts.h"

enum { STEPS = 16, CELL = 18, LABELS = 120, SMALL_LABELS = 8 };

/* The weight that a step of a thumbnail stands for. */
static float weight_of(uint8_t level) { return level ? exp2f((float)level / 255 * 24 - 24) : 0; }

static void add_format(qkvi_bytes *file, const char *format, int a, int b) {
    char text[96];
    snprintf(text, sizeof text, format, a, b);
    qkvi_bytes_text(file, text);
}

static void add_color(qkvi_bytes *file, double t) {
    const qkvi_rgb rgb = qkvi_weight_color(t, false);
    char text[48];
    snprintf(text, sizeof text, "\"#%02x%02x%02x\"", rgb.r, rgb.g, rgb.b);
    qkvi_bytes_text(file, text);
}

static int step_of(const qkvi_page_measure *measure, double top, int c) {
    const double t = fmin((double)weight_of(measure->thumb[c]) / top, 1);
    return (int)lround(t * (STEPS - 1));
}

/* The cells of one step, neighbours of a row as one line; the lowest step is the ground. */
static void add_step(qkvi_bytes *file, const qkvi_page_measure *measure, double top, int step) {
    const int side = measure->side;
    int n = 0;
    for (int c = 0, run; c < measure->rows * side; c += run) {
        const int found = step_of(measure, top, c) == step;
        for (run = 1; (c + run) % side && found; run++)
            if (step_of(measure, top, c + run) != step) break;
        if (!found) continue;
        if (n++ == 0) {
            qkvi_bytes_text(file, "<path stroke=");
            add_color(file, (double)step / (STEPS - 1));
            qkvi_bytes_text(file, " d=\"");
        }
        add_format(file, "M%d %d", c % side, c / side);
        add_format(file, "h%d", run, 0);
    }
    if (n) qkvi_bytes_text(file, "\"/>");
}

static void add_label(qkvi_bytes *file, const char *token) {
    qkvi_page_add_shown(file, token);
    qkvi_bytes_text(file, "</text>");
}

static void add_labels(qkvi_bytes *file, const qkv_page *page) {
    const qkv_page_run queries = qkvi_page_queries(page);
    for (int j = 0; j < (int)page->n; j++) {
        add_format(file, "<text transform=\"translate(%d %d)rotate(-45)\">", j * CELL + 12, -4);
        add_label(file, page->tokens[j]);
    }
    qkvi_bytes_text(file, "<g text-anchor=\"end\">");
    for (int i = 0; i < (int)page->n_queries; i++) {
        add_format(file, "<text x=\"%d\" y=\"%d\">", -4, i * CELL + 13);
        add_label(file, queries.tokens[i]);
    }
    qkvi_bytes_text(file, "</g>");
}

struct span {
    int first, end;
};

/* Tiles of a row that hold keys which one of its queries may see. */
static struct span cells_of(const qkv_page *page, const qkvi_page_measure *measure, int row) {
    const int64_t n = page->n, m = page->n_queries, side = measure->side, rows = measure->rows,
                  query = (row * m + rows - 1) / rows, after = ((row + 1) * m + rows - 1) / rows;
    int64_t first, end, ignored;
    qkvi_page_visible(page, query, &first, &ignored);
    qkvi_page_visible(page, after - 1, &ignored, &end);
    if (end <= first) return (struct span){ 0, 0 };
    return (struct span){ (int)(first * side / n), (int)((end - 1) * side / n) + 1 };
}

/* The colour of 0 where there are cells: of a row those that its last query may see. */
static void add_ground(qkvi_bytes *file, const qkv_page *page, const qkvi_page_measure *measure) {
    const int rows = measure->rows;
    for (int r = 0, run; r < rows; r += run) {
        const struct span cells = cells_of(page, measure, r);
        for (run = 1; r + run < rows; run++) {
            const struct span next = cells_of(page, measure, r + run);
            if (next.first != cells.first || next.end != cells.end) break;
        }
        add_format(file, "<rect x=\"%d\" y=\"%d\" ", cells.first * CELL, r * CELL);
        add_format(file, "width=\"%d\" height=\"%d\" fill=", (cells.end - cells.first) * CELL,
                   run * CELL);
        add_color(file, 0);
        qkvi_bytes_text(file, "/>");
    }
}

void qkvi_page_add_drawing(qkvi_bytes *file, const qkv_page *page,
                           const qkvi_page_measure *measure) {
    float weights[QKVI_PAGE_SIDE * QKVI_PAGE_SIDE];
    const int side = measure->side, rows = measure->rows, n = rows * side,
              named = page->n == side && page->n_queries == rows,
              room = named ? LABELS : SMALL_LABELS;
    for (int c = 0; c < n; c++) weights[c] = weight_of(measure->thumb[c]);
    const qkvi_scale scale = qkvi_scale_of(weights, n, NULL, n);
    add_format(file, "<svg width=\"%d\" height=\"%d\" ", side * CELL + room + LABELS,
               rows * CELL + room);
    add_format(file, "viewBox=\"%d %d ", -room, -room);
    add_format(file, "%d %d\" role=\"img\" ", side * CELL + room + LABELS, rows * CELL + room);
    qkvi_bytes_text(file, "aria-label=\"Matrix of weights, rows queries, columns keys\" "
                          "font-family=\"sans-serif\" font-size=\"11\">");
    add_ground(file, page, measure);
    add_format(file, "<g transform=\"scale(%d)translate(0 .5)\">", CELL, 0);
    for (int step = 1; step < STEPS; step++) add_step(file, measure, scale.top, step);
    qkvi_bytes_text(file, "</g><g fill=\"currentColor\">");
    if (named) add_labels(file, page);
    char note[160], top[32];
    qkvi_number(top, sizeof top, scale.top, scale.top == 1 ? 0 : scale.decimals);
    snprintf(note, sizeof note,
             "</g></svg>\n<p>Rows are queries, columns keys; colours run from 0 to %s.%s</p>\n",
             top, named ? "" : " A cell is the largest weight of its tile.");
    qkvi_bytes_text(file, note);
}
