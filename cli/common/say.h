/* Messages, exit codes, and interruption by signals. */
#ifndef QKV_CLI_COMMON_SAY_H
#define QKV_CLI_COMMON_SAY_H

#include <stdbool.h>

#include <qkv/status.h>

struct cli_command; /* cli.h */

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Prints "qkv: …" on standard error; returns EXIT_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns EXIT_OK, or prints the error and returns EXIT_FAILED. */
int cli_status(qkv_status status, const qkv_error *error);
/* Prints a mistake on the command line, and how to get help; returns EXIT_USAGE. */
int cli_usage(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints a remark on standard error, unless quiet. */
void cli_note(bool quiet, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * While cli_keeps is set, the first message goes into cli_kept instead of standard error, for the
 * first rank to print (ranks.c). Later messages and all remarks are dropped.
 */
enum { CLI_MOST_MESSAGE = 1200 };
extern char cli_kept[CLI_MOST_MESSAGE];
extern bool cli_keeps;

/*
 * Called first by commands that write files: then the first Ctrl-C (SIGTERM, SIGHUP) only sets
 * cli_cancelled, and the second one ends the process at once. Calls into the library take
 * &cli_cancelled as their cancel flag, and nothing is written once it is set. main then ends the
 * process by the same signal, so that a shell sees what happened.
 */
void cli_catch_interrupts(void);
extern int cli_cancelled;
/* The signal that set cli_cancelled; 0: none. */
int cli_signal(void);

/*
 * Flushes standard output. False if that failed, or anything printed before: the caller prints no
 * more, and main says why.
 */
bool cli_flush(void);

/* errno of the first failed write to standard output; 0: none. */
int cli_output_reason(void);

double cli_seconds(void); /* monotonic clock */

#endif
