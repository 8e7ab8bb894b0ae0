/*
 * A report on the terminal. Signs that ASCII lacks are spelt out where the terminal has no others;
 * tables have columns as wide as their widest cell, bars take what is left.
 */
#include <stdlib.h>
#include <string.h>

#include "common/draw.h"
#include "common/report.h"

enum { INDENT = 4, GAP = 2, WIDEST_WORD = 18, WIDEST_BAR = 30, LEAST_BAR = 6 };
enum { VECTOR_NAME = 14, VECTOR_CELL = 9 };

int report_components(const struct term *term) {
    const int room = (term->width - INDENT - VECTOR_NAME - 4 - VECTOR_CELL) / VECTOR_CELL;
    return room < 2 ? 2 : room > 8 ? 8 : room;
}

/* The text as this terminal has it, escaped; free *made. */
static const char *shown(const struct term *term, const char *text, char **made) {
    char *const plain = text ? term_plain(text, !term->unicode) : NULL;
    *made = plain ? term_escape(plain, strlen(plain)) : NULL;
    free(plain);
    return *made ? *made : "";
}

static int columns_of(const struct term *term, const char *text) {
    char *made;
    const int columns = term_columns(shown(term, text, &made));
    free(made);
    return columns;
}

static void print_shown(const struct term *term, const char *text) {
    char *made;
    fputs(shown(term, text, &made), term->out);
    free(made);
}

