/*
 * Manual pages: the sections that follow from the table of commands, in the language of scdoc(5).
 * All other sections are written by hand in cli/man; a test compares both.
 */
#include <stdio.h>
#include <string.h>

#include "help/formats.h"

enum { COLUMNS = 100, TAB = 4 };

static void write_plain(const char *text, int length) {
    help_write_escaped(text, length, "\\*_`<>~", "\\");
}

/*
 * Words of at most COLUMNS in a row; what begins a line in scdoc's eyes is escaped. No line begins
 * with a dot: scdoc would lose it, or leave troff to read a request.
 */
static void write_wrapped(const char *text, const char *margin) {
    int column = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        const int length = (int)strcspn(text, " ");
        if (column + 1 + length > COLUMNS && *text != '.') column = 0;
        if (column > 0) {
            column += printf(" ");
        } else {
            printf("\n%s", margin);
            column = TAB * (int)strlen(margin);
            if (strchr("-#|[]:;", *text)) putchar('\\');
        }
        write_plain(text, length);
        column += length;
        text += length;
    }
    putchar('\n');
}

static void write_title(const char *command) {
    printf("qkv%s%s(1) \"qkv %s\" \"Manual of qkv\"\n", command ? "-" : "", command ? command : "",
           qkv_version());
}

static void write_underlined(const char *text) {
    fputs(" _", stdout);
    write_plain(text, (int)strlen(text));
    putchar('_');
}

/* "*-o* _FILE_" */
static void write_option_name(const struct cli_option *option) {
    printf("*%s*", option->name);
    if (option->argument) write_underlined(option->argument);
}

static void write_synopsis(const struct cli_command *command) {
    printf("\n# SYNOPSIS\n\n*qkv %s*", command->name);
    if (*command->words) write_underlined(command->words);
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++)
        if (option->required) {
            putchar(' ');
            write_option_name(option);
        }
    puts(args_option(command, 0) ? " [options]" : "");
}

static void write_options(const struct cli_command *command) {
    puts("\n# OPTIONS");
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++) {
        putchar('\n');
        write_option_name(option);
        write_wrapped(help_of(command, option), "\t");
    }
    puts("\n*-h*, *--help*\n\tthis in short, and nothing else");
}

static void write_all(void) {
    write_title(NULL);
    puts("\n# NAME\n\nqkv - " HELP_TAGLINE);
    puts("\n# SYNOPSIS\n\n*qkv* _COMMAND_ [arguments]");
    puts("\n# COMMANDS");
    const struct cli_command *command;
    for (int i = 0; (command = cli_command_at(i)); i++) {
        printf("\n*qkv-%s*(1)", command->name);
        write_wrapped(command->summary, "\t");
    }
    puts("\n# OPTIONS\n\n*-h*, *--help*\n\tthe list of commands\n\n*--version*\n\tthe version");
}

void help_scdoc(const struct cli_command *command) {
    if (!command) {
        write_all();
        return;
    }
    write_title(command->name);
    printf("\n# NAME\n\nqkv-%s - ", command->name);
    write_plain(command->summary, (int)strlen(command->summary));
    putchar('\n');
    write_synopsis(command);
    write_options(command);
}
