/* Completion for zsh: a specification for _arguments per option, from the table of commands. */
#include <stdio.h>
#include <string.h>

#include "help/formats.h"

#define IN_SPEC "[]:\\" /* what _arguments would read */

static const char head[] =
    "#compdef qkv\n"
    "# Completion of qkv for zsh, made by `qkv help --format zsh`.\n"
    "\n"
    "# The heads L.H of the model in use, as `qkv info` counts them.\n"
    "_qkv_heads() {\n"
    "    local i line model=${opt_args[--model]:-${QKV_MODEL-}}\n"
    "    local -a fields heads\n"
    "    local counted=\"$(_call_program heads qkv info -- "
    "${model:+${(q)${(Q)model}}} 2>/dev/null)\"\n"
    "    for line in ${(f)counted}; do\n"
    "        fields=(${=line})\n"
    "        [[ $fields[1] == layers && $fields[2]$fields[4] == <-> ]] || continue\n"
    "        for ((i = 0; i < fields[2] * fields[4]; i++)); do\n"
    "            heads+=($((i / fields[4])).$((i % fields[4])))\n"
    "        done\n"
    "    done\n"
    "    compadd -a heads\n"
    "}\n"
    "\n";

static const char middle[] =
    "_qkv() {\n"
    "    local curcontext=$curcontext state line i ret=1\n"
    "    typeset -A opt_args\n"
    "    _arguments -C '(- *)--help[the list of commands]' '(- *)--version[the version]' \\\n"
    "        '1: :_qkv_commands' '*:: :->arguments' && ret=0\n"
    "    [[ $state == arguments ]] || return ret\n"
    "    case $words[1] in\n";

static const char tail[] = "    esac\n"
                           "    return ret\n"
                           "}\n"
                           "\n"
                           "if [[ $funcstack[1] == _qkv ]]; then\n"
                           "    _qkv \"$@\"\n"
                           "else\n"
                           "    compdef _qkv qkv\n"
                           "fi\n";

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

void help_zsh(void) {
    fputs(head, stdout);
    const struct cli_command *command;
    puts("_qkv_commands() {\n    local -a commands=(");
    for (int i = 0; (command = cli_command_at(i)); i++) {
        printf("        '%s:", command->name);
        write_quoted(command->summary, help_brief_length(command->summary), ":\\");
        puts("'");
    }
    puts("    )\n    _describe -t commands command commands\n}\n");
    fputs(middle, stdout);
    for (int i = 0; (command = cli_command_at(i)); i++) write_command(command);
    fputs(tail, stdout);
}
