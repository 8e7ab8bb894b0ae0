/*
 * Making a report: see report.h. If memory runs out, `failed` is set, and report_end returns the
 * error.
 */
#include "common/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void report_begin(struct report *report, int n_components, bool shapes) {
    *report = (struct report){ .n_components = n_components, .shapes = shapes };
}

static void free_table(struct report_table *table) {
    for (int c = 0; c < table->n_columns; c++) free(table->columns[c].name);
    for (int64_t i = 0; i < table->n_rows * table->n_columns; i++) free(table->cells[i].text);
    free(table->columns);
    free(table->cells);
    free(table->marked);
}

void report_free(struct report *report) {
    for (int64_t i = 0; i < report->n_blocks; i++) {
        free(report->blocks[i].title);
        free(report->blocks[i].formula);
        free(report->blocks[i].shape);
        free(report->blocks[i].map);
        free_table(&report->blocks[i].table);
    }
    free(report->blocks);
    free(report->title);
    free(report->subtitle);
}

static void format_text(struct report *report, char **text, const char *format, va_list arguments) {
    free(*text);
    if (vasprintf(text, format, arguments) < 0) *text = NULL;
    report->failed |= !*text;
}

static char *copy(struct report *report, const char *text) {
    char *made = text ? strdup(text) : NULL;
    report->failed |= text && !made;
    return made;
}

/* A new block, or NULL once memory ran out. */
static struct report_block *add(struct report *report, enum report_kind kind) {
    if (report->failed) return NULL;
    struct report_block *larger =
        realloc(report->blocks, (size_t)(report->n_blocks + 1) * sizeof(*report->blocks));
    if (!larger) {
        report->failed = true;
        return NULL;
    }
    report->blocks = larger;
    struct report_block *block = &larger[report->n_blocks++];
    *block = (struct report_block){ .kind = kind };
    return block;
}

void report_line(struct report *report, enum report_kind kind, const char *format, ...) {
    char **text = kind == REPORT_TITLE ? &report->title : &report->subtitle;
    if (kind != REPORT_TITLE && kind != REPORT_SUBTITLE) {
        struct report_block *const block = add(report, kind);
        if (!block) return;
        text = &block->title;
    }
    va_list arguments;
    va_start(arguments, format);
    format_text(report, text, format, arguments);
    va_end(arguments);
}

void report_step(struct report *report, const char *title, const char *formula, const char *shape) {
    struct report_block *block = add(report, REPORT_STEP);
    if (!block) return;
    block->number = ++report->n_steps;
    block->title = copy(report, title);
    block->formula = copy(report, formula);
    block->shape = copy(report, shape);
}

void report_shape(struct report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!report->failed)
        format_text(report, &report->blocks[report->n_blocks - 1].shape, format, arguments);
    va_end(arguments);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static struct report_table *begin_table(struct report *report, int n_columns) {
    struct report_block *block = add(report, REPORT_TABLE);
    if (!block) return NULL;
    struct report_table *table = &block->table;
    table->columns = calloc((size_t)n_columns + 1, sizeof(*table->columns));
    report->failed |= !table->columns;
    if (report->failed) return NULL;
    table->n_columns = n_columns;
    return table;
}

static void set_column(struct report *report, struct report_column *column, char letter,
                       const char *name) {
    column->kind = letter == 'w'   ? COLUMN_WORD
                   : letter == 't' ? COLUMN_TEXT
                   : letter == 'b' ? COLUMN_BAR
                                   : COLUMN_NUMBER;
    column->name = copy(report, name);
}

void report_table(struct report *report, const char *columns, ...) {
    enum { MOST = 16 };
    const char *list[MOST];
    va_list names;
    va_start(names, columns);
    for (size_t c = 0; c < MOST && columns[c]; c++) list[c] = va_arg(names, const char *);
    va_end(names);
    report_table_named(report, columns, list);
}

void report_table_named(struct report *report, const char *columns, const char *const *names) {
    struct report_table *table = begin_table(report, (int)strlen(columns));
    for (int c = 0; table && c < table->n_columns; c++)
        set_column(report, &table->columns[c], columns[c], names[c]);
}

void report_table_numbered(struct report *report, const char *columns, int64_t first) {
    struct report_table *table = begin_table(report, (int)strlen(columns));
    for (int c = 0; table && c < table->n_columns; c++) {
        char name[24] = "";
        if (c > 0) snprintf(name, sizeof name, "%lld", (long long)(first + c - 1));
        set_column(report, &table->columns[c], columns[c], name);
    }
}

