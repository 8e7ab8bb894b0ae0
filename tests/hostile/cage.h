/**
 * Hostile files, each read in a cage: a child process that may use 100 MB of address space more
 * than at its start, and ten times the CPU time of the slowest case (limits/limits.h), and is
 * killed if it uses more. Each row of a table becomes a cmocka test whose name has its id, so that
 * a report says which promise of docs/hostile-inputs.md is broken.
 *
 * A refusal must have the right status, a piece of its message, and the name of the file; its
 * message must contain nothing that steers a terminal, and no object may be left. Under a
 * sanitizer, which needs more memory than the limit and finds leaks itself, cases run in the
 * process of the test.
 */
#ifndef QKV_TESTS_HOSTILE_CAGE_H
#define QKV_TESTS_HOSTILE_CAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "qkv/qkv.h"

/** prefix, then piece n times, then suffix. */
typedef struct hostile_repeat {
    const char *prefix, *piece, *suffix;
    int n;
} hostile_repeat;

typedef struct hostile_file {
    const char *id, *what; /* "ST13", "a name twice" */
    qkv_status status;
    const char *says; /* a piece of the message; "" if it is accepted */
    void (*make)(FILE *out, const struct hostile_file *file);
    const char *text; /* what make writes from; its meaning is the family's */
    size_t n_text;
    int64_t number, data_bytes;
    const hostile_repeat *repeat;
    const char *rules; /* of the audit's findings, by commas; NULL: it fails as the loader does;
                          "!text": with that text */
} hostile_file;

/** The files of a table, and the function that reads them, which returns the reader's status. */
typedef struct hostile_family {
    const char *name, *file_name;
    qkv_status (*read)(const char *path, qkv_error *error);
    const hostile_file *files;
    size_t n_files;
    void (*begin)(void), (*end)(void); /* put and remove what lies beside the files; or NULL */
} hostile_family;

/**
 * Makes each file and reads it in a cage; then runs the other tests, whose state is the folder if
 * they have none. Prints the number of cases, and the most that one of them used. @return for main.
 */
int hostile_main(const hostile_family *family, const struct CMUnitTest *others, size_t n_others);

/** Returned by an attempt that itself finds a broken promise: a status that no reader returns. */
#define HOSTILE_BROKEN QKV_ERR_VERSION

/** A single case, for the other tests: attempt runs in a cage, and its outcome is checked. */
typedef qkv_status hostile_attempt(const void *input, qkv_error *error);
void hostile_expect(const char *label, hostile_attempt *attempt, const void *input,
                    qkv_status status, const char *says);

/** 0 under a sanitizer: attempts run in the process of the test. */
extern const int hostile_is_forked;

/** "folder/name" of this run. */
const char *hostile_path(char path[512], const char *name);

/** Byte number `at` of generated data. */
static inline uint8_t hostile_byte(uint64_t at) { return (uint8_t)(at * 7 + 1); }

/** Writes file->text. */
void hostile_make_text(FILE *out, const hostile_file *file);
/** Writes file->repeat. */
void hostile_make_repeat(FILE *out, const hostile_file *file);

#define HOSTILE_TEXT(words) .text = (words), .n_text = sizeof(words) - 1
/* The last fields of rows of these kinds. */
#define HOSTILE_WHOLE(words) hostile_make_text, HOSTILE_TEXT(words)
#define HOSTILE_REPEATED(...)                                                                      \
    .make = hostile_make_repeat, .repeat = &(const hostile_repeat) { __VA_ARGS__ }

#endif
