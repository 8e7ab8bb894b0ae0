/* The table of commands. */
#ifndef QKV_CLI_COMMON_CLI_H
#define QKV_CLI_COMMON_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/args.h"
#include "common/say.h"
#include <qkv/qkv.h>

/* One row of the table in commands.c, from which help, usage errors and the parser come. */
struct cli_command {
    const char *name;
    const char *summary; /* one line for `qkv help` */
    const char *words;   /* "TEXT", "A B", "" */
    int min_words, max_words;
    const char *suggest; /* what a shell suggests for the words: args.h */
    unsigned takes;      /* TAKES_… */
    const struct cli_option *options;
    int n_options;
    size_t options_bytes; /* of its struct of options, which begins with a struct cli_common */
    bool over_ranks;      /* the ranks of mpirun share its work */
    bool may_be_empty;    /* an empty text is no mistake: the model begins by itself */
    int (*run)(const struct cli_command *command, const void *options, int n_words, char **words);
};

#define CLI_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Fields of a struct cli_command: its table of options, and the size of OPTIONS (args.h). */
#define COMMAND_OPTIONS(table)                                                                     \
    .options = (table), .n_options = CLI_COUNT(table), .options_bytes = sizeof(OPTIONS)

/*
 * cli_all_commands is the table (commands.c), NULL at its end. The code that commands share cannot
 * name it without linking all commands: it reads cli_commands, which main sets.
 */
extern const struct cli_command *const cli_all_commands[];
extern const struct cli_command *const *cli_commands;

/*
 * A command by its place in the table (NULL past the end), or by its name; the name that is nearest
 * to a misspelt one, NULL if none is near.
 */
const struct cli_command *cli_command_at(int index);
const struct cli_command *cli_command_find(const char *name);
const char *cli_command_nearest(const char *name);

extern const struct cli_command cmd_look, cmd_fill, cmd_next, cmd_heads, cmd_map, cmd_explain,
    cmd_lookup, cmd_embed, cmd_generate, cmd_translate, cmd_attend, cmd_train, cmd_eval, cmd_bench,
    cmd_learn, cmd_check, cmd_info, cmd_tokenize, cmd_help;

/*
 * Prints help (help/cmd_help.c): of one command, or the list of all if command is NULL. Returns
 * EXIT_OK.
 */
int help_print(const struct cli_command *command);

#endif
