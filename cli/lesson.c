/* Making a lesson: see lesson.h. Memory that runs out is kept in `failed`, and told once at the end. */
#include "lesson.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void lesson_begin(struct lesson *lesson, int n_components, bool shapes) {
    *lesson = (struct lesson){ .n_components = n_components, .shapes = shapes };
}

static void free_table(struct lesson_table *table) {
    for (int c = 0; table->names && c < table->n_columns; c++) free(table->names[c]);
    for (int64_t i = 0; i < table->n_rows * table->n_columns; i++) free(table->cells[i].text);
    free(table->names);
    free(table->kinds);
    free(table->cells);
    free(table->marked);
}

void lesson_free(struct lesson *lesson) {
    for (int64_t i = 0; i < lesson->n_blocks; i++) {
        free(lesson->blocks[i].title);
        free(lesson->blocks[i].formula);
        free(lesson->blocks[i].shape);
        free(lesson->blocks[i].map);
        free_table(&lesson->blocks[i].table);
    }
    free(lesson->blocks);
    free(lesson->title);
    free(lesson->subtitle);
}

static char *format_text(struct lesson *lesson, const char *format, va_list arguments) {
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) text = NULL;
    lesson->failed |= !text;
    return text;
}

static char *copy(struct lesson *lesson, const char *text) {
    char *made = text ? strdup(text) : NULL;
    lesson->failed |= text && !made;
    return made;
}

/* A new block, or NULL once memory ran out. */
static struct lesson_block *add(struct lesson *lesson, enum lesson_kind kind) {
    if (lesson->failed) return NULL;
    struct lesson_block *larger =
        realloc(lesson->blocks, (size_t)(lesson->n_blocks + 1) * sizeof(*lesson->blocks));
    if (!larger) {
        lesson->failed = true;
        return NULL;
    }
    lesson->blocks = larger;
    struct lesson_block *block = &larger[lesson->n_blocks++];
    *block = (struct lesson_block){ .kind = kind };
    return block;
}

void lesson_title(struct lesson *lesson, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    free(lesson->title);
    lesson->title = format_text(lesson, format, arguments);
    va_end(arguments);
}

void lesson_subtitle(struct lesson *lesson, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    free(lesson->subtitle);
    lesson->subtitle = format_text(lesson, format, arguments);
    va_end(arguments);
}

void lesson_step(struct lesson *lesson, const char *title, const char *formula, const char *shape) {
    struct lesson_block *block = add(lesson, LESSON_STEP);
    if (!block) return;
    block->number = ++lesson->n_steps;
    block->title = copy(lesson, title);
    block->formula = copy(lesson, formula);
    block->shape = copy(lesson, shape);
}

void lesson_heading(struct lesson *lesson, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    struct lesson_block *block = add(lesson, LESSON_HEADING);
    if (block) block->title = format_text(lesson, format, arguments);
    va_end(arguments);
}

void lesson_text(struct lesson *lesson, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    struct lesson_block *block = add(lesson, LESSON_TEXT);
    if (block) block->title = format_text(lesson, format, arguments);
    va_end(arguments);
}

