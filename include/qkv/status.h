/**
 * What all headers of qkv share: export attributes, versions, status codes, error messages, and
 * how a struct of options begins. docs/api.md has the conventions of all calls.
 */
#ifndef QKV_STATUS_H
#define QKV_STATUS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define QKV_API       __attribute__((visibility("default")))
#define QKV_NODISCARD __attribute__((warn_unused_result))
#else
#define QKV_API
#define QKV_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_VERSION_MAJOR  0
#define QKV_VERSION_MINOR  2
#define QKV_VERSION_PATCH  0
#define QKV_VERSION_SUFFIX "-dev" /* "-dev" until that version is released */

/**
 * Returns the version of the library that runs: "0.1.0", or "0.2.0-dev" before 0.2.0 is released.
 * It may be newer than this header.
 */
QKV_API const char *qkv_version(void);

/** The result of a call. A value never changes its meaning. */
typedef enum qkv_status {
    QKV_OK = 0,
    /* A pointer, flag or number is invalid for every problem. */
    QKV_ERR_ARGUMENT = -1,
    /* Sizes do not fit each other. */
    QKV_ERR_SHAPE = -2,
    /* A stride is negative, overflows, or makes rows of an output overlap. */
    QKV_ERR_STRIDE = -3,
    /* An element type, or a combination of types, is not supported. */
    QKV_ERR_DTYPE = -4,
    /* An allocation failed. */
    QKV_ERR_MEMORY = -5,
    /* A struct is newer than this library, and uses what this library does not know. */
    QKV_ERR_VERSION = -6,
    /* A file breaks the rules of its format. */
    QKV_ERR_FORMAT = -7,
    /* The input is legal, but exceeds a limit. The message names the limit. */
    QKV_ERR_LIMIT = -8,
    /* The input is legal, but needs a feature that is not implemented. The message names it. */
    QKV_ERR_UNSUPPORTED = -9,
    /* The operating system failed to read or write. */
    QKV_ERR_IO = -10,
    /* The context is inside another call. */
    QKV_ERR_BUSY = -11,
    /* The caller's cancel flag was set. Outputs may be written in part. */
    QKV_ERR_CANCELLED = -12
} qkv_status;

/** Returns the name, "QKV_ERR_SHAPE"; "unknown status" for any other number. Never NULL. */
QKV_API const char *qkv_status_name(qkv_status status);

/**
 * The reason of a failure, for functions without a context. It is always the last parameter, and
 * may be NULL. The message names field, value and rule: "o_stride[2] = 60 is less than
 * head_dim_v = 64".
 */
typedef struct qkv_error {
    qkv_status status;
    char message[1000];
} qkv_error;

/**
 * Defines type_init(), which returns a struct with all bytes 0 but its size. Zero is the default of
 * each field, unless its comment says otherwise.
 */
#define QKV_DEFINE_INIT(type)                                                                      \
    static inline type type##_init(void) {                                                         \
        type made;                                                                                 \
        memset(&made, 0, sizeof made);                                                             \
        made.struct_size = sizeof made;                                                            \
        return made;                                                                               \
    }

#ifdef __cplusplus
}
#endif
#endif
