/**
 * Script and style without what only we read: comments, indentation, spaces beside operators, ends of
 * lines, and a semicolon or comma before the brace that ends a block. page_short.c and page_names.c make
 * what is left shorter. Sources keep to what makes this simple: every statement ends in a semicolon or a brace and none is empty, strings of
 * backquotes are not nested, and no pattern holds a quote, a space or a brace after such an end.
 */
#include "view/page_code.h"

#include <string.h>

#include "view/page_files.h"

/* Beside which characters a space means nothing, and after or before which an end of a line does not. */
struct language {
    const char *marks, *after, *before;
};
static const struct language style = { "{};:,>", "{};:,>\n", "{}>" };
static const struct language script = { "=+-*/%<>&|?:;,(){}[]!\"'`", "{;,([=*%<>&|?:!})]\n",
                                        "?:&|*%=<>,;)]}." };

static int is_name(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != 0 && strchr("_$.)]", c));
}

static int is_space(char c) { return c == ' ' || c == '\n'; }

/* The end of the comment that begins at `at`; `at` if none does. */
static const char *skip_comment(const char *at, const char *end) {
    if (end - at < 2 || at[0] != '/' || (at[1] != '*' && at[1] != '/')) return at;
    const char *const close = at[1] == '*' ? memmem(at, (size_t)(end - at), "*/", 2)
                                           : memchr(at, '\n', (size_t)(end - at));
    return close ? close + (at[1] == '*' ? 2 : 0) : end;
}

/* What must stay of the white space between two characters: '\n', ' ' or nothing. "a + +b" keeps its
 * spaces. */
static char kept_space(const struct language *language, int line, char before, char after) {
    if (line) return strchr(language->after, before) || strchr(language->before, after) ? 0 : '\n';
    if (before == after && (before == '+' || before == '-')) return ' ';
    return is_space(before) || strchr(language->marks, before) || strchr(language->marks, after)
               ? 0
               : ' ';
}

/* The white space from `at` on; returns its end. */
static const char *add_space(qkvi_bytes *code, const char *at, const char *end,
                             const struct language *language) {
    int line = 0;
    for (; at < end && is_space(*at); at++) line |= *at == '\n';
    const char before = code->n ? (char)code->data[code->n - 1] : '\n';
    const char kept = kept_space(language, line, before, at < end ? *at : '\n');
    if (kept) qkvi_bytes_add(code, &kept, 1);
    return at;
}

/* A string from its quote on; returns its end. What stands in ${ } is code, but for how it begins. */
static const char *add_string(qkvi_bytes *code, const char *at, const char *end) {
    const char quote = *at;
    const char *from = at++;
    for (; at < end && *at != quote; at++) {
        if (*at == '\\' && end - at > 1) {
            at++;
        } else if (quote == '`' && is_space(*at) && at[-1] == '{' && at[-2] == '$') {
            qkvi_bytes_add(code, from, (size_t)(at - from));
            while (at < end && is_space(*at)) at++;
            from = at--;
        }
    }
    if (at < end) at++;
    qkvi_bytes_add(code, from, (size_t)(at - from));
    return at;
}

/* What means nothing before the next character: a semicolon or comma that ends a block, 0 before a point. */
static void drop_needless(qkvi_bytes *code, const char *at, const char *end,
                          const struct language *language) {
    if (code->n < 2) return;
    const char last = (char)code->data[code->n - 1], before = (char)code->data[code->n - 2];
    const int in_script = language == &script;
    const int ends = *at == '}' && (last == ';' || (last == ',' && in_script));
    const int zero = in_script && *at == '.' && last == '0' && !is_name(before) && end - at > 1 &&
                     at[1] >= '0' && at[1] <= '9';
    if (ends || zero) code->n--;
}

static void add_code(qkvi_bytes *code, const char *at, const char *end,
                     const struct language *language) {
    while (at < end) {
        const char *const after = skip_comment(at, end);
        if (after > at) {
            at = after;
        } else if (is_space(*at)) {
            at = add_space(code, at, end, language);
        } else if (strchr("\"'`", *at)) {
            at = add_string(code, at, end);
        } else {
            drop_needless(code, at, end, language);
            qkvi_bytes_add(code, at++, 1);
        }
    }
}

void qkvi_page_code_make(qkvi_page_code *code) {
    *code = (qkvi_page_code){ 0 };
    add_code(&code->style, qkvi_page_style, qkvi_page_style_end, &style);
    qkvi_bytes spaced = { 0 };
    add_code(&spaced, qkvi_page_script, qkvi_page_script_end, &script);
    qkvi_bytes named = { 0 };
    const char *at = (const char *)spaced.data;
    if (spaced.n > 0) qkvi_script_shorten(&named, at, at + spaced.n);
    at = (const char *)named.data;
    if (named.n > 0) qkvi_script_rename(&code->script, &code->names, at, at + named.n);
    code->script.failed |= spaced.failed | named.failed;
    qkvi_bytes_free(&spaced);
    qkvi_bytes_free(&named);
}

void qkvi_page_code_free(qkvi_page_code *code) {
    qkvi_bytes_free(&code->style);
    qkvi_bytes_free(&code->script);
    qkvi_bytes_free(&code->names);
}
