/* The one table of commands, in the order of the help. */
#include "common/cli.h"

const struct cli_command *const cli_all_commands[] = {
    &cmd_learn,  &cmd_look,  &cmd_fill,     &cmd_next,      &cmd_heads,  &cmd_map,   &cmd_explain,
    &cmd_lookup, &cmd_embed, &cmd_generate, &cmd_translate, &cmd_attend, &cmd_train, &cmd_eval,
    &cmd_info,   &cmd_bench, &cmd_check,    &cmd_tokenize,  &cmd_help,   NULL,
};
