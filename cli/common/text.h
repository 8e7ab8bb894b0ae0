/* Helpers for texts: bytes from outside, error messages, captions of pictures, templates. */
#ifndef QKV_CLI_COMMON_TEXT_H
#define QKV_CLI_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <qkv/status.h>

/* Bytes, which may hold NUL. */
struct text {
    char *bytes;
    size_t n;
};

/* Sets *error and returns the status. */
qkv_status text_error(qkv_error *error, qkv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "out of memory" */
qkv_status text_no_memory(qkv_error *error);

/* Does a name end with `ending`, with something before it? */
bool text_ends(const char *name, const char *ending);

/* Appends to a string in an array of `bytes` bytes; what does not fit is cut. */
void text_append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sentences below a picture, all 0 at first; what does not fit is cut. */
struct caption {
    char text[1700];
};
#define caption_add(caption, ...) text_append((caption)->text, sizeof(caption)->text, __VA_ARGS__)

/* Appends " Text: \"...\"." with the first words of a text, and of its pair. */
void caption_add_texts(struct caption *caption, const struct text *const said[2]);

/* Appends the name of a file, escaped, and cut after 200 bytes. */
void caption_add_path(struct caption *caption, const char *path);

/*
 * Writes a text; in place of each "@{name}" it calls fill, which writes to `out`. If "@{name}" is a
 * whole line, the line feed is dropped, too. False if the text could not be written.
 */
bool template_write(FILE *out, const char *text, void (*fill)(void *user, const char *name),
                    void *user);

#endif
