/* The one table of commands, in the order of the help. */
#include <string.h>

#include "common/cli.h"

static const struct cli_command *const commands[] = {
    &cmd_learn,  &cmd_look,  &cmd_fill,     &cmd_next,      &cmd_heads,  &cmd_map,   &cmd_explain,
    &cmd_lookup, &cmd_embed, &cmd_generate, &cmd_translate, &cmd_attend, &cmd_train, &cmd_eval,
    &cmd_info,   &cmd_bench, &cmd_check,    &cmd_tokenize,  &cmd_help,
};

const struct cli_command *cli_command_at(int index) {
    return index < CLI_COUNT(commands) ? commands[index] : NULL;
}

const struct cli_command *cli_command_find(const char *name) {
    for (int i = 0; i < CLI_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

const char *cli_command_nearest(const char *name) {
    const char *names[CLI_COUNT(commands) + 1] = { NULL };
    for (int i = 0; i < CLI_COUNT(commands); i++) names[i] = commands[i]->name;
    return args_nearest(name, names);
}
