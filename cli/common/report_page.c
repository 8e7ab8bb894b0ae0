/*
 * A report as a page, made from the template report_page.html: one .html file without scripts that
 * loads nothing, which its Content-Security-Policy also forbids. Words from outside are in <bdi>,
 * so that their direction changes nothing around them, and every text is escaped.
 */
#include <string.h>

#include "common/csv.h"
#include "common/report.h"
#include "common/text.h"

extern const char report_page_text[]; /* report_page.html */

/* Escaped for HTML; \002 and \003 around a word from outside become <bdi> and </bdi>. */
static void put_text(struct csv *page, const char *text, bool words) {
    for (; text && *text; text++) {
        switch (*text) {
        case '<': csv_put(page, "&lt;"); break;
        case '>': csv_put(page, "&gt;"); break;
        case '&': csv_put(page, "&amp;"); break;
        case '"': csv_put(page, "&quot;"); break;
        case WORD_BEGIN: csv_put(page, "%s", words ? "<bdi>" : ""); break;
        case WORD_END: csv_put(page, "%s", words ? "</bdi>" : ""); break;
        default: csv_put(page, "%c", *text);
        }
    }
}

static void put_element(struct csv *page, const char *begin, const char *text, const char *end) {
    csv_put(page, "%s", begin);
    put_text(page, text, true);
    csv_put(page, "%s", end);
}

static void put_cell(struct csv *page, enum report_column_kind kind,
                     const struct report_cell *cell) {
    if (kind == COLUMN_WORD || kind == COLUMN_TEXT) {
        put_element(page, "<th scope=\"row\" class=\"word\"><bdi>", cell->text, "</bdi></th>");
    } else if (kind == COLUMN_BAR) {
        const double t = cell->bar > 1 ? 1 : cell->bar > 0 ? cell->bar : 0;
        csv_put(
            page,
            "<td><svg aria-hidden=\"true\"><rect width=\"%.2f%%\" height=\"100%%\"/></svg></td>",
            100 * t);
    } else {
        put_element(page, "<td>", cell->text, "</td>");
    }
}

static void put_table(struct csv *page, const struct report_table *table) {
    csv_put(page, "<div class=\"wide\"><table>\n<thead><tr>");
    for (int c = 0; c < table->n_columns; c++)
        put_element(page,
                    table->columns[c].kind == COLUMN_WORD || table->columns[c].kind == COLUMN_TEXT
                        ? "<th scope=\"col\" class=\"word\">"
                        : "<th scope=\"col\">",
                    table->columns[c].name, "</th>");
    csv_put(page, "</tr></thead>\n<tbody>\n");
    for (int64_t i = 0; i < table->n_rows; i++) {
        csv_put(page, table->marked[i] ? "<tr class=\"marked\">" : "<tr>");
        for (int c = 0; c < table->n_columns; c++)
            put_cell(page, table->columns[c].kind, &table->cells[i * table->n_columns + c]);
        csv_put(page, "</tr>\n");
    }
    csv_put(page, "</tbody></table></div>\n");
}

/* Cells that are more are more opaque, whatever the theme. */
static void put_map(struct csv *page, const struct report_block *block) {
    const int rows = block->map_rows, columns = block->map_columns;
    csv_put(page,
            "<div class=\"wide\"><svg class=\"map\" role=\"img\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" shape-rendering=\"crispEdges\">\n",
            10 * columns, 10 * rows, columns, rows);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            csv_put(page,
                    "<rect x=\"%d\" y=\"%d\" width=\"1\" height=\"1\" fill-opacity=\"%.3f\"/>%s", j,
                    i, (double)block->map[i * columns + j], j + 1 < columns ? "" : "\n");
    csv_put(page, "</svg></div>\n");
}

static void put_step(struct csv *page, const struct report *report,
                     const struct report_block *block) {
    csv_put(page, "%s<section>\n<div class=\"step\"><span class=\"number\">%d</span>",
            block->number > 1 ? "</section>\n" : "", block->number);
    put_element(page, "<h2>", block->title, "</h2>");
    if (block->formula) put_element(page, "<span class=\"formula\">", block->formula, "</span>");
    csv_put(page, "</div>\n");
    if (report->shapes && block->shape)
        put_element(page, "<p class=\"shape\">", block->shape, "</p>\n");
}

static void put_block(struct csv *page, const struct report *report,
                      const struct report_block *block) {
    switch (block->kind) {
    case REPORT_TITLE:
    case REPORT_SUBTITLE: break; /* are no blocks */
    case REPORT_STEP: put_step(page, report, block); break;
    case REPORT_HEADING: put_element(page, "<h2>", block->title, "</h2>\n"); break;
    case REPORT_TEXT: put_element(page, "<p>", block->title, "</p>\n"); break;
    case REPORT_NOTE: put_element(page, "<p class=\"note\">", block->title, "</p>\n"); break;
    case REPORT_TABLE: put_table(page, &block->table); break;
    case REPORT_MAP: put_map(page, block); break;
    }
}

struct filling {
    struct csv page;
    const struct report *report;
};

static void fill(void *user, const char *hole) {
    struct filling *const f = user;
    const struct report *const report = f->report;
    if (strcmp(hole, "title") == 0) put_text(&f->page, report->title, false);
    if (strcmp(hole, "heading") == 0) put_text(&f->page, report->title, true);
    if (strcmp(hole, "lead") == 0) put_text(&f->page, report->subtitle, true);
    if (strcmp(hole, "blocks") != 0) return;
    for (int64_t i = 0; i < report->n_blocks; i++) put_block(&f->page, report, &report->blocks[i]);
    if (report->n_steps) csv_put(&f->page, "</section>\n");
}

qkv_status report_page(const struct report *report, const char *path, qkv_error *error) {
    struct filling filling = { .report = report };
    struct csv *const page = &filling.page;
    csv_open(page);
    if (page->out)
        page->failed = !template_write(page->out, report_page_text, fill, &filling) || page->failed;
    return csv_write(page, path, error);
}
