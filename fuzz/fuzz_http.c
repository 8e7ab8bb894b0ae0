/*
 * A request to `qkv look --serve`. What is whole lies within its bytes and within the limits;
 * whatever its bytes are cut to, it is the same or goes on, and what is refused stays refused for
 * the same reason. Its form, decoded, is no longer than it was.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "serve/http.h"

static void check_within(const char *bytes, size_t n, struct http_text text) {
    if (!text.at) return;
    FUZZ_CHECK(text.at >= bytes && text.n <= n && (size_t)(text.at - bytes) <= n - text.n);
}

static void check_lines(const char *bytes, const struct http_request *request) {
    const struct http_text path = request->path;
    check_within(bytes, request->n_head, path);
    check_within(bytes, request->n_head, request->host);
    check_within(bytes, request->n_head, request->origin);
    check_within(bytes, request->n_head, request->type);
    FUZZ_CHECK(path.n > 0 && path.n <= HTTP_FIRST && path.at[0] == '/' && request->host.at);
    for (size_t i = 0; i < path.n; i++) FUZZ_CHECK(path.at[i] > 0x20 && path.at[i] < 0x7f);
    FUZZ_CHECK(request->n_head <= HTTP_LINES && request->body.n <= HTTP_BODY);
    FUZZ_CHECK(request->n <= HTTP_MOST && (request->is_post || request->body.n == 0));
    FUZZ_CHECK(memcmp(bytes + request->n_head - 4, "\r\n\r\n", 4) == 0);
}

static void check_form(const struct http_request *request) {
    size_t n = 0;
    char *const field = fuzz_alloc(request->body.n);
    if (http_form(request->body, "text", field, &n)) FUZZ_CHECK(n <= request->body.n);
    free(field);
}

/* Cut to n bytes, in memory of that size: a state that is not above that of the whole. */
static void check_cut(const uint8_t *bytes, size_t n, enum http_state state,
                      const struct http_request *request) {
    struct http_request cut;
    char *const copy = fuzz_alloc(n);
    if (n > 0) memcpy(copy, bytes, n);
    const enum http_state met = http_parse(copy, n, &cut);
    FUZZ_CHECK(met == state || met == HTTP_MORE ||
               (met == HTTP_HEADED && state == HTTP_WHOLE && n < request->n));
    if (met == HTTP_REFUSED)
        FUZZ_CHECK(cut.refused == request->refused && *http_reason(cut.refused));
    if (met == HTTP_WHOLE || met == HTTP_HEADED) {
        FUZZ_CHECK(cut.n == request->n && cut.n_head == request->n_head);
        FUZZ_CHECK(met == HTTP_HEADED || n >= request->n);
        check_lines(copy, &cut);
    }
    if (met == HTTP_WHOLE) check_form(&cut);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    struct http_request request;
    const size_t step = n_bytes / 300 + 1;
    char *const copy = fuzz_alloc(n_bytes);
    if (n_bytes > 0) memcpy(copy, bytes, n_bytes);
    const enum http_state state = http_parse(copy, n_bytes, &request);
    for (size_t n = 0; n <= n_bytes; n += step) check_cut(bytes, n, state, &request);
    check_cut(bytes, n_bytes, state, &request);
    /* a body that is a form, whatever it is sent with */
    request.body = (struct http_text){ copy, n_bytes };
    check_form(&request);
    free(copy);
    return 0;
}
