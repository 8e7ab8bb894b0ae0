/*
 * Decimal to binary, rounded once. With the digits as an integer D, a number is D 10^E. Its first
 * bits, 64 at least, are computed exactly, and whether anything follows them:
 *
 *     D 10^E or D / 10^-E in 128 bits, where D and 10^|E| have 64 at most;
 *     elsewhere a division of long integers, one bit at a time.
 *
 * From these bits, and one that stands for what follows, the number is rounded to 53 or 24, or
 * fewer where it is subnormal.
 */
#include "files/number.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef unsigned __int128 wide;

/* ---- The text -------------------------------------------------------------------------------- */

typedef struct decimal {
    char digits[QKVI_NUMBER_BYTES]; /* 0 to 9, without zeros before them */
    int n_digits, exponent;         /* digits 10^exponent */
    bool negative;
} decimal;

enum { MOST_EXPONENT = 100000 }; /* beyond is 0 or infinity, whatever the digits are */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool read_exponent(const char *at, const char *end, int *exponent) {
    int value = 0;
    const bool negative = at < end && *at == '-';
    if (at < end && (*at == '+' || *at == '-')) at++;
    if (at == end) return false;
    for (; at < end && is_digit(*at); at++)
        if (value < MOST_EXPONENT) value = 10 * value + (*at - '0');
    *exponent += negative ? -value : value;
    return at == end;
}

static bool read_decimal(const char *at, size_t n, decimal *d) {
    const char *const end = at + n;
    bool has_point = false, has_digit = false;
    memset(d, 0, sizeof *d);
    if (n >= QKVI_NUMBER_BYTES) return false;
    d->negative = n > 0 && *at == '-';
    if (n > 0 && (*at == '+' || *at == '-')) at++;
    for (; at < end && (is_digit(*at) || (*at == '.' && !has_point)); at++) {
        if (*at == '.') {
            has_point = true;
            continue;
        }
        has_digit = true;
        if (has_point) d->exponent--;
        if (*at != '0' || d->n_digits > 0) d->digits[d->n_digits++] = (char)(*at - '0');
    }
    if (!has_digit) return false;
    if (at == end) return true;
    return (*at == 'e' || *at == 'E') && read_exponent(at + 1, end, &d->exponent);
}

/* ---- Long integers --------------------------------------------------------------------------- */

/* 10^463 has 1,539 bits; a shift makes at most 64 more, and a carry one. */
enum { WORDS = 64 };

typedef struct integer {
    uint32_t word[WORDS]; /* the lowest first */
    int n;                /* without zeros at the upper end */
} integer;

static void times_plus(integer *x, uint32_t factor, uint32_t more) {
    uint64_t carry = more;
    for (int i = 0; i < x->n; i++) {
        carry += (uint64_t)x->word[i] * factor;
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) x->word[x->n++] = (uint32_t)carry;
}

static int bits_of(const integer *x) {
    return x->n == 0 ? 0 : 32 * x->n - __builtin_clz(x->word[x->n - 1]);
}

static void shift_up(integer *x, int by) {
    const int words = by / 32;
    memmove(x->word + words, x->word, (size_t)x->n * sizeof *x->word);
    memset(x->word, 0, (size_t)words * sizeof *x->word);
    x->n += words;
    times_plus(x, UINT32_C(1) << by % 32, 0);
}

static void halve(integer *x) {
    for (int i = 0; i < x->n; i++)
        x->word[i] = x->word[i] >> 1 | (i + 1 < x->n ? x->word[i + 1] << 31 : 0);
    if (x->n > 0 && x->word[x->n - 1] == 0) x->n--;
}

static bool is_less(const integer *a, const integer *b) {
    if (a->n != b->n) return a->n < b->n;
    for (int i = a->n; i-- > 0;)
        if (a->word[i] != b->word[i]) return a->word[i] < b->word[i];
    return false;
}

