/** For readers without scripts: a drawing, and the three strongest keys of the first queries. */
#include <math.h>

#include "files/encode.h"
#include "inspect/colors.h"
#include "page/mask.h"
#include "page/parts.h"

/* ---- The drawing ----------------------------------------------------------------------------- */

/*
 * The matrix of a page's first head for readers without scripts: an SVG of at most 32 x 32 cells,
 * each the largest weight of its tile, on 16 steps of the colours of pictures from 0 to a round
 * number.
 *
 *     column labels, turned           one <path> for each step: M x y h n for n cells
 *     row labels    cells
 */

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
    const qkv_page_text queries = qkvi_page_queries(page);
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
    qkvi_page_visible(page, &page->heads[0], query, &first, &ignored);
    qkvi_page_visible(page, &page->heads[0], after - 1, &ignored, &end);
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

enum { TOP = 3 };

struct best {
    int64_t key[TOP];
    double weight[TOP];
};

/* In order of weight; of equal weights the earlier key. */
static void keep(struct best *best, int64_t j, double p) {
    int at = TOP;
    while (at > 0 && (best->key[at - 1] < 0 || p > best->weight[at - 1])) at--;
    for (int r = TOP - 1; r > at; r--) {
        best->key[r] = best->key[r - 1];
        best->weight[r] = best->weight[r - 1];
    }
    if (at == TOP) return;
    best->key[at] = j;
    best->weight[at] = p;
}

static struct best best_of(const qkv_page *page, const qkv_page_head *head, int64_t i) {
    struct best best = { .key = { -1, -1, -1 } };
    int64_t first, end;
    qkvi_page_visible(page, head, i, &first, &end);
    for (int64_t j = first; j < end && head->lse[i] > -INFINITY; j++) {
        if (qkvi_page_hidden(page, head, i, j)) continue;
        double dot = 0;
        for (int64_t c = 0; c < page->head_dim; c++)
            dot +=
                (double)head->q[i * page->head_dim + c] * (double)head->k[j * page->head_dim + c];
        keep(&best, j, exp(qkvi_page_score(page, head, i, j, dot) - (double)head->lse[i]));
    }
    return best;
}

void qkvi_page_add_shown(qkvi_bytes *file, const char *text) {
    char *const shown = qkvi_shown(text);
    if (shown == NULL)
        file->failed = 1;
    else
        qkvi_markup_add(file, shown, strlen(shown));
    free(shown);
}

static void add_row(qkvi_bytes *file, const qkv_page *page, int64_t i) {
    const struct best best = best_of(page, &page->heads[0], i);
    qkvi_bytes_text(file, "<tr><th scope=\"row\"><bdi>");
    qkvi_page_add_shown(file, qkvi_page_queries(page).tokens[i]);
    qkvi_bytes_text(file, "</bdi></th>");
    for (int r = 0; r < TOP && best.key[r] >= 0; r++) {
        char number[32];
        qkvi_number(number, sizeof number, best.weight[r], 3);
        qkvi_bytes_text(file, "<td><bdi>");
        qkvi_page_add_shown(file, page->tokens[best.key[r]]);
        qkvi_bytes_text(file, "</bdi> ");
        qkvi_bytes_text(file, number);
        qkvi_bytes_text(file, "</td>");
    }
    qkvi_bytes_text(file, "</tr>\n");
}

void qkvi_page_add_plain(qkvi_bytes *file, const qkv_page *page, const qkvi_page_measure *measure) {
    qkvi_bytes_text(file, "<noscript><h1>");
    qkvi_page_add_shown(file, page->title ? page->title : "Attention");
    qkvi_bytes_text(file, "</h1><p>");
    qkvi_page_add_shown(file, page->modified ? page->modified : page->caption);
    qkvi_bytes_text(file, "</p><p>Without scripts: layer ");
    qkvi_json_int(file, page->heads[0].layer);
    qkvi_bytes_text(file, ", head ");
    qkvi_json_int(file, page->heads[0].head);
    qkvi_bytes_text(file, ", counted from 0.</p>\n");
    qkvi_page_add_drawing(file, page, measure);
    qkvi_bytes_text(file, "<p>The strongest keys of the first queries:</p>\n<table>\n");
    for (int64_t i = 0; i < page->n_queries && i < QKVI_PAGE_PLAIN_ROWS; i++)
        add_row(file, page, i);
    qkvi_bytes_text(file, "</table></noscript>\n");
}
