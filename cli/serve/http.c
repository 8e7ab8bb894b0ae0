/*
 * Requests: see http.h. Lines end with CR LF and are not folded. A field that must not be there
 * twice is refused, and so is anything that another parser could read as another request.
 */
#include <string.h>

#include "serve/http.h"

struct lines {
    const char *at, *end;
    struct http_request *request;
    bool more; /* the bytes end within a line */
};

static bool refuse(struct lines *lines, int status) {
    lines->request->refused = status;
    return false;
}

bool http_is(struct http_text text, const char *word) {
    return text.at && text.n == strlen(word) && memcmp(text.at, word, text.n) == 0;
}

/* Letters of names of fields, in any case. */
static bool is_named(struct http_text text, const char *lower) {
    if (text.n != strlen(lower)) return false;
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.at[i];
        if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != lower[i]) return false;
    }
    return true;
}

static bool all(struct http_text text, bool (*is)(unsigned char c)) {
    for (size_t i = 0; i < text.n; i++)
        if (!is((unsigned char)text.at[i])) return false;
    return text.n > 0;
}
static bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
static bool is_printed(unsigned char c) { return c > 0x20 && c < 0x7f; }
static bool is_letter(unsigned char c) {
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}
/* Of a value of a field; the bytes of no character are let through, and are not interpreted. */
static bool is_value(unsigned char c) { return (c >= 0x20 && c != 0x7f) || c == '\t'; }

/* The next line without its end; `status` if it is longer than `most`. */
static bool next_line(struct lines *lines, size_t most, int status, struct http_text *line) {
    const size_t left = (size_t)(lines->end - lines->at);
    const char *const end = memchr(lines->at, '\n', left < most ? left : most);
    if (!end && left >= most) return refuse(lines, status);
    lines->more = !end;
    if (!end) return false;
    if (end == lines->at || end[-1] != '\r') return refuse(lines, 400);
    *line = (struct http_text){ lines->at, (size_t)(end - 1 - lines->at) };
    lines->at = end + 1;
    return true;
}

/* "GET /path HTTP/1.1" */
static bool take_first(struct lines *lines) {
    struct http_request *const request = lines->request;
    struct http_text line;
    if (!next_line(lines, HTTP_FIRST, 414, &line)) return false;
    const char *const end = line.at + line.n, *const gap = memchr(line.at, ' ', line.n);
    if (!gap) return refuse(lines, 400);
    const struct http_text method = { line.at, (size_t)(gap - line.at) };
    const char *const second = memchr(gap + 1, ' ', (size_t)(end - gap - 1));
    if (!second) return refuse(lines, 400);
    const struct http_text version = { second + 1, (size_t)(end - second - 1) };
    request->path = (struct http_text){ gap + 1, (size_t)(second - gap - 1) };
    request->is_post = http_is(method, "POST");
    if (!all(method, is_letter) || !all(request->path, is_printed) || request->path.at[0] != '/')
        return refuse(lines, 400);
    if (version.n != 8 || memcmp(version.at, "HTTP/", 5) != 0) return refuse(lines, 400);
    if (!http_is(version, "HTTP/1.1") && !http_is(version, "HTTP/1.0")) return refuse(lines, 505);
    return request->is_post || http_is(method, "GET") ? true : refuse(lines, 405);
}

static bool take_once(struct lines *lines, struct http_text *field, struct http_text value) {
    if (field->at) return refuse(lines, 400);
    *field = value;
    return true;
}

/* At most seven digits, so that the number has room. */
static bool take_length(struct lines *lines, struct http_text *length, struct http_text value) {
    if (!take_once(lines, length, value)) return false;
    if (!all(value, is_digit)) return refuse(lines, 400);
    size_t n = 0;
    for (size_t i = 0; i < value.n && n <= HTTP_BODY; i++) n = 10 * n + (size_t)(value.at[i] - '0');
    if (n > HTTP_BODY) return refuse(lines, 413);
    lines->request->body.n = n;
    return true;
}

