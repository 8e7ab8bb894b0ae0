/* See asked.h. */
#include "attn/asked.h"

#include <inttypes.h>

qkv_status qkvi_check_asked(const char *of, const char *name, int64_t value, int64_t least,
                            int64_t most, qkv_error *e) {
    if (value < least || value > most)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "%s.%s = %" PRId64 " is not in [%" PRId64 ", %" PRId64 "]", of, name,
                              value, least, most);
    return QKV_OK;
}

qkv_status qkvi_require_asked(const char *of, bool is_set, bool has_source, const char *name,
                              const char *source, qkv_error *e) {
    if (is_set && !has_source)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s.%s is set without %s.%s", of, name, of,
                              source);
    return QKV_OK;
}
