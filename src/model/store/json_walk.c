/* Walking an object by its bytes: see json_walk.h. */
#include "model/store/json_walk.h"

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
