/* Requests to `qkv look --serve`: parsing, refusals and their status, and forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "serve/http.h"

#define HOST "Host: 127.0.0.1:80\r\n"

static void is_text(struct http_text text, const char *words) {
    assert_int_equal(text.n, strlen(words));
    assert_memory_equal(text.at, words, text.n);
}

static void test_whole(void **state) {
    static const char bytes[] =
        "POST /word/page HTTP/1.1\r\nhOST:localhost:8080 \t\r\n"
        "Origin: http://localhost:8080\r\nX-Other: \x80\xff\r\nEmpty:\r\n"
        "Content-Type:  text/plain\r\nContent-Length: 0005\r\n\r\nhelloGET /";
    struct http_request request;
    (void)state;
    const size_t whole = strlen(bytes) - strlen("GET /");
    assert_int_equal(http_parse(bytes, strlen(bytes), &request), HTTP_WHOLE);
    assert_int_equal(request.refused, 0);
    assert_true(request.is_post);
    is_text(request.path, "/word/page");
    is_text(request.host, "localhost:8080");
    is_text(request.origin, "http://localhost:8080");
    is_text(request.type, "text/plain");
    is_text(request.body, "hello");
    assert_int_equal(request.n, whole);
    for (size_t n = 0; n < whole; n++)
        assert_int_equal(http_parse(bytes, n, &request), n < whole - 5 ? HTTP_MORE : HTTP_HEADED);
    assert_int_equal(http_parse("GET / HTTP/1.0\r\nHost: a\r\n\r\n", 27, &request), HTTP_WHOLE);
    assert_false(request.is_post);
    assert_int_equal(request.body.n, 0);
    assert_null(request.origin.at);
}

static void test_refused(void **state) {
    static const struct {
        const char *bytes;
        int status;
    } cases[] = {
        { "\r\n", 400 },
        { "GET\r\n", 400 },
        { "GET /\r\n", 400 },
        { "GET / HTTP/1.1\n", 400 },
        { "GET  / HTTP/1.1\r\n", 400 },
        { "GET / HTTP/1.1 \r\n", 400 },
        { "GET / a HTTP/1.1\r\n", 400 },
        { "GET /\x80 HTTP/1.1\r\n", 400 },
        { "GET http://127.0.0.1/ HTTP/1.1\r\n", 400 },
        { "GET * HTTP/1.1\r\n", 400 },
        { "G(T / HTTP/1.1\r\n", 400 },
        { "GET / http/1.1\r\n", 400 },
        { "GET / HTTP/2.0\r\n", 505 },
        { "PUT / HTTP/1.1\r\n", 405 },
        { "get / HTTP/1.1\r\n", 405 },
        { "GET / HTTP/1.1\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\n" HOST HOST, 400 },
        { "GET / HTTP/1.1\r\nHost : a\r\n", 400 },
        { "GET / HTTP/1.1\r\n: a\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost\r\n", 400 },
        { "GET / HTTP/1.1\r\n" HOST " folded: a\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: a\rb\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: a\x7f\r\n", 400 },
        { "GET / HTTP/1.1\r\n" HOST "Origin: a\r\nOrigin: a\r\n", 400 },
        { "GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n", 400 },
        { "POST / HTTP/1.1\r\n" HOST "\r\n", 411 },
        { "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n", 400 },
        { "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n", 400 },
        { "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n", 400 },
        { "POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n", 400 },
        { "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n", 400 },
        { "POST / HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n", 413 },
        { "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551617\r\n", 413 },
        { "POST / HTTP/1.1\r\n" HOST "transfer-ENCODING: chunked\r\n", 501 },
        { "POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n", 417 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_request request;
        const char *const bytes = cases[i].bytes;
        if (http_parse(bytes, strlen(bytes), &request) != HTTP_REFUSED ||
            request.refused != cases[i].status)
            fail_msg("%s: %d, not %d", bytes, request.refused, cases[i].status);
        assert_int_not_equal(*http_reason(request.refused), '\0');
        /* what follows changes nothing */
        char more[200];
        snprintf(more, sizeof more, "%sHost: b\r\n\r\n", bytes);
        assert_int_equal(http_parse(more, strlen(more), &request), HTTP_REFUSED);
        assert_int_equal(request.refused, cases[i].status);
    }
}

/* A zero is a byte as another. */
static void test_zero(void **state) {
    static const char bytes[] = "GET / HTTP/1.1\r\nHost: a\0\r\n\r\n",
                      name[] = "GE\0 / HTTP/1.1\r\n";
    struct http_request request;
    (void)state;
    assert_int_equal(http_parse(bytes, sizeof bytes - 1, &request), HTTP_REFUSED);
    assert_int_equal(request.refused, 400);
    assert_int_equal(http_parse(name, sizeof name - 1, &request), HTTP_REFUSED);
    assert_int_equal(request.refused, 400);
}

