/*
 * A lesson: steps with a title, a formula and a shape, tables of numbers below them, and sentences.
 * It is made once and shown on the terminal (lesson_text.c) or as a page (lesson_page.c), so that
 * both have the same numbers. Whatever comes from outside (tokens, paths) must be escaped before.
 */
#ifndef QKV_CLI_LESSON_H
#define QKV_CLI_LESSON_H

#include "input.h"
#include "term.h"

/*
 * Around a word from outside in a text, "\002%s\003": a page keeps its direction to itself. Escaped
 * words hold neither.
 */
#define WORD "\002%s\003"
enum { WORD_BEGIN = '\002', WORD_END = '\003' };

enum lesson_kind {
    LESSON_STEP,
    LESSON_HEADING,
    LESSON_TEXT,
    LESSON_NOTE,
    LESSON_TABLE,
    LESSON_MAP
};

/* What a column holds: words or texts to the left, numbers to the right, bars from 0 to 1. */
enum lesson_column_kind { COLUMN_WORD, COLUMN_TEXT, COLUMN_NUMBER, COLUMN_BAR };

struct lesson_cell {
    char *text; /* NULL: nothing */
    double bar;
};

struct lesson_table {
    int n_columns;
    int64_t n_rows;
    enum lesson_column_kind *kinds; /* [n_columns] */
    char **names;                   /* [n_columns] */
    struct lesson_cell *cells;      /* [n_rows][n_columns] */
    bool *marked;                   /* [n_rows]: the row that matters */
};

struct lesson_block {
    enum lesson_kind kind;
    int number;                    /* of a step, from 1 */
    char *title, *formula, *shape; /* of a step; the latter nullable. title: of a text, too */
    struct lesson_table table;
    int map_rows, map_columns;
    float *map; /* [map_rows][map_columns], from 0 to 1 */
};

struct lesson {
    char *title, *subtitle;
    struct lesson_block *blocks;
    int64_t n_blocks;
    int n_steps, n_components; /* of a vector that are shown */
    bool shapes;               /* show shapes */
    bool failed;               /* out of memory: what follows is dropped */
};

void lesson_begin(struct lesson *lesson, int n_components, bool shapes);
void lesson_free(struct lesson *lesson);

#define LESSON_FORMAT(nth, first) __attribute__((format(printf, nth, first)))

void lesson_title(struct lesson *lesson, const char *format, ...) LESSON_FORMAT(2, 3);
void lesson_subtitle(struct lesson *lesson, const char *format, ...) LESSON_FORMAT(2, 3);
/* A step: its title, its formula, and the shape of what comes out (nullable). */
void lesson_step(struct lesson *lesson, const char *title, const char *formula, const char *shape);
/* A title without a number. */
void lesson_heading(struct lesson *lesson, const char *format, ...) LESSON_FORMAT(2, 3);
/* A sentence of the step, and one in small print. */
void lesson_text(struct lesson *lesson, const char *format, ...) LESSON_FORMAT(2, 3);
void lesson_note(struct lesson *lesson, const char *format, ...) LESSON_FORMAT(2, 3);

/*
 * A table: a letter for each column, "w" a word, "t" a text, "n" a number, "b" a bar; then their names. Rows
 * follow, each with its cells in the order of the columns.
 */
void lesson_table(struct lesson *lesson, const char *columns, ...);
/* The same with the names in an array. */
void lesson_table_named(struct lesson *lesson, const char *columns, const char *const *names);
/* The same with a first column without a name, the others named first, first + 1, … */
void lesson_table_numbered(struct lesson *lesson, const char *columns, int64_t first);
void lesson_row(struct lesson *lesson, bool marked);
void lesson_cell(struct lesson *lesson, const char *format, ...) LESSON_FORMAT(2, 3);
void lesson_number(struct lesson *lesson, double value);
void lesson_bar(struct lesson *lesson, double t);

/* A heat map of numbers from 0 to 1, which is copied; rows are numbered. */
void lesson_map(struct lesson *lesson, int rows, int columns, const float *cells);

/* A table of vectors: name, first components, norm. */
void lesson_vectors(struct lesson *lesson, int64_t n);
void lesson_vector(struct lesson *lesson, int64_t n, const double *values, bool marked,
                   const char *name, ...) LESSON_FORMAT(5, 6);

/* A number with as many digits as can be read at a glance: 3 after the point, or a power of ten. */
enum { NUMBER_BYTES = 32 };
const char *lesson_format(char text[NUMBER_BYTES], double value);
/* The same as a factor of a product: in parentheses if it is negative. */
const char *lesson_factor(char text[NUMBER_BYTES], double value);

/* On the terminal. */
void lesson_print(const struct lesson *lesson, struct term *term);
/* As a page without a script, written whole or not at all. */
qkv_status lesson_page(const struct lesson *lesson, const char *path, qkv_error *error);

/* How many components of a vector fit a terminal. */
int lesson_components(const struct term *term);

#endif
