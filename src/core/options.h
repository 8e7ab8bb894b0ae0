/*
 * Option structs across versions. Each begins with size_t struct_size, which the caller's _INIT set
 * to the size that his header knew; fields are only ever appended, and zero means "the default". So
 * a larger struct is understood exactly if everything past our own fields is zero.
 */
#ifndef QKVI_CORE_OPTIONS_H
#define QKVI_CORE_OPTIONS_H

#include "core/status.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/*
 * Copies the caller's struct `given` into `ours`, of our_bytes, where our struct_size is then set.
 * name is its type's, for messages. QKV_ERR_ARGUMENT: struct_size is smaller than any version had;
 * QKV_ERR_VERSION: it sets what we do not know.
 */
qkv_status qkvi_options_read(void *ours, size_t our_bytes, const void *given, const char *name,
                             qkv_error *error);

#pragma GCC visibility pop

#endif