void lesson_note(struct lesson *lesson, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    struct lesson_block *block = add(lesson, LESSON_NOTE);
    if (block) block->title = format_text(lesson, format, arguments);
    va_end(arguments);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static struct lesson_table *begin_table(struct lesson *lesson, int n_columns) {
    struct lesson_block *block = add(lesson, LESSON_TABLE);
    if (!block) return NULL;
    struct lesson_table *table = &block->table;
    table->names = calloc((size_t)n_columns + 1, sizeof(*table->names));
    table->kinds = calloc((size_t)n_columns + 1, sizeof(*table->kinds));
    lesson->failed |= !table->names || !table->kinds;
    if (lesson->failed) return NULL;
    table->n_columns = n_columns;
    return table;
}

static enum lesson_column_kind kind_of(char letter) {
    return letter == 'w'   ? COLUMN_WORD
           : letter == 't' ? COLUMN_TEXT
           : letter == 'b' ? COLUMN_BAR
                           : COLUMN_NUMBER;
}

void lesson_table(struct lesson *lesson, const char *columns, ...) {
    struct lesson_table *table = begin_table(lesson, (int)strlen(columns));
    if (!table) return;
    va_list names;
    va_start(names, columns);
    for (int c = 0; c < table->n_columns; c++) {
        table->kinds[c] = kind_of(columns[c]);
        table->names[c] = copy(lesson, va_arg(names, const char *));
    }
    va_end(names);
}

void lesson_table_named(struct lesson *lesson, const char *columns, const char *const *names) {
    struct lesson_table *table = begin_table(lesson, (int)strlen(columns));
    for (int c = 0; table && c < table->n_columns; c++) {
        table->kinds[c] = kind_of(columns[c]);
        table->names[c] = copy(lesson, names[c]);
    }
}

void lesson_table_numbered(struct lesson *lesson, const char *columns, int64_t first) {
    struct lesson_table *table = begin_table(lesson, (int)strlen(columns));
    for (int c = 0; table && c < table->n_columns; c++) {
        char name[24] = "";
        if (c > 0) snprintf(name, sizeof name, "%lld", (long long)(first + c - 1));
        table->kinds[c] = kind_of(columns[c]);
        table->names[c] = copy(lesson, name);
    }
}

void lesson_row(struct lesson *lesson, bool marked) {
    if (lesson->failed) return;
    struct lesson_table *table = &lesson->blocks[lesson->n_blocks - 1].table;
    const size_t n = (size_t)table->n_rows + 1, width = (size_t)table->n_columns;
    struct lesson_cell *cells = realloc(table->cells, n * width * sizeof(*cells));
    if (cells) table->cells = cells;
    bool *marks = realloc(table->marked, n * sizeof(*marks));
    if (marks) table->marked = marks;
    lesson->failed |= !cells || !marks;
    if (lesson->failed) return;
    for (size_t c = 0; c < width; c++)
        cells[(n - 1) * width + c] = (struct lesson_cell){ NULL, NAN };
    marks[n - 1] = marked;
    table->n_rows++;
}

/* The first cell of the last row that is still empty; NULL once memory ran out. */
static struct lesson_cell *next_cell(struct lesson *lesson) {
    if (lesson->failed) return NULL;
    struct lesson_table *table = &lesson->blocks[lesson->n_blocks - 1].table;
    struct lesson_cell *cell = table->cells + (table->n_rows - 1) * table->n_columns;
    for (int c = 0; c < table->n_columns; c++, cell++)
        if (!cell->text && isnan(cell->bar)) return cell;
    return NULL;
}

void lesson_cell(struct lesson *lesson, const char *format, ...) {
    struct lesson_cell *cell = next_cell(lesson);
    if (!cell) return;
    va_list arguments;
    va_start(arguments, format);
    cell->text = format_text(lesson, format, arguments);
    va_end(arguments);
}

const char *lesson_format(char text[NUMBER_BYTES], double value) {
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

const char *lesson_factor(char text[NUMBER_BYTES], double value) {
    char number[NUMBER_BYTES];
    lesson_format(number, value);
    if (*number == '-')
        snprintf(text, NUMBER_BYTES, "(%.*s)", NUMBER_BYTES - 3, number);
    else
        memcpy(text, number, NUMBER_BYTES);
    return text;
}

void lesson_number(struct lesson *lesson, double value) {
    char text[NUMBER_BYTES];
    lesson_cell(lesson, "%s", lesson_format(text, value));
}

void lesson_bar(struct lesson *lesson, double t) {
    struct lesson_cell *cell = next_cell(lesson);
    if (cell) cell->bar = isnan(t) ? 0 : t;
}

void lesson_map(struct lesson *lesson, int rows, int columns, const float *cells) {
    struct lesson_block *block = add(lesson, LESSON_MAP);
    const size_t bytes = (size_t)rows * (size_t)columns * sizeof(float);
    if (block) block->map = malloc(bytes + 1);
    lesson->failed |= block && !block->map;
    if (lesson->failed) return;
    memcpy(block->map, cells, bytes);
    block->map_rows = rows;
    block->map_columns = columns;
}

/* ---- Vectors --------------------------------------------------------------------------------- */

void lesson_vectors(struct lesson *lesson, int64_t n) {
    const int shown = n < lesson->n_components ? (int)n : lesson->n_components;
    const bool more = shown < n;
    struct lesson_table *table = begin_table(lesson, 1 + shown + more + 1);
    if (!table) return;
    table->kinds[0] = COLUMN_WORD;
    table->names[0] = copy(lesson, "");
    for (int c = 0; c <= shown + more; c++) {
        char name[24];
        snprintf(name, sizeof name, "%d", c);
        table->kinds[1 + c] = COLUMN_NUMBER;
        table->names[1 + c] = copy(lesson, c < shown ? name : c == shown + more ? "|x|" : "…");
    }
}

void lesson_vector(struct lesson *lesson, int64_t n, const double *values, bool marked,
                   const char *name, ...) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) sum += values[c] * values[c];
    const int shown = n < lesson->n_components ? (int)n : lesson->n_components;
    lesson_row(lesson, marked);
    struct lesson_cell *cell = next_cell(lesson);
    va_list arguments;
    va_start(arguments, name);
    if (cell) cell->text = format_text(lesson, name, arguments);
    va_end(arguments);
    for (int c = 0; c < shown; c++) lesson_number(lesson, fabs(values[c]) < 0.0005 ? 0 : values[c]);
    if (shown < n) lesson_cell(lesson, "…");
    lesson_number(lesson, sqrt(sum));
}
