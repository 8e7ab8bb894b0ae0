/* Walking through the members of an object: see json.h. */
#include "files/json.h"

size_t qkvi_json_skip_string(const char *text, size_t n, size_t at) {
    for (at++; at < n && text[at] != '"'; at++)
        if (text[at] == '\\') at++;
    return at < n ? at + 1 : n;
}

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

size_t qkvi_json_skip_blanks(const char *text, size_t n, size_t at) {
    while (at < n && is_blank(text[at])) at++;
    return at;
}

/* The end of what brackets enclose, strings understood; n if it has none. */
static size_t skip_container(const char *text, size_t n, size_t at) {
    size_t depth = 0;
    while (at < n) {
        const char c = text[at];
        if (c == '"') {
            at = qkvi_json_skip_string(text, n, at);
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at++;
        if (depth == 0) break;
    }
    return at;
}

static size_t skip_value(const char *text, size_t n, size_t at) {
    if (at < n && text[at] == '"') return qkvi_json_skip_string(text, n, at);
    if (at < n && (text[at] == '{' || text[at] == '[')) return skip_container(text, n, at);
    while (at < n && text[at] != ',' && text[at] != '}' && text[at] != ']' && !is_blank(text[at]))
        at++;
    return at;
}

/* "key" : value, with the blanks before and after. 0 where that is not what is there. */
static int take_member(const char *text, size_t n, size_t *at, qkvi_json_span *key,
                       qkvi_json_span *value) {
    key->begin = *at = qkvi_json_skip_blanks(text, n, *at);
    if (*at >= n || text[*at] != '"') return 0;
    key->end = qkvi_json_skip_string(text, n, *at);
    *at = qkvi_json_skip_blanks(text, n, key->end);
    if (*at >= n || text[*at] != ':') return 0;
    value->begin = qkvi_json_skip_blanks(text, n, *at + 1);
    value->end = skip_value(text, n, value->begin);
    if (value->end == value->begin) return 0;
    *at = qkvi_json_skip_blanks(text, n, value->end);
    return 1;
}

/* Past one byte, if it is there. */
static int take(const char *text, size_t n, size_t *at, char c) {
    if (*at >= n || text[*at] != c) return 0;
    ++*at;
    return 1;
}

qkv_status qkvi_json_walk(const char *text, size_t n, size_t *at, int *is_broken,
                          qkvi_json_visit *visit, void *user) {
    qkvi_json_span key, value;
    *is_broken = 1;
    if (!take(text, n, at, '{')) return QKV_OK;
    const size_t first = qkvi_json_skip_blanks(text, n, *at);
    if (first < n && text[first] == '}') { /* no members */
        *at = first + 1;
        *is_broken = 0;
        return QKV_OK;
    }
    do {
        if (!take_member(text, n, at, &key, &value)) return QKV_OK;
        QKV_TRY(visit(user, key, value));
    } while (take(text, n, at, ','));
    *is_broken = !take(text, n, at, '}');
    return QKV_OK;
}

/* ---- Integers beyond 64 bits ----------------------------------------------------------------- */

/* Integers beyond 64 bits: see json.h. One pass that knows strings; what is no JSON stays so. */

/* REAL_DIGITS: a double has room for so many; what has more is one and the same number. */
enum { INT64_DIGITS = 19, REAL_DIGITS = 300 };

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* What a number is made of, and all that is written together with it. */
static size_t skip_number(const char *text, size_t n, size_t at) {
    while (at < n && (is_digit(text[at]) || (text[at] && strchr("+-.eE", text[at])))) at++;
    return at;
}

/* Digits that are an integer, and none of 64 bits. */
static int is_wide(const char *digits, size_t n, int is_negative) {
    static const char most[] = "9223372036854775807", least[] = "9223372036854775808";
    for (size_t i = 0; i < n; i++)
        if (!is_digit(digits[i])) return 0;
    if (n != INT64_DIGITS) return n > INT64_DIGITS && digits[0] != '0';
    return memcmp(digits, is_negative ? least : most, INT64_DIGITS) > 0;
}

/* The last two digits become a power of ten; very many become 1e300 and blanks. */
static void make_real(char *digits, size_t n) {
    if (n <= REAL_DIGITS) {
        memcpy(digits + n - 2, "e2", 2);
        return;
    }
    memset(digits, ' ', n);
    memcpy(digits, "1e300", 5);
}

/* Makes the copy, unless there is one. */
static qkv_status copy(const char *file, const char *text, size_t n, char **wide,
                       qkv_error *error) {
    if (*wide) return QKV_OK;
    *wide = malloc(n);
    if (!*wide)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to parse the JSON", file);
    memcpy(*wide, text, n);
    return QKV_OK;
}

qkv_status qkvi_json_widen(const char *file, const char *text, size_t n, char **wide,
                           qkv_error *error) {
    *wide = NULL;
    for (size_t at = 0; at < n;) {
        if (text[at] == '"') {
            at = qkvi_json_skip_string(text, n, at);
            continue;
        }
        const int is_negative = text[at] == '-';
        const size_t begin = at + (size_t)is_negative, end = skip_number(text, n, at);
        if (end > begin && is_wide(text + begin, end - begin, is_negative)) {
            QKV_TRY(copy(file, text, n, wide, error));
            make_real(*wide + begin, end - begin);
        }
        at = end > at ? end : at + 1;
    }
    return QKV_OK;
}
