/*
 * The one reader of texts, of a file or of standard input: data from anywhere, so a line is
 * bounded. CR LF and LF end a line alike, and a byte order mark at the beginning is left out with a
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
 * A text to be read once, from its beginning to its end: a file, or a pipe with a writer. Of
 * anything else, and of a pipe without a writer, it is NULL at once, with the reason in *error.
 */
FILE *open_text(const char *path, qkv_error *error);

/*
 * All that a stream has, or more than `limit` bytes of it, to be freed; ferror tells whether it
 * broke off. False: no memory, and nothing to free.
 */
bool text_read(FILE *in, size_t limit, struct text *text);

/*
 * Of a text that the library reads, which knows files alone: "-" is standard input there, too. NULL
 * is allowed.
 */
const char *text_path(const char *path);

/*
 * The remark about a byte order mark, of a file that the library reads; of NULL and of a pipe
 * nothing.
 */
void text_say_mark(const char *path, bool quiet);

/*
 * Zeros at first but for quiet and most, or in and name set; lines_close at the end, or free
 * line.bytes.
 */
struct lines {
    bool quiet;  /* no remark about a byte order mark */
    size_t most; /* bytes of a line; 0: TEXT_LIMIT */
    FILE *in;
    const char *name; /* of lines_open: for messages */
    struct text line; /* without its end */
    size_t room;
    int64_t number, n_bytes; /* number: from 1; n_bytes: read so far */
    bool is_broken;          /* the rest of this line is to be skipped */
};

/* What messages call the file of that path. */
const char *lines_name(const char *path);
/* The file of that path, which must outlive the lines; "-": standard input. */
qkv_status lines_open(struct lines *lines, const char *path, qkv_error *error);
void lines_close(struct lines *lines);

/*
 * Reads the next line; false at the end of the input. *status tells of a line that is too long, or
 * for which there is no memory: the next call skips the rest of it, and reading goes on.
 */
bool lines_next(struct lines *lines, qkv_status *status, qkv_error *error);

/*
 * All lines as one text, a newline between two: the end of the last one is not part of it.
 * text->bytes, NULL at first, are to be freed in any case. The error names the file.
 */
qkv_status lines_whole(struct lines *lines, struct text *text, qkv_error *error);

/* *error, which is about the line that was read last, as "F:12: …". */
qkv_status lines_error(const struct lines *lines, qkv_error *error);
/* At the end of the input: whether it is really the end. */
qkv_status lines_end(const struct lines *lines, qkv_error *error);

/*
 * Gives each line of a file to `take`, until one fails (the error then says which) or
 * cli_cancelled. quiet: as in struct lines. progress: nullable, begun, "… lines" and then `told`.
 */
qkv_status lines_each(const char *path, bool quiet, struct progress *progress, const char *told,
                      qkv_status (*take)(void *user, const struct text *line, qkv_error *error),
                      void *user, qkv_error *error);

/*
 * A line of JSON, a string or an array of two. It is looked over before it is parsed, so that it
 * cannot make the parser use more memory than a few times its bytes. The texts live as long as
 * *root, which the caller releases (jsonl.c).
 */
qkv_status jsonl_parse(const struct text *line, struct text texts[2], int *n_texts, json_t **root,
                       qkv_error *error);

#endif
