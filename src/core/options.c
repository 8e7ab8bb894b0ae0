/*
 * Reading an option struct of another version. See options.h.
 */
#include "core/options.h"

#include <string.h>

enum {
    LARGEST_GROWTH = 4096
}; /* above it struct_size is rubbish, and reading on would be dangerous */

qkv_status qkvi_options_read(void *ours, size_t our_bytes, const void *given, const char *name,
                             qkv_error *error) {
    size_t given_bytes;
    memcpy(&given_bytes, given, sizeof given_bytes);
    if (given_bytes < our_bytes) /* version 0.1 is the first: nothing smaller exists yet */
        return qkvi_error_set(
            error, QKV_ERR_ARGUMENT,
            "%s.struct_size = %zu is less than %zu, the smallest there is; fill it from its _INIT",
            name, given_bytes, our_bytes);
    if (given_bytes - our_bytes > LARGEST_GROWTH)
        return qkvi_error_set(error, QKV_ERR_VERSION,
                              "%s.struct_size = %zu is more than this library (%s) can check; it "
                              "knows %zu bytes",
                              name, given_bytes, qkv_version(), our_bytes);
    const unsigned char *bytes = given;
    for (size_t i = our_bytes; i < given_bytes; i++)
        if (bytes[i] != 0)
            return qkvi_error_set(error, QKV_ERR_VERSION,
                                  "%s.struct_size = %zu: byte %zu is not 0, and this library (%s) "
                                  "knows only the first %zu",
                                  name, given_bytes, i, qkv_version(), our_bytes);
    memcpy(ours, given, our_bytes);
    memcpy(ours, &our_bytes, sizeof our_bytes);
    return QKV_OK;
}
