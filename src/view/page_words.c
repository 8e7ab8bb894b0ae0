/**
 * A script without comments and spaces but those between two words (page_code.c) as tokens.
 *
 *     f(`a${b}c`)      NAME f, MARK (, OTHER `a${, NAME b, OTHER }c`, MARK )
 *
 * A slash begins a pattern where a value cannot end. A brace begins an object (or a pattern of one) where
 * a value is expected, a block elsewhere.
 */
#include "view/page_words.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum { MAX_DEPTH = 256 };

struct reader {
    const char *begin, *end;
    qkvi_script_words tokens;
    int capacity, depth;
    int open[MAX_DEPTH]; /* places of brackets, and of the beginnings of ${ } */
};

int qkvi_script_word_is(const qkvi_script_word *token, const char *text) {
    return token->n == (int)strlen(text) && memcmp(token->text, text, (size_t)token->n) == 0;
}

int qkvi_script_reserved(const char *text, int n) {
    static const char *const words[] = {
        "as",       "async",   "await",  "break",     "case",     "catch",    "class", "const",
        "continue", "default", "delete", "do",        "else",     "export",   "false", "finally",
        "for",      "from",    "get",    "function",  "if",       "in",       "let",   "new",
        "null",     "of",      "return", "set",       "switch",   "this",     "throw", "true",
        "try",      "typeof",  "var",    "undefined", "Infinity", "NaN",      "void",  "while",
        "yield",    "super",   "static", "extends",   "import",   "debugger", "enum",  "instanceof",
    };
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if ((int)strlen(words[w]) == n && memcmp(words[w], text, (size_t)n) == 0) return 1;
    return 0;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static int begins_value(const char *begin, const char *at) {
    return at == begin || strchr("(,=:[!&|?{};\n+", at[-1]) != NULL;
}

/* To the quote that ends a string, to the slash that ends a pattern. */
static const char *skip_quoted(const char *at, const char *end) {
    const char quote = *at++;
    for (int class = 0; at < end && (*at != quote || class); at++) {
        if (quote == '/' && *at == '[') class = 1;
        if (quote == '/' && *at == ']') class = 0;
        if (*at == '\\') at++;
    }
    for (at++; quote == '/' && at < end && is_letter(*at); at++) {
    }
    return at < end ? at : end;
}

/* From what begins a template or ends a ${ }, to what ends that or begins the next. */
static const char *skip_template(const char *at, const char *end) {
    for (at++; at < end && *at != '`'; at++) {
        if (*at == '\\')
            at++;
        else if (*at == '$' && end - at > 1 && at[1] == '{')
            return at + 2;
    }
    return at < end ? at + 1 : end;
}

static qkvi_script_word *add(struct reader *reader, const char *at, const char *after,
                             qkvi_script_word_kind kind) {
    qkvi_script_words *const tokens = &reader->tokens;
    if (tokens->n == reader->capacity) {
        reader->capacity = reader->capacity ? 2 * reader->capacity : 1024;
        qkvi_script_word *const more =
            qkvi_realloc_array(tokens->list, (size_t)reader->capacity, sizeof *more);
        if (more == NULL) {
            tokens->failed = 1;
            return NULL;
        }
        tokens->list = more;
    }
    qkvi_script_word *const token = &tokens->list[tokens->n++];
    *token = (qkvi_script_word){ .text = at,
                                 .n = (int)(after - at),
                                 .kind = kind,
                                 .around = reader->depth ? reader->open[reader->depth - 1] : -1,
                                 .other = -1 };
    return token;
}

static int ends_with_open(const qkvi_script_word *token) {
    return token->n >= 2 && memcmp(token->text + token->n - 2, "${", 2) == 0;
}

/* Does a brace here begin an object? What stands before it says so. */
static int begins_object(const struct reader *reader, const char *at) {
    static const char *const before[] = { "return", "const", "let" };
    if (at == reader->begin || reader->tokens.n == 0) return 0;
    if (at - reader->begin > 1 && at[-1] == '>' && at[-2] == '=') return 0;
    if (strchr("(,=:[?&|!", at[-1])) return 1;
    const qkvi_script_word *const last = &reader->tokens.list[reader->tokens.n - 1];
    for (int w = 0; w < 3; w++)
        if (qkvi_script_word_is(last, before[w])) return 1;
    return reader->tokens.n > 0 && ends_with_open(last);
}

static void push(struct reader *reader) {
    if (reader->depth == MAX_DEPTH)
        reader->tokens.failed = 1;
    else
        reader->open[reader->depth++] = reader->tokens.n - 1;
}

static void add_mark(struct reader *reader, const char *at) {
    const int close = strchr(")]}", *at) != NULL;
    const int opened = close && reader->depth > 0 ? reader->open[--reader->depth] : -1;
    const int object = *at == '{' && begins_object(reader, at);
    qkvi_script_word *const token = add(reader, at, at + 1, QKVI_SCRIPT_MARK);
    if (token == NULL) return;
    token->object = object;
    if (opened >= 0) {
        token->other = opened;
        reader->tokens.list[opened].other = reader->tokens.n - 1;
    }
    if (strchr("([{", *at)) push(reader);
}

/* A template up to its ${, or what follows the code in one. */
static const char *add_template(struct reader *reader, const char *at) {
    const char *const after = skip_template(at, reader->end);
    const qkvi_script_word *const token = add(reader, at, after, QKVI_SCRIPT_OTHER);
    if (token && ends_with_open(token)) push(reader);
    return after;
}

static int in_template(const struct reader *reader) {
    if (reader->depth == 0) return 0;
    const qkvi_script_word *const open = &reader->tokens.list[reader->open[reader->depth - 1]];
    return open->kind == QKVI_SCRIPT_OTHER;
}

static const char *read_token(struct reader *reader, const char *at) {
    const char *after = at + 1;
    if (*at == ' ') return after;
    if (is_letter(*at)) {
        while (after < reader->end && (is_letter(*after) || is_digit(*after))) after++;
        const int word = qkvi_script_reserved(at, (int)(after - at));
        add(reader, at, after, word ? QKVI_SCRIPT_WORD : QKVI_SCRIPT_NAME);
    } else if (is_digit(*at)) {
        while (after < reader->end && (is_letter(*after) || is_digit(*after) || *after == '.'))
            after++;
        add(reader, at, after, QKVI_SCRIPT_OTHER);
    } else if (*at == '"' || *at == '\'' || (*at == '/' && begins_value(reader->begin, at))) {
        after = skip_quoted(at, reader->end);
        add(reader, at, after, QKVI_SCRIPT_OTHER);
    } else if (*at == '`') {
        after = add_template(reader, at);
    } else if (*at == '}' && in_template(reader)) {
        reader->depth--;
        after = add_template(reader, at);
    } else {
        add_mark(reader, at);
    }
    return after;
}

qkvi_script_words qkvi_script_words_read(const char *at, const char *end) {
    struct reader reader = { .begin = at, .end = end };
    while (at < end && !reader.tokens.failed) at = read_token(&reader, at);
    if (reader.depth > 0) reader.tokens.failed = 1;
    return reader.tokens;
}
