/*
 * Reading and writing elements of arrays of any type as doubles: exact when read, rounded once to
 * nearest even when written. Made from the definitions of the formats (significand, range), without
 * the library, whose conversions are under test.
 */
#ifndef QKV_TESTS_ELEMENTS_H
#define QKV_TESTS_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qkv/qkv.h"

/* Types of qkv_dtype have the same values. */
typedef enum elem_type {
    ELEMENT_F32 = QKV_F32,
    ELEMENT_BF16 = QKV_BF16,
    ELEMENT_F16 = QKV_F16,
    ELEMENT_I8 = QKV_I8, /* a whole number; of stored keys and values, with a scale per row */
    ELEMENT_F64 = 64
} elem_type;

const char *element_name(elem_type type);
size_t element_bytes(elem_type type);

double element_get(const void *x, elem_type type, int64_t at);
/* A NaN becomes the quiet NaN of the type, with the same sign. */
void element_set(void *x, elem_type type, int64_t at, double value);

/* Sets any NaN, also a signalling one, with sign and digits from payload. */
void element_set_nan(void *x, elem_type type, int64_t at, uint64_t payload);

/* x rounded to the type, to nearest even; infinity beyond its range. */
double element_rounded(elem_type type, double x);
/* The distance from |x| to the next number of the type; x is finite. */
double element_ulp(elem_type type, double x);
/* The number with these bits of a 16-bit type. */
double element_of_bits(elem_type type, uint16_t bits);

/* The type of o by a descriptor. */
elem_type element_of_o(const qkv_attention_desc *d);

#endif
