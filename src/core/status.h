/*
 * Failure: one status per call, its text in an object of the caller's choice, nothing global.
 */
#ifndef QKVI_CORE_STATUS_H
#define QKVI_CORE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#include <qkv/qkv.h>

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

#define QKVI_PRINTF(format_index, first_argument)                                                  \
    __attribute__((format(printf, format_index, first_argument)))

/* Returns from the current function with the status of expr, unless it is QKV_OK. */
#define QKV_TRY(expr)                                                                              \
    do {                                                                                           \
        const qkv_status qkvi_try_status = (expr);                                                 \
        if (qkvi_try_status != QKV_OK) return qkvi_try_status;                                     \
    } while (0)

/*
 * Writes status and text into error, which may be NULL, and returns status: `return
 * qkvi_error_set(…)`.
 */
qkv_status qkvi_error_set(qkv_error *error, qkv_status status, const char *format, ...)
    QKVI_PRINTF(3, 4);
qkv_status qkvi_error_vset(qkv_error *error, qkv_status status, const char *format,
                           va_list arguments) QKVI_PRINTF(3, 0);

/*
 * Makes hostile bytes fit to print: printable characters of valid UTF-8 stay, a backslash is
 * doubled, every other byte (control characters, invisible and direction-changing ones, broken
 * sequences) becomes \xNN. What does not fit is cut at a character and ends in "...". Always
 * terminates dst, whose size must be at least 4; returns dst.
 */
char *qkvi_escape(char *dst, size_t dst_bytes, const void *bytes, size_t n_bytes);

/* Room for the name of a file in an error, whose message has as much for all else. */
enum { QKVI_NAME_BYTES = 512 };

#pragma GCC visibility pop

#endif
