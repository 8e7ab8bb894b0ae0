/*
 * Reads texts from files and standard input. They come from outside, so the length of a line is
 * bounded. CR LF and LF both end a line, and a byte order mark at the beginning is skipped with a
 * remark, so that a text means the same whichever editor wrote it.
 */
#ifndef QKV_CLI_COMMON_LINES_H
#define QKV_CLI_COMMON_LINES_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "common/say.h"
#include "common/term.h"
#include "common/text.h"

enum { TEXT_LIMIT = 64 << 20 }; /* bytes of a line, and of a text on standard input */

/*
 * Opens a text that is read once from its beginning to its end: a file, or a pipe that has a
 * writer. NULL for anything else, with the reason in *error; it does not wait for a writer.
 */
FILE *open_text(const char *path, qkv_error *error);

/*
 * Reads a stream to its end, or until it has more than `limit` bytes; the caller frees them, and
 * asks ferror whether reading failed. False: no memory, and nothing to free.
 */
bool text_read(FILE *in, size_t limit, struct text *text);

/*
 * The path of a text for the library, which opens files only: "-" becomes the path of standard
 * input. NULL is allowed.
 */
const char *text_path(const char *path);

/*
 * Says the remark about a byte order mark for a file or a pipe that the library reads, before it
 * does. Nothing for NULL. Of a pipe the first bytes are waited for, and stay in it.
 */
void text_say_mark(const char *path, bool quiet);
/* The same for standard input, which was read. */
void text_say_stdin_mark(const struct text *text, bool quiet);

/*
 * The caller sets quiet and most, and all else to 0, then lines_open; at the end lines_close. Or it
 * sets in and name to an open stream, and frees line.bytes at the end.
 */
struct lines {
    bool quiet;  /* no remark about a byte order mark */
    size_t most; /* bytes of a line; 0: TEXT_LIMIT */
    FILE *in;
    const char *name; /* for messages */
    struct text line; /* the line that was read last, without its end */
    size_t room;
    int64_t number, n_bytes; /* the number of the line, from 1; bytes read so far */
    bool is_broken;          /* the line was refused: its rest is to be skipped */
};

/* What messages call the file of that path: "-" is standard input. */
const char *lines_name(const char *path);
/* Opens a file; the path must outlive the lines. "-" is standard input. */
qkv_status lines_open(struct lines *lines, const char *path, qkv_error *error);
void lines_close(struct lines *lines);

/*
 * Reads the next line; false at the end of the input. *status is an error if the line is too long,
 * or there is no memory for it; then the next call skips the rest of that line.
 */
bool lines_next(struct lines *lines, qkv_status *status, qkv_error *error);

/*
 * Reads all lines as one text, with a newline between two lines and none at the end. The caller
 * sets text->bytes to NULL before, and frees it in any case. The error names the file.
 */
qkv_status lines_whole(struct lines *lines, struct text *text, qkv_error *error);

/* Puts file and line, "F:12: ", before a message about the line that was read last. */
qkv_status lines_error(const struct lines *lines, qkv_error *error);
/* After lines_next returned false: an error if reading failed before the end. */
qkv_status lines_end(const struct lines *lines, qkv_error *error);

/*
 * Calls `take` for each line of a file until it fails (the error then names the line) or
 * cli_cancelled is set. quiet: as in struct lines. progress: nullable, begun by the caller; shows
 * "N lines" and then `told`.
 */
qkv_status lines_each(const char *path, bool quiet, struct progress *progress, const char *told,
                      qkv_status (*take)(void *user, const struct text *line, qkv_error *error),
                      void *user, qkv_error *error);

/*
 * Parses a line of JSON: a string, or an array of two. A check before the parser bounds the memory
 * that it can use to a few times the bytes of the line. The texts live as long as *root, which the
 * caller releases (jsonl.c).
 */
qkv_status jsonl_parse(const struct text *line, struct text texts[2], int *n_texts, json_t **root,
                       qkv_error *error);

#endif
