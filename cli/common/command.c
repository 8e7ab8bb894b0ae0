/* Looks commands up in their table: see cli.h. */
#include <string.h>

#include "common/cli.h"

enum { MOST_COMMANDS = 32 };

const struct cli_command *const *cli_commands;

const struct cli_command *cli_command_at(int index) {
    for (int i = 0; cli_commands && cli_commands[i]; i++)
        if (i == index) return cli_commands[i];
    return NULL;
}

const struct cli_command *cli_command_find(const char *name) {
    const struct cli_command *command;
    for (int i = 0; (command = cli_command_at(i)); i++)
        if (strcmp(command->name, name) == 0) return command;
    return NULL;
}

const char *cli_command_nearest(const char *name) {
    const char *names[MOST_COMMANDS + 1] = { NULL };
    for (int i = 0; i < MOST_COMMANDS && cli_command_at(i); i++) names[i] = cli_command_at(i)->name;
    return args_nearest(name, names);
}
