/* What the formats of `qkv help --format` share: the short text of an option, and its values. */
#include "help_formats.h"

#include <stdio.h>
#include <string.h>

int help_brief_length(const char *help) {
    static const char *const ends[] = { " (", "; ", ": ", ". " };
    size_t length = strlen(help);
    for (int i = 0; i < CLI_COUNT(ends); i++) {
        const char *end = strstr(help, ends[i]);
        if (end && (size_t)(end - help) < length) length = (size_t)(end - help);
    }
    return (int)length;
}

const char *help_suggest(const struct cli_option *option) {
    return option->kind == ARG_CHOICE ? option->argument : option->suggest;
}

struct help_values help_values_of(const char *suggest) {
    struct help_values values = { .kind = VALUES_UNKNOWN };
    if (!suggest) return values;
    const char *text = suggest;
    if (*suggest == '@') {
        values.kind = VALUES_NAMED;
        text = suggest + 1;
    } else if (*suggest == '/') {
        text = suggest + 1 + strspn(suggest + 1, " ");
        values.kind = *text ? VALUES_FILES : VALUES_FOLDERS;
    } else if (*suggest == '.' || *suggest == '*') {
        text = *suggest == '*' ? "" : suggest;
        values.kind = VALUES_FILES;
    } else {
        values.kind = VALUES_WORDS;
    }
    snprintf(values.text, sizeof values.text, "%s", text);
    for (char *at = values.text; values.kind == VALUES_WORDS && *at; at++)
        if (*at == '|') *at = ' ';
    return values;
}

void help_write_escaped(const char *text, int length, const char *special, const char *escape) {
    for (int i = 0; i < length; i++) {
        if (strchr(special, text[i])) fputs(escape, stdout);
        putchar(text[i]);
    }
}
