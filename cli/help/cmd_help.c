/* `qkv help`: made from the table of commands and the texts beside this file. */
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "help/formats.h"

struct help_options {
    struct cli_common common;
    struct arg_int format;
};

enum { FORMAT_TEXT, FORMAT_SCDOC, FORMAT_BASH, FORMAT_ZSH, FORMAT_FISH };
enum { LINE = 80, OPTION_COLUMN = 26, ITEM_BYTES = 256 };

/* Prints words so that no line passes LINE and lines after the first begin at the indent. */
static void print_wrapped(const char *text, int column, int indent) {
    int spaces = 0; /* before the next word, if it fits */
    for (;;) {
        spaces += (int)strspn(text, " ");
        text += strspn(text, " ");
        const int length = (int)strcspn(text, " \n");
        if (length == 0 && *text == '\0') return;
        if (length == 0) {
            text++;
            printf("\n%*s", *text == '\n' ? 0 : indent, "");
            column = indent;
            spaces = 0;
            continue;
        }
        if (column + spaces + length > LINE) {
            printf("\n%*s", indent, "");
            column = indent;
            spaces = 0;
        }
        printf("%*s%.*s", spaces, "", length, text);
        column += spaces + length;
        text += length;
        spaces = 0;
    }
}

/* Words with | between them; a full line ends behind a |. Returns the column. */
static int print_choices(const char *text, int column, int indent) {
    while (*text) {
        int length = (int)strcspn(text, "|");
        if (text[length]) length++;
        if (column + length > LINE && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        column += printf("%.*s", length, text);
        text += length;
    }
    return column;
}

/* A space and an item, at the indent of the next line if it does not fit; returns the column. */
static int print_item(const char *item, int column, int indent) {
    if (column + 1 + (int)strlen(item) > LINE) {
        printf("\n%*s", indent, "");
        column = indent;
    }
    putchar(' ');
    return print_choices(item, column + 1, indent + 1);
}

static void print_usage(const struct cli_command *command) {
    printf("usage: qkv %s", command->name);
    const int indent = 11 + (int)strlen(command->name), n_own = args_n_own(command);
    int column = indent;
    if (*command->words) column += printf(" %s", command->words);
    for (int i = 0; i < n_own; i++) {
        const struct cli_option *const option = args_option(command, i);
        char item[ITEM_BYTES];
        snprintf(item, sizeof item, option->required ? "%s%s%s" : "[%s%s%s]", option->name,
                 option->argument ? " " : "", option->argument ? option->argument : "");
        column = print_item(item, column, indent);
    }
    if (args_option(command, n_own)) print_item("[common options]", column, indent);
    putchar('\n');
}

static void print_option(const struct cli_command *command, const struct cli_option *option) {
    int column = printf("  %s", option->name);
    if (option->argument) {
        putchar(' ');
        column = print_choices(option->argument, column + 1, 6);
    }
    if (column + 2 > OPTION_COLUMN) {
        printf("\n%*s", OPTION_COLUMN, "");
    } else {
        printf("%*s", OPTION_COLUMN - column, "");
    }
    print_wrapped(help_of(command, option), OPTION_COLUMN, OPTION_COLUMN);
    putchar('\n');
}

static void print_command(const struct cli_command *command) {
    print_usage(command);
    putchar('\n');
    print_wrapped(help_details(command), 0, 0);
    putchar('\n');
    const struct cli_option *option;
    const int n_own = args_n_own(command);
    for (int i = 0; (option = args_option(command, i)); i++) {
        if (i == 0 && n_own) puts("\nOptions:");
        if (i == n_own) puts("\nCommon options:");
        print_option(command, option);
    }
}

static void print_all(void) {
    puts("qkv: " HELP_TAGLINE "\n\nusage: qkv COMMAND [ARGUMENTS]\n");
    const struct cli_command *command;
    for (int i = 0; (command = cli_command_at(i)); i++)
        printf("  %-10s %s\n", command->name, command->summary);
    puts("\n'qkv help COMMAND' tells more. A text or an array '-' is standard input. Results\n"
         "go to standard output, everything else to standard error. Exit codes: 0, 1\n"
         "(failed), 2 (usage).");
}

int help_print(const struct cli_command *command) {
    if (command)
        print_command(command);
    else
        print_all();
    return EXIT_OK;
}

static int help(const struct cli_command *self, const void *data, int n_words, char **words) {
    const struct help_options *options = data;
    const struct cli_command *command = n_words ? cli_command_find(words[0]) : NULL;
    if (n_words && !command) return cli_usage(self, "unknown command '%s'", words[0]);
    const int64_t format = options->format.value;
    if (command && format >= FORMAT_BASH)
        return cli_usage(self, "a completion is for all commands, not for '%s'", words[0]);
    switch (format) {
    case FORMAT_SCDOC: help_scdoc(command); return EXIT_OK;
    case FORMAT_BASH: help_bash(); return EXIT_OK;
    case FORMAT_ZSH: help_zsh(); return EXIT_OK;
    case FORMAT_FISH: help_fish(); return EXIT_OK;
    default: return help_print(command);
    }
}

#define OPTIONS struct help_options

static const struct cli_option help_table[] = {
    OPTION_CHOICE("--format", "text|scdoc|bash|zsh|fish", format),
};

const struct cli_command cmd_help = {
    .name = "help",
    .summary = "this list, or a command in full",
    .words = "[COMMAND]",
    .max_words = 1,
    .suggest = "@commands",
    COMMAND_OPTIONS(help_table),
    .run = help,
};
