/* Completion for fish: fills completion.fish with a `complete` for each command and option. */
#include <stdio.h>

#include "help/formats.h"

static void write_quoted(const char *text, int length) {
    putchar('\'');
    help_write_escaped(text, length, "'\\", "\\");
    putchar('\'');
}

/* " -a '…'": words, or the output of a function. */
static void write_values(const char *suggest) {
    const struct help_values values = help_values_of(suggest);
    switch (values.kind) {
    case VALUES_UNKNOWN: break;
    case VALUES_WORDS: printf(" -a '%s'", values.text); break;
    case VALUES_NAMED: printf(" -a '(__qkv_%s)'", values.text); break;
    case VALUES_FOLDERS: fputs(" -a '(__fish_complete_directories)'", stdout); break;
    case VALUES_FILES:
        if (*values.text)
            printf(" -k -a '(__qkv_files %s)'", values.text);
        else
            fputs(" -a '(__fish_complete_path)'", stdout);
        break;
    }
}

static void write_option(const struct cli_command *command, const struct cli_option *option) {
    const char *help = help_of(command, option);
    const bool is_long = option->name[1] == '-';
    printf("complete -c qkv -n '__qkv_command %s' -%c %s", command->name, is_long ? 'l' : 's',
           option->name + 1 + is_long);
    if (option->kind != ARG_FLAG) {
        fputs(" -x", stdout);
        write_values(help_suggest(option));
    }
    fputs(" -d ", stdout);
    write_quoted(help, help_brief_length(help));
    putchar('\n');
}

static void write_command(const struct cli_command *command) {
    putchar('\n');
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++) write_option(command, option);
    if (command->suggest) {
        printf("complete -c qkv -n '__qkv_command %s'", command->name);
        write_values(command->suggest);
        putchar('\n');
    }
    printf("complete -c qkv -n '__qkv_command %s' -l help -d 'options and what they mean'\n",
           command->name);
}

static void write_summary(const struct cli_command *command) {
    printf("complete -c qkv -n __qkv_no_command -a %s -d ", command->name);
    write_quoted(command->summary, help_brief_length(command->summary));
    putchar('\n');
}

static void write_name(const struct cli_command *command) {
    printf("    echo %s\n", command->name);
}

void help_fish(void) {
    static const struct help_part parts[] = { { "summaries", write_summary },
                                              { "names", write_name },
                                              { "commands", write_command },
                                              { NULL, NULL } };
    help_write_parts(help_fish_text, parts);
}
