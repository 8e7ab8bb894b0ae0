/*
 * The terminal: 24-bit colour if COLORTERM says so, else 256 or 16 colours by TERM, else none;
 * NO_COLOR and --color take precedence. Unicode, unless --ascii, or the variables of the locale
 * name another encoding than UTF-8. (setlocale is never called: it would change the decimal point.)
 */
#include "common/term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/cli.h"
#include "common/number.h"
#include "common/os.h"
#include "common/ranks.h"

static const char *env(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static enum term_depth depth_of(const char *name) {
    const char *colorterm = env("COLORTERM");
    if (strcmp(colorterm, "truecolor") == 0 || strcmp(colorterm, "24bit") == 0) return TERM_TRUE;
    if (strstr(name, "direct")) return TERM_TRUE;
    if (strstr(name, "256color")) return TERM_256;
    return TERM_16;
}

static bool speaks_utf8(void) {
    const char *locale = env("LC_ALL");
    if (!*locale) locale = env("LC_CTYPE");
    if (!*locale) locale = env("LANG");
    char lower[64];
    size_t n = 0;
    for (; locale[n] && n + 1 < sizeof lower; n++)
        lower[n] = (char)(locale[n] >= 'A' && locale[n] <= 'Z' ? locale[n] + 32 : locale[n]);
    lower[n] = '\0';
    return !*locale || strstr(lower, "utf-8") || strstr(lower, "utf8");
}

static int width_of(FILE *out) {
    int64_t columns = os_columns(out);
    if (columns > 0) return (int)columns;
    return number_int(env("COLUMNS"), 20, 1000, &columns) ? (int)columns : 80;
}

/* COLORFGBG is "fg;bg" or "fg;other;bg" by number; backgrounds 7 and 9 … 15 are light. */
static qkv_theme background(void) {
    const char *last = strrchr(env("COLORFGBG"), ';');
    int64_t number;
    if (!last || !number_int(last + 1, 0, 255, &number)) return QKV_THEME_DARK;
    return number == 7 || (number >= 9 && number <= 15) ? QKV_THEME_LIGHT : QKV_THEME_DARK;
}

void term_init(struct term *term, FILE *out, const struct cli_common *common) {
    const char *name = env("TERM");
    const bool dumb = !*name || strcmp(name, "dumb") == 0;
    *term = (struct term){ .out = out, .fg = -1, .bg = -1 };
    term->tty = ranks_announced() == 0 && os_is_terminal(out); /* mpirun shows one to each rank */
    term->width = width_of(out);
    term->unicode = speaks_utf8() && !common->ascii;
    term->theme = common->theme.set ? (qkv_theme)common->theme.value : background();
    bool color = term->tty && !dumb && !*env("NO_COLOR");
    if (common->color.value == COLOR_ALWAYS) color = true;
    if (common->color.value == COLOR_NEVER) color = false;
    term->depth = color ? depth_of(name) : TERM_PLAIN;
}

/* ---- Colours ------------------------------------------------------------------------------- */

/* The nearest of xterm's 6×6×6 cube and 24 greys. */
static int nearest_256(const uint8_t rgb[3]) {
    static const int level[6] = { 0, 95, 135, 175, 215, 255 };
    int cube = 0, distance = 0;
    for (int c = 0; c < 3; c++) {
        int best = 0;
        for (int i = 1; i < 6; i++)
            if (abs(level[i] - rgb[c]) < abs(level[best] - rgb[c])) best = i;
        cube = cube * 6 + best;
        distance += (level[best] - rgb[c]) * (level[best] - rgb[c]);
    }
    int grey = (rgb[0] + rgb[1] + rgb[2]) / 3;
    grey = grey < 8 ? 0 : grey > 238 ? 23 : (grey - 3) / 10;
    int grey_distance = 0;
    for (int c = 0; c < 3; c++)
        grey_distance += (8 + 10 * grey - rgb[c]) * (8 + 10 * grey - rgb[c]);
    return grey_distance < distance ? 232 + grey : 16 + cube;
}

/* Sixteen colours have no ramp; these five keep the order of lightness. */
static int nearest_16(double t, qkv_theme theme) {
    static const int dark[5] = { 0, 4, 6, 14, 15 }, light[5] = { 15, 14, 6, 4, 0 };
    const int i = !(t > 0) ? 0 : t >= 1 ? 4 : (int)(t * 5);
    return theme == QKV_THEME_DARK ? dark[i] : light[i];
}

/* What one weight is to this terminal: 24 bits of colour, or the number of a colour. */
static int32_t code_of(const struct term *term, double t) {
    uint8_t rgb[3];
    if (term->depth == TERM_16) return nearest_16(t, term->theme);
    qkv_picture_color(t, term->theme, rgb);
    if (term->depth == TERM_256) return nearest_256(rgb);
    return rgb[0] << 16 | rgb[1] << 8 | rgb[2];
}

/* Sets the foreground, layer 30, or the background, 40, to a colour that is not `now` already. */
static void set_color(struct term *term, int layer, int32_t *now, int32_t code) {
    if (term->depth == TERM_PLAIN || *now == code) return;
    if (term->depth == TERM_TRUE)
        fprintf(term->out, "\033[%d;2;%d;%d;%dm", layer + 8, code >> 16, code >> 8 & 255,
                code & 255);
    else if (term->depth == TERM_256)
        fprintf(term->out, "\033[%d;5;%dm", layer + 8, code);
    else
        fprintf(term->out, "\033[%dm", layer + (code < 8 ? code : 60 + code - 8));
    *now = code;
}

void term_weight_bg(struct term *term, double t) {
    if (term->depth != TERM_PLAIN) set_color(term, 40, &term->bg, code_of(term, t));
}

void term_weight_fg(struct term *term, double t) {
    if (term->depth != TERM_PLAIN) set_color(term, 30, &term->fg, code_of(term, t));
}

/* Of sixteen colours those that have their channels above a half, and the bright ones of three. */
static int32_t code_of_rgb(const struct term *term, const uint8_t rgb[3]) {
    const int most = rgb[0] > rgb[1] ? rgb[0] : rgb[1], bright = most > rgb[2] ? most : rgb[2];
    if (term->depth == TERM_16)
        return (rgb[0] > bright / 2) | (rgb[1] > bright / 2) << 1 | (rgb[2] > bright / 2) << 2 |
               (bright > 191) << 3;
    if (term->depth == TERM_256) return nearest_256(rgb);
    return rgb[0] << 16 | rgb[1] << 8 | rgb[2];
}

void term_rgb_bg(struct term *term, const uint8_t rgb[3]) {
    if (term->depth != TERM_PLAIN) set_color(term, 40, &term->bg, code_of_rgb(term, rgb));
}

void term_rgb_fg(struct term *term, const uint8_t rgb[3]) {
    if (term->depth != TERM_PLAIN) set_color(term, 30, &term->fg, code_of_rgb(term, rgb));
}

void term_readable_on(struct term *term, double t) {
    uint8_t rgb[3];
    qkv_picture_color(t, term->theme, rgb);
    const double light = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    bool black = light > 128;
    if (term->depth == TERM_16) black = (nearest_16(t, term->theme) & ~8) >= 6;
    const int32_t code = black ? (term->depth == TERM_256 ? 16 : 0)
                               : (term->depth == TERM_TRUE  ? 0xffffff
                                  : term->depth == TERM_256 ? 231
                                                            : 15);
    set_color(term, 30, &term->fg, code);
}

const char *term_more(const struct term *term) {
    if (term->depth == TERM_PLAIN) return "denser";
    return term->theme == QKV_THEME_LIGHT ? "darker" : "brighter";
}

void term_style(struct term *term, enum term_style style) {
    if (term->depth == TERM_PLAIN) return;
    if (style == STYLE_NONE || term->fg != -1 || term->bg != -1) term_reset(term);
    if (style == STYLE_BOLD) fputs("\033[1m", term->out);
    if (style == STYLE_DIM) fputs("\033[2m", term->out);
    if (style == STYLE_ACCENT) fputs("\033[1;4m", term->out);
}

void term_reset(struct term *term) {
    if (term->depth == TERM_PLAIN) return;
    fputs("\033[0m", term->out);
    term->fg = term->bg = -1;
}

void term_newline(struct term *term) {
    if (term->fg != -1 || term->bg != -1) term_reset(term);
    fputc('\n', term->out);
}

/* ---- Text ---------------------------------------------------------------------------------- */

const char *term_mark(const struct term *term, double t) {
    static const char *const eighths[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const ramp[] = { " ", ".", ":", "-", "=", "+", "*", "#", "@" };
    const int i = isnan(t) ? 0 : t >= 1 ? 8 : !(t > 0) ? 0 : (int)(t * 8 + 0.5);
    return isnan(t) ? "?" : term->unicode ? eighths[i] : ramp[i];
}

void term_bar(struct term *term, double t, int width) {
    static const char *const part[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    const double share = t >= 1 ? 1 : !(t > 0) ? 0 : t;
    const int eighths = (int)(share * width * 8 + 0.5);
    int used = eighths / 8;
    term_weight_fg(term, 0.35 + 0.65 * share);
    for (int i = 0; i < used; i++) fputs(term->unicode ? "█" : "#", term->out);
    if (term->unicode && eighths % 8) {
        fputs(part[eighths % 8], term->out);
        used++;
    }
    term_reset(term);
    fprintf(term->out, "%*s", width - used, "");
}

/* Decodes one code point, of at most 4 bytes; invalid bytes count as one column each. */
static int next_columns(const char **text) {
    utf8proc_int32_t point;
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)*text,
                                                (utf8proc_ssize_t)strnlen(*text, 4), &point);
    *text += n > 0 ? n : 1;
    return n > 0 ? utf8proc_charwidth(point) : 1;
}

int term_columns(const char *text) {
    int columns = 0;
    while (*text) columns += next_columns(&text);
    return columns;
}

static void put_columns(struct term *term, const char *text, int width, bool right_aligned) {
    const int columns = term_columns(text);
    if (columns <= width) {
        fprintf(term->out, "%*s%s%*s", right_aligned ? width - columns : 0, "", text,
                right_aligned ? 0 : width - columns, "");
        return;
    }
    int used = 0;
    for (;;) {
        const char *end = text;
        const int next = next_columns(&end);
        if (used + next > width - 1) break;
        fwrite(text, 1, (size_t)(end - text), term->out);
        used += next;
        text = end;
    }
    if (width > 0) fprintf(term->out, "%s%*s", term->unicode ? "…" : "~", width - 1 - used, "");
}

void term_put(struct term *term, const char *text, int width, bool right_aligned) {
    char *const shown = term_escape(text, strlen(text));
    if (shown) put_columns(term, shown, width, right_aligned);
    free(shown);
}

/* A word, broken wherever the line is full. */
static int put_broken(struct term *term, const char *word, const char *end, int column) {
    while (word < end) {
        const char *next = word;
        const int columns = next_columns(&next);
        if (column + columns > term->width) {
            fputc('\n', term->out);
            column = 0;
        }
        fwrite(word, 1, (size_t)(next - word), term->out);
        column += columns;
        word = next;
    }
    return column;
}

static void wrap(struct term *term, const char *text, int indent) {
    int column = 0;
    while (*text) {
        const char *end = text + strcspn(text, " ");
        int columns = 0;
        for (const char *c = text; c < end;) columns += next_columns(&c);
        if (column > 0 && column + 1 + columns > term->width) {
            fputc('\n', term->out);
            column = 0;
        } else if (column > 0) {
            fputc(' ', term->out);
            column++;
        }
        if (column == 0) column = fprintf(term->out, "%*s", indent, "");
        if (indent == 0) {
            column = put_broken(term, text, end, column);
        } else {
            fwrite(text, 1, (size_t)(end - text), term->out);
            column += columns;
        }
        text = end + (*end == ' ');
    }
    term_newline(term);
}

void term_wrap_at(struct term *term, const char *text, int indent) {
    char *const shown = term_escape(text, strlen(text));
    if (shown) wrap(term, shown, indent);
    free(shown);
}

void term_wrap(struct term *term, const char *text) { term_wrap_at(term, text, 0); }

void term_styled(struct term *term, enum term_style style, const char *text) {
    term_style(term, style);
    term_print(term->out, text);
    term_style(term, STYLE_NONE);
}

void term_wrap_styled(struct term *term, enum term_style style, const char *text) {
    term_style(term, style);
    term_wrap(term, text);
    term_style(term, STYLE_NONE);
}
