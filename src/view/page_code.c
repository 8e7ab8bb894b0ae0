/**
 * Script and style without what only we read: comments, indentation, spaces beside operators, and ends of
 * lines where a statement cannot end. Names stay. Sources keep to what makes this simple: a comment of more than a line begins its line,
 * strings of backquotes are not nested, and no pattern holds a quote or a space.
 */
#include "view/page_code.h"

#include <string.h>

#include "view/page_files.h"

/* Around the first of these a space means nothing, in the language's own words. */
static const char style_marks[] = "{};:,>", script_marks[] = "=+-*/%<>&|?:;,(){}[]!";
static const char open_marks[] = "{;,([\n"; /* after them no line's end means anything */

/* Where what is not code ends, which begins at `at`: a comment; else `at`. */
static const char *skip_comment(const char *at, const char *end) {
    if (end - at < 2 || at[0] != '/' || (at[1] != '*' && at[1] != '/')) return at;
    const char *const close = at[1] == '*' ? memmem(at, (size_t)(end - at), "*/", 2)
                                           : memchr(at, '\n', (size_t)(end - at));
    return close ? close + (at[1] == '*' ? 2 : 0) : end;
}

/* Does a space between these two characters mean nothing? "a + +b" keeps its spaces. */
static int is_idle(char before, char after, const char *marks) {
    if (before == after && (before == '+' || before == '-')) return 0;
    return before == '\n' || after == '\n' || after == ' ' || strchr(marks, before) ||
           strchr(marks, after);
}

static void add_code(qkvi_bytes *code, const char *at, const char *end, const char *marks) {
    char quote = 0, before = '\n';
    for (; at < end; at++) {
        if (!quote) at = skip_comment(at, end);
        if (at == end) break;
        if (quote && *at == '\\' && end - at > 1) {
            qkvi_bytes_add(code, at++, 1);
        } else if (quote ? *at == quote : *at == '"' || *at == '\'' || *at == '`') {
            quote = quote ? 0 : *at;
        } else if (!quote && (*at == ' ' || *at == '\n')) {
            const char after = end - at > 1 ? at[1] : '\n';
            if (*at == ' ' ? is_idle(before, after, marks) : strchr(open_marks, before) != NULL)
                continue;
        }
        qkvi_bytes_add(code, at, 1);
        before = *at;
    }
}

void qkvi_page_code_make(qkvi_page_code *code) {
    *code = (qkvi_page_code){ 0 };
    add_code(&code->style, qkvi_page_style, qkvi_page_style_end, style_marks);
    add_code(&code->script, qkvi_page_script, qkvi_page_script_end, script_marks);
}

void qkvi_page_code_free(qkvi_page_code *code) {
    qkvi_bytes_free(&code->style);
    qkvi_bytes_free(&code->script);
}
