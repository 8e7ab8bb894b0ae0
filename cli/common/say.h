/* What the process tells its user and hears from him: messages, exit codes, interruption. */
#ifndef QKV_CLI_COMMON_SAY_H
#define QKV_CLI_COMMON_SAY_H

#include <stdbool.h>

#include <qkv/status.h>

struct cli_command; /* cli.h */

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* "qkv: …" on standard error; return EXIT_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* EXIT_OK; or says the error, and returns EXIT_FAILED. */
int cli_status(qkv_status status, const qkv_error *error);
/* A mistake on the command line, with a line that points to the help; return EXIT_USAGE. */
int cli_usage(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A remark on standard error, unless quiet. */
void cli_note(bool quiet, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Once it is set the first message is kept, not said: another rank says it (ranks.c). Remarks are
 * dropped.
 */
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
/* The signal that came; 0: none. */
int cli_signal(void);

/*
 * Sends what was printed. False if that, or anything printed before, could not be written: then
 * main says why, so the caller prints no more.
 */
bool cli_flush(void);

/* errno of the first failure of standard output; 0: none. */
int cli_output_reason(void);

double cli_seconds(void); /* monotonic clock */

#endif
