/**
 * Shorter ways to say the same in a script from which page_code.c has taken the spaces: one declaration
 * for constants that follow each other, !0 and !1 for true and false.
 *
 *     const a=1;const b=f(a);     const a=1,b=f(a);
 *
 * A semicolon joins two declarations if its statement began with const, which is known for each level of
 * brackets. Strings stay as they are, with the code in those of backquotes; patterns must have as many
 * brackets open as closed.
 */
#include <string.h>

#include "view/page_code.h"

enum { MAX_DEPTH = 64 };

static int is_name(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$' || c == '.';
}

static int is_open(char c) { return c == '(' || c == '[' || c == '{'; }
static int is_close(char c) { return c == ')' || c == ']' || c == '}'; }

/* Does a word of the language begin at `at`? */
static int is_word(const char *begin, const char *at, const char *end, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(end - at) <= n || memcmp(at, word, n) != 0) return 0;
    return (at == begin || !is_name(at[-1])) && !is_name(at[n]);
}

/* The end of the string that begins at `at`. */
static const char *skip_string(const char *at, const char *end) {
    const char quote = *at++;
    for (; at < end && *at != quote; at++)
        if (*at == '\\') at++;
    return at < end ? at + 1 : end;
}

/* Writes !0 or !1 in place of a word; 0 if there is none. A key of an object keeps its name. */
static size_t add_boolean(qkvi_bytes *code, const char *begin, const char *at, const char *end) {
    const int truth = is_word(begin, at, end, "true");
    if (!truth && !is_word(begin, at, end, "false")) return 0;
    const size_t n = truth ? 4 : 5;
    if (at[n] == ':') return 0;
    if (code->n > 0 && code->data[code->n - 1] == ' ') code->n--; /* return!0 */
    qkvi_bytes_text(code, truth ? "!0" : "!1");
    return n;
}

void qkvi_script_shorten(qkvi_bytes *code, const char *at, const char *end) {
    const char *const begin = at;
    unsigned char constant[MAX_DEPTH + 1] = { 0 }; /* how the statement of a level began */
    int depth = 0;
    while (at < end) {
        const char *const from = at;
        const size_t boolean = add_boolean(code, begin, at, end);
        if (boolean) {
            at += boolean;
            continue;
        }
        if (strchr("\"'`", *at)) {
            at = skip_string(at, end);
            qkvi_bytes_add(code, from, (size_t)(at - from));
            continue;
        }
        if (is_open(*at) && depth < MAX_DEPTH) constant[++depth] = 0;
        if (is_close(*at) && depth > 0) depth--;
        if (is_word(begin, at, end, "const")) constant[depth] = 1;
        if (*at == ';' && constant[depth] && is_word(begin, at + 1, end, "const")) {
            at += strlen(";const");
            at += *at == ' ';
            qkvi_bytes_text(code, ",");
            continue;
        }
        if (*at == ';') constant[depth] = 0;
        qkvi_bytes_add(code, at++, 1);
    }
}
