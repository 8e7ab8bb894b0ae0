/* Texts: bytes from outside, growing ones, the captions of pictures, and errors in words. */
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

/* Does a name end so, with something before? */
bool text_ends(const char *name, const char *ending);

/* Appends to a text in room for `bytes`; what does not fit is cut. */
void text_append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sentences below a picture; what does not fit is cut. Zeros at first. */
struct caption {
    char text[1700];
};
#define caption_add(caption, ...) text_append((caption)->text, sizeof(caption)->text, __VA_ARGS__)

/* Appends " Text: \"...\"." with the first words of a text, and of its pair. */
void caption_add_texts(struct caption *caption, const struct text *const said[2]);

/*
 * Writes a text; where it has a hole, "@{name}", fill writes. A hole that is a line takes its end
 * along. False if not all of the text could be written.
 */
bool template_write(FILE *out, const char *text, void (*fill)(void *user, const char *name),
                    void *user);

#endif
