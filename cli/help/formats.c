/* What the formats of `qkv help --format` share: short texts of options, suggestions, templates. */
#include "help/formats.h"
#include "common/text.h"

#include <stdio.h>
#include <string.h>

#include <qkv/heads.h>

int help_brief_length(const char *help) {
    static const char *const ends[] = { " (", "; ", ": ", ". " };
    size_t length = strlen(help);
    for (int i = 0; i < CLI_COUNT(ends); i++) {
        const char *end = strstr(help, ends[i]);
        if (end && (size_t)(end - help) < length) length = (size_t)(end - help);
    }
    return (int)length;
}

/* Words of the table of numbers of heads, and of that of their labels. */
static const char *suggest_numbers(void) {
    static char words[600];
    const qkv_head_number *number;
    int used = snprintf(words, sizeof words, "head|label");
    for (int i = 0; (number = qkv_head_number_at(i)); i++)
        if (number->title)
            used += snprintf(words + used, sizeof words - (size_t)used, "|%s", number->name);
    return words;
}

static const char *suggest_labels(void) {
    static char words[200];
    const qkv_head_rule *rule;
    int used = 0;
    for (int i = 0; (rule = qkv_head_rule_at(i)); i++)
        used += snprintf(words + used, sizeof words - (size_t)used, "%s|", rule->label);
    snprintf(words + used, sizeof words - (size_t)used, "none");
    return words;
}

const char *help_suggest(const struct cli_option *option) {
    if (option->kind == ARG_CHOICE) return option->argument;
    if (option->suggest && strcmp(option->suggest, "@numbers") == 0) return suggest_numbers();
    if (option->suggest && strcmp(option->suggest, "@labels") == 0) return suggest_labels();
    return option->suggest;
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

static void fill(void *parts, const char *name) {
    const struct help_part *part = parts;
    const struct cli_command *command;
    while (strcmp(part->name, name) != 0) part++;
    for (int i = 0; (command = cli_command_at(i)); i++) part->write(command);
}

void help_write_parts(const char *text, const struct help_part *parts) {
    template_write(stdout, text, fill, (void *)(uintptr_t)parts);
}
