/**
 * Makes an SVG from cairo's: searchable and reproducible.
 *
 * cairo draws text as outlines of glyphs, which look the same everywhere but cannot be searched. So
 * each line is there twice: as outlines, and as an invisible <text> at the same place with the same
 * width, the words. <title> and <desc> have title and caption. cairo numbers groups and images by a
 * counter of the process; here they are renumbered from 0 by first appearance, so that bytes depend
 * only on the picture.
 */
#include "view/frame.h"

#include "core/find.h"
#include "files/encode.h"
#include "view/type.h"

static void add_number(qkvi_bytes *file, const char *before, double x, int decimals,
                       const char *after) {
    char number[40];
    qkvi_number(number, sizeof number, x, decimals);
    qkvi_bytes_text(file, before);
    qkvi_bytes_text(file, number);
    qkvi_bytes_text(file, after);
}

void qkvi_svg_word(qkvi_bytes *words, const char *text, size_t n, const qkvi_svg_place *place) {
    if (n == 0 || !(place->width > 0)) return;
    add_number(words, "<text transform=\"translate(", place->x, 2, ",");
    add_number(words, "", place->y, 2, ")");
    if (place->degree != 0) add_number(words, " rotate(", place->degree, 2, ")");
    add_number(words, "\" x=\"", place->dx, 2, "\"");
    add_number(words, " y=\"", place->dy, 2, "\"");
    add_number(words, " font-size=\"", place->size, 2, "\"");
    add_number(words, " textLength=\"", place->width, 2, "\" lengthAdjust=\"spacingAndGlyphs\">");
    qkvi_markup_add(words, text, n);
    qkvi_bytes_text(words, "</text>\n");
}

/* ---- Numbers of cairo's own ------------------------------------------------------------------ */

enum { MAX_IDS = 8192 };

struct ids {
    struct {
        const char *name;
        size_t n;
    } seen[MAX_IDS];
    int n;
};

/* The length of a name that ends in a number of the process: letters, perhaps '-', digits. */
static size_t counted_name(const char *name, const char *end) {
    const char *at = name;
    while (at < end && *at >= 'a' && *at <= 'z') at++;
    const char *digits = at += at < end && *at == '-';
    while (at < end && *at >= '0' && *at <= '9') at++;
    const int closed = at < end && (*at == '"' || *at == ')');
    return closed && digits > name && at > digits ? (size_t)(at - name) : 0;
}

static int number_of(struct ids *ids, const char *name, size_t n) {
    for (int i = 0; i < ids->n; i++)
        if (ids->seen[i].n == n && memcmp(ids->seen[i].name, name, n) == 0) return i;
    if (ids->n == MAX_IDS) return -1;
    ids->seen[ids->n].name = name;
    ids->seen[ids->n].n = n;
    return ids->n++;
}

/* cairo's file from `at` to `end`, its names counted anew. */
static void add_drawing(qkvi_bytes *file, struct ids *ids, const char *at, const char *end) {
    const char *from = at;
    for (; at < end; at++) {
        const int names = (at[0] == '#' && (at[-1] == '"' || at[-1] == '(')) ||
                          (at[0] == '"' && memcmp(at - 4, " id=", 4) == 0);
        const size_t n = names ? counted_name(at + 1, end) : 0;
        const int number = n ? number_of(ids, at + 1, n) : -1;
        if (number < 0) continue;
        qkvi_bytes_add(file, from, (size_t)(at + 1 - from));
        add_number(file, "part", number, 0, "");
        at += n;
        from = at + 1;
    }
    qkvi_bytes_add(file, from, (size_t)(end - from));
}

/* ---------------------------------------------------------------------------------------------- */

static void add_element(qkvi_bytes *file, const char *name, const char *text) {
    if (*text == '\0') return;
    qkvi_bytes_text(file, "<");
    qkvi_bytes_text(file, name);
    qkvi_bytes_text(file, ">");
    qkvi_markup_add(file, text, strlen(text));
    qkvi_bytes_text(file, "</");
    qkvi_bytes_text(file, name);
    qkvi_bytes_text(file, ">\n");
}

void qkvi_svg_make(const qkvi_bytes *drawing, const char *title, const char *caption,
                   const qkvi_bytes *words, double scale, qkvi_bytes *file) {
    static const char closing[] = "</svg>";
    struct ids *ids = calloc(1, sizeof *ids);
    const char *const begin = (const char *)drawing->data;
    const char *const opening = begin ? qkvi_find(begin, drawing->n, "<svg", 4) : NULL;
    const char *const body =
        opening ? memchr(opening, '>', drawing->n - (size_t)(opening - begin)) : NULL;
    const char *end = body ? begin + drawing->n - strlen(closing) : NULL;
    while (end > body && memcmp(end, closing, strlen(closing)) != 0) end--;
    if (ids == NULL || drawing->failed || words->failed || !body || end == body) {
        file->failed = 1;
    } else {
        qkvi_bytes_add(file, begin, (size_t)(body + 1 - begin));
        qkvi_bytes_text(file, "\n");
        add_element(file, "title", title);
        add_element(file, "desc", caption);
        add_drawing(file, ids, body + 1 + (body[1] == '\n'), end);
        add_number(file, "<g transform=\"scale(", scale, 6,
                   ")\" fill-opacity=\"0\" font-family=\"DejaVu Sans, sans-serif\" "
                   "xml:space=\"preserve\">\n");
        qkvi_bytes_add(file, words->data, words->n);
        qkvi_bytes_text(file, "</g>\n</svg>\n");
    }
    free(ids);
}
