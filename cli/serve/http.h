/*
 * A request of HTTP/1.1 as bytes from anywhere: read by functions that see a buffer and nothing
 * else. What is not understood is refused, by the status that says why.
 */
#ifndef QKV_CLI_SERVE_HTTP_H
#define QKV_CLI_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the first line, of another line and of all lines, with their ends; and of the body. */
enum {
    HTTP_FIRST = 2048,
    HTTP_LINE = 8192,
    HTTP_LINES = 32768,
    HTTP_BODY = 1 << 20,
    HTTP_FIELDS = 100,
    HTTP_MOST = HTTP_LINES + HTTP_LINE + HTTP_BODY /* no request that is not refused is longer */
};

/* Bytes in the buffer, not ended by a zero; at is NULL where the request has none. */
struct http_text {
    const char *at;
    size_t n;
};

struct http_request {
    int refused; /* the status, 400 to 505; 0: it is not refused */
    bool is_post;
    struct http_text path, host, origin, type, body; /* type: Content-Type */
    size_t n_head, n;                                /* bytes of its lines, and of all of it */
};

enum http_state {
    HTTP_MORE,   /* its lines go on */
    HTTP_HEADED, /* they are whole, and the body is not */
    HTTP_WHOLE,
    HTTP_REFUSED
};

/*
 * The request that the bytes begin with; more bytes may follow it. It has one path of printable
 * ASCII, one Host, and of POST a Content-Length. What some bytes are refused for does not change if
 * more follow, and neither does a request that is whole.
 */
enum http_state http_parse(const char *bytes, size_t n, struct http_request *request);

bool http_is(struct http_text text, const char *word);

/* Are n bytes the same? The time that this takes does not depend on where they differ. */
bool http_same_secret(const char *a, const char *b, size_t n);

/*
 * A field of a form (application/x-www-form-urlencoded), decoded into room for body.n bytes, with
 * each line ended by \n. False: there is none, or more than one, or an escape that is none.
 */
bool http_form(struct http_text body, const char *name, char *field, size_t *n);

/* "Not Found" of 404. */
const char *http_reason(int status);

#endif