static void put(struct term *term, const char *text, int width, bool right) {
    char *made;
    term_put(term, shown(term, text, &made), width, right);
    free(made);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* Texts share two thirds of the line. */
static int widest_of(const struct term *term, const struct report_table *table, int column) {
    int n_texts = 0;
    for (int c = 0; c < table->n_columns; c++) n_texts += table->columns[c].kind == COLUMN_TEXT;
    switch (table->columns[column].kind) {
    case COLUMN_WORD: return WIDEST_WORD;
    case COLUMN_TEXT: return 2 * (term->width - INDENT) / (3 * n_texts);
    default: return term->width;
    }
}

/* Widths of all columns; the last ones that do not fit get 0. */
static void plan(const struct term *term, const struct report_table *table, int *widths) {
    int used = INDENT;
    for (int c = 0; c < table->n_columns; c++) {
        int width = columns_of(term, table->columns[c].name);
        for (int64_t i = 0; i < table->n_rows; i++) {
            const struct report_cell *cell = &table->cells[i * table->n_columns + c];
            const int columns = cell->text ? columns_of(term, cell->text) : 0;
            if (columns > width) width = columns;
        }
        if (width > widest_of(term, table, c)) width = widest_of(term, table, c);
        if (table->columns[c].kind == COLUMN_BAR) {
            const int room = term->width - used - GAP;
            width = room > WIDEST_BAR ? WIDEST_BAR : room < LEAST_BAR ? 0 : room;
        }
        if (used + width + GAP > term->width) width = 0;
        widths[c] = width;
        if (width) used += width + GAP;
    }
}

/* Spaces at the end of a line are not written: they wait in *blank. */
static void put_cell(struct term *term, enum report_column_kind kind,
                     const struct report_cell *cell, int width, int *blank) {
    if (kind == COLUMN_BAR && cell->bar > 0) {
        fprintf(term->out, "%*s", *blank, "");
        term_bar(term, cell->bar, width);
        *blank = 0;
        return;
    }
    const int columns = cell->text ? columns_of(term, cell->text) : 0;
    if (columns == 0) {
        *blank += width;
        return;
    }
    const int part = columns < width ? columns : width, spare = width - part;
    fprintf(term->out, "%*s", *blank + (kind == COLUMN_NUMBER ? spare : 0), "");
    put(term, cell->text, part, false);
    *blank = kind == COLUMN_NUMBER ? 0 : spare;
}

static void print_table(const struct report_table *table, struct term *term) {
    int *widths = calloc((size_t)table->n_columns + 1, sizeof(*widths));
    if (!widths) return;
    plan(term, table, widths);
    for (int64_t i = -1; i < table->n_rows; i++) {
        const bool bold = i >= 0 && table->marked[i];
        if (i < 0) term_style(term, STYLE_DIM);
        if (bold) term_style(term, STYLE_BOLD);
        int blank = INDENT;
        for (int c = 0; c < table->n_columns; c++) {
            if (!widths[c]) continue;
            const struct report_cell name = { table->columns[c].name, 0 };
            const struct report_cell *cell =
                i < 0 ? &name : &table->cells[i * table->n_columns + c];
            put_cell(term, table->columns[c].kind, cell, widths[c], &blank);
            blank += GAP;
        }
        if (i < 0 || bold) term_style(term, STYLE_NONE);
        term_newline(term);
    }
    free(widths);
}

/* Half blocks, two rows a line; without colour one row a line. */
static void print_map(const struct report_block *block, struct term *term) {
    const int rows = block->map_rows, columns = block->map_columns;
    const int step = term->depth == TERM_PLAIN || !term->unicode ? 1 : 2;
    for (int i = 0; i < rows; i += step) {
        fprintf(term->out, "%*s%4d  ", INDENT - 2, "", i);
        draw_halves(term, block->map + (size_t)i * (size_t)columns,
                    rows - i < step ? rows - i : step, columns, 0, 1);
        term_newline(term);
    }
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* Wrapped, each line after so many spaces. */
static void print_text(const char *text, struct term *term, enum term_style style, int indent) {
    char *made;
    if (style != STYLE_NONE) term_style(term, style);
    term_wrap_at(term, shown(term, text, &made), indent);
    if (style != STYLE_NONE) term_style(term, STYLE_NONE);
    free(made);
}

static void print_step(const struct report *report, const struct report_block *block,
                       struct term *term) {
    fputc('\n', term->out);
    term_style(term, STYLE_BOLD);
    fprintf(term->out, "%2d  ", block->number);
    print_shown(term, block->title);
    term_style(term, STYLE_NONE);
    const int title = INDENT + columns_of(term, block->title);
    const int formula = columns_of(term, block->formula);
    if (formula > 0) {
        if (title + 3 + formula > term->width)
            fprintf(term->out, "\n%*s", INDENT, "");
        else
            fputs("   ", term->out);
        print_shown(term, block->formula);
    }
    term_newline(term);
    if (!report->shapes || !block->shape) return;
    term_style(term, STYLE_DIM);
    fprintf(term->out, "%*s", INDENT, "");
    print_shown(term, block->shape);
    term_style(term, STYLE_NONE);
    term_newline(term);
}

void report_print(const struct report *report, struct term *term) {
    if (report->title) {
        print_text(report->title, term, STYLE_BOLD, 0);
        print_text(report->subtitle, term, STYLE_NONE, 0);
    }
    for (int64_t i = 0; i < report->n_blocks; i++) {
        const struct report_block *block = &report->blocks[i];
        switch (block->kind) {
        case REPORT_TITLE:
        case REPORT_SUBTITLE: break; /* are no blocks */
        case REPORT_STEP: print_step(report, block, term); break;
        case REPORT_HEADING: print_text(block->title, term, STYLE_BOLD, 0); break;
        case REPORT_TEXT: print_text(block->title, term, STYLE_NONE, INDENT); break;
        case REPORT_TABLE: print_table(&block->table, term); break;
        case REPORT_MAP: print_map(block, term); break;
        case REPORT_NOTE: print_text(block->title, term, STYLE_DIM, INDENT); break;
        }
    }
}

qkv_status report_end(struct report *report, struct term *term, qkv_error *error) {
    const bool failed = report->failed;
    if (!failed) report_print(report, term);
    report_free(report);
    return failed ? text_no_memory(error) : QKV_OK;
}
