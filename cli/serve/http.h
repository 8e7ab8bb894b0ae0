/*
 * Parsing a request of HTTP/1.1, untrusted bytes in a buffer. What is not understood is refused,
 * with a status that says why.
 */
#ifndef QKV_CLI_SERVE_HTTP_H
#define QKV_CLI_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* Limits: bytes of lines with their ends, bytes of the body, and fields. */
enum {
    HTTP_FIRST = 2048,  /* the first line */
    HTTP_LINE = 8192,   /* any other line */
    HTTP_LINES = 32768, /* all lines */
    HTTP_BODY = 1 << 20,
    HTTP_FIELDS = 100,
    HTTP_MOST = HTTP_LINES + HTTP_LINE + HTTP_BODY /* longer requests are always refused */
};

/* Bytes in the buffer, without a NUL; at is NULL if the request has no such field. */
struct http_text {
    const char *at;
    size_t n;
};

struct http_request {
    int refused; /* the status, 400 to 505; 0: not refused */
    bool is_post;
    struct http_text path, host, origin, type, body; /* type: Content-Type */
    size_t n_head, n;                                /* bytes of all lines; of the whole request */
};

enum http_state {
    HTTP_MORE,   /* lines are missing */
    HTTP_HEADED, /* all lines are there, and the body is not complete */
    HTTP_WHOLE,
    HTTP_REFUSED
};

/*
 * Parses the request at the beginning of the bytes; others may follow it. It must have one path of
 * printable ASCII, one Host, and if it is a POST a Content-Length. HTTP_REFUSED and HTTP_WHOLE do
 * not change when more bytes are added.
 */
enum http_state http_parse(const char *bytes, size_t n, struct http_request *request);

bool http_is(struct http_text text, const char *word);

/* Compares n bytes in a time that does not depend on where they differ. */
bool http_same_secret(const char *a, const char *b, size_t n);

/*
 * Decodes a field of a form (application/x-www-form-urlencoded) into field, which has room for
 * body.n bytes; lines end with \n. False: there is not exactly one, or it has an invalid escape.
 */
bool http_form(struct http_text body, const char *name, char *field, size_t *n);

/* The reason phrase of a status: "Not Found" for 404. */
const char *http_reason(int status);

#endif