/* "Name: value", with spaces around the value. */
static bool take_field(struct lines *lines, struct http_text line, struct http_text *length) {
    struct http_request *const request = lines->request;
    const char *const colon = memchr(line.at, ':', line.n);
    if (!colon) return refuse(lines, 400);
    const struct http_text name = { line.at, (size_t)(colon - line.at) };
    struct http_text value = { colon + 1, (size_t)(line.at + line.n - colon - 1) };
    if (!all(name, is_letter) || (value.n > 0 && !all(value, is_value))) return refuse(lines, 400);
    while (value.n > 0 && (*value.at == ' ' || *value.at == '\t')) value.at++, value.n--;
    while (value.n > 0 && (value.at[value.n - 1] == ' ' || value.at[value.n - 1] == '\t'))
        value.n--;
    if (is_named(name, "host")) return take_once(lines, &request->host, value);
    if (is_named(name, "origin")) return take_once(lines, &request->origin, value);
    if (is_named(name, "content-type")) return take_once(lines, &request->type, value);
    if (is_named(name, "content-length")) return take_length(lines, length, value);
    if (is_named(name, "transfer-encoding")) return refuse(lines, 501);
    if (is_named(name, "expect")) return refuse(lines, 417);
    return true;
}

static bool take_fields(struct lines *lines, const char *bytes) {
    struct http_request *const request = lines->request;
    struct http_text line, length = { NULL, 0 };
    for (int i = 0; next_line(lines, HTTP_LINE, 431, &line); i++) {
        if (i == HTTP_FIELDS || lines->at - bytes > HTTP_LINES) return refuse(lines, 431);
        if (line.n > 0 && !take_field(lines, line, &length)) return false;
        if (line.n > 0) continue;
        if (!request->host.at) return refuse(lines, 400);
        if (request->is_post && !length.at) return refuse(lines, 411);
        return request->is_post || request->body.n == 0 ? true : refuse(lines, 400);
    }
    return false;
}

enum http_state http_parse(const char *bytes, size_t n, struct http_request *request) {
    struct lines lines = { .at = bytes, .end = bytes + n, .request = request };
    *request = (struct http_request){ .refused = 0 };
    if (!take_first(&lines) || !take_fields(&lines, bytes))
        return request->refused ? HTTP_REFUSED : HTTP_MORE;
    request->body.at = lines.at;
    request->n_head = (size_t)(lines.at - bytes);
    request->n = request->n_head + request->body.n;
    return request->n <= n ? HTTP_WHOLE : HTTP_HEADED;
}

bool http_same_secret(const char *a, const char *b, size_t n) {
    volatile unsigned char differ = 0;
    for (size_t i = 0; i < n; i++)
        differ = (unsigned char)(differ | ((unsigned char)a[i] ^ (unsigned char)b[i]));
    return differ == 0;
}

const char *http_reason(int status) {
    static const struct {
        int status;
        const char *reason;
    } all_reasons[] = { { 200, "OK" },
                        { 400, "Bad Request" },
                        { 403, "Forbidden" },
                        { 404, "Not Found" },
                        { 405, "Method Not Allowed" },
                        { 408, "Request Timeout" },
                        { 411, "Length Required" },
                        { 413, "Content Too Large" },
                        { 414, "URI Too Long" },
                        { 415, "Unsupported Media Type" },
                        { 417, "Expectation Failed" },
                        { 422, "Unprocessable Content" },
                        { 431, "Request Header Fields Too Large" },
                        { 500, "Internal Server Error" },
                        { 501, "Not Implemented" },
                        { 505, "HTTP Version Not Supported" } };
    for (size_t i = 0; i < sizeof all_reasons / sizeof *all_reasons; i++)
        if (all_reasons[i].status == status) return all_reasons[i].reason;
    return "";
}
