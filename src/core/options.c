/*
 * Reading and writing a struct of another version. See options.h.
 */
#include "core/options.h"

#include <inttypes.h>
#include <string.h>

/* A size outside of these was not set: reading on would be dangerous. */
enum {
    LEAST_ELEMENT = sizeof(int32_t),
    LEAST = sizeof(size_t) + LEAST_ELEMENT,
    LARGEST_GROWTH = 4096
};

/* The first byte from our_bytes on that is not 0; given_bytes if there is none. */
static size_t first_unknown(const void *given, size_t given_bytes, size_t our_bytes) {
    const unsigned char *bytes = given;
    size_t i = our_bytes;
    while (i < given_bytes && bytes[i] == 0) i++;
    return i < given_bytes ? i : given_bytes;
}

qkv_status qkvi_options_read(void *ours, size_t our_bytes, const void *given, const char *name,
                             qkv_error *error) {
    size_t given_bytes;
    memcpy(&given_bytes, given, sizeof given_bytes);
    if (given_bytes < LEAST)
        return qkvi_error_set(
            error, QKV_ERR_ARGUMENT,
            "%s.struct_size = %zu is less than %zu; fill the struct by its _init()", name,
            given_bytes, (size_t)LEAST);
    if (given_bytes > our_bytes && given_bytes - our_bytes > LARGEST_GROWTH)
        return qkvi_error_set(error, QKV_ERR_VERSION,
                              "%s.struct_size = %zu is more than this library (%s) can check; it "
                              "knows %zu bytes",
                              name, given_bytes, qkv_version(), our_bytes);
    const size_t unknown = first_unknown(given, given_bytes, our_bytes);
    if (unknown < given_bytes)
        return qkvi_error_set(error, QKV_ERR_VERSION,
                              "%s.struct_size = %zu: byte %zu is not 0, and this library (%s) "
                              "knows only the first %zu",
                              name, given_bytes, unknown, qkv_version(), our_bytes);
    memcpy(ours, given, given_bytes < our_bytes ? given_bytes : our_bytes);
    memcpy(ours, &our_bytes, sizeof our_bytes);
    return QKV_OK;
}

void qkvi_options_write(void *given, const void *ours, size_t our_bytes) {
    size_t bytes;
    memcpy(&bytes, given, sizeof bytes);
    if (bytes < LEAST) return;
    const size_t known = bytes < our_bytes ? bytes : our_bytes;
    memcpy((char *)given + sizeof bytes, (const char *)ours + sizeof bytes, known - sizeof bytes);
    if (bytes > known) memset((char *)given + known, 0, bytes - known);
}

/* ---- Elements -------------------------------------------------------------------------------- */

qkv_status qkvi_element_check(size_t element_bytes, size_t our_bytes, const char *size_name,
                              qkv_error *error) {
    if (element_bytes < LEAST_ELEMENT)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "%s = %zu is less than %zu; it is the size of an element", size_name,
                              element_bytes, (size_t)LEAST_ELEMENT);
    if (element_bytes > our_bytes && element_bytes - our_bytes > LARGEST_GROWTH)
        return qkvi_error_set(error, QKV_ERR_VERSION,
                              "%s = %zu is more than this library (%s) can check; it knows %zu "
                              "bytes",
                              size_name, element_bytes, qkv_version(), our_bytes);
    return QKV_OK;
}

qkv_status qkvi_element_read(void *ours, size_t our_bytes, const void *array, int64_t index,
                             size_t element_bytes, const char *name, qkv_error *error) {
    const char *const given = (const char *)array + (size_t)index * element_bytes;
    const size_t unknown = first_unknown(given, element_bytes, our_bytes);
    if (unknown < element_bytes)
        return qkvi_error_set(error, QKV_ERR_VERSION,
                              "%s[%lld]: byte %zu is not 0, and this library (%s) knows only the "
                              "first %zu",
                              name, (long long)index, unknown, qkv_version(), our_bytes);
    memcpy(ours, given, element_bytes < our_bytes ? element_bytes : our_bytes);
    return QKV_OK;
}

void qkvi_element_write(void *array, int64_t index, size_t element_bytes, const void *ours,
                        size_t our_bytes) {
    char *const given = (char *)array + (size_t)index * element_bytes;
    const size_t known = element_bytes < our_bytes ? element_bytes : our_bytes;
    memcpy(given, ours, known);
    memset(given + known, 0, element_bytes - known);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

qkv_status qkvi_option_check(const char *of, const char *name, int64_t value, int64_t least,
                             int64_t most, qkv_error *e) {
    if (value < least || value > most)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "%s.%s = %" PRId64 " is not in [%" PRId64 ", %" PRId64 "]", of, name,
                              value, least, most);
    return QKV_OK;
}

qkv_status qkvi_option_require(const char *of, bool is_set, bool has_source, const char *name,
                               const char *source, qkv_error *e) {
    if (is_set && !has_source)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s.%s is set without %s.%s", of, name, of,
                              source);
    return QKV_OK;
}
