/*
 * What the tool asks of the operating system, beyond the C library, threads of POSIX, and what the
 * libraries ask (core/os.h). Only os_*.c know systems (tools/check_system.py).
 *
 * Where a call returns an int without further words, it is 0, or -1 with errno.
 */
#ifndef QKV_CLI_COMMON_OS_H
#define QKV_CLI_COMMON_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- This process ---------------------------------------------------------------------------- */

/*
 * First of all: words of the command line in UTF-8; standard streams that were closed are opened on
 * nothing, so that no file takes their place; writing to a pipe without a reader fails, and so does
 * writing beyond a limit of size.
 */
void os_begin(int *argc, char ***argv);

/*
 * Calls met with the first signal that asks this process to end: Ctrl-C, and others. The second one
 * ends it.
 */
void os_catch_interrupts(void (*met)(int number));
/* Ends this process as that signal does by itself. */
void os_end_by(int number);

/* Standard output is a pipe that nobody reads any more. */
bool os_reader_gone(void);

/* The path of this program, with '/' between names: its length, or 0. */
size_t os_self(char *path, size_t room);
/* Becomes another program; returns where there is none. */
void os_become(const char *path, char *const words[]);
/* Runs this program with other words; its exit code, or the signal that ended it. */
int os_run_self(char *const words[], int *code, int *signal);

/* Bytes that nobody can guess. */
int os_random(void *bytes, size_t n);

/* ---- Streams --------------------------------------------------------------------------------- */

bool os_is_terminal(FILE *stream);
/* Its width; 0: not known, or none. */
int os_columns(FILE *stream);

/*
 * A text to read: a file, or a pipe that has a writer, for whom reading then waits. NULL, and
 * *reason says why.
 */
FILE *os_open_text(const char *path, const char **reason);
/*
 * The first n bytes of a file, or of a pipe once they were written, which whoever reads it next
 * gets, too. Their number: fewer if there are no more, or where a system lets nobody look into a
 * pipe.
 */
size_t os_peek(const char *path, char *bytes, size_t n);
/* getc for one thread. */
int os_getc(FILE *in);

/*
 * A stream to memory: when it is closed, *bytes has what was written, a NUL behind it, to be freed,
 * and *n its length. NULL, or EOF: there is no memory.
 */
FILE *os_open_memory(char **bytes, size_t *n);
int os_close_memory(FILE *out);

/* A file to read and to write, made if it is not there. NULL with errno. */
FILE *os_open_to_change(const char *path);
/* Of a file that is open: held by this process alone, until it is closed. */
int os_lock(FILE *file);
int os_truncate(FILE *file, int64_t n);

/* ---- Processors ------------------------------------------------------------------------------ */

/* A set of processors, by number. */
typedef struct os_cpus {
    uint64_t bits[16];
} os_cpus;

/* Those of this thread, which those that it starts inherit. Empty where they are not known. */
void os_cpus_get(os_cpus *cpus);
void os_cpus_set(const os_cpus *cpus);

#endif
