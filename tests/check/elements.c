/* See elements.h. */
#include "check/elements.h"

#include <math.h>

/* digits of the significand, the first included; exponent of the least normal number; greatest. */
typedef struct format {
    const char *name;
    size_t bytes;
    int digits, least;
    double greatest;
} format;

static format format_of(elem_type type) {
    switch (type) {
    case ELEMENT_BF16: return (format){ "bf16", 2, 8, -126, 0x1.FEp127 };
    case ELEMENT_F16: return (format){ "f16", 2, 11, -14, 65504 };
    case ELEMENT_I8: return (format){ "i8", 1, 8, 0, 127 };
    case ELEMENT_F64: return (format){ "f64", 8, 53, -1022, 0x1.FFFFFFFFFFFFFp1023 };
    default: return (format){ "f32", 4, 24, -126, 0x1.FFFFFEp127 };
    }
}

const char *element_name(elem_type type) { return format_of(type).name; }
size_t element_bytes(elem_type type) { return format_of(type).bytes; }

double element_ulp(elem_type type, double x) {
    const format f = format_of(type);
    const int exponent = x == 0 ? f.least : ilogb(x);
    return ldexp(1, (exponent < f.least ? f.least : exponent) - f.digits + 1);
}

double element_rounded(elem_type type, double x) {
    if (!isfinite(x) || type == ELEMENT_F64) return x;
    const double step = element_ulp(type, x), y = nearbyint(x / step) * step;
    return fabs(y) > format_of(type).greatest ? copysign(INFINITY, x) : copysign(y, x);
}

/* Sign, exponent with its bias, and the significand without its first digit. */
double element_of_bits(elem_type type, uint16_t bits) {
    const format f = format_of(type);
    const int fraction_bits = f.digits - 1, fraction = bits & ((1 << fraction_bits) - 1);
    const int exponents = 1 << (15 - fraction_bits),
              exponent = bits >> fraction_bits & (exponents - 1);
    double x;
    if (exponent == exponents - 1)
        x = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        x = ldexp(fraction, f.least - fraction_bits);
    else
        x = ldexp((1 << fraction_bits) + fraction, f.least + exponent - 1 - fraction_bits);
    return copysign(x, bits >> 15 ? -1.0 : 1.0);
}

static uint16_t bits_of(elem_type type, double x) {
    const format f = format_of(type);
    const int fraction_bits = f.digits - 1, sign = signbit(x) ? 1 << 15 : 0;
    const int infinite = ((1 << (15 - fraction_bits)) - 1) << fraction_bits;
    if (isnan(x)) return (uint16_t)(sign | infinite | 1 << (fraction_bits - 1));
    x = fabs(element_rounded(type, x));
    if (isinf(x)) return (uint16_t)(sign | infinite);
    /* Steps of the last digit from 0: those of the exponents below, then those of this one. */
    const int exponent = x == 0 || ilogb(x) < f.least ? f.least : ilogb(x);
    const int steps = (int)ldexp(x, fraction_bits - exponent);
    return (uint16_t)(sign | (((exponent - f.least) << fraction_bits) + steps));
}

double element_get(const void *x, elem_type type, int64_t at) {
    switch (type) {
    case ELEMENT_F32: return (double)((const float *)x)[at];
    case ELEMENT_F64: return ((const double *)x)[at];
    case ELEMENT_I8: return ((const int8_t *)x)[at];
    default: return element_of_bits(type, ((const uint16_t *)x)[at]);
    }
}

void element_set(void *x, elem_type type, int64_t at, double value) {
    switch (type) {
    case ELEMENT_F32: ((float *)x)[at] = (float)value; break;
    case ELEMENT_F64: ((double *)x)[at] = value; break;
    case ELEMENT_I8: ((int8_t *)x)[at] = (int8_t)value; break;
    default: ((uint16_t *)x)[at] = bits_of(type, value);
    }
}

void element_set_nan(void *x, elem_type type, int64_t at, uint64_t payload) {
    const int fraction_bits = format_of(type).digits - 1;
    const int all_bits = 8 * (int)format_of(type).bytes;
    const uint64_t fraction = payload % (1ull << fraction_bits);
    const uint64_t infinite = (1ull << (all_bits - 1)) - (1ull << fraction_bits);
    const uint64_t bits = infinite | (fraction ? fraction : 1) | payload >> 63 << (all_bits - 1);
    if (type == ELEMENT_F32)
        ((uint32_t *)x)[at] = (uint32_t)bits;
    else
        ((uint16_t *)x)[at] = (uint16_t)bits;
}

elem_type element_of_o(const qkv_attention_desc *d) {
    return (elem_type)(d->flags & QKV_SET_O_DTYPE ? d->o_dtype : d->dtype);
}
