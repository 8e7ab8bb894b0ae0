/* Lines of a file or of standard input: data from anywhere, so a line is bounded. */
#ifndef QKV_CLI_COMMON_LINES_H
#define QKV_CLI_COMMON_LINES_H

#include "common/input.h"
#include "common/term.h"

enum { TEXT_LIMIT = 64 << 20 }; /* bytes of a line, and of a text on standard input */

/* Bytes, which may hold NUL. */
struct text {
    char *bytes;
    size_t n;
};

/*
 * A text to be read once, from its beginning to its end: a file, or a pipe with a writer. Of anything else, and of a pipe without
 * a writer, it is NULL at once, with the reason in *error.
 */
FILE *open_text(const char *path, qkv_error *error);

/*
 * All that a stream has, or more than `limit` bytes of it, to be freed; ferror tells whether it
 * broke off. False: no memory, and nothing to free.
 */
bool text_read(FILE *in, size_t limit, struct text *text);

/* Zeros at first, or in alone; lines_close at the end, or free line.bytes. */
struct lines {
    FILE *in;
    const char *name; /* of lines_open: for messages */
    struct text line; /* without its newline */
    size_t room;
    int64_t number, n_bytes; /* number: from 1; n_bytes: read so far */
};

/* What messages call the file of that path. */
const char *lines_name(const char *path);
/* The file of that path, which must outlive the lines; "-": standard input. */
qkv_status lines_open(struct lines *lines, const char *path, qkv_error *error);
void lines_close(struct lines *lines);

/*
 * Reads the next line; false at the end of the input. *status tells of a line that was too long, or
 * for which there was no memory: it is skipped, and reading goes on.
 */
bool lines_next(struct lines *lines, qkv_status *status, qkv_error *error);

/* *error, which is about the line that was read last, as "F:12: …". */
qkv_status lines_error(const struct lines *lines, qkv_error *error);
/* At the end of the input: whether it is really the end. */
qkv_status lines_end(const struct lines *lines, qkv_error *error);

/*
 * Gives each line of a file to `take`, until one fails (the error then says which) or
 * cli_cancelled. progress: nullable, begun, "… lines" and then `told`.
 */
qkv_status lines_each(const char *path, struct progress *progress, const char *told,
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
