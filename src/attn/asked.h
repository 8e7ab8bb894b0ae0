/*
 * Checks that structs of what is asked for share (qkv/stats.h, qkv/columns.h): `of` is the name of
 * the struct, which messages put before those of its fields.
 */
#ifndef QKVI_ATTN_ASKED_H
#define QKVI_ATTN_ASKED_H

#include <stdbool.h>

#include "core/status.h"

/* QKV_ERR_ARGUMENT unless least <= value <= most. */
QKV_NODISCARD qkv_status qkvi_check_asked(const char *of, const char *name, int64_t value,
                                          int64_t least, int64_t most, qkv_error *error);

/* QKV_ERR_ARGUMENT for what is set without its source. */
QKV_NODISCARD qkv_status qkvi_require_asked(const char *of, bool is_set, bool has_source,
                                            const char *name, const char *source, qkv_error *error);

#endif
