/*
 * A report as a page: one .html file without a script and without anything to fetch, which its
 * Content-Security-Policy also forbids. Words from outside stand in <bdi>, so that their direction
 * changes nothing around them, and every text is escaped.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/report.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n";

static const char style[] =
    "<style>\n"
    ":root { color-scheme: light dark; --page: light-dark(#ffffff, #13151a); --pane: "
    "light-dark(#f6f7f9, #191c22);\n"
    "  --strong: light-dark(#12161f, #f4f5f8); --ink: light-dark(#2f3642, #d3d7df); --faint: "
    "light-dark(#596170, #a3abb8);\n"
    "  --line: light-dark(#dde1e7, #30343d); --accent: light-dark(#155eb1, #2fc4c2); --wash: "
    "light-dark(#e7f0fa, #17343a); }\n"
    "html { font: 16px/1.55 system-ui, \"Noto Sans\", sans-serif; background: var(--page); color: "
    "var(--ink); }\n"
    "body { margin: 0 auto; padding: 32px 20px 64px; max-width: 880px; font-variant-numeric: "
    "tabular-nums; }\n"
    "h1 { font-size: 1.5rem; line-height: 1.25; color: var(--strong); margin: 0 0 8px; "
    "overflow-wrap: anywhere; }\n"
    "h2 { font-size: 1.05rem; color: var(--strong); margin: 0; }\n"
    "p { margin: 8px 0; max-width: 72ch; overflow-wrap: anywhere; }\n"
    ".lead, .note { color: var(--faint); } .note { font-size: .875rem; }\n"
    "section { border-top: 1px solid var(--line); margin-top: 26px; padding-top: 18px; }\n"
    ".step { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: baseline; margin: 0 0 "
    "10px; }\n"
    ".formula { white-space: pre-wrap; } td { min-width: 4em; }\n"
    ".step .number { color: var(--accent); font-weight: 700; min-width: 1.6em; }\n"
    ".formula, .shape { font-family: ui-monospace, \"DejaVu Sans Mono\", monospace; font-size: "
    ".875rem; }\n"
    ".shape { color: var(--faint); margin: 0 0 10px; }\n"
    ".wide { overflow-x: auto; margin: 10px 0; }\n"
    "table { border-collapse: collapse; font-size: .875rem; }\n"
    "th, td { padding: 3px 9px; text-align: right; white-space: nowrap; }\n"
    "thead th { color: var(--faint); font-weight: 500; border-bottom: 1px solid var(--line); }\n"
    ".word { text-align: left; font-weight: 500; color: var(--strong); }\n"
    "tr.marked { background: var(--wash); } tr.marked td, tr.marked th { font-weight: 700; color: "
    "var(--strong); }\n"
    "svg { display: block; width: 200px; height: 12px; } rect { fill: var(--accent); }\n"
    "svg.map { width: auto; height: auto; max-width: 100%; }\n"
    "@media print { body { max-width: none; } section { break-inside: avoid; } }\n"
    "</style>\n";

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
                    table->kinds[c] == COLUMN_WORD || table->kinds[c] == COLUMN_TEXT
                        ? "<th scope=\"col\" class=\"word\">"
                        : "<th scope=\"col\">",
                    table->names[c], "</th>");
    csv_put(page, "</tr></thead>\n<tbody>\n");
    for (int64_t i = 0; i < table->n_rows; i++) {
        csv_put(page, table->marked[i] ? "<tr class=\"marked\">" : "<tr>");
        for (int c = 0; c < table->n_columns; c++)
            put_cell(page, table->kinds[c], &table->cells[i * table->n_columns + c]);
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

qkv_status report_page(const struct report *report, const char *path, qkv_error *error) {
    struct csv page;
    csv_open(&page);
    csv_put(&page, "%s<title>", head);
    put_text(&page, report->title, false);
    csv_put(&page, "</title>\n%s</head>\n<body>\n<main>\n", style);
    put_element(&page, "<h1>", report->title, "</h1>\n");
    put_element(&page, "<p class=\"lead\">", report->subtitle, "</p>\n");
    for (int64_t i = 0; i < report->n_blocks; i++) {
        const struct report_block *block = &report->blocks[i];
        switch (block->kind) {
        case REPORT_STEP: put_step(&page, report, block); break;
        case REPORT_HEADING: put_element(&page, "<h2>", block->title, "</h2>\n"); break;
        case REPORT_TEXT: put_element(&page, "<p>", block->title, "</p>\n"); break;
        case REPORT_NOTE: put_element(&page, "<p class=\"note\">", block->title, "</p>\n"); break;
        case REPORT_TABLE: put_table(&page, &block->table); break;
        case REPORT_MAP: put_map(&page, block); break;
        }
    }
    csv_put(&page, "%s</main>\n</body>\n</html>\n", report->n_steps ? "</section>\n" : "");
    return csv_write(&page, path, error);
}
