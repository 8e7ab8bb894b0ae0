/* Integers beyond 64 bits: see json_numbers.h. One pass that knows strings; what is no JSON stays so. */
#include "model/store/json_numbers.h"

#include "model/store/json_walk.h"

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