void report_row(struct report *report, bool marked) {
    if (report->failed) return;
    struct report_table *table = &report->blocks[report->n_blocks - 1].table;
    const size_t n = (size_t)table->n_rows + 1, width = (size_t)table->n_columns;
    struct report_cell *cells = realloc(table->cells, n * width * sizeof(*cells));
    if (cells) table->cells = cells;
    bool *marks = realloc(table->marked, n * sizeof(*marks));
    if (marks) table->marked = marks;
    report->failed |= !cells || !marks;
    if (report->failed) return;
    for (size_t c = 0; c < width; c++)
        cells[(n - 1) * width + c] = (struct report_cell){ NULL, NAN };
    marks[n - 1] = marked;
    table->n_rows++;
}

/* The first cell of the last row that is still empty; NULL once memory ran out. */
static struct report_cell *next_cell(struct report *report) {
    if (report->failed) return NULL;
    struct report_table *table = &report->blocks[report->n_blocks - 1].table;
    struct report_cell *cell = table->cells + (table->n_rows - 1) * table->n_columns;
    for (int c = 0; c < table->n_columns; c++, cell++)
        if (!cell->text && isnan(cell->bar)) return cell;
    return NULL;
}

void report_cell(struct report *report, const char *format, ...) {
    struct report_cell *cell = next_cell(report);
    if (!cell) return;
    va_list arguments;
    va_start(arguments, format);
    format_text(report, &cell->text, format, arguments);
    va_end(arguments);
}

void report_word(struct report *report, const char *bytes, size_t n) {
    char *const shown = term_escape(bytes, n);
    report->failed |= !shown;
    if (shown) report_cell(report, WORD, shown);
    free(shown);
}

void report_heading_word(struct report *report, const char *title, const char *bytes, size_t n) {
    char *const shown = term_escape(bytes, n);
    report->failed |= !shown;
    if (shown) report_heading(report, "%s" WORD, title, shown);
    free(shown);
}

const char *report_format(char text[NUMBER_BYTES], double value) {
    const double size = fabs(value);
    if (isnan(value) || isinf(value))
        snprintf(text, NUMBER_BYTES, isnan(value) ? "nan" : value < 0 ? "-∞" : "∞");
    else if (size >= 99999.5)
        snprintf(text, NUMBER_BYTES, "%.2e", value);
    else if (size >= 999.95)
        snprintf(text, NUMBER_BYTES, "%.1f", value);
    else if (size >= 0.0005 || size == 0)
        snprintf(text, NUMBER_BYTES, "%.3f", value);
    else
        snprintf(text, NUMBER_BYTES, "%.0e", value);
    return text;
}

const char *report_factor(char text[NUMBER_BYTES], double value) {
    char number[NUMBER_BYTES];
    report_format(number, value);
    if (*number == '-')
        snprintf(text, NUMBER_BYTES, "(%.*s)", NUMBER_BYTES - 3, number);
    else
        memcpy(text, number, NUMBER_BYTES);
    return text;
}

void report_number(struct report *report, double value) {
    char text[NUMBER_BYTES];
    report_cell(report, "%s", report_format(text, value));
}

void report_bar(struct report *report, double t) {
    struct report_cell *cell = next_cell(report);
    if (cell) cell->bar = isnan(t) ? 0 : t;
}

void report_map(struct report *report, int rows, int columns, const float *cells) {
    struct report_block *block = add(report, REPORT_MAP);
    const size_t bytes = (size_t)rows * (size_t)columns * sizeof(float);
    if (block) block->map = malloc(bytes + 1);
    report->failed |= block && !block->map;
    if (report->failed) return;
    memcpy(block->map, cells, bytes);
    block->map_rows = rows;
    block->map_columns = columns;
}

/* ---- Vectors --------------------------------------------------------------------------------- */

void report_vectors(struct report *report, int64_t n) {
    const int shown = n < report->n_components ? (int)n : report->n_components;
    const bool more = shown < n;
    struct report_table *table = begin_table(report, 1 + shown + more + 1);
    if (!table) return;
    set_column(report, &table->columns[0], 'w', "");
    for (int c = 0; c <= shown + more; c++) {
        char name[24];
        snprintf(name, sizeof name, "%d", c);
        set_column(report, &table->columns[1 + c], 'n',
                   c < shown           ? name
                   : c == shown + more ? "|x|"
                                       : "…");
    }
}

void report_vector(struct report *report, int64_t n, const double *values, bool marked,
                   const char *name, ...) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) sum += values[c] * values[c];
    const int shown = n < report->n_components ? (int)n : report->n_components;
    report_row(report, marked);
    struct report_cell *cell = next_cell(report);
    va_list arguments;
    va_start(arguments, name);
    if (cell) format_text(report, &cell->text, name, arguments);
    va_end(arguments);
    for (int c = 0; c < shown; c++) report_number(report, fabs(values[c]) < 0.0005 ? 0 : values[c]);
    if (shown < n) report_cell(report, "…");
    report_number(report, sqrt(sum));
}
