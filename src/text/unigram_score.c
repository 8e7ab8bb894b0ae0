/*
 * Reads decimal scores of Unigram: see unigram.h. Reference: serde_json, src/de.rs
 * (f64_from_parts).
 */
#include <math.h>

#include "files/json_cursor.h"
#include "text/unigram.h"

/* digits · 10^exponent; so written a number has no point, which locales spell otherwise. */
struct decimal {
    int is_negative;
    char digits[QKVI_JSON_DECIMAL_BYTES];
    size_t n;
    long exponent;
};

static int is_digit(char c) { return c >= '0' && c <= '9'; }

static struct decimal decimal_of(const char *text) {
    struct decimal d = { .is_negative = *text == '-' };
    int behind_point = 0;
    text += d.is_negative;
    for (; is_digit(*text) || *text == '.'; text++) {
        if (*text == '.') {
            behind_point = 1;
            continue;
        }
        d.digits[d.n++] = *text;
        d.exponent -= behind_point;
    }
    const long written =
        *text ? strtol(text + 1, NULL, 10) : 0; /* at either end of its range beyond it */
    const long most = 100000;
    d.exponent += written > most ? most : written < -most ? -most : written;
    return d;
}

/* 10^n, n in [0, 308], to the nearest double. */
static double power(long n) {
    char text[32];
    snprintf(text, sizeof text, "1e%ld", n);
    return strtod(text, NULL);
}

double qkvi_unigram_score(const char *decimal) {
    const struct decimal d = decimal_of(decimal);
    char text[QKVI_JSON_DECIMAL_BYTES + 32];
    snprintf(text, sizeof text, "%s%.*se%ld", d.is_negative ? "-" : "", (int)d.n, d.digits,
             d.exponent);
    return strtod(text, NULL);
}

double qkvi_unigram_score_quick(const char *decimal) {
    const struct decimal d = decimal_of(decimal);
    uint64_t significand = 0;
    size_t i = 0;
    for (; i < d.n; i++) {
        const uint64_t digit = (uint64_t)(d.digits[i] - '0');
        if (significand > (UINT64_MAX - digit) / 10) break; /* the rest counts for nothing */
        significand = 10 * significand + digit;
    }
    long exponent = d.exponent + (long)(d.n - i);
    double value = (double)significand;
    for (; exponent < -308 && value != 0; exponent += 308) value /= 1e308;
    if (exponent > 308 && value != 0) return INFINITY;
    if (value != 0) value = exponent >= 0 ? value * power(exponent) : value / power(-exponent);
    return d.is_negative ? -value : value;
}
