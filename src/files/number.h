/** Decimal numbers of files, whatever the locale of the process is. */
#ifndef QKVI_FILES_NUMBER_H
#define QKVI_FILES_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

enum { QKVI_NUMBER_BYTES = 64 }; /* longer texts are no numbers */

/**
 * A sign or none, digits with a point or without, an exponent or none: the nearest number, ties to
 * even, as strtod and strtof have it in the locale "C"; an infinity beyond the greatest. False,
 * with *value as it was, if the text is anything else: there is no "inf", no "nan", no hexadecimal.
 *
 * to_odd: not the nearest, but of the two numbers beside it the one whose last bit is 1, if it is
 * none itself. Rounded to a shorter type that is then rounded once, and a number that is not whole,
 * or is above 2^53, stays so.
 */
bool qkvi_number_f64(const char *text, size_t n, bool to_odd, double *value);
bool qkvi_number_f32(const char *text, size_t n, float *value);

#endif