static void subtract(integer *a, const integer *b) { /* which is no greater */
    int64_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        borrow += (int64_t)a->word[i] - (i < b->n ? b->word[i] : 0);
        a->word[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    while (a->n > 0 && a->word[a->n - 1] == 0) a->n--;
}

/* ---- Bits ------------------------------------------------------------------------------------ */

/* bits 2^exponent, and a little more if there is something beyond; bits >= 2^62, or exact. */
typedef struct binary {
    wide bits;
    int exponent;
    bool more;
} binary;

static uint64_t power_of_ten(int n) { /* n <= 19 */
    uint64_t power = 1;
    for (; n > 0; n--) power *= 10;
    return power;
}

static bool in_128_bits(const decimal *d, binary *b) {
    uint64_t digits = 0;
    if (d->n_digits > 19 || d->exponent > 19 || d->exponent < -19) return false;
    for (int i = 0; i < d->n_digits; i++) digits = 10 * digits + (uint64_t)d->digits[i];
    if (d->exponent >= 0) {
        *b = (binary){ (wide)digits * power_of_ten(d->exponent), 0, false };
        return true;
    }
    const uint64_t divisor = power_of_ten(-d->exponent);
    const int shift = 64 + __builtin_clzll(digits);
    const wide high = (wide)digits << shift;
    *b = (binary){ high / divisor, -shift, high % divisor != 0 };
    return true;
}

/* The quotient's first bits, 64 or 65, one after another. */
static void by_long_division(const decimal *d, binary *b) {
    integer over = { .n = 0 }, under = { .word = { 1 }, .n = 1 };
    for (int i = 0; i < d->n_digits; i++) times_plus(&over, 10, (uint32_t)d->digits[i]);
    for (int e = d->exponent; e > 0; e--) times_plus(&over, 10, 0);
    for (int e = d->exponent; e < 0; e++) times_plus(&under, 10, 0);
    const int shift = 64 - (bits_of(&over) - bits_of(&under));
    if (shift > 0) shift_up(&over, shift);
    if (shift < 0) shift_up(&under, -shift);
    shift_up(&under, 64);
    *b = (binary){ 0, -shift, false };
    for (int i = 0; i <= 64; i++) {
        const bool fits = !is_less(&over, &under);
        if (fits) subtract(&over, &under);
        b->bits = b->bits << 1 | fits;
        halve(&under);
    }
    b->more = over.n > 0;
}

/*
 * Rounded to so many bits, the last of which is worth 2^least at least. To odd: cut off, and the
 * last bit is 1 if anything was.
 */
static double rounded(const binary *b, int n_kept, int least, bool to_odd) {
    int n = 0;
    for (wide rest = b->bits; rest; rest >>= 1) n++;
    int unit = b->exponent + n - n_kept;
    if (unit < least) unit = least;
    const int away = unit - b->exponent; /* bits that go */
    if (away <= 0) return ldexp((double)(uint64_t)b->bits, b->exponent);
    if (away > n + 1) return to_odd ? ldexp(1, least) : 0;
    const wide half = (wide)1 << (away - 1);
    uint64_t kept = away < 128 ? (uint64_t)(b->bits >> away) : 0;
    const wide lost = b->bits - ((wide)kept << (away < 128 ? away : 0));
    if (to_odd)
        kept |= lost > 0 || b->more;
    else
        kept += lost > half || (lost == half && (b->more || kept % 2 == 1));
    return ldexp((double)kept, unit);
}

static double value_of(const decimal *d, int n_kept, int least, bool to_odd) {
    binary b;
    if (d->n_digits == 0) return 0;
    if (d->n_digits + d->exponent < -400) return to_odd ? ldexp(1, least) : 0;
    if (d->n_digits + d->exponent > 400) return INFINITY;
    if (!in_128_bits(d, &b)) by_long_division(d, &b);
    return rounded(&b, n_kept, least, to_odd);
}

bool qkvi_number_f64(const char *text, size_t n, bool to_odd, double *value) {
    decimal d;
    if (!read_decimal(text, n, &d)) return false;
    *value = copysign(value_of(&d, 53, -1074, to_odd), d.negative ? -1 : 1);
    return true;
}

bool qkvi_number_f32(const char *text, size_t n, float *value) {
    decimal d;
    if (!read_decimal(text, n, &d)) return false;
    /* It is a float already, but where it is too great for one. */
    *value = (float)copysign(value_of(&d, 24, -149, false), d.negative ? -1 : 1);
    return true;
}
