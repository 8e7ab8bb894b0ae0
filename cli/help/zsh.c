/* Completion for zsh: fills completion.zsh with a specification for _arguments for each option. */
#include <stdio.h>
#include <string.h>

#include "help/formats.h"

#define IN_SPEC "[]:\\" /* what _arguments would read */

/* The action of _arguments. */
static void write_action(const char *suggest) {
    const struct help_values values = help_values_of(suggest);
    switch (values.kind) {
    case VALUES_UNKNOWN: putchar(' '); break;
    case VALUES_WORDS: printf("(%s)", values.text); break;
    case VALUES_NAMED: printf("_qkv_%s", values.text); break;
    case VALUES_FOLDERS: fputs("_files -/", stdout); break;
    case VALUES_FILES:
        fputs("_files", stdout);
        if (!*values.text) break;
        if (!strchr(values.text, ' ')) { /* parentheses around one ending would be qualifiers */
            printf(" -g \"*%s\"", values.text);
            break;
        }
        fputs(" -g \"*.(", stdout); /* ".a .b" as "a|b" */
        for (const char *at = values.text + 1; *at; at++)
            if (*at != '.') putchar(*at == ' ' ? '|' : *at);
        fputs(")\"", stdout);
        break;
    }
}

/* In single quotes; special characters with a backslash. */
static void write_quoted(const char *text, int length, const char *special) {
    for (int i = 0; i < length; i++) {
        if (text[i] == '\'') {
            fputs("'\\''", stdout);
        } else {
            help_write_escaped(text + i, 1, special, "\\");
        }
    }
}

static void write_option(const struct cli_command *command, const struct cli_option *option) {
    const char *help = help_of(command, option);
    const bool has_value = option->kind != ARG_FLAG, is_long = option->name[1] == '-';
    printf("            '%s%s[", option->name, has_value && is_long ? "=" : "");
    write_quoted(help, help_brief_length(help), IN_SPEC);
    putchar(']');
    if (has_value) {
        putchar(':');
        write_quoted(option->argument, (int)strlen(option->argument), IN_SPEC);
        putchar(':');
        write_action(help_suggest(option));
    }
    puts("' \\");
}

static void write_command(const struct cli_command *command) {
    printf("    %s)\n        _arguments -S \\\n", command->name);
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++) write_option(command, option);
    if (command->max_words > 0) {
        fputs("            '*:", stdout);
        write_quoted(command->words, (int)strlen(command->words), IN_SPEC);
        putchar(':');
        write_action(command->suggest);
        puts("' \\");
    }
    puts("            '(- *)--help[options and what they mean]' && ret=0\n        ;;");
}

static void write_summary(const struct cli_command *command) {
    printf("        '%s:", command->name);
    write_quoted(command->summary, help_brief_length(command->summary), ":\\");
    puts("'");
}

void help_zsh(void) {
    static const struct help_part parts[] = { { "summaries", write_summary },
                                              { "commands", write_command },
                                              { NULL, NULL } };
    help_write_parts(help_zsh_text, parts);
}
