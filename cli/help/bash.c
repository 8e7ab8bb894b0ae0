/* Completion for bash: fills completion.bash from the table of commands. */
#include <stdio.h>

#include "help/formats.h"

static void write_name(const struct cli_command *command) {
    printf(command == cli_command_at(0) ? "%s" : " %s", command->name);
}

static void write_options(const struct cli_command *command) {
    printf("    %s) echo \"", command->name);
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++) printf("%s ", option->name);
    puts("--help\" ;;");
}

/* A line for each option that takes a value; the words of the command, if any, stand under ''. */
static void write_values(const struct cli_command *command) {
    const struct cli_option *option;
    for (int i = 0; (option = args_option(command, i)); i++) {
        if (option->kind == ARG_FLAG) continue;
        const char *what = help_suggest(option);
        printf("    '%s %s') echo '%s' ;;\n", command->name, option->name, what ? what : "");
    }
    if (command->max_words > 0)
        printf("    '%s ') echo '%s' ;;\n", command->name,
               command->suggest ? command->suggest : "");
}

void help_bash(void) {
    static const struct help_part parts[] = { { "names", write_name },
                                              { "options", write_options },
                                              { "values", write_values },
                                              { NULL, NULL } };
    help_write_parts(help_bash_text, parts);
}
