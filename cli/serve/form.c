/* Fields of a form, as a browser sends them: see http.h. */
#include <string.h>

#include "serve/http.h"

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "a+b%0D%0Ac" becomes "a b\nc". */
static bool decode(struct http_text coded, char *field, size_t *n) {
    size_t written = 0;
    for (size_t i = 0; i < coded.n; i++) {
        char c = coded.at[i] == '+' ? ' ' : coded.at[i];
        if (c == '%') {
            const int high = i + 2 < coded.n ? digit_of(coded.at[i + 1]) : -1,
                      low = i + 2 < coded.n ? digit_of(coded.at[i + 2]) : -1;
            if (high < 0 || low < 0) return false;
            c = (char)(16 * high + low);
            i += 2;
        }
        if (c == '\n' && written > 0 && field[written - 1] == '\r') written--;
        field[written++] = c;
    }
    *n = written;
    return true;
}

bool http_form(struct http_text body, const char *name, char *field, size_t *n) {
    struct http_text value = { NULL, 0 };
    for (size_t at = 0; at < body.n;) {
        const char *const begin = body.at + at, *const end = memchr(begin, '&', body.n - at),
                          *const stop = end ? end : body.at + body.n,
                          *const equal = memchr(begin, '=', (size_t)(stop - begin));
        at = (size_t)(stop - body.at) + 1;
        if (!equal || !http_is((struct http_text){ begin, (size_t)(equal - begin) }, name))
            continue;
        if (value.at) return false;
        value = (struct http_text){ equal + 1, (size_t)(stop - equal - 1) };
    }
    return value.at && decode(value, field, n);
}
