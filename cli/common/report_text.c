/*
 * A report on the terminal. With --ascii, or on a terminal without Unicode, signs are spelt out. A
 * column is as wide as its widest cell; bars take what is left. In a table that is wider than the
 * terminal, words are cut with an ellipsis; if it is still wider, the columns that do not fit are
 * printed below it, with the first columns repeated. No column is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "common/draw.h"
#include "common/report.h"

enum { INDENT = 4, GAP = 2, WIDEST_WORD = 18, LEAST_CUT = 10, WIDEST_BAR = 30, LEAST_BAR = 6 };
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

/* How a table is set: as one, or in parts below each other that all begin with its keys. */
struct layout {
    int *widths; /* [n_columns]; 0: is not shown */
    int *least;  /* [n_columns]: what a column may be cut to */
    int n_keys;  /* the columns up to the first one of words: they say what a row is of */
};

/* Columns that so many columns of a table take, from the left edge, if they stand in one line. */
static int line_of(const struct layout *layout, int first, int end) {
    int used = 0;
    for (int c = first; c < end; c++) used += layout->widths[c] > 0 ? layout->widths[c] + GAP : 0;
    return used;
}

/* What its cells and its name need; a bar takes what is left. */
static void measure(const struct term *term, const struct report_table *table,
                    struct layout *layout) {
    layout->n_keys = table->n_columns > 0;
    for (int c = table->n_columns - 1; c >= 0; c--) {
        const enum report_column_kind kind = table->columns[c].kind;
        const bool cut = kind == COLUMN_WORD || kind == COLUMN_TEXT;
        int cells = 0, width = columns_of(term, table->columns[c].name);
        for (int64_t i = 0; i < table->n_rows; i++) {
            const struct report_cell *cell = &table->cells[i * table->n_columns + c];
            const int columns = cell->text ? columns_of(term, cell->text) : 0;
            if (columns > cells) cells = columns;
        }
        if (cells > width) width = cells;
        if (width > widest_of(term, table, c)) width = widest_of(term, table, c);
        const int least = cut || cells < LEAST_CUT ? LEAST_CUT : cells;
        layout->widths[c] = kind == COLUMN_BAR ? 0 : width;
        layout->least[c] = least < width ? least : width;
        if (cut) layout->n_keys = c + 1;
    }
}

/* Cuts the widest columns of some until they take `room` at most, if that is possible. */
static bool cut_to(struct layout *layout, int end, int room) {
    while (line_of(layout, 0, end) - GAP > room) {
        int widest = -1;
        for (int c = 0; c < end; c++)
            if (layout->widths[c] > layout->least[c] &&
                (widest < 0 || layout->widths[c] > layout->widths[widest]))
                widest = c;
        if (widest < 0) return false;
        layout->widths[widest]--;
    }
    return true;
}

/*
 * All columns in one line, with words that are cut where they must be; or as they are, in parts,
 * where keys leave room for the widest of the others. A table in parts has no bars, which only draw
 * a number.
 */
static void plan(const struct term *term, const struct report_table *table, struct layout *layout) {
    const int n = table->n_columns, room = term->width - INDENT;
    measure(term, table, layout);
    int used = line_of(layout, 0, n), bar = 0, widest = 0;
    for (int c = 0; c < n; c++)
        if (table->columns[c].kind == COLUMN_BAR) bar = c;
    if (bar > 0 && used + GAP + LEAST_BAR <= room) {
        layout->widths[bar] = room - used - GAP;
        if (layout->widths[bar] > WIDEST_BAR) layout->widths[bar] = WIDEST_BAR;
    }
    if (line_of(layout, 0, n) - GAP <= room || cut_to(layout, n, room)) return;
    measure(term, table, layout);
    for (int c = layout->n_keys; c < n; c++)
        if (layout->widths[c] > widest) widest = layout->widths[c];
    cut_to(layout, layout->n_keys, room - GAP - widest);
}

/* Words behind the keys begin a group of columns: one without a text only keeps groups apart. */
static bool is_gap(const struct report_table *table, int column) {
    const char *name = table->columns[column].name;
    if (table->columns[column].kind != COLUMN_WORD || strspn(name, " ") < strlen(name))
        return false;
    for (int64_t i = 0; i < table->n_rows; i++) {
        const char *const text = table->cells[i * table->n_columns + column].text;
        if (text && strspn(text, " ") < strlen(text)) return false;
    }
    return true;
}

/* Where the part that begins with a column ends: behind what has room, between groups if it can. */
static int part_end(const struct term *term, const struct report_table *table,
                    const struct layout *layout, int first) {
    const int room = term->width - INDENT - line_of(layout, 0, layout->n_keys);
    int end = first < table->n_columns ? first + 1 : first, group = -1;
    while (end < table->n_columns && line_of(layout, first, end + 1) - GAP <= room) end++;
    if (end == table->n_columns) return end;
    for (int c = first + 1; c <= end; c++)
        if (table->columns[c].kind == COLUMN_WORD) group = c;
    return group > 0 ? group : end;
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

/* A row, -1 the names: its keys and the columns of a part. */
static void print_row(const struct report_table *table, const struct layout *layout, int64_t row,
                      int first, int end, struct term *term) {
    const bool bold = row >= 0 && table->marked[row];
    if (row < 0) term_style(term, STYLE_DIM);
    if (bold) term_style(term, STYLE_BOLD);
    int blank = INDENT;
    for (int c = 0; c < end; c++) {
        if (layout->widths[c] == 0 || (c >= layout->n_keys && c < first)) continue;
        const struct report_cell name = { table->columns[c].name, 0 };
        const struct report_cell *cell =
            row < 0 ? &name : &table->cells[row * table->n_columns + c];
        put_cell(term, table->columns[c].kind, cell, layout->widths[c], &blank);
        blank += GAP;
    }
    if (row < 0 || bold) term_style(term, STYLE_NONE);
    term_newline(term);
}

static void print_table(const struct report_table *table, struct term *term) {
    const size_t n = (size_t)table->n_columns;
    int *const widths = calloc(2 * n + 1, sizeof *widths);
    if (!widths) return;
    struct layout layout = { .widths = widths, .least = widths + n };
    plan(term, table, &layout);
    int first = layout.n_keys;
    do {
        const int end = part_end(term, table, &layout, first);
        for (int64_t i = -1; i < table->n_rows; i++) print_row(table, &layout, i, first, end, term);
        for (first = end; first < table->n_columns; first++) /* nothing to see at the left edge */
            if (widths[first] > 0 && !is_gap(table, first)) break;
    } while (first < table->n_columns);
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
    const bool beside = title + 3 + formula <= term->width;
    if (formula > 0 && beside) fputs("   ", term->out);
    if (formula > 0 && beside) print_shown(term, block->formula);
    term_newline(term);
    if (!beside) print_text(block->formula, term, STYLE_NONE, INDENT);
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