/* `before`, n letters and `behind`, in memory of that size. */
static int status_of(const char *before, size_t n, const char *behind) {
    struct http_request request;
    const size_t a = strlen(before), b = strlen(behind);
    char *const bytes = malloc(a + n + b);
    assert_non_null(bytes);
    memcpy(bytes, before, a);
    memset(bytes + a, 'a', n);
    memcpy(bytes + a + n, behind, b);
    const enum http_state state = http_parse(bytes, a + n + b, &request);
    free(bytes);
    return state == HTTP_REFUSED ? request.refused : state == HTTP_WHOLE ? 200 : 0;
}

static void test_limits(void **state) {
    static const char first[] = "GET /", end[] = " HTTP/1.1\r\n" HOST "\r\n";
    static const char line[] = "GET / HTTP/1.1\r\n" HOST "X: ";
    const size_t path = HTTP_FIRST - strlen("GET / HTTP/1.1\r\n"), value = HTTP_LINE - 5;
    (void)state;
    assert_int_equal(status_of(first, path, end), 200);
    assert_int_equal(status_of(first, path + 1, end), 414);
    assert_int_equal(status_of(first, HTTP_FIRST - 6, ""), 0);
    assert_int_equal(status_of(first, HTTP_FIRST - 5, ""), 414);
    assert_int_equal(status_of(line, value, "\r\n\r\n"), 200);
    assert_int_equal(status_of(line, value + 1, "\r\n\r\n"), 431);
    assert_int_equal(status_of(line, HTTP_LINE - 3, ""), 431);
}

/* Lines, each as long as it may be, and as many as there may be. */
static void test_many(void **state) {
    char *const bytes = calloc(1, HTTP_MOST);
    struct http_request request;
    (void)state;
    assert_non_null(bytes);
    for (int n = 98; n <= 100; n++) {
        char *at = stpcpy(bytes, "GET / HTTP/1.1\r\n" HOST);
        for (int i = 0; i < n; i++) at = stpcpy(at, "X: a\r\n");
        stpcpy(at, "\r\n");
        const enum http_state met = http_parse(bytes, strlen(bytes), &request);
        assert_int_equal(met, n == 98 ? HTTP_WHOLE : HTTP_REFUSED);
        assert_int_equal(request.refused, n == 98 ? 0 : 431);
    }
    char *at = stpcpy(bytes, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 4; i++) {
        at = stpcpy(at, "X: ");
        memset(at, 'a', HTTP_LINE - 5);
        at = stpcpy(at + HTTP_LINE - 5, "\r\n");
    }
    assert_int_equal(http_parse(bytes, strlen(bytes), &request), HTTP_REFUSED);
    assert_int_equal(request.refused, 431);
    free(bytes);
}

static void test_forms(void **state) {
    static const struct {
        const char *body, *text; /* NULL: refused */
    } cases[] = {
        { "text=", "" },
        { "text=a+b%20c", "a b c" },
        { "a=1&text=%5BMASK%5d&b", "[MASK]" },
        { "text=a%0D%0Ab%0ac%0dd", "a\nb\nc\rd" },
        { "text=%e2%82%AC=%26", "\xe2\x82\xac=&" },
        { "texts=a&text=b&tex=c", "b" },
        { "", NULL },
        { "text", NULL },
        { "Text=a", NULL },
        { "text=a&text=b", NULL },
        { "text=%", NULL },
        { "text=%4", NULL },
        { "text=%4g", NULL },
        { "text=%4&a=1", NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct http_text body = { cases[i].body, strlen(cases[i].body) };
        char field[64];
        size_t n = 0;
        if (http_form(body, "text", field, &n) != (cases[i].text != NULL))
            fail_msg("%s", cases[i].body);
        if (!cases[i].text) continue;
        assert_int_equal(n, strlen(cases[i].text));
        assert_memory_equal(field, cases[i].text, n);
    }
}

static void test_secrets(void **state) {
    (void)state;
    assert_true(http_same_secret("abc", "abd", 2));
    assert_false(http_same_secret("abc", "abd", 3));
    assert_false(http_same_secret("\x80", "\0", 1));
    assert_true(http_is((struct http_text){ "page?", 4 }, "page"));
    assert_false(http_is((struct http_text){ "page", 3 }, "page"));
    assert_false(http_is((struct http_text){ NULL, 0 }, ""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_zero),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_many),    cmocka_unit_test(test_forms),
        cmocka_unit_test(test_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
