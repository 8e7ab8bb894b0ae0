/*
 * Makes texts from outside safe to print. What could steer a terminal, change the direction of a
 * line or begin a new line is escaped: a character as \u{9b}, a byte that is not UTF-8 as \x9b. A
 * backslash is not escaped, so escaping twice is the same as escaping once.
 */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/term.h"

/* Characters of an escape, at most: "\u{10ffff}". */
enum { ESCAPE = 10 };

bool term_shows(int32_t point) {
    switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
    }
}

/*
 * The escape of what the n bytes begin with, or "" where that can be shown; returns its bytes, at
 * least 1.
 */
static size_t escape_first(const char *bytes, size_t n, char escape[ESCAPE + 1]) {
    utf8proc_int32_t point;
    const utf8proc_ssize_t length =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes, n < 4 ? (utf8proc_ssize_t)n : 4, &point);
    *escape = '\0';
    if (length <= 0)
        sprintf(escape, "\\x%02x", (unsigned char)*bytes);
    else if (!term_shows(point))
        sprintf(escape, "\\u{%x}", (unsigned)point);
    return length > 0 ? (size_t)length : 1;
}

char *term_escape(const char *bytes, size_t n) {
    char *const out = malloc(n * ESCAPE + 1), *end = out;
    if (!out) return NULL;
    for (size_t i = 0, length; i < n; i += length) {
        char escape[ESCAPE + 1];
        length = escape_first(bytes + i, n - i, escape);
        const size_t n_made = *escape ? strlen(escape) : length;
        memcpy(end, *escape ? escape : bytes + i, n_made);
        end += n_made;
    }
    *end = '\0';
    return out;
}

void term_print(FILE *out, const char *text) {
    char *const shown = term_escape(text, strlen(text));
    if (shown) fputs(shown, out);
    free(shown);
}
