/*
 * What the terminal can do, and the few ways in which the tool uses it: cells, styles, columns,
 * bars.
 */
#ifndef QKV_CLI_COMMON_TERM_H
#define QKV_CLI_COMMON_TERM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/args.h"
#include <qkv/picture.h>

enum term_depth { TERM_PLAIN, TERM_16, TERM_256, TERM_TRUE };

struct term {
    FILE *out;
    enum term_depth depth;
    bool tty, unicode;
    int width;
    qkv_theme theme;
    int32_t fg, bg; /* what was last sent: -1 the terminal's own */
};

enum term_style { STYLE_NONE, STYLE_BOLD, STYLE_DIM, STYLE_ACCENT };

/* Asks the environment and the file; common holds --color, --ascii, --theme. */
void term_init(struct term *term, FILE *out, const struct cli_common *common);

void term_style(struct term *term, enum term_style style); /* STYLE_NONE ends every other one */
void term_reset(struct term *term);
void term_newline(struct term *term);

/* Background or foreground of a weight in [0, 1]; nothing on a plain terminal. */
void term_weight_bg(struct term *term, double t);
void term_weight_fg(struct term *term, double t);
/* Black or white, whichever can be read on that weight's background. */
void term_readable_on(struct term *term, double t);

/* One mark for a weight where there is no colour: a bar of eighths, or a ramp of ASCII. */
const char *term_mark(const struct term *term, double t);

/* A bar of `width` cells, filled by t. */
void term_bar(struct term *term, double t, int width);

/*
 * A text from outside with controls, bidi overrides and broken UTF-8 made visible as \x.. or \u{..}
 * (term_escape.c): in new memory, or printed. Whether a character is shown as it is.
 */
char *term_escape(const char *bytes, size_t n);
void term_print(FILE *out, const char *text);
bool term_shows(int32_t point);

/* Columns that an escaped text takes. */
int term_columns(const char *text);
/* A text, escaped, in exactly `width` columns: clipped with an ellipsis, or padded. */
void term_put(struct term *term, const char *text, int width, bool right_aligned);

/*
 * Words, escaped and wrapped to the terminal's width; a word that is wider goes on in the next
 * line.
 */
void term_wrap(struct term *term, const char *text);
/* The same, each line after so many spaces; words that are wider are not broken, unless it is 0. */
void term_wrap_at(struct term *term, const char *text, int indent);
/* A text, and words wrapped, in one style. */
void term_styled(struct term *term, enum term_style style, const char *text);
void term_wrap_styled(struct term *term, enum term_style style, const char *text);

/*
 * A line on a terminal's standard error, rewritten in place; silent elsewhere and in the first
 * second.
 */
struct progress {
    bool on, shown;
    double start, last;
    const char *what; /* of progress_call */
};
void progress_begin(struct progress *progress, bool quiet);
void progress_bar(struct progress *progress, const char *what, int64_t done, int64_t total);
void progress_text(struct progress *progress, const char *text);
void progress_end(struct progress *progress);
/*
 * The same of work that cannot be asked how far it is: another thread tells how long it has taken,
 * twice a second, "measuring ... 3 s". `what` lives as long.
 */
struct progress_clock {
    struct progress progress;
    const char *what;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool running, ended;
};
void progress_clock_begin(struct progress_clock *clock, const char *what, bool quiet);
void progress_clock_end(struct progress_clock *clock);
/* Begins the progress of a call, which Ctrl-C ends; the line begins with `what`. */
qkv_call_options progress_call(struct progress *progress, const char *what, bool quiet);

/*
 * Around a word from outside in a text, "\002%s\003": a page keeps its direction to itself. Escaped
 * words hold neither.
 */
#define WORD "\002%s\003"
enum { WORD_BEGIN = '\002', WORD_END = '\003' };

/*
 * A text without the marks of words; where ascii is set, signs of our own that ASCII lacks are
 * spelt out ("²": "^2"; term_signs.c). malloc; NULL without memory.
 */
char *term_plain(const char *text, bool ascii);
char *term_spell_out(const char *text);

#endif
