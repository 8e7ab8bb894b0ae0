/* What the files of the tool share: commands, exit codes, messages, interruption. */
#ifndef QKV_CLI_COMMON_CLI_H
#define QKV_CLI_COMMON_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/args.h"
#include <qkv/qkv.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* One row of the table in commands.c, from which help, usage errors and the parser come. */
struct cli_command {
    const char *name;
    const char *summary; /* one line for `qkv help` */
    const char *words;   /* "TEXT", "A B", "" */
    int min_words, max_words;
    const char *suggest; /* for the words: as in args.h */
    unsigned takes;      /* TAKES_… */
    const struct cli_option *options;
    int n_options;
    size_t options_bytes; /* of its struct, which begins with a struct cli_common */
    int (*run)(const struct cli_command *command, const void *options, int n_words, char **words);
};

#define CLI_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* A command's table of options, and their struct: OPTIONS, as in args.h. */
#define COMMAND_OPTIONS(table)                                                                     \
    .options = (table), .n_options = CLI_COUNT(table), .options_bytes = sizeof(OPTIONS)

/*
 * The table: n-th command, NULL past the end; by name; and the name of a command that is most like
 * another word, NULL if none is.
 */
const struct cli_command *cli_command_at(int index);
const struct cli_command *cli_command_find(const char *name);
const char *cli_command_nearest(const char *name);

extern const struct cli_command cmd_look, cmd_fill, cmd_next, cmd_heads, cmd_map, cmd_explain,
    cmd_lookup, cmd_embed, cmd_generate, cmd_translate, cmd_attend, cmd_train, cmd_eval, cmd_bench,
    cmd_learn, cmd_check, cmd_info, cmd_tokenize, cmd_help;

/*
 * Help on standard output (help/cmd_help.c): of one command, or of all with command NULL. Returns
 * EXIT_OK.
 */
int help_print(const struct cli_command *command);

/* "qkv: …" on standard error; return EXIT_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* EXIT_OK; or says the error, and returns EXIT_FAILED. */
int cli_status(qkv_status status, const qkv_error *error);
/* A mistake on the command line, with a line that points to the help; return EXIT_USAGE. */
int cli_usage(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A remark on standard error, unless quiet. */
void cli_note(bool quiet, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Once it is set the first message is kept, not said: another rank says it (ranks.c). Remarks are dropped. */
enum { CLI_MOST_MESSAGE = 1200 };
extern char cli_kept[CLI_MOST_MESSAGE];
extern bool cli_keeps;

/*
 * Commands that write files ask for this first: then the first Ctrl-C (SIGTERM, SIGHUP) only sets
 * cli_cancelled, and the second one ends the process at once. Calls into the library get its
 * address as their cancel flag, and nothing is written once it is set. main ends the process by
 * the signal, so that a shell sees what happened.
 */
void cli_catch_interrupts(void);
extern int cli_cancelled;

/*
 * Sends what was printed. False if that, or anything printed before, could not be written: then
 * main says why, so the caller prints no more.
 */
bool cli_flush(void);

double cli_seconds(void); /* monotonic clock */

/*
 * Writes a text; where it has a hole, "@{name}", fill writes. A hole that is a line takes its end
 * along. False if not all of the text could be written.
 */
bool template_write(FILE *out, const char *text, void (*fill)(void *user, const char *name),
                    void *user);

#endif
