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
    int32_t fg, bg; /* colours that were sent last; -1: the terminal's own */
};

enum term_style { STYLE_NONE, STYLE_BOLD, STYLE_DIM, STYLE_ACCENT };

/* Sets term by the environment, by whether out is a terminal, and by --color, --ascii, --theme. */
void term_init(struct term *term, FILE *out, const struct cli_common *common);

/* What larger values are in a map: "denser", "darker" or "brighter". */
const char *term_more(const struct term *term);
void term_style(struct term *term, enum term_style style); /* STYLE_NONE ends any other style */
void term_reset(struct term *term);
void term_newline(struct term *term);

/* Background or foreground of a weight in [0, 1]; nothing on a plain terminal. */
void term_weight_bg(struct term *term, double t);
void term_weight_fg(struct term *term, double t);
/* The same for any colour. */
void term_rgb_bg(struct term *term, const uint8_t rgb[3]);
void term_rgb_fg(struct term *term, const uint8_t rgb[3]);
/* Sets the foreground to black or white, whichever is readable on the background of weight t. */
void term_readable_on(struct term *term, double t);

/* One character for a weight, without colour: a bar of n eighths, or of a ramp of ASCII. */
const char *term_mark(const struct term *term, double t);

/* A bar of `width` cells, filled by t. */
void term_bar(struct term *term, double t, int width);

/*
 * Escape a text from outside: control characters, bidi overrides and broken UTF-8 become \x.. or
 * \u{..} (term_escape.c). term_escape returns it in new memory, term_print prints it.
 */
char *term_escape(const char *bytes, size_t n);
void term_print(FILE *out, const char *text);
/* Does a code point need no escape? */
bool term_shows(int32_t point);

/* Columns that an escaped text takes. */
int term_columns(const char *text);
/* Escapes a text and prints it in exactly `width` columns: cut with an ellipsis, or padded. */
void term_put(struct term *term, const char *text, int width, bool right_aligned);

/*
 * Escapes a text and prints it, wrapped at spaces to the terminal's width; a word that is wider
 * than a line is broken.
 */
void term_wrap(struct term *term, const char *text);
/* The same with each line indented; unless indent is 0, wide words are not broken. */
void term_wrap_at(struct term *term, const char *text, int indent);
/* term_print and term_wrap in a style. */
void term_styled(struct term *term, enum term_style style, const char *text);
void term_wrap_styled(struct term *term, enum term_style style, const char *text);

/*
 * A line of progress on standard error, rewritten in place. Nothing is printed in the first second,
 * or if standard error is no terminal.
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
 * Progress of work that does not report how far it is: a thread prints twice a second how long it
 * has taken, "measuring ... 3 s". The string `what` must live until progress_clock_end.
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
/*
 * Options of a call into the library that report its progress, in a line that begins with `what`,
 * and cancel the call on Ctrl-C.
 */
qkv_call_options progress_call(struct progress *progress, const char *what, bool quiet);

/*
 * Marks around a word from outside in a text of our own, for printf: "\002%s\003". A page isolates
 * the direction of such a word (<bdi>). Escaped words have neither character.
 */
#define WORD "\002%s\003"
enum { WORD_BEGIN = '\002', WORD_END = '\003' };

/*
 * Copies of a text, from malloc; NULL without memory. term_plain removes the marks of words and, if
 * ascii is set, spells out: it replaces our own signs that ASCII lacks ("²" by "^2"; term_signs.c).
 */
char *term_plain(const char *text, bool ascii);
char *term_spell_out(const char *text);

#endif
