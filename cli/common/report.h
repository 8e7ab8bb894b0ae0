/*
 * A report is a list of blocks: steps with a title, a formula and a shape, tables, and sentences.
 * It is made once and shown on the terminal (report_text.c) or as a page (report_page.c), so that
 * both have the same numbers. Callers escape tokens, paths and all else from outside.
 */
#ifndef QKV_CLI_COMMON_REPORT_H
#define QKV_CLI_COMMON_REPORT_H

#include "common/job.h"
#include "common/term.h"

enum report_kind {
    REPORT_TITLE,
    REPORT_SUBTITLE, /* these two are no blocks: report->title, ->subtitle */
    REPORT_STEP,
    REPORT_HEADING,
    REPORT_TEXT,
    REPORT_NOTE,
    REPORT_TABLE,
    REPORT_MAP
};

/* Words and texts are left-aligned, numbers right-aligned; a bar shows a number from 0 to 1. */
enum report_column_kind { COLUMN_WORD, COLUMN_TEXT, COLUMN_NUMBER, COLUMN_BAR };

struct report_column {
    enum report_column_kind kind;
    char *name;
};

struct report_cell {
    char *text; /* NULL: an empty cell */
    double bar; /* from 0 to 1 */
};

struct report_table {
    int n_columns;
    int64_t n_rows;
    struct report_column *columns; /* [n_columns] */
    struct report_cell *cells;     /* [n_rows][n_columns] */
    bool *marked;                  /* [n_rows]: the row that matters */
};

struct report_block {
    enum report_kind kind;
    int number;                    /* of a step, from 1 */
    char *title, *formula, *shape; /* of a step (shape is nullable); title: any other line, too */
    struct report_table table;
    int map_rows, map_columns;
    float *map; /* [map_rows][map_columns], from 0 to 1 */
};

struct report {
    char *title, *subtitle;
    struct report_block *blocks;
    int64_t n_blocks;
    int n_steps;
    int n_components; /* how many components of a vector are shown */
    bool shapes;      /* show shapes */
    bool failed;      /* out of memory: what is added after that is dropped */
};

void report_begin(struct report *report, int n_components, bool shapes);
void report_free(struct report *report);

#define REPORT_FORMAT(nth, first) __attribute__((format(printf, nth, first)))

/* Adds a line: title and subtitle of the report, a heading, a sentence, or a small note. */
void report_line(struct report *report, enum report_kind kind, const char *format, ...)
    REPORT_FORMAT(3, 4);
#define report_title(report, ...)    report_line(report, REPORT_TITLE, __VA_ARGS__)
#define report_subtitle(report, ...) report_line(report, REPORT_SUBTITLE, __VA_ARGS__)
#define report_heading(report, ...)  report_line(report, REPORT_HEADING, __VA_ARGS__)
#define report_text(report, ...)     report_line(report, REPORT_TEXT, __VA_ARGS__)
#define report_note(report, ...)     report_line(report, REPORT_NOTE, __VA_ARGS__)
/* A heading of `title` and bytes from outside, which it escapes and marks as a WORD (term.h). */
void report_heading_word(struct report *report, const char *title, const char *bytes, size_t n);
/* Begins a step: its title, its formula, and the shape of its result (nullable). */
void report_step(struct report *report, const char *title, const char *formula, const char *shape);
/* Sets the shape of the result of the step that was begun last. */
void report_shape(struct report *report, const char *format, ...) REPORT_FORMAT(2, 3);

/*
 * Begins a table. `columns` has a letter for each column, at most 16: "w" a word, "t" a text, "n" a
 * number, "b" a bar; then come the names of the columns. report_row begins a row, and a call for
 * each cell follows, in the order of the columns.
 */
void report_table(struct report *report, const char *columns, ...);
/* The same with the names in an array. */
void report_table_named(struct report *report, const char *columns, const char *const *names);
/* The same; the first column has no name, the others are called first, first + 1, … */
void report_table_numbered(struct report *report, const char *columns, int64_t first);
void report_row(struct report *report, bool marked);
void report_cell(struct report *report, const char *format, ...) REPORT_FORMAT(2, 3);
/* A cell with bytes from outside, which it escapes. */
void report_word(struct report *report, const char *bytes, size_t n);
void report_number(struct report *report, double value);
void report_bar(struct report *report, double t);

/* A heat map of numbers from 0 to 1, which it copies; rows are numbered. */
void report_map(struct report *report, int rows, int columns, const float *cells);

/* Begins a table of vectors with n components, of which it shows n_components, and the norm. */
void report_vectors(struct report *report, int64_t n);
void report_vector(struct report *report, int64_t n, const double *values, bool marked,
                   const char *name, ...) REPORT_FORMAT(5, 6);

/* A number with as many digits as can be read at a glance: 3 after the point, or a power of ten. */
enum { NUMBER_BYTES = 32 };
const char *report_format(char text[NUMBER_BYTES], double value);
/* The same as a factor of a product: in parentheses if it is negative. */
const char *report_factor(char text[NUMBER_BYTES], double value);

/* Shows a report on the terminal; report_end does it and frees the report. */
void report_print(const struct report *report, struct term *term);
qkv_status report_end(struct report *report, struct term *term, qkv_error *error);
/* Writes it as a page without scripts; a file is written whole or not at all. */
qkv_status report_page(const struct report *report, const char *path, qkv_error *error);

/* How many components of a vector fit the width of a terminal. */
int report_components(const struct term *term);

#endif
